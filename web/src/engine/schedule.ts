// monet.schedule/1 (engine/report/report.schema.json, $defs/schedule_report) as types. Units: bytes, cycles, pJ.
import type { Category, Diagnostic, Phase, Settings } from "./report";

export const energyTerms = ["mac", "registers", "sram", "links", "offchip", "eviction"] as const;
export type EnergyTerm = (typeof energyTerms)[number];
export type Energy = Record<EnergyTerm, number>;

export const causes = ["load", "move", "eviction", "write_back", "output", "stream"] as const;
export type Cause = (typeof causes)[number];

export const waits = ["compute", "memory", "offchip", "link", "space", "units"] as const;
export type Wait = (typeof waits)[number];

export interface PhaseSchedule {
  latency_cycles: number;
  energy_pj: number;
  energy: Energy;
  offchip_bytes: number;
}

export interface UnitSchedule {
  id: number; // of inference in the forward graph, of a step in the report's layers
  name: string;
  op: string;
  phase: Phase;
  role: string;
  start: number;
  end: number;
  busy_cycles: number;
  cores: number[];
  split: string | null;
  tiles: number;
  bound_by: "compute" | "memory" | "off-chip" | "link" | "space";
  memory: string;
  waits: Record<Wait, number>; // cycles, summed over its tiles
  energy_pj: number;
  energy: Energy;
  offchip_bytes: number;
}

export type Footprint = {
  peak: number;
  timeline: { cycle: number[] } & Partial<Record<Category, number[]>>;
};

export interface Schedule {
  latency_cycles: number;
  energy_pj: number;
  energy: Energy;
  phases: Partial<Record<Phase, PhaseSchedule>>;
  offchip: { read_bytes: number; written_bytes: number; causes: Partial<Record<Cause, number>> };
  bounds: { latency_cycles: number; energy_pj: number; offchip_bytes: number };
  cores: { id: number; name: string; busy_cycles: number; utilisation: number }[];
  links: { name: string; bits_per_cycle: number; busy_cycles: number; utilisation: number }[];
  stores: { name: string; capacity_bytes: number; peak_bytes: number }[];
  groups: { units: number[]; tiles: number; axis: string }[];
  tiles: number;
  units: UnitSchedule[];
  onchip: Footprint;
  offchip_memory: Footprint;
}

export interface ScheduleReport {
  schema: string;
  settings: Required<Settings>;
  inference: Schedule;
  step: Schedule | null;
  warnings: Diagnostic[];
}
