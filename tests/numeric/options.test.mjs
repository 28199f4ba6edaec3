// Training options by numbers: every optimizer against PyTorch (options.json, made by make_option_fixtures.py), recomputed
// against kept activations, micro-batches against one batch, adapters against the weights that they stand for. Runs the
// graphs that `monet graph` writes. MONET names another executable than build/native/bin/monet.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import ort from 'onnxruntime-node';

const here = import.meta.dirname ?? new URL('.', import.meta.url).pathname;
const top = join(here, '../..');
const monet = process.env.MONET ?? join(top, 'build/native/bin/monet');
const folder = mkdtempSync(join(tmpdir(), 'monet-options-'));
after(() => rmSync(folder, { recursive: true }));
const fixtures = JSON.parse(readFileSync(join(here, 'options.json'), 'utf8'));
const example = (name) => join(top, 'examples/models', `${name}.onnx`);

function unpack({ shape, data }) {
  return new ort.Tensor('float32', new Float32Array(new Uint8Array(Buffer.from(data, 'base64')).buffer), shape);
}

let files = 0;
function written(base64) {
  const path = join(folder, `${++files}.onnx`);
  writeFileSync(path, Buffer.from(base64, 'base64'));
  return path;
}

// The training graph under the settings given, as it is written: no optimisation.
async function graph(model, settings) {
  const path = join(folder, `${++files}.json`), out = join(folder, `${files}.onnx`);
  writeFileSync(path, JSON.stringify(settings));
  execFileSync(monet, ['graph', model, '--settings', path, '--out', out]);
  return ort.InferenceSession.create(out, { graphOptimizationLevel: 'disabled' });
}

function report(model, settings) {
  const path = join(folder, `${++files}.json`);
  writeFileSync(path, JSON.stringify(settings));
  return JSON.parse(execFileSync(monet, ['analyze', model, '--settings', path, '--json', '-'],
    { encoding: 'utf8', maxBuffer: 1 << 28 }));
}

// Uniform in [-1, 1), by a 32-bit mix of the tensor's name and the element's index (the finaliser of MurmurHash3).
function random(name, count) {
  let seed = 0;
  for (const c of name) seed = (Math.imul(seed, 31) + c.charCodeAt(0)) | 0;
  return Float32Array.from({ length: count }, (_, i) => {
    let h = (seed + Math.imul(i + 1, 0x9e3779b9)) | 0;
    h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
    return ((h ^ (h >>> 16)) >>> 0) / 2 ** 31 - 1;
  });
}

const scalar = (value) => new ort.Tensor('float32', new Float32Array([value]), []);
const float = (data, shape) => new ort.Tensor('float32', data, shape);

// Weights of about 1/sqrt(fan-in), variances positive, labels below 10, states and sums zero.
function feedsOf(session, given = {}) {
  const feeds = {};
  for (const { name, type, shape } of session.inputMetadata) {
    const count = shape.reduce((a, b) => a * b, 1);
    if (given[name]) feeds[name] = given[name];
    else if (name === 'learning_rate') feeds[name] = scalar(1);
    else if (name === 'step') feeds[name] = new ort.Tensor('int64', BigInt64Array.of(1n), []);
    else if (type === 'int64') feeds[name] = new ort.Tensor('int64', BigInt64Array.from(random(name, count), (v) => BigInt(Math.floor((v + 1) * 5))), shape);
    else if (/_(grad_sum|momentum|adam_[mv]|adagrad_sum|rmsprop_v|lion_m)$/.test(name)) feeds[name] = float(new Float32Array(count), shape);
    else if (/var$/.test(name)) feeds[name] = float(random(name, count).map((v) => 1 + v / 2), shape);
    else {
      const fan = shape.length > 1 ? shape.slice(1).reduce((a, b) => a * b, 1) : 1;
      feeds[name] = float(random(name, count).map((v) => v / Math.sqrt(fan)), shape);
    }
  }
  return feeds;
}

