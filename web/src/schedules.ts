// The schedule of what is shown: made when it is asked for, by the worker, and kept until the analysis changes.
import { computed, effect, signal } from "@preact/signals";
import type { Diagnostic, Report } from "./engine/report";
import type { ScheduleReport, UnitSchedule } from "./engine/schedule";
import { perform, shown, stopped } from "./state";

interface Made {
  report: Report; // that it belongs to
  schedules: ScheduleReport;
  text: string;
}

export const wanted = signal(false); // the reader opened the section: schedules follow every analysis
const made = signal<Made | null>(null);
export const refusals = signal<Diagnostic[]>([]);
export const schedules = computed(() => (made.value?.report === shown.value?.report ? made.value : null));

// Of a layer, in the step's schedule, or in that of inference where there is no step.
export function scheduleOf(layer: number): UnitSchedule | null {
  const now = schedules.value?.schedules;
  return (now?.step ?? now?.inference)?.units.find(({ id }) => id === layer) ?? null;
}

async function make() {
  const now = shown.value;
  if (!now?.report.hardware || made.value?.report === now.report) return;
  refusals.value = [];
  const { result } = await perform("Scheduling", now.source, { kind: "schedule", settings: now.settings });
  if (shown.value !== now) return;
  if (result.kind === "schedule") made.value = { report: now.report, schedules: result.report, text: result.text };
  if (result.kind === "errors") refusals.value = result.errors;
}

export async function trace(inference: boolean): Promise<string | null> {
  const now = shown.value;
  if (!now) return null;
  const { result } = await perform("Writing the trace", now.source, { kind: "trace", settings: now.settings, inference });
  return result.kind === "trace" ? result.text : null;
}

export function schedule() {
  wanted.value = true;
  void make();
}

// Once opened, every new analysis is scheduled, too.
effect(() => {
  const now = shown.value;
  if (wanted.value && now && !stopped.peek()) void make();
});
