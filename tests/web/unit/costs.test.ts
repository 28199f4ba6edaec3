import { describe, expect, it } from "vitest";
import {
  inOrder,
  leastCycles,
  leastEnergy,
  levelNames,
  levelPaint,
  timeParts,
  useRows,
} from "../../../web/src/costs.ts";
import type { Bound, Layer, MappedLevel, Mapping, Report } from "../../../web/src/engine/report.ts";
import { layersCsv } from "../../../web/src/layer_csv.ts";
import { nest } from "../../../web/src/nest.ts";

const level = (memory: string, ...temporal: [string, number][]): MappedLevel => ({
  memory,
  spatial: [],
  temporal: temporal.map(([loop, size]) => ({ loop, size })),
  bits: 8,
  double_buffered: false,
  reads_to_low: 0,
  writes_by_low: 0,
  reads_to_high: 0,
  writes_by_high: 0,
  energy_pj: 0,
});

// for K in 4: for OY in 1024: for C in 8, with K over D1 and C over D2
const mapping: Mapping = {
  loops: [
    { loop: "K", size: 32 },
    { loop: "C", size: 32 },
    { loop: "OY", size: 1024 },
  ],
  macs: 32 * 32 * 1024,
  cycles: 40_000,
  ideal_cycles: 32_768,
  temporal_cycles: 32_768,
  stall: 7_000,
  stalls: [{ memory: "dram", port: "rw_port_1", cycles: 7_000 }],
  onload: 200,
  offload: 32,
  utilisation: 0.82,
  spatial_utilisation: 1,
  energy_pj: 10,
  mac_energy_pj: 4,
  orders: 6,
  spatial: [
    { loop: "K", dimension: "D1", units: 8 },
    { loop: "C", dimension: "D2", units: 4 },
  ],
  order: [
    { loop: "C", size: 8 },
    { loop: "OY", size: 1024 },
    { loop: "K", size: 4 },
  ],
  operands: [
    {
      name: "O",
      memory_operand: "O",
      bits: 16,
      levels: [level("rf", ["C", 8]), level("sram", ["OY", 1024]), level("dram", ["K", 4])],
    },
    {
      name: "W",
      memory_operand: "I2",
      bits: 8,
      levels: [level("rf"), level("sram", ["C", 8], ["OY", 1024], ["K", 4])],
    },
  ],
};

describe("the loop nest of a mapping", () => {
  it("has temporal loops outermost first, beside them the memories whose tile ends there, then the array", () => {
    expect(nest(mapping)).toBe(
      [
        "for K in 4         O in dram, W in sram",
        "  for OY in 1,024  O in sram",
        "    for C in 8     O in rf",
        "      parallel for K in 8 over D1",
        "      parallel for C in 4 over D2",
      ].join("\n"),
    );
  });
  it("is the array alone where nothing is left to iterate", () => {
    expect(nest({ ...mapping, order: [], operands: [], spatial: mapping.spatial.slice(0, 1) })).toBe(
      "parallel for K in 8 over D1",
    );
  });
  it("keeps uneven unrollings readable", () => {
    const spatial = [{ loop: "OX", dimension: "D3", units: 14 / 3 }];
    expect(nest({ ...mapping, order: [], operands: [], spatial })).toBe("parallel for OX in 4.66667 over D3");
  });
});

describe("time and energy", () => {
  it("parts of the time add up", () => {
    const parts = timeParts(mapping);
    expect(parts.map(({ name }) => name)).toEqual(["computation", "stall", "onload", "offload"]);
    expect(parts.reduce((sum, { cycles }) => sum + cycles, 0)).toBe(mapping.cycles);
  });
  it("bounds: the longer roof of time, the sum of energies", () => {
    const bound: Bound = { compute_cycles: 3, traffic_cycles: 5, compute_pj: 7, traffic_pj: 11, traffic_bytes: 1 };
    expect([leastCycles(bound), leastEnergy(bound)]).toEqual([5, 18]);
  });
  it("levels have one order, lowest memory first, and one colour each, whichever sum names them", () => {
    const energies = (...names: string[]) => names.map((name) => ({ level: name, energy_pj: 1 }));
    const sum = (...names: string[]) => ({ levels: energies(...names) });
    const report = {
      step: sum("sram", "compute", "dram"),
      inference: sum("rf", "lanes"),
      mappings: [mapping],
    } as unknown as Report;
    const names = levelNames(report);
    expect(names).toEqual(["compute", "rf", "sram", "lanes", "dram"]);
    expect(names.map((name) => levelPaint(names, name))).toEqual([
      "paint-compute",
      "paint-level-0",
      "paint-level-1",
      "paint-level-2",
      "paint-level-3",
    ]);
    expect(inOrder(names, energies("dram", "compute", "rf")).map(({ level }) => level)).toEqual([
      "compute",
      "rf",
      "dram",
    ]);
    expect(levelNames({ step: null, inference: null, mappings: [] as Mapping[] } as Report)).toEqual(["compute"]);
  });
});