const largest = (values) => values.reduce((m, v) => Math.max(m, Math.abs(v)), 0);
function assertClose(actual, expected, tolerance, what) {
  assert.equal(actual.length, expected.length, what);
  const scale = Math.max(largest(expected), 1e-6);
  const error = largest(actual.map((v, i) => v - expected[i])) / scale;
  assert.ok(error <= tolerance, `${what}: relative error ${error}`);
}

const nextOf = (name, results) => results[`${name}_next`];
// What an update with learning rate 1 took away.
const gradient = (name, feeds, results) => feeds[name].data.map((v, i) => v - nextOf(name, results).data[i]);

for (const { optimizer, options, learning_rate, losses, parameters } of fixtures.steps) {
  test(`${optimizer} ${JSON.stringify(options)} steps as PyTorch does`, async () => {
    const session = await graph(written(fixtures.perceptron), { optimizer, loss: 'mse', ...options });
    const start = Object.fromEntries(Object.entries(fixtures.start).map(([k, v]) => [k, unpack(v)]));
    const feeds = feedsOf(session, { ...start, x: unpack(fixtures.x), target: unpack(fixtures.target), learning_rate: scalar(learning_rate) });
    for (let step = 0; step < losses.length; ++step) {
      if (feeds.step) feeds.step = new ort.Tensor('int64', BigInt64Array.of(BigInt(step + 1)), []);
      const results = await session.run(feeds);
      assertClose(results.loss.data, [losses[step]], 1e-5, `loss ${step}`);
      for (const name of session.inputNames) if (nextOf(name, results)) feeds[name] = nextOf(name, results);
    }
    for (const [name, packed] of Object.entries(parameters)) {
      const expected = unpack(packed).data;
      // Relative to the change: Adam passes a small gradient's rounding error on undiminished.
      const change = largest(expected.map((v, i) => v - start[name].data[i]));
      assertClose(feeds[name].data, expected, 1e-3 * change / largest(expected) + 1e-6, name);
    }
  });
}

for (const [name, batch] of [['lenet5', 2], ['resnet18_cifar', 2]]) {
  test(`${name}: recomputed activations give the same step, bit by bit`, async () => {
    const kept = report(example(name), { batch });
    const made = new Set(kept.layers.filter((l) => l.phase === 'forward').map((l) => l.id));
    const saved = kept.memory.saved.filter((s) => made.has(s.layer)).map((s) => s.tensor);
    const plain = await graph(example(name), { batch });
    const expected = await plain.run(feedsOf(plain));
    // All, and every second one, so that slices start at different places and share nodes.
    for (const recompute of [saved, saved.filter((_, i) => i % 2), saved.filter((_, i) => i % 3 === 0)]) {
      const after = report(example(name), { batch, recompute });
      assert.ok(after.training.nodes.recompute > 0);
      assert.ok(after.memory.activations < kept.memory.activations);
      assert.ok(after.training.macs.total >= kept.training.macs.total);
      const session = await graph(example(name), { batch, recompute });
      const actual = await session.run(feedsOf(session));
      assert.deepEqual(Object.keys(actual).sort(), Object.keys(expected).sort());
      for (const key of Object.keys(expected)) assert.deepEqual(actual[key].data, expected[key].data, key);
    }
  });
}

test('a recomputed dropout uses the mask that it drew', async () => {
  const path = written(fixtures.dropout);
  const saved = report(path, { loss: 'sum' }).memory.saved.map((s) => s.tensor);
  assert.ok(saved.includes('dropped'));
  const session = await graph(path, { loss: 'sum', recompute: ['dropped'] });
  const feeds = feedsOf(session);
  const results = await session.run(feeds);
  // The loss is a quadratic form in `scale`: the gradient times `scale` is twice the loss (Euler), if masks agree.
  let product = 0;
  gradient('scale', feeds, results).forEach((g, i) => { product += g * feeds.scale.data[i]; });
  assertClose([product], [2 * results.loss.data[0]], 1e-4, 'gradient times scale');
  assert.throws(() => report(path, { loss: 'sum', recompute: ['mask', 'nothing'] }), (error) => {
    assert.match(error.stderr.toString(), /mask cannot be computed again: Dropout draws it at random/);
    assert.match(error.stderr.toString(), /tensor nothing is not saved/);
    return error.status === 1;
  });
});

