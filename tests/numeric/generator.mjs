// A counter-based generator: numbers that depend on a name or seed and a position only. The Python side of it, with the
// same numbers, is in make_model_fixtures.py.

// FNV-1a of the name's bytes (names are ASCII).
export function seedOf(name) {
  let seed = 0x811c9dc5;
  for (let i = 0; i < name.length; ++i) seed = Math.imul(seed ^ name.charCodeAt(i), 0x01000193) >>> 0;
  return seed;
}

// splitmix32 by position: uint32.
export function bits(seed, i) {
  let z = (Math.imul(seed, 0x85ebca6b) + Math.imul(i + 1, 0x9e3779b9)) | 0;
  z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return (z ^ (z >>> 15)) >>> 0;
}

// In [-1, 1).
export const uniform = (seed, i) => bits(seed, i) / 2 ** 31 - 1;

export const size = (shape) => shape.reduce((a, b) => a * b, 1);

// In [-1, 1), rounded to float32.
export function floats(name, shape) {
  const seed = seedOf(name);
  const values = new Float32Array(size(shape));
  for (let i = 0; i < values.length; ++i) values[i] = uniform(seed, i);
  return values;
}

export function integers(name, shape, below) {
  const seed = seedOf(name);
  return BigInt64Array.from({ length: size(shape) }, (_, i) => BigInt(bits(seed, i) % below));
}

// Matrices and kernels with unit gain, scales around 1, biases around `shift`.
export function weight(name, shape, shift = 0) {
  const u = floats(name, shape);
  if (shape.length >= 2) {
    const scale = Math.sqrt(3 / (size(shape) / shape[0]));
    return u.map((v) => v * scale);
  }
  return name.endsWith('weight') ? u.map((v) => 1 + 0.1 * v) : u.map((v) => shift + 0.1 * v);
}

// Optimizer state of a parameter as after some steps.
export function state(name, shape, kind) {
  const u = floats(`${name}/${kind}`, shape);
  return kind === 'adam_v' ? u.map((v) => 1e-4 * (1 + 0.5 * v)) : u.map((v) => 1e-2 * v);
}