const layer = (part: Partial<Layer>): Layer => ({
  id: 0,
  name: "conv",
  op: "Conv",
  phase: "forward",
  role: "forward",
  origin: null,
  shape: [1, 8, 4, 4],
  loops: [],
  transposed: [],
  macs: 1000,
  operations: 0,
  bytes: 10,
  parameter_bytes: 4,
  saved_bytes: 2,
  nodes: 1,
  rule: "mapping",
  latency_cycles: 100,
  energy_pj: 1.5,
  bound_by: "sram",
  bound_cycles: 80,
  bound_energy_pj: 0.5,
  utilisation: 0.5,
  mapping: 0,
  levels: [],
  reads: [],
  ...part,
});

describe("use of the array by role", () => {
  const gradient = { phase: "backward", origin: 0 } as const;
  it("puts gradients beside their operator and leaves out what is no contraction", () => {
    const layers = [
      layer({ id: 0 }),
      layer({ id: 1, name: "relu", rule: "vector", utilisation: null, mapping: null }),
      layer({ id: 2, name: "fc", utilisation: 0.25 }),
      layer({ id: 3, ...gradient, origin: 2, role: "weight_gradient", utilisation: 0.01 }),
      layer({ id: 4, ...gradient, role: "input_gradient", utilisation: 0.4 }),
    ];
    const rows = useRows(layers);
    expect(rows.map((row) => row.layer.name)).toEqual(["conv", "fc"]);
    expect(rows[0]!.uses.forward).toMatchObject({ layer: 0, share: 0.5 });
    expect(rows[0]!.uses.input_gradient).toMatchObject({ layer: 4, share: 0.4 });
    expect(rows[0]!.uses.weight_gradient).toBeUndefined();
    expect(rows[1]!.uses.weight_gradient).toMatchObject({ layer: 3, share: 0.01 });
  });
  it("weighs several layers of one role by their cycles", () => {
    const layers = [
      layer({ id: 0 }),
      layer({ id: 1, ...gradient, role: "input_gradient", utilisation: 0.9, latency_cycles: 100 }),
      layer({ id: 2, ...gradient, role: "input_gradient", utilisation: 0.1, latency_cycles: 300 }),
    ];
    const use = useRows(layers)[0]!.uses.input_gradient!;
    expect(use.layer).toBe(1);
    expect(use.share).toBeCloseTo(0.3, 12);
  });
});

describe("layers as CSV", () => {
  it("says how a layer was costed and what its lower bounds are", () => {
    const rows = layersCsv([
      layer({}),
      layer({ id: 1, rule: null, latency_cycles: null, energy_pj: null, utilisation: null, bound_by: null }),
    ])
      .trim()
      .split("\r\n")
      .map((line) => line.split(","));
    const column = (name: string) => rows.map((row) => row[rows[0]!.indexOf(name)]);
    expect(column("shape")).toEqual(["shape", "1x8x4x4", "1x8x4x4"]);
    expect(column("rule")).toEqual(["rule", "mapping", ""]);
    expect(column("latency_cycles")).toEqual(["latency_cycles", "100", ""]);
    expect(column("utilisation")).toEqual(["utilisation", "0.5", ""]);
    expect(column("bound_cycles")).toEqual(["bound_cycles", "80", "80"]);
    expect(column("bound_energy_pj")).toEqual(["bound_energy_pj", "0.5", "0.5"]);
    expect(new Set(rows.map((row) => row.length))).toEqual(new Set([rows[0]!.length]));
  });
});
