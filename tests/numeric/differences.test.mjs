// Gradients of exported training graphs against differences of their own forward part, for every operator model of
// Debian's libonnx-testdata: loss = sum over outputs of sum(output * fixed random). Run with `node --test` after
// `npm ci --ignore-scripts` in tests/. Takes the executable that MONET_OPERATOR_EXPORT names, else
// build/native/bin/operator_export. One test per operator; every model is counted at the end.
//
// In float64 where ONNX and ONNX Runtime have the operators in it, else in float32.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import ort from 'onnxruntime-node';
import { size, uniform } from './generator.mjs';

const here = import.meta.dirname ?? new URL('.', import.meta.url).pathname;
const exporter = process.env.MONET_OPERATOR_EXPORT ?? join(here, '../../build/native/bin/operator_export');
const data = '/usr/share/libonnx-testdata/data';
const folder = mkdtempSync(join(tmpdir(), 'monet-differences-'));
after(() => rmSync(folder, { recursive: true }));

const TOLERANCE = { float64: 1e-6, float32: 1e-2 };
const ADJOINT_TOLERANCE = 1e-5;
const EPSILON = { float64: 2 ** -53, float32: 2 ** -24 };
const DIRECTIONS = 3;
const LARGE = 20000; // elements from which on one direction has to do, to save time

// Step and nudge of each try. A kink (a tie of two maxima, a ReLU at 0) within two steps, or the edge of a domain,
// spoils the difference but not the gradient, so a failed try is repeated with smaller steps from another point. A wrong
// gradient is wrong at all of them: to pass, a try must fit in every direction.
const TRIES = {
  float64: [[1e-3, 0], [1e-4, 0], [1e-5, 0], [1e-4, 1], [1e-5, 1], [1e-4, 2], [1e-5, 3], [1e-6, 4]],
  float32: [[2e-2, 0], [5e-3, 0], [2e-3, 0], [2e-2, 1], [5e-3, 2], [2e-3, 3], [1e-2, 4], [5e-2, 5]],
};

// Operators that are linear in these inputs (the others fixed): there <u, J v> = <J' u, v> without any truncation.
const ALL = [...Array(16).keys()];
const LINEAR = {
  Add: ALL, AveragePool: [0], CenterCropPad: [0], Col2Im: [0], Compress: [0], Concat: ALL, Conv: [0, 1, 2], ConvTranspose: [0, 1, 2],
  CumSum: [0], DepthToSpace: [0], DFT: [0], Einsum: ALL, Expand: [0], Flatten: [0], Gather: [0], GatherElements: [0],
  GatherND: [0], Gemm: [0, 1, 2], GlobalAveragePool: [0], GridSample: [0], Identity: [0], MatMul: [0, 1], MaxUnpool: [0],
  Mean: ALL, Mul: [0, 1], Neg: [0], Pad: [0], ReduceMean: [0], ReduceSum: [0], Reshape: [0], Resize: [0],
  ReverseSequence: [0], RoiAlign: [0], Slice: [0], SpaceToDepth: [0], Split: [0], Squeeze: [0], STFT: [0], Sub: [0, 1], Sum: ALL,
  Tile: [0], Transpose: [0], Trilu: [0], Unsqueeze: [0], Upsample: [0], Where: [1, 2],
};

// Outputs that no gradient comes back through by definition: with random weight they would not match.
const DETACHED = {
  BatchNormalization: 'running statistics, updated from the batch outside the loss',
  LayerNormalization: 'Mean and InvStdDev, which ONNX gives out to speed the backward pass up',
};

// Models whose stored outputs ONNX Runtime does not reproduce with the model as given: it takes the size of the output
// for aligning corners, ONNX's reference the exact scale times the size.
const OTHER_OUTPUTS = ['test_resize_downsample_scales_cubic_align_corners', 'test_resize_downsample_scales_linear_align_corners',
  // Stored as the bit patterns of bfloat16 numbers.
  'test_cast_FLOAT_to_BFLOAT16', 'test_castlike_FLOAT_to_BFLOAT16_expanded'];

// Operators whose float64 kernel computes in float32.
const SINGLE = ['Shrink'];

// Operators that are defined, or have a finite slope, on a part of the numbers only, and how to get there.
const DOMAIN = { Acosh: (v) => 1.2 + Math.abs(v), Pow: (v) => 0.2 + Math.abs(v), Sqrt: (v) => 0.2 + Math.abs(v) };

// Floating-point inputs that configure an operator or hold statistics: no gradient goes there by definition.
const CONFIGURING = {
  BatchNormalization: [3, 4], Clip: [1, 2], Dropout: [1], Pad: [2], Resize: [1, 2], RoiAlign: [1], Upsample: [1],
  CastLike: [1], NegativeLogLikelihoodLoss: [2], SoftmaxCrossEntropyLoss: [2],
};

