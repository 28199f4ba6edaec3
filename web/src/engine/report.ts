// The report (engine/report/report.schema.json) and the settings as types. Units: bytes, cycles, pJ, elements.
export interface Diagnostic {
  code: string;
  message: string;
  node: string;
  tensor: string;
  hint: string;
}

export type Dtype = "model" | "fp32" | "fp16" | "bf16";

export interface PrecisionPerClass {
  parameters: Dtype;
  gradients: Dtype;
  activations: Dtype;
  optimizer_state: Dtype;
  master_weights: boolean;
}

export type Objective = "latency" | "energy" | "edp";

// Where the corrected model leaves ZigZag's (engine/cost/layer_cost.h).
export const corrections = [
  "hold_floors",
  "add_half_shared",
  "leave_room_above",
  "count_all_traffic",
  "count_partial_words",
  "count_uneven_tiles",
] as const;
export type Correction = (typeof corrections)[number];

// An entry of a ZigZag or Stream mapping file.
export interface MappingEntry {
  name?: string;
  spatial_mapping?: Record<string, string[]>;
  memory_operand_links?: Record<string, string>;
  temporal_ordering?: unknown[];
}

// As `analyze` takes them; what is absent takes the engine's default.
export interface Settings {
  hardware?: string | Record<string, unknown>;
  capacity_bytes?: number | null;
  batch?: number | null;
  dims?: Record<string, number>;
  optimizer?: string;
  loss?: string;
  output?: string;
  precision?: string | PrecisionPerClass;
  update?: string;
  weight_decay?: number | null; // null: the optimizer's own
  clip_norm?: number | null;
  micro_batches?: number;
  batch_norm?: string;
  assume_batch_norm?: boolean;
  train?: string[];
  freeze?: string[];
  unsupported?: string; // operators without a gradient rule
  last_layers?: number | null;
  biases_only?: boolean;
  lora_rank?: number | null;
  recompute?: string[];
  widths?: string; // of operands when time and energy are counted: the datapath's or the tensors'
  mapping?: MappingEntry[] | null;
  objective?: Objective;
  factor_limit?: number; // temporal loops tried per layer
  corrections?: Correction[];
  access_energy?: string;
  partition?: Record<string, unknown> | null; // fused groups (engine/schedule/partition.h)
  write_back?: boolean; // what crosses groups goes off the chip
  accumulation?: string; // of gradients over micro-batches: in_place | separate
  fusion?: FusionSettings;
}

export const fusionObjectives = ["latency", "energy", "edp", "traffic", "groups"] as const;
export type FusionObjective = (typeof fusionObjectives)[number];

// How fused groups are searched for (engine/analysis/settings.h).
export interface FusionSettings {
  objective?: FusionObjective;
  max_group?: number[]; // a search for each; 0: any number of units
  contractions?: number; // of both kinds, 0: any number
  convolutions?: number;
  products?: number;
  one_output?: boolean;
  updates_apart?: boolean;
  activations_apart?: boolean;
  gap?: number;
  nodes?: number;
}

export const phases = ["forward", "loss", "backward", "optimizer", "recompute"] as const;
export type Phase = (typeof phases)[number];

// Memory categories in the order in which they are stacked: what stays for the whole run first.
export const categories = [
  "parameters",
  "master_weights",
  "buffers",
  "optimizer_state",
  "inputs",
  "activations",
  "activation_gradients",
  "gradients",
  "workspace",
] as const;
export type Category = (typeof categories)[number];
export type BytesByCategory = Record<Category, number>;

export interface TensorInfo {
  name: string;
  dtype: string;
  shape: number[];
}

export interface Dim {
  name: string;
  tensor: string;
  axis: number;
  value: number;
  defaulted: boolean;
}

export interface LevelEnergy {
  level: string; // "compute", or a memory
  energy_pj: number;
}

export interface PhaseCost {
  latency_cycles: number;
  energy_pj: number;
  levels?: LevelEnergy[]; // of a modelled cost
}

// What contractions do for their operator: the same loop nest with another operand as output.
export const roles = ["forward", "input_gradient", "weight_gradient"] as const;
export type Role = (typeof roles)[number];

// Modelled on an accelerator with one compute core, unit after unit; on others a lower bound.
export interface Cost extends PhaseCost {
  bound: boolean;
  phases: Partial<Record<Phase, PhaseCost>>;
  utilisation?: Partial<Record<Role, number>>; // multiply-accumulates / (PEs × cycles)
}

export interface Bound {
  compute_cycles: number;
  traffic_cycles: number;
  compute_pj: number;
  traffic_pj: number;
  traffic_bytes: number;
}

