// Layers by the block of the network that they are in, for graphs too large to show unit by unit. A block is what names
// share up to the first number of its own: "/layer1/layer1.0", "/h.3", "/encoder/layers/encoder_layer_7".
import type { Layer } from "./engine/report";

export interface Row {
  forward: Layer; // or what stands for it: an update without a layer of its own
  backward: Layer[];
  optimizer: Layer[];
}

export interface Block {
  name: string;
  rows: Row[];
}

export const blockOf = (name: string) =>
  /^(.*?[./_]\d+)(?=[./])/.exec(name)?.[1] ?? /^\/?[^/.]+/.exec(name)?.[0] ?? name;

// Every layer in a row beside the forward layer it came from; an update beside the first layer whose weights' gradient
// it reads.
export function blocksOf(layers: Layer[], edges: [number, number][]): Block[] {
  const rowOf = new Map<string, Row>();
  const rows: Row[] = [];
  const rowAt: (Row | undefined)[] = [];
  const open = (layer: Layer) => {
    const row: Row = { forward: layer, backward: [], optimizer: [] };
    rows.push(row);
    return row;
  };
  const sources = new Map<number, number[]>();
  for (const [from, to] of edges) sources.set(to, [...(sources.get(to) ?? []), from]);
  for (const layer of layers) {
    if (layer.phase === "optimizer") continue;
    const own = layer.phase === "backward" || layer.phase === "recompute" ? rowOf.get(layer.name) : undefined;
    const row = own ?? open(layer);
    if (own) own.backward.push(layer);
    else if (layer.phase === "forward") rowOf.set(layer.name, row);
    rowAt[layer.id] = row;
  }
  for (const layer of layers) {
    if (layer.phase !== "optimizer") continue;
    const beside = (sources.get(layer.id) ?? []).map((id) => rowAt[id]).find((row) => row !== undefined);
    if (beside) beside.optimizer.push(layer);
    else open(layer);
  }
  const blocks: Block[] = [];
  for (const row of rows) {
    const name = row.forward.phase === "forward" ? blockOf(row.forward.name) : row.forward.phase;
    const last = blocks.at(-1);
    if (last?.name === name) last.rows.push(row);
    else blocks.push({ name, rows: [row] });
  }
  return blocks;
}
