// Whole networks: gradients of all parameters and one step of every optimizer, as exported and run by ONNX Runtime,
// against PyTorch's in float64 (models.json and models/, made by make_model_fixtures.py); then twenty Adam steps of
// LeNet-5. Weights, inputs and labels come from generator.mjs. Takes the executable that MONET_TRAINING_EXPORT names,
// else build/native/bin/training_export.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import ort from 'onnxruntime-node';
import { floats, integers, seedOf, size, state, uniform, weight } from './generator.mjs';

const here = import.meta.dirname ?? new URL('.', import.meta.url).pathname;
const exporter = process.env.MONET_TRAINING_EXPORT ?? join(here, '../../build/native/bin/training_export');
const folder = mkdtempSync(join(tmpdir(), 'monet-models-'));
after(() => rmSync(folder, { recursive: true }));

const TOLERANCE = 1e-3; // relative to the norm of the tensor compared
// A gradient that is zero but for rounding (a bias before a normalisation, a key's bias, which softmax does not see) is
// compared with this share of a typical gradient.
const NOISE = 1e-3;
const STEP = 5; // of the optimizer step compared

const { models, task } = JSON.parse(readFileSync(join(here, 'models.json'), 'utf8'));
const scalar = (value) => new ort.Tensor('float32', Float32Array.of(value), []);

class Training {
  static async load(name, optimizer, bias, fromZero) {
    const graph = join(folder, `${name}.${optimizer}.onnx`);
    const names = JSON.parse(execFileSync(exporter, [join(here, 'models', `${name}.onnx`), graph, 'cross_entropy', optimizer],
      { encoding: 'utf8' }));
    const session = await ort.InferenceSession.create(graph, { graphOptimizationLevel: 'disabled', intraOpNumThreads: 1 });
    return new Training(session, names, bias, fromZero);
  }

  // Optimizer states are as generated, or zeros.
  constructor(session, names, bias, fromZero) {
    Object.assign(this, { session, names, feeds: {} });
    const given = new Set([...names.labels, 'x', 'learning_rate', 'step']);
    for (const { name, type, shape } of session.inputMetadata) {
      if (given.has(name)) continue;
      assert.equal(type, 'float32', name);
      const [, parameter, kind] = /^(.*)_(momentum|adam_m|adam_v)$/.exec(name) ?? [];
      const values = !(parameter in names.gradients) ? weight(name, shape, bias)
        : fromZero ? new Float32Array(size(shape)) : state(parameter, shape, kind);
      this.feeds[name] = new ort.Tensor('float32', values, shape);
    }
  }

  async step(x, label, rate, number) {
    const { session, feeds, names } = this;
    Object.assign(feeds, { x, [names.labels[0]]: label, learning_rate: scalar(rate) });
    if (session.inputNames.includes('step')) feeds.step = new ort.Tensor('int64', BigInt64Array.of(BigInt(number)), []);
    const results = await session.run(feeds);
    for (const [old, next] of Object.entries(names.next)) feeds[old] = results[next];
    return results;
  }
}

// As `digest` in make_model_fixtures.py.
function digest(name, values) {
  const [first, second] = [1, 2].map((k) => seedOf(`${name}/${k}`));
  let a = 0, b = 0;
  for (let i = 0; i < values.length; ++i) {
    a += values[i] * uniform(first, i);
    b += values[i] * uniform(second, i);
  }
  return [norm(values), a, b];
}

function norm(values) {
  let sum = 0;
  for (let i = 0; i < values.length; ++i) sum += values[i] * values[i];
  return Math.sqrt(sum);
}

const worst = {};
function compare(kind, what, actual, expected, scale, allowed = 0) {
  actual.forEach((value, k) => {
    assert.ok(Number.isFinite(value), `${what} is ${value}`);
    const error = Math.max(0, Math.abs(value - expected[k]) - allowed) / scale;
    if (error > (worst[kind]?.error ?? 0)) worst[kind] = { error, what };
    assert.ok(error <= TOLERANCE, `${what}: ${['norm', 'first projection', 'second projection'][k]} is ${value}, PyTorch ${expected[k]}`);
  });
}

const packed = ({ seed, shape, below }) =>
  below ? new ort.Tensor('int64', integers(seed, shape, below), shape) : new ort.Tensor('float32', floats(seed, shape), shape);

let compared = 0;
for (const model of models) {
  test(model.name, async () => {
    const x = packed(model.input), label = packed(model.label);
    const parameters = Object.keys(model.gradients).sort();
    for (const [optimizer, { learning_rate, changes }] of Object.entries(model.steps)) {
      const training = await Training.load(model.name, optimizer, model.bias);
      const { names, feeds } = training;
      assert.deepEqual(Object.keys(names.gradients).sort(), parameters, 'trained parameters');
      const before = Object.fromEntries(parameters.map((name) => [name, feeds[name].data]));
      const results = await training.step(x, label, learning_rate, STEP);
      const elements = Object.fromEntries(parameters.map((name) => [name, Math.sqrt(before[name].length)]));
      // The largest of the tensors' root mean squares: what an element of a gradient typically is.
      const typical = Math.max(...parameters.map((name) => model.gradients[name][0] / elements[name]));
      if (optimizer === 'sgd') {
        compare('loss', `${model.name}: loss`, [results[names.loss].data[0]], [model.loss], Math.abs(model.loss));
        for (const name of parameters) {
          const scale = Math.max(model.gradients[name][0], NOISE * typical * elements[name]);
          compare('gradient', `${model.name}: gradient of ${name}`,
            digest(name, results[names.gradients[name]].data), model.gradients[name], scale);
        }
      }
      for (const name of parameters) {
        ++compared;
        const change = feeds[name].data.map((v, i) => v - before[name][i]);
        // What storing the parameter as float32 rounds away.
        const rounding = 2 ** -24 * norm(before[name]);
        const scale = Math.max(changes[name][0], NOISE * typical * learning_rate * elements[name]);
        compare(optimizer, `${model.name}: change of ${name} by ${optimizer}`, digest(name, change), changes[name], scale, rounding);
      }
    }
  });
}

test('twenty Adam steps of LeNet-5', async () => {
  const training = await Training.load('lenet5', 'adam', 0, true);
  const label = integers('task/label', [16], 10), patterns = floats('task/pattern', [10, 1, 28, 28]);
  const x = floats('task/noise', [16, 1, 28, 28]).map((v, i) => patterns[Number(label[Math.floor(i / 784)]) * 784 + (i % 784)] + 0.5 * v);
  const losses = [];
  for (const [i, expected] of task.losses.entries()) {
    const results = await training.step(new ort.Tensor('float32', x, [16, 1, 28, 28]), new ort.Tensor('int64', label, [16]),
      task.learning_rate, i + 1);
    losses.push(results[training.names.loss].data[0]);
    compare('loss of twenty steps', `loss of step ${i + 1}`, losses.slice(-1), [expected], expected);
  }
  assert.ok(losses.at(-1) < losses[0] / 2, `losses ${losses}`);
});

after(() => {
  console.log(`measured: ${compared} parameter changes compared with PyTorch`);
  for (const [kind, { error, what }] of Object.entries(worst))
    console.log(`measured: worst relative error, ${kind}: ${error.toExponential(1)} (${what})`);
});
