// ONNX models written by hand, for cases that no exporter makes. Field numbers are those of onnx.proto.
export function varint(value: number): Buffer {
  const bytes: number[] = [];
  while (value >= 128) {
    bytes.push((value % 128) | 128);
    value = Math.floor(value / 128);
  }
  return Buffer.from([...bytes, value]);
}
export const number = (field: number, value: number) => Buffer.concat([varint(field * 8), varint(value)]);
// What stands before the contents of a length-delimited field.
export const head = (field: number, length: number) => Buffer.concat([varint(field * 8 + 2), varint(length)]);
export function bytes(field: number, ...parts: (Buffer | string)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return Buffer.concat([head(field, body.length), body]);
}

// GraphProto.node
export const node = (name: string, op: string, inputs: string[], outputs: string[], ...attributes: Buffer[]) =>
  bytes(
    1,
    ...inputs.map((input) => bytes(1, input)),
    ...outputs.map((output) => bytes(2, output)),
    bytes(3, name),
    bytes(4, op),
    ...attributes,
  );
// NodeProto.attribute of integers
export const ints = (name: string, values: number[]) =>
  bytes(5, bytes(1, name), ...values.map((value) => number(8, value)), number(20, 7));

// A float tensor of GraphProto.input (11) or output (12); without a shape where none is given.
export function value(field: 11 | 12, name: string, shape?: number[]): Buffer {
  const dims = shape && bytes(2, ...shape.map((size) => bytes(1, number(1, size))));
  return bytes(field, bytes(1, name), bytes(2, bytes(1, number(1, 1), ...(dims ? [dims] : []))));
}

// GraphProto.initializer: the start of a float tensor whose raw data of `length` bytes is to follow.
export function initializerHead(name: string, shape: number[], length: number): Buffer {
  const start = Buffer.concat([...shape.map((size) => number(1, size)), number(2, 1), bytes(8, name), head(9, length)]);
  return Buffer.concat([head(5, start.length + length), start]);
}
export function initializer(name: string, shape: number[]): Buffer {
  const length = shape.reduce((product, size) => product * size, 4);
  return Buffer.concat([initializerHead(name, shape, length), Buffer.alloc(length)]);
}

// The start of a model of opset 17 whose graph of `length` bytes is to follow.
export const modelHead = (length: number) => Buffer.concat([number(1, 8), bytes(8, number(2, 17)), head(7, length)]);
export function model(...graph: Buffer[]): Buffer {
  const body = Buffer.concat([...graph, bytes(2, "by hand")]);
  return Buffer.concat([modelHead(body.length), body]);
}

// As PyTorch exports for inference: no BatchNormalization, its constants folded into convolutions whose parameters
// have lost their names.
export const inferenceExport = model(
  node("conv1", "Conv", ["x", "onnx::Conv_7", "onnx::Conv_8"], ["a"], ints("pads", [1, 1, 1, 1])),
  node("relu1", "Relu", ["a"], ["b"]),
  node("conv2", "Conv", ["b", "onnx::Conv_9", "onnx::Conv_10"], ["c"], ints("pads", [1, 1, 1, 1])),
  node("relu2", "Relu", ["c"], ["d"]),
  node("pool", "GlobalAveragePool", ["d"], ["e"]),
  node("flatten", "Flatten", ["e"], ["f"]),
  node("fc", "MatMul", ["f", "fc.weight"], ["y"]),
  initializer("onnx::Conv_7", [16, 3, 3, 3]),
  initializer("onnx::Conv_8", [16]),
  initializer("onnx::Conv_9", [16, 16, 3, 3]),
  initializer("onnx::Conv_10", [16]),
  initializer("fc.weight", [16, 10]),
  value(11, "x", [2, 3, 32, 32]),
  value(12, "y", [2, 10]),
);
// MaxRoiPool has no gradient rule; one parameter before it, one behind.
export const withoutGradient = model(
  node("conv", "Conv", ["x", "conv.weight"], ["a"]),
  node("pool", "MaxRoiPool", ["a", "rois"], ["b"], ints("pooled_shape", [2, 2])),
  node("flatten", "Flatten", ["b"], ["c"]),
  node("fc", "MatMul", ["c", "fc.weight"], ["y"]),
  initializer("conv.weight", [4, 3, 3, 3]),
  initializer("fc.weight", [16, 10]),
  value(11, "x", [2, 3, 16, 16]),
  value(11, "rois", [2, 5]),
  value(12, "y", [2, 10]),
);
// Long names that do not compress: 1,000 layers, each and its output called by a reproducible hash.
export function longNames(): Buffer {
  let seed = 7;
  const hash = () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return (seed >>> 8).toString(16).padStart(6, "0");
  };
  const name = () => Array.from({ length: 6 }, hash).join("");
  const outputs = Array.from({ length: 1000 }, name);
  return model(
    ...outputs.map((output, at) => node(name(), "Relu", [at ? outputs[at - 1]! : "x"], [output])),
    node("fc", "MatMul", [outputs.at(-1)!, "fc.weight"], ["y"]),
    initializer("fc.weight", [16, 10]),
    value(11, "x", [2, 16]),
    value(12, "y", [2, 10]),
  );
}

export const cyclic = model(
  node("first", "Add", ["x", "b"], ["a"]),
  node("second", "Relu", ["a"], ["b"]),
  value(11, "x", [1, 4]),
  value(12, "b", [1, 4]),
);
export const notSsa = model(
  node("first", "Relu", ["x"], ["a"]),
  node("second", "Sigmoid", ["x"], ["a"]),
  value(11, "x", [1, 4]),
  value(12, "a", [1, 4]),
);
export const shapeless = model(node("only", "Relu", ["x"], ["y"]), value(11, "x"), value(12, "y"));
