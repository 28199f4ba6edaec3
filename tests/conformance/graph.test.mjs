// `monet graph` on the examples: the file runs in ONNX Runtime as it is, and does what a training step does.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import ort from 'onnxruntime-node';

const top = new URL('../..', import.meta.url).pathname;
const scratch = mkdtempSync(join(tmpdir(), 'monet-graph-'));
after(() => rmSync(scratch, { recursive: true }));

// A small deterministic generator (mulberry32): the same weights in every run.
function generator(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

// Feeds by what each input is: labels in range, learning rate and step count, variances positive, weights small enough
// to keep the activations of an untrained network near 1.
function feedsOf(session, rate) {
  const random = generator(7);
  const feeds = {};
  for (const { name, type, shape } of session.inputMetadata) {
    const count = shape.reduce((a, b) => a * b, 1);
    if (type === 'int64') {
      feeds[name] = new ort.Tensor('int64', BigInt64Array.from({ length: count }, () => BigInt(Math.floor(random() * 10))), shape);
      continue;
    }
    const spread = Math.sqrt(3 / Math.max(1, shape.slice(1).reduce((a, b) => a * b, 1)));
    const value = /learning_rate/.test(name) ? () => rate
      : shape.length === 1 && /var|weight/.test(name) ? () => 1
      : () => (2 * random() - 1) * (shape.length > 1 ? spread : 0.1);
    feeds[name] = new ort.Tensor('float32', Float32Array.from({ length: count }, value), shape);
  }
  return feeds;
}

for (const [example, batch] of [['lenet5', 4], ['resnet18_cifar', 4], ['mobilenet_v2', 2]])
  test(`${example}: five steps on one batch in ONNX Runtime lower the loss`, async () => {
    const file = join(scratch, `${example}.onnx`);
    const run = spawnSync(join(top, 'build/native/bin/monet'),
      ['graph', join(top, `examples/models/${example}.onnx`), '--batch', String(batch), '--out', file]);
    assert.equal(run.status, 0, run.stderr.toString());
    const session = await ort.InferenceSession.create(file, { graphOptimizationLevel: 'disabled' });
    const feeds = feedsOf(session, 0.01);
    const losses = [];
    for (let step = 0; step < 5; ++step) {
      const results = await session.run(feeds);
      const loss = Object.entries(results).find(([name, t]) => t.dims.length === 0 && /loss/.test(name));
      assert.ok(loss, Object.keys(results).join());
      losses.push(loss[1].data[0]);
      let updated = 0;
      for (const [name, tensor] of Object.entries(results)) {
        const old = name.replace(/_next$/, '');
        if (old === name || !feeds[old]) continue;
        assert.deepEqual(tensor.dims, feeds[old].dims, name);
        feeds[old] = tensor;
        ++updated;
      }
      assert.ok(updated > 5, `parameters updated: ${updated}; outputs ${Object.keys(results).slice(0, 8)}`);
    }
    assert.ok(losses.every(Number.isFinite) && losses[4] < losses[0], losses.join());
  });