for (const optimizer of ['sgd', 'adam']) {
  test(`two micro-batches step as one batch of both, ${optimizer}`, async () => {
    const settings = { optimizer, clip_norm: 0.1 };
    const whole = await graph(example('lenet5'), { ...settings, batch: 4 });
    const feeds = feedsOf(whole);
    const expected = await whole.run(feeds);
    const half = await graph(example('lenet5'), { ...settings, batch: 2, micro_batches: 2 });
    const halves = feedsOf(half, Object.fromEntries(Object.entries(feeds).filter(([k]) => k !== 'input' && k !== 'labels')));
    let results;
    for (const at of [0, 1]) {
      const count = feeds.input.data.length / 2;
      halves.input = float(feeds.input.data.slice(at * count, (at + 1) * count), [2, 1, 28, 28]);
      halves.labels = new ort.Tensor('int64', feeds.labels.data.slice(at * 2, at * 2 + 2), [2]);
      results = await half.run(halves);
      for (const name of half.inputNames) if (name.endsWith('_grad_sum')) halves[name] = nextOf(name, results);
    }
    for (const name of whole.inputNames) {
      if (!nextOf(name, expected)) continue;
      assertClose(nextOf(name, results).data, nextOf(name, expected).data, 1e-4, name);
    }
  });
}

test('adapters are the low-rank change of the weights that they stand for', async () => {
  const rank = 2;
  const adapted = await graph(example('lenet5'), { batch: 2, lora_rank: rank });
  const feeds = feedsOf(adapted);
  const results = await adapted.run(feeds);
  const adapters = adapted.outputNames.filter((name) => /lora_[AB]_next$/.test(name));
  assert.equal(adapters.length, adapted.outputNames.length - 1, 'only adapters are updated, and the loss is returned');
  // The same model with W + BA in place of W.
  const plain = await graph(example('lenet5'), { batch: 2 });
  const merged = feedsOf(plain, feeds);
  const weights = plain.inputNames.filter((name) => feeds[`${name}.lora_A`]);
  assert.equal(weights.length, 5);
  for (const name of weights) {
    const { dims, data } = feeds[name];
    const a = feeds[`${name}.lora_A`], b = feeds[`${name}.lora_B`];
    const rows = dims[0], columns = data.length / rows;
    merged[name] = float(data.map((v, i) => {
      const row = Math.floor(i / columns), column = i % columns;
      // Conv: A is [rank, C, k, k], B [K, rank, 1, 1]. Gemm with W [N, K] transposed: A is [K, rank], B [rank, N].
      for (let r = 0; r < rank; ++r)
        v += dims.length > 2 ? b.data[row * rank + r] * a.data[r * columns + column] : a.data[column * rank + r] * b.data[r * rows + row];
      return v;
    }), dims);
  }
  const expected = await plain.run(merged);
  assertClose(results.loss.data, expected.loss.data, 1e-5, 'loss');
  for (const name of weights) {
    const full = gradient(name, merged, expected), { dims } = feeds[name];
    const rows = dims[0], columns = full.length / rows, conv = dims.length > 2;
    const a = feeds[`${name}.lora_A`].data, b = feeds[`${name}.lora_B`].data;
    const da = new Float32Array(a.length), db = new Float32Array(b.length);
    for (let row = 0; row < rows; ++row)
      for (let column = 0; column < columns; ++column)
        for (let r = 0; r < rank; ++r) {
          const g = full[row * columns + column];
          const atA = conv ? r * columns + column : column * rank + r, atB = conv ? row * rank + r : r * rows + row;
          da[atA] += g * b[atB];
          db[atB] += g * a[atA];
        }
    assertClose(gradient(`${name}.lora_A`, feeds, results), da, 1e-3, `${name}.lora_A`);
    assertClose(gradient(`${name}.lora_B`, feeds, results), db, 1e-3, `${name}.lora_B`);
  }
});
