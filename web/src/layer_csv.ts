// The layers as a table for spreadsheets.
import type { Layer } from "./engine/report";
import { csv } from "./format";

const keys = [
  "id",
  "name",
  "op",
  "phase",
  "role",
  "origin",
  "shape",
  "macs",
  "operations",
  "bytes",
  "parameter_bytes",
  "saved_bytes",
  "nodes",
  "rule",
  "latency_cycles",
  "energy_pj",
  "utilisation",
  "bound_by",
  "bound_cycles",
  "bound_energy_pj",
] as const;

export const layersCsv = (layers: readonly Layer[]) =>
  csv([keys, ...layers.map((layer) => keys.map((key) => (key === "shape" ? layer.shape.join("x") : layer[key])))]);
