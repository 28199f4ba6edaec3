import { expect, test } from "vitest";
import { blockOf, blocksOf } from "../../../web/src/blocks.ts";
import type { Layer } from "../../../web/src/engine/report.ts";

test("a block is what names share up to their first number", () => {
  expect(blockOf("/layer1/layer1.0/conv1/Conv")).toBe("/layer1/layer1.0");
  expect(blockOf("/h.11/attn/MatMul")).toBe("/h.11");
  expect(blockOf("/encoder/layers/encoder_layer_7/mlp/Gemm")).toBe("/encoder/layers/encoder_layer_7");
  expect(blockOf("/conv1/Conv")).toBe("/conv1");
  expect(blockOf("fc.weight")).toBe("fc");
  expect(blockOf("")).toBe("");
});

const layer = (id: number, name: string, phase: string, role = "forward") =>
  ({ id, name, phase, role, op: "Conv" }) as unknown as Layer;

test("gradients stand beside the layer they came from, updates beside whose gradient they read", () => {
  const layers = [
    layer(0, "/h.0/a", "forward"),
    layer(1, "/h.0/b", "forward"),
    layer(2, "/h.1/a", "forward"),
    layer(3, "loss", "loss"),
    layer(4, "/h.1/a", "backward", "weight_gradient"),
    layer(5, "/h.1/a", "backward", "input_gradient"),
    layer(6, "/h.0/b", "backward", "gradient"),
    layer(7, "step", "optimizer", "update"),
    layer(8, "a.weight", "optimizer", "update"),
  ];
  const blocks = blocksOf(layers, [
    [0, 1],
    [1, 2],
    [4, 8],
    [2, 4],
  ]);
  expect(blocks.map(({ name, rows }) => [name, rows.length])).toEqual([
    ["/h.0", 2],
    ["/h.1", 1],
    ["loss", 1],
    ["optimizer", 1],
  ]);
  const [first, second] = blocks;
  expect(first!.rows[1]!.backward.map(({ id }) => id)).toEqual([6]);
  expect(second!.rows[0]!.backward.map(({ id }) => id)).toEqual([4, 5]);
  expect(second!.rows[0]!.optimizer.map(({ id }) => id)).toEqual([8]);
  const all = blocks.flatMap(({ rows }) => rows.flatMap((r) => [r.forward, ...r.backward, ...r.optimizer]));
  expect(all.map(({ id }) => id).sort()).toEqual(layers.map(({ id }) => id));
});
