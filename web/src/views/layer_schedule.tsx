// Where and when the selected layer runs, and what its time goes to.
import { rollup, sum } from "d3-array";
import { waits, type Wait } from "../engine/schedule";
import { bytes, cycles, energy, percent, plural } from "../format";
import { schedules, scheduleOf } from "../schedules";
import { Facts } from "./facts";

export const waitNames: Record<Wait, string> = {
  compute: "computing",
  memory: "waiting for a memory of the core",
  offchip: "waiting for the off-chip memory",
  link: "waiting for a link",
  space: "waiting for room",
  units: "waiting for other layers",
};

export function LayerSchedule({ layer }: { layer: number }) {
  const made = schedules.value?.schedules;
  const unit = scheduleOf(layer);
  if (!made || !unit || unit.end <= unit.start) return null;
  const { cores } = made.step ?? made.inference;
  const named = rollup(
    unit.cores.map((id) => cores.find((core) => core.id === id)?.name ?? String(id)),
    ({ length }) => length,
    (name) => name,
  );
  const names = [...named].map(([name, count]) => (count > 1 ? `${count} × ${name}` : name));
  const all = sum(waits, (wait) => unit.waits[wait]) || 1;
  const facts: [string, string][] = [
    ["Runs", `cycle ${cycles(unit.start)} to ${cycles(unit.end)}`],
    ["On", `${names.join(", ")}, ${plural(unit.tiles, "tile")}${unit.split ? `, split by ${unit.split}` : ""}`],
    ["Energy", energy(unit.energy_pj)],
    ["Off-chip traffic", bytes(unit.offchip_bytes)],
    ...waits
      .filter((wait) => unit.waits[wait] > 0)
      .map((wait): [string, string] => [
        waitNames[wait],
        `${cycles(unit.waits[wait])} cycles, ${percent(unit.waits[wait] / all)}`,
      ]),
  ];
  return (
    <section class="cost-part" data-testid="layer-schedule">
      <h3>In the schedule</h3>
      <Facts of={facts} />
    </section>
  );
}