// Models whose outputs are drawn at random: no two runs compute the same loss.
const RANDOM = /^test_training_dropout_(default|mask|default_mask)$|^test_training_dropout$|^test_dropout_random_old$/;

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, int64: BigInt64Array, uint64: BigUint64Array, int32: Int32Array,
  uint32: Uint32Array, int16: Int16Array, uint16: Uint16Array, int8: Int8Array, uint8: Uint8Array, bool: Uint8Array,
};
const FLOATS = ['float32', 'float64', 'float16', 'bfloat16'];
const bytes = (packed) => new Uint8Array(Buffer.from(packed.data, 'base64')).buffer;

function halfs(packed) { // float16 or bfloat16 as numbers
  const words = new Uint16Array(bytes(packed)), view = new DataView(new ArrayBuffer(4));
  return Float64Array.from(words, (w) => {
    if (packed.type === 'bfloat16') return view.setUint32(0, w << 16), view.getFloat32(0);
    const e = (w >> 10) & 31, f = w & 1023, s = w >> 15 ? -1 : 1;
    return e === 31 ? (f ? NaN : s * Infinity) : s * (e ? (1024 + f) * 2 ** (e - 25) : f * 2 ** -24);
  });
}
const numbers = (packed) =>
  ARRAYS[packed.type] ? Float64Array.from(new ARRAYS[packed.type](bytes(packed)), Number) : halfs(packed);
const asFloats = (values, precision, shape) =>
  new ort.Tensor(precision, precision === 'float64' ? Float64Array.from(values) : Float32Array.from(values), shape);
const asTensor = (packed, precision) =>
  FLOATS.includes(packed.type) ? asFloats(numbers(packed), precision, packed.shape)
    : new ort.Tensor(packed.type, new ARRAYS[packed.type](bytes(packed)), packed.shape);

const dot = (a, b) => { let s = 0; for (let i = 0; i < a.length; ++i) s += a[i] * b[i]; return s; };
const norm = (a) => Math.sqrt(dot(a, a));

// Some models are stored with uninitialised memory for data, or with infinities.
const usable = (v, k, i) => (Math.abs(v) < 1e6 ? v : uniform(50 + k, i));

class Run {
  constructor(entry, session, precision) {
    Object.assign(this, { entry, session, precision });
    this.feeds = {};
    for (const [name, packed] of Object.entries(entry.values))
      if (session.inputNames.includes(name)) this.feeds[name] = asTensor(packed, precision);
    this.randoms = entry.outputs.map(({ random, shape, index }, k) => {
      const detached = index > 0 && entry.operators.length === 1 && DETACHED[entry.operators[0]];
      const values = Float64Array.from({ length: size(shape) }, (_, i) => (detached ? 0 : uniform(100 + k, i)));
      this.feeds[random] = asFloats(values, precision, shape);
      return this.feeds[random].data;
    });
    const move = (entry.operators.length === 1 && DOMAIN[entry.operators[0]]) || ((v) => v);
    this.start = Object.fromEntries(
      Object.keys(entry.gradients).map((x, k) => [x, Float64Array.from(this.feeds[x].data, (v, i) => move(usable(v, k, i)))]));
  }

  // The starting point of a try: further nudges stay closer to 0, for operators that end at 1 or -1.
  nudge(seed) {
    for (const [x, values] of Object.entries(this.start)) {
      const nudged = values.map((v, i) => v * (1 - 0.02 * seed) + 0.02 * Math.sign(seed) * uniform(seed * 1000, i));
      this.feeds[x] = asFloats(nudged, this.precision, this.feeds[x].dims);
    }
  }

  async gradients() {
    const results = await this.session.run(this.feeds, Object.values(this.entry.gradients));
    return Object.fromEntries(Object.entries(this.entry.gradients).map(([x, g]) => [x, results[g]]));
  }

  // The loss, and the sum of its terms' magnitudes, summed here so that only outputs carry rounding errors.
  async loss(feeds) {
    const results = await this.session.run(feeds, this.entry.outputs.map((o) => o.name));
    let value = 0, magnitude = 0;
    this.entry.outputs.forEach(({ name }, k) => {
      const { data } = results[name];
      for (let i = 0; i < data.length; ++i) {
        value += data[i] * this.randoms[k][i];
        magnitude += Math.abs(data[i] * this.randoms[k][i]);
      }
    });
    return { value, magnitude };
  }

  at(x, direction, step) {
    const values = Float64Array.from(this.feeds[x].data, (v, i) => v + step * direction[i]);
    return this.loss({ ...this.feeds, [x]: asFloats(values, this.precision, this.feeds[x].dims) });
  }

