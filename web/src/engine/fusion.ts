// monet.fusion/1 (engine/report/report.schema.json, $defs/fusion_report) as types. Units: bytes, cycles, pJ.
import type { Diagnostic, FusionObjective, Settings } from "./report";

export interface FusedGroup {
  units: number[]; // ids of the report's layers
  tiles: number;
  axis: string;
}

export interface Strategy {
  name: "none" | "manual" | "greedy" | "solver";
  max_group: number; // 0: any number of units
  objective: FusionObjective | null;
  groups: number;
  largest_group: number;
  estimate: { latency_cycles: number; energy_pj: number; offchip_bytes: number };
  schedule: { latency_cycles: number; energy_pj: number; offchip_bytes: number; onchip_peak_bytes: number } | null;
  refused: Diagnostic | null;
  solver: {
    status: "optimal" | "limit" | "infeasible" | "cancelled" | "failed";
    value: number;
    bound: number;
    gap: number;
    columns: number;
    dominated: number;
    solves: number;
    cuts: number;
    nodes: number;
  } | null;
  plan: { groups: FusedGroup[] }; // of several units: all others run alone
}

export interface FusionReport {
  schema: string;
  settings: Required<Settings>;
  graph: "step" | "inference";
  units: number;
  edges: [number, number][];
  candidates: { found: number; grown: number; complete: boolean; too_large_for_memory: number; scheduled: number };
  strategies: Strategy[];
  warnings: Diagnostic[];
}

// Why a group may or may not be, and may or may not grow by the units next to it.
export interface Growth {
  units: number[];
  limit: string; // "none": it may
  why: string;
  neighbours: { unit: number; name: string; limit: string; why: string }[];
}

// What engine and solver hand each other (wasm-bindings/linear_program.h).
export interface Program {
  program: { cost: Float64Array; rowLower: Float64Array } & Record<string, unknown>;
  start: Float64Array;
  gap: number;
  nodes: number;
  maxGroup: number;
}
export interface Solution {
  status: string;
  x: Float64Array;
  objective: number;
  bound: number;
  nodes: number;
  gap: number;
}