export interface Layer {
  id: number;
  name: string;
  op: string;
  phase: Phase;
  role: string;
  origin: number | null;
  shape: number[];
  loops: { dim: string; size: number }[];
  transposed: string[]; // operands read or written across their stored layout
  macs: number;
  operations: number;
  bytes: number;
  parameter_bytes: number;
  saved_bytes: number;
  nodes: number;
  rule: "nothing" | "mapping" | "vector" | "bound" | null; // how it was costed
  latency_cycles: number | null; // a lower bound where the rule is one
  energy_pj: number | null;
  bound_by: string | null; // compute, traffic, loading, nothing, or the memory that is waited for
  bound_cycles: number | null; // the lower bounds beside
  bound_energy_pj: number | null;
  utilisation: number | null; // of the PEs, by multiply-accumulates
  mapping: number | null; // index into the report's mappings
  levels: LevelEnergy[];
  reads: number[];
}

export interface SizedLoop {
  loop: string;
  size: number;
}

export interface Unrolling {
  loop: string;
  dimension: string; // of the array
  units: number;
}

// An operand in one memory.
export interface MappedLevel {
  memory: string;
  spatial: Unrolling[];
  temporal: SizedLoop[]; // innermost first; those of all levels, lowest first, are the mapping's order
  bits: number; // held by one instance
  double_buffered: boolean;
  reads_to_low: number; // accesses in full words, of all instances
  writes_by_low: number;
  reads_to_high: number;
  writes_by_high: number;
  energy_pj: number;
}

export interface MappedOperand {
  name: string;
  memory_operand: string;
  bits: number; // of an element
  levels: MappedLevel[]; // lowest first
}

// How a contraction runs on the core, shared by equal layers. cycles = temporal_cycles + stall + onload + offload.
export interface Mapping {
  loops: SizedLoop[]; // the layer's
  macs: number;
  cycles: number;
  ideal_cycles: number;
  temporal_cycles: number;
  stall: number;
  stalls: { memory: string; port: string; cycles: number }[]; // side by side: the longest counts
  onload: number;
  offload: number;
  utilisation: number;
  spatial_utilisation: number;
  energy_pj: number;
  mac_energy_pj: number;
  orders: number; // tried
  spatial: Unrolling[];
  order: SizedLoop[]; // innermost first
  operands: MappedOperand[];
}

export interface SavedTensor {
  tensor: string;
  layer: number | null;
  bytes: number;
  readers: number[];
  recomputable: boolean;
}

export interface Memory {
  parameters: number;
  master_weights: number;
  buffers: number;
  gradients: number;
  optimizer_state: number;
  inputs: number;
  activations: number;
  workspace: number;
  peak: number;
  peak_unit: number;
  at_peak: BytesByCategory;
  inference_peak: number;
  capacity: number | null;
  fits: boolean | null;
  short_by: number | null;
  largest_batch: { value: number | null; reason: string } | null;
  saved: SavedTensor[];
  timeline: { layer: number[] } & Record<Category, number[]>;
}

export interface Training {
  optimizer: string;
  loss: string;
  loss_output: string;
  batch: number;
  precision: string;
  trained_tensors: number;
  trained_parameters: number;
  micro_batches: number;
  nodes: Record<Phase, number>;
  units: Record<Phase, number>;
  macs: { forward: number; input_gradient: number; weight_gradient: number; total: number };
}

export interface Hardware {
  name: string;
  description: string;
  source: string;
  cores: number;
  mac_units: number;
  vector_units: number;
  mac_energy_pj: number;
  offchip_bits_per_cycle: number;
  offchip_pj_per_bit: number;
  offchip_bytes: number;
  onchip_bytes: number;
  compute_core: string | null; // the one core that runs contractions; null where there are several
  pes: number | null; // of that core
}

export interface Report {
  schema: "monet.report/1";
  engine: { name: "monet"; version: string };
  model: {
    name: string;
    opset: number;
    nodes: number;
    operators: { op: string; count: number }[];
    parameters: number;
    parameter_bytes: number;
    forward_macs: number;
    inputs: TensorInfo[];
    outputs: TensorInfo[];
    dims: Dim[];
    inference_export: boolean;
  };
  settings: Required<Settings>;
  training: Training | null;
  hardware: Hardware | null;
  inference: Cost | null;
  step: Cost | null;
  memory: Memory;
  layers: Layer[];
  mappings: Mapping[];
  schedule: null;
  fusion: null;
  checkpointing: null;
  exploration: null;
  bounds: (Bound & { limited_by: "compute" | "traffic"; inference: Bound; below_roof: number[] }) | null;
  warnings: Diagnostic[];
}

export interface Preset {
  name: string;
  title: string;
  json: string; // the description
}