  // Error of the gradient of `x` in one direction, relative to the derivative or, where the direction happens to be
  // almost orthogonal to the gradient, to what a random direction would give.
  async error(x, gradient, seed, step) {
    const direction = Float64Array.from(gradient.data, (_, i) => uniform(seed, i));
    const f = {};
    for (const k of [-2, -1, 1, 2]) f[k] = await this.at(x, direction, k * step);
    const difference = (8 * (f[1].value - f[-1].value) - (f[2].value - f[-2].value)) / (12 * step);
    return this.relative(difference, gradient.data, direction, f[1].magnitude / step, TOLERANCE[this.precision]);
  }

  relative(difference, gradient, direction, magnitude, tolerance) {
    const derivative = dot(gradient, direction);
    if (!Number.isFinite(derivative) || !Number.isFinite(difference)) return Infinity;
    const typical = norm(gradient) * norm(direction) / Math.sqrt(Math.max(1, gradient.length));
    const scale = Math.max(Math.abs(difference), Math.abs(derivative), typical);
    // What rounding of the outputs alone can make of the difference is no error.
    const rounding = 4 * EPSILON[this.precision] * magnitude;
    const off = Math.abs(difference - derivative);
    return off === 0 ? 0 : off / (scale + rounding / tolerance);
  }

  // The best of the tries; each is as bad as its worst direction.
  async worstError() {
    let best = { error: Infinity };
    const elements = Object.values(this.start).reduce((sum, x) => sum + x.length, 0);
    for (const [step, seed] of TRIES[this.precision]) {
      // Among so many elements some are always that close to a kink.
      if (elements > 1000 && this.precision === 'float64' && step > 1e-5) continue;
      this.nudge(seed);
      const gradients = await this.gradients();
      let worst = { error: 0 };
      for (const [x, gradient] of Object.entries(gradients)) {
        assert.deepEqual([...gradient.dims], [...this.feeds[x].dims], `${this.entry.name}: shape of the gradient of ${x}`);
        const directions = gradient.data.length > LARGE ? 1 : DIRECTIONS;
        for (let d = 1; d <= directions && gradient.data.length > 0; ++d) {
          if (worst.error > TOLERANCE[this.precision]) break; // the next try will tell
          const error = await this.error(x, gradient, d, step);
          if (!(error <= worst.error)) worst = { error, x, step, seed };
        }
      }
      if (worst.error < best.error) best = worst;
      if (best.error <= TOLERANCE[this.precision]) break;
    }
    return best;
  }

  // <u, J v> - <J' u, v> for the inputs that the operator is linear in; u are the random weights of the outputs.
  async adjoint() {
    const { entry } = this;
    const positions = entry.positions ? LINEAR[entry.operators[0]] ?? [] : []; // a single node
    this.nudge(0);
    const gradients = await this.gradients();
    let worst = null;
    for (const [x, gradient] of Object.entries(gradients)) {
      if (gradient.data.length === 0 || !positions.includes(entry.positions?.[x])) continue;
      const direction = Float64Array.from(gradient.data, (_, i) => uniform(9, i));
      const [from, to] = [await this.at(x, direction, 0), await this.at(x, direction, 1)];
      const error = this.relative(to.value - from.value, gradient.data, direction, to.magnitude, ADJOINT_TOLERANCE);
      if (!worst || error > worst.error) worst = { error, x };
    }
    return worst;
  }

  // What the forward part computes is what is stored beside the model.
  async forward() {
    const { entry } = this;
    if (OTHER_OUTPUTS.includes(entry.name)) return;
    const results = await this.session.run(this.feeds, entry.outputs.map((o) => o.name));
    for (const { name, index } of entry.outputs) {
      const stored = entry.expected?.[index];
      if (!stored) continue;
      assert.deepEqual([...results[name].dims], stored.shape, `${entry.name}: shape of ${name}`);
      const expected = numbers(stored), actual = results[name].data;
      const scale = expected.reduce((m, v) => (Number.isFinite(v) ? Math.max(m, Math.abs(v)) : m), 1e-6);
      const tolerance = stored.type === 'bfloat16' ? 1e-2 : 1e-3;
      for (let i = 0; i < expected.length; ++i)
        assert.ok(Object.is(expected[i], actual[i]) || !(Math.abs(expected[i] - actual[i]) > tolerance * scale),
          `${entry.name}: element ${i} of ${name} is ${actual[i]}, stored ${expected[i]}`);
    }
  }
}

