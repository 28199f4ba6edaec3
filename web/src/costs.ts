// What a report says of time and energy, put together for the views: lower bounds, memory levels in one order, the
// parts of a layer's time, and each contraction beside its gradients.
import {
  roles,
  type Bound,
  type Layer,
  type LevelEnergy,
  type Mapping,
  type Report,
  type Role,
} from "./engine/report";

// Modelled layer by layer on the one compute core; with several such cores time and energy are lower bounds.
export const modelled = ({ inference }: Report) => inference?.bound === false;

// Compute and traffic run side by side, their energies add up.
export const leastCycles = (bound: Bound) => Math.max(bound.compute_cycles, bound.traffic_cycles);
export const leastEnergy = (bound: Bound) => bound.compute_pj + bound.traffic_pj;

// Why a modelled cost can be less than its own bound; the corrected model's never is.
export const whyBelow = "ZigZag's model hides first transfers and rounds tiles and words down";

// "compute", then the memories, lowest first: one order and one colour each in every chart. What no contraction uses
// stands beside the buffers.
export function levelNames({ step, inference, mappings }: Report): string[] {
  const below = new Map<string, number>(); // levels between a memory and the top
  for (const { levels } of mappings.flatMap(({ operands }) => operands)) {
    levels.forEach(({ memory }, at) => below.set(memory, Math.max(below.get(memory) ?? 0, levels.length - 1 - at)));
  }
  const depth = (name: string) => (name === "compute" ? Number.MAX_VALUE : (below.get(name) ?? 1));
  const named = [...(step?.levels ?? []), ...(inference?.levels ?? [])].map(({ level }) => level);
  return [...new Set(["compute", ...named])].sort((a, b) => depth(b) - depth(a));
}

export const inOrder = (names: readonly string[], levels: readonly LevelEnergy[]) =>
  [...levels].sort((a, b) => names.indexOf(a.level) - names.indexOf(b.level));

const levelColours = 8; // as in the style sheet

export function levelPaint(names: readonly string[], level: string): string {
  const at = names.indexOf(level);
  return at <= 0 ? "paint-compute" : `paint-level-${(at - 1) % levelColours}`;
}

export interface TimePart {
  name: "computation" | "stall" | "onload" | "offload";
  cycles: number;
}

export const timeParts = ({ temporal_cycles, stall, onload, offload }: Mapping): TimePart[] => [
  { name: "computation", cycles: temporal_cycles },
  { name: "stall", cycles: stall },
  { name: "onload", cycles: onload },
  { name: "offload", cycles: offload },
];

export interface Use {
  layer: number; // the first layer with this role
  share: number; // of the PEs, over the cycles of all layers with this role
  cycles: number;
}

export interface UseRow {
  layer: Layer; // forward
  uses: Partial<Record<Role, Use>>;
}

// One row per forward contraction: what its own layer and those derived from it use of the array.
export function useRows(layers: readonly Layer[]): UseRow[] {
  const rows = new Map<number, UseRow>();
  for (const layer of layers) {
    const role = roles.find((name) => name === layer.role);
    const owner = layer.origin === null ? layer : layers[layer.origin];
    if (layer.utilisation === null || layer.latency_cycles === null || !role || !owner) continue;
    const row = rows.get(owner.id) ?? { layer: owner, uses: {} };
    const { layer: first, share, cycles } = row.uses[role] ?? { layer: layer.id, share: 0, cycles: 0 };
    const all = cycles + layer.latency_cycles;
    const used = share * cycles + layer.utilisation * layer.latency_cycles;
    row.uses[role] = { layer: first, share: all > 0 ? used / all : 0, cycles: all };
    rows.set(owner.id, row);
  }
  return [...rows.values()].sort((a, b) => a.layer.id - b.layer.id);
}
