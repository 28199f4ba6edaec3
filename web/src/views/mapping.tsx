// What the selected layer costs on the core: where its cycles and its energy go, and the mapping that it runs by.
import { Breakdown } from "../charts/breakdown";
import { inOrder, levelNames, levelPaint, timeParts, whyBelow } from "../costs";
import type { Layer, Mapping, MappedOperand, Report } from "../engine/report";
import { bytes, count, cycles, energy, integer, percent, plural } from "../format";
import { nest } from "../nest";

const most = 3; // ports named

function Stalls({ stalls }: { stalls: Mapping["stalls"] }) {
  const waited = stalls.filter((port) => port.cycles > 0).sort((a, b) => b.cycles - a.cycles);
  if (!waited.length) return null;
  const named = waited.slice(0, most).map((port) => `${port.memory} ${port.port} ${cycles(port.cycles)}`);
  return (
    <p class="hint">
      Waits for {named.join(", ")}
      {waited.length > most && ` and ${plural(waited.length - most, "other port")}`}
      {waited.length > 1 && ": the longest counts"}
    </p>
  );
}

interface AtLeastProps {
  total: number;
  least: number | null;
  show(value: number): string;
  why: string; // the total can be less
}

function AtLeast({ total, least, show, why }: AtLeastProps) {
  if (least === null) return null;
  return (
    <p class="hint">
      {total < least ? `Less than its lower bound, ${show(least)}: ${why}` : `At least ${show(least)} by any mapping`}
    </p>
  );
}

function Time({ layer, mapping, why }: { layer: Layer; mapping: Mapping | null; why: string }) {
  const { latency_cycles: total, bound_cycles: least, bound_by: by } = layer;
  if (total === null) return null;
  const rule = {
    name: by === "compute" ? "computation" : `transfers, ${by}`,
    paint: by === "compute" ? "computation" : "stall",
  };
  const parts = mapping
    ? timeParts(mapping).map(({ name, cycles: value }) => ({ name, paint: name, value }))
    : [{ ...rule, value: total }];
  return (
    <section class="cost-part">
      <h3>
        Cycles <strong>{cycles(total)}</strong>
        {layer.utilisation !== null && <span class="unit">use of the PEs {percent(layer.utilisation)}</span>}
      </h3>
      <Breakdown
        label="Cycles"
        of="Part"
        unit="Cycles"
        parts={parts.map(({ name, paint, value }) => ({
          label: name,
          value,
          paint: `paint-${paint}`,
          text: cycles(value),
        }))}
      />
      {parts
        .filter(({ value }) => value < 0)
        .map(({ name, value }) => (
          <p class="hint" key={name}>
            {name} {cycles(value)}: ZigZag's model hides more of it than there is
          </p>
        ))}
      {mapping && <Stalls stalls={mapping.stalls} />}
      <AtLeast total={total} least={least} show={cycles} why={why} />
    </section>
  );
}

function Energy({ layer, names, why }: { layer: Layer; names: string[]; why: string }) {
  const { energy_pj: total, bound_energy_pj: least, levels } = layer;
  if (total === null) return null;
  return (
    <section class="cost-part">
      <h3>
        Energy <strong>{energy(total)}</strong>
      </h3>
      <Breakdown
        label="Energy by level"
        of="Level"
        unit="Energy"
        parts={inOrder(names, levels).map(({ level, energy_pj }) => ({
          label: level,
          value: energy_pj,
          paint: levelPaint(names, level),
          text: energy(energy_pj),
        }))}
      />
      <AtLeast total={total} least={least} show={energy} why={why} />
    </section>
  );
}

function LoopNest({ mapping }: { mapping: Mapping }) {
  return (
    <section class="cost-part">
      <h3>
        Loop nest <span class="unit">best of {plural(mapping.orders, "loop order")}</span>
      </h3>
      <pre class="nest" tabIndex={0} role="group" aria-label="Loop nest">
        <code>{nest(mapping)}</code>
      </pre>
      <p class="hint">Beside a loop: the memories whose tile spans it and all loops inside.</p>
    </section>
  );
}

function accesses({ name, levels }: MappedOperand) {
  return levels.map((level, at) => (
    <tr key={`${name} ${level.memory}`} class={at === 0 ? "first" : ""}>
      <th scope="row">
        {name} <span class="muted">in</span> {level.memory}
      </th>
      <td title={`${integer(level.bits)} bit${level.double_buffered ? ", and room for the next tile" : ""}`}>
        {bytes(level.bits / 8)}
        {level.double_buffered && " ×2"}
      </td>
      <td title={`${integer(level.reads_to_low)} for below, ${integer(level.reads_to_high)} for above`}>
        {count(level.reads_to_low + level.reads_to_high)}
      </td>
      <td title={`${integer(level.writes_by_low)} from below, ${integer(level.writes_by_high)} from above`}>
        {count(level.writes_by_low + level.writes_by_high)}
      </td>
      <td>{energy(level.energy_pj)}</td>
    </tr>
  ));
}

function Accesses({ mapping }: { mapping: Mapping }) {
  return (
    <details class="cost-part">
      <summary>Operands by memory level</summary>
      <table class="plain accesses">
        <thead>
          <tr>
            <th scope="col">Operand</th>
            <th scope="col">Held</th>
            <th scope="col">Reads</th>
            <th scope="col">Writes</th>
            <th scope="col">Energy</th>
          </tr>
        </thead>
        <tbody>{mapping.operands.map(accesses)}</tbody>
      </table>
      <p class="hint">
        Held by one instance, ×2: with room for the next tile. Reads and writes in full words, of all instances.{" "}
        {mapping.operands.map(({ name, bits }) => `${name} ${bits} bit`).join(", ")} an element.
      </p>
    </details>
  );
}

export function LayerCost({ report, layer }: { report: Report; layer: Layer }) {
  if (layer.rule !== "mapping" && layer.rule !== "vector") return null;
  const mapping = layer.mapping === null ? null : (report.mappings[layer.mapping] ?? null);
  return (
    <div data-testid="layer-cost">
      <Time layer={layer} mapping={mapping} why={whyBelow} />
      <Energy layer={layer} names={levelNames(report)} why={whyBelow} />
      {mapping && (
        <>
          <LoopNest mapping={mapping} />
          <Accesses mapping={mapping} />
        </>
      )}
    </div>
  );
}