// A session in the best precision that there are kernels for, or the reason why there is none.
async function open(entry) {
  const options = { graphOptimizationLevel: 'disabled', logSeverityLevel: 4, intraOpNumThreads: 1 };
  let reason = '';
  for (const precision of ['float64', 'float32']) {
    if (!entry[precision] || (precision === 'float64' && SINGLE.includes(entry.operators[0]))) continue;
    try {
      return { session: await ort.InferenceSession.create(entry[precision], options), precision };
    } catch (error) {
      reason = String(error.message).split('\n')[0];
      // A graph that ONNX Runtime finds wrong is a fault; kernels it lacks are not.
      if (!/NOT_IMPLEMENTED|Could not find an implementation|not implemented/i.test(reason)) {
        if (precision === 'float32') throw new Error(`${entry.name}: ${reason}`);
      }
    }
  }
  return { reason };
}

const counts = {}, notes = {};
function count(what, entry, why = '') {
  counts[what] = (counts[what] ?? 0) + 1;
  if (!why) return;
  const line = `${what}: ${why}`;
  (notes[line] ??= new Set()).add(entry.operators.join('+'));
}
const worst = { float64: { error: 0 }, float32: { error: 0 }, adjoint: { error: 0 } };
const note = (kind, found, entry) => {
  if (found.error > worst[kind].error) worst[kind] = { ...found, model: entry.name };
};

async function check(entry) {
  const { session, precision, reason } = await open(entry);
  if (!session) return count('skipped', entry, `ONNX Runtime has no kernel (${reason.replace(/.*Could not find/, 'could not find').slice(0, 90)})`);
  if (RANDOM.test(entry.name)) return count('skipped', entry, 'its outputs are drawn at random');
  for (const [x, position] of Object.entries(entry.positions ?? {}))
    if (FLOATS.includes(entry.values[x]?.type) && !(x in entry.gradients))
      assert.ok(CONFIGURING[entry.operators[0]]?.includes(position), `${entry.name}: no gradient for input ${position}, ${x}`);
  const run = new Run(entry, session, precision);
  await run.forward();
  const found = await run.worstError();
  assert.ok(found.error <= TOLERANCE[precision],
    `${entry.name}: gradient of ${found.x} is off by ${found.error} (${precision}, step ${found.step}, nudge ${found.seed})`);
  note(precision, found, entry);
  const adjoint = await run.adjoint();
  if (adjoint) {
    assert.ok(adjoint.error <= ADJOINT_TOLERANCE, `${entry.name}: adjoint of ${adjoint.x} is off by ${adjoint.error}`);
    note('adjoint', adjoint, entry);
    count('with exact adjoint', entry);
  }
  count(`tested in ${precision}`, entry);
}

if (!existsSync(data)) {
  test('operator models', { skip: 'libonnx-testdata is not installed' }, () => {});
} else {
  const entries = JSON.parse(execFileSync(exporter, [data, folder], { encoding: 'utf8', maxBuffer: 2 ** 30 }));
  const groups = new Map();
  for (const entry of entries) {
    if (entry.status === 'exported') {
      const key = entry.operators.length === 1 ? entry.operators[0] : 'several operators';
      groups.set(key, [...(groups.get(key) ?? []), entry]);
    } else if (entry.status === 'no gradient') {
      count('nothing to differentiate', entry, entry.reason);
    } else {
      for (const { code, message } of entry.problems.slice(0, 1))
        count(entry.status, entry, code === 'no-gradient' ? `${message.replace(/ \(.*?\) has/, ' has')}` : code);
    }
  }
  test('what is refused is in docs/operators.md', () => {
    const table = readFileSync(join(here, '../../docs/operators.md'), 'utf8');
    for (const { name, status, problems } of entries) {
      if (status !== 'refused') continue;
      for (const { message } of problems) {
        const operator = /^operator (\S+) .*has no gradient rule$/.exec(message)?.[1];
        // Optimizer steps and requests for gradients as operators: no part of a model to be trained.
        if (operator?.startsWith('ai.onnx.preview.training.')) continue;
        assert.match(table, new RegExp(`^\\| ${operator} \\| \\d+ \\| not supported`, 'm'), `${name}: ${message}`);
      }
    }
  });
  for (const [operator, models] of [...groups].sort(([a], [b]) => (a < b ? -1 : 1)))
    test(operator, async () => {
      const failures = [];
      for (const entry of models) {
        try {
          await check(entry);
        } catch (error) {
          failures.push(error.message);
          count('wrong', entry);
        }
      }
      assert.deepEqual(failures, []);
    });
  after(() => {
    for (const [line, operators] of Object.entries(notes).sort()) console.log(`measured: ${line}: ${[...operators].sort().join(', ')}`);
    console.log(`measured: ${entries.length} models: ${Object.entries(counts).map(([k, n]) => `${n} ${k}`).join(', ')}`);
    for (const [kind, { error, model, x }] of Object.entries(worst))
      console.log(`measured: worst relative error, ${kind}: ${error.toExponential(1)} (${model}: ${x})`);
  });
}
