// The search for fused groups of what is shown: made when it is asked for, kept while only the partition changes.
import { computed, signal } from "@preact/signals";
import type { FusionReport, Growth, Strategy } from "./engine/fusion";
import type { Diagnostic, FusionObjective, Settings } from "./engine/report";
import { change, perform, settings, shown, type Source } from "./state";

interface Made {
  source: Source;
  key: string;
  report: FusionReport;
  text: string;
  seconds: number;
  solving: number[]; // seconds, by strategy
}

// What a search depends on: everything but the plan that is applied.
const keyOf = (of: Settings) => JSON.stringify({ ...of, partition: null });

const made = signal<Made | null>(null);
export const refusals = signal<Diagnostic[]>([]);
export const fusion = computed(() => {
  const now = made.value;
  return now && shown.value?.source === now.source && keyOf(shown.value.settings) === now.key ? now : null;
});

export async function fuse() {
  const now = shown.value;
  if (!now) return;
  refusals.value = [];
  const asked = { ...now.settings, partition: null };
  const task = { kind: "fuse", settings: asked, inference: now.report.training === null } as const;
  const { result } = await perform("Searching fused groups", now.source, task);
  if (result.kind === "errors") refusals.value = result.errors;
  if (result.kind !== "fusion") return;
  const { report, text, seconds, solving } = result;
  made.value = { source: now.source, key: keyOf(asked), report, text, seconds, solving };
}

export async function growth(units: number[]): Promise<Growth | null> {
  const now = fusion.value;
  if (!now) return null;
  const task = { kind: "growth", settings: now.report.settings, inference: now.report.graph === "inference", units } as const;
  const { result } = await perform("Asking why a group ends", now.source, task);
  return result.kind === "growth" ? result.growth : null;
}

export const apply = (strategy: Strategy) =>
  change({ partition: strategy.plan.groups.length ? { groups: strategy.plan.groups } : null });

export const isApplied = (strategy: Strategy) =>
  JSON.stringify((settings.value.partition as { groups?: unknown } | null | undefined)?.groups ?? []) ===
  JSON.stringify(strategy.plan.groups);

export const strategyName = ({ name, max_group: most }: Pick<Strategy, "name" | "max_group">) =>
  name === "solver" ? `solver, ${most === 0 ? "any size" : `up to ${most}`}` : name;

export const valueOf = (strategy: Strategy, objective: FusionObjective): number | null => {
  const { schedule } = strategy;
  if (objective === "groups") return strategy.groups;
  if (!schedule) return null;
  return objective === "latency"
    ? schedule.latency_cycles
    : objective === "energy"
      ? schedule.energy_pj
      : objective === "traffic"
        ? schedule.offchip_bytes
        : schedule.latency_cycles * schedule.energy_pj;
};
