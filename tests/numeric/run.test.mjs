// Gradients and optimizer steps of exported training graphs, run by ONNX Runtime, against PyTorch's (fixtures.json, made
// by make_fixtures.py). Run with `node --test` after `npm ci --ignore-scripts` in tests/. Takes the executable that
// MONET_TRAINING_EXPORT names, else build/native/bin/training_export.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import ort from 'onnxruntime-node';

const here = import.meta.dirname ?? new URL('.', import.meta.url).pathname;
const exporter = process.env.MONET_TRAINING_EXPORT ?? join(here, '../../build/native/bin/training_export');
const folder = mkdtempSync(join(tmpdir(), 'monet-numeric-'));
after(() => rmSync(folder, { recursive: true }));

// The largest difference allowed, relative to the largest magnitude of the tensor compared. float32 carries 6e-8;
// sums of a few hundred products in two different orders, through up to ten layers, stay within some hundred times that,
// while a wrong formula is off by 1e-2 and more.
const TOLERANCE = 2e-5;
// After an optimizer step the comparison is relative to the parameter's change, which is what the step computes.
// Adam divides by sqrt(v): where a gradient is near zero (1e-6 of its tensor's scale), its rounding error is a visible
// part of it, and the quotient passes that on undiminished.
const STEP_TOLERANCE = { sgd: 1e-4, momentum: 1e-4, adam: 1e-3 };

const arrays = { float32: Float32Array, int64: BigInt64Array };
function unpack({ type, shape, data }) {
  const bytes = Buffer.from(data, 'base64');
  const array = new arrays[type](new Uint8Array(bytes).buffer);
  return new ort.Tensor(type, array, shape);
}

function largest(values) {
  let result = 0;
  for (const v of values) result = Math.max(result, Math.abs(v));
  return result;
}

function difference(actual, expected, what) {
  assert.deepEqual([...actual.dims], [...expected.dims], `${what}: shape`);
  let result = 0;
  for (let i = 0; i < expected.data.length; ++i) {
    const d = Math.abs(actual.data[i] - expected.data[i]);
    assert.ok(Number.isFinite(d), `${what}: element ${i} is ${actual.data[i]}`);
    result = Math.max(result, d);
  }
  return result;
}

async function load(fixture, optimizer) {
  const model = join(folder, `${fixture.name}.onnx`), graph = join(folder, `${fixture.name}.${optimizer}.onnx`);
  writeFileSync(model, Buffer.from(fixture.model, 'base64'));
  const names = JSON.parse(execFileSync(
    exporter, [model, graph, fixture.loss, optimizer, ...(fixture.frozen ? ['frozen'] : []),
      ...(fixture.run_opset ? [`opset=${fixture.run_opset}`] : [])], { encoding: 'utf8' }));
  // No optimisation: what is tested is the graph as written.
  const session = await ort.InferenceSession.create(graph, { graphOptimizationLevel: 'disabled' });
  const feeds = {};
  for (const group of [fixture.inputs, fixture.parameters, fixture.buffers])
    for (const [name, value] of Object.entries(group))
      if (session.inputNames.includes(name)) feeds[name] = unpack(value);
  for (const name of names.labels) feeds[name] = unpack(fixture.label);
  return { session, feeds, names };
}

// States start as zeros of their parameter's shape.
function addStates(feeds, names, parameters) {
  for (const name of Object.keys(names.next)) {
    const parameter = Object.keys(parameters).find(
      (p) => ['momentum', 'adam_m', 'adam_v'].some((state) => name === `${p}_${state}`));
    if (!parameter || feeds[name]) continue;
    const { shape } = parameters[parameter];
    feeds[name] = new ort.Tensor('float32', new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
  }
}

function applyMask(gradient, { data }) {
  const kept = data.reduce((a, b) => a + Number(b), 0);
  assert.ok(kept > 0 && kept < data.length, `dropout kept ${kept} of ${data.length}`);
  for (let i = 0; i < data.length; ++i) gradient.data[i] *= Number(data[i]);
}

const scalarFloat = (value) => new ort.Tensor('float32', new Float32Array([value]), []);

const worst = { value: 0, of: '' };

for (const fixture of JSON.parse(readFileSync(join(here, 'fixtures.json'), 'utf8'))) {
  test(fixture.name, async () => {
    const { session, feeds, names } = await load(fixture, 'sgd');
    feeds.learning_rate = scalarFloat(0.1);
    const results = await session.run(feeds);
    const { expected } = fixture;
    const loss = results[names.loss].data[0];
    if (fixture.compare_loss)
      assert.ok(Math.abs(loss - expected.loss) <= TOLERANCE * Math.max(1, Math.abs(expected.loss)),
        `loss ${loss}, PyTorch ${expected.loss}`);
    assert.deepEqual(Object.keys(names.gradients).sort(), Object.keys(fixture.parameters).sort(), 'trained parameters');
    for (const [name, packed] of Object.entries(expected.gradients)) {
      const reference = unpack(packed);
      if (fixture.mask_gradients) applyMask(reference, results[names.masks[0]]);
      const scale = Math.max(largest(reference.data), 1e-3);  // a gradient that is zero but for rounding
      const error = difference(results[names.gradients[name]], reference, `gradient of ${name}`) / scale;
      if (error > worst.value) Object.assign(worst, { value: error, of: `${fixture.name}: ${name}` });
      assert.ok(error <= TOLERANCE, `gradient of ${name}: relative error ${error}`);
    }
    for (const [optimizer, step] of Object.entries(expected.optimizers)) await checkSteps(fixture, optimizer, step);
  });
}

async function checkSteps(fixture, optimizer, { learning_rate, steps, parameters }) {
  const { session, feeds, names } = await load(fixture, optimizer);
  addStates(feeds, names, fixture.parameters);
  feeds.learning_rate = scalarFloat(learning_rate);
  for (let step = 1; step <= steps; ++step) {
    if (optimizer === 'adam') feeds.step = new ort.Tensor('int64', BigInt64Array.from([BigInt(step)]), []);
    const results = await session.run(feeds);
    for (const [old, next] of Object.entries(names.next)) feeds[old] = results[next];
  }
  for (const [name, packed] of Object.entries(parameters)) {
    const reference = unpack(packed), start = unpack(fixture.parameters[name]);
    const change = largest(reference.data.map((v, i) => v - start.data[i]));
    // Half a unit in the last place of the parameter itself is no error of the step.
    const allowed = STEP_TOLERANCE[optimizer] * change + 1e-7 * largest(reference.data);
    const error = difference(feeds[name], reference, `${name} after ${steps} steps of ${optimizer}`);
    assert.ok(error <= allowed, `${name} after ${steps} steps of ${optimizer}: off by ${error} of a change of ${change}`);
  }
}

after(() => console.log(`measured: worst relative gradient error ${worst.value} (${worst.of})`));
