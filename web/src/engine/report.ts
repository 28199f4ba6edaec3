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

export interface PhaseCost {
  latency_cycles: number;
  energy_pj: number;
}

export interface Cost extends PhaseCost {
  bound: boolean;
  phases: Partial<Record<Phase, PhaseCost>>;
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
  macs: number;
  operations: number;
  bytes: number;
  parameter_bytes: number;
  saved_bytes: number;
  nodes: number;
  latency_cycles: number | null;
  energy_pj: number | null;
  bound_by: "compute" | "traffic" | "nothing" | null;
  reads: number[];
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
  schedule: null;
  fusion: null;
  checkpointing: null;
  exploration: null;
  bounds: (Bound & { limited_by: "compute" | "traffic"; inference: Bound }) | null;
  warnings: Diagnostic[];
}

export interface Preset {
  name: string;
  title: string;
  json: unknown;
}
