// Time and energy of a step against inference: modelled with the lower bound beside, or the lower bounds themselves.
import { leastCycles, leastEnergy, modelled } from "../costs";
import { roles, type Bound, type Cost, type Report } from "../engine/report";
import { cycles, energy, percent, plural, ratio, words } from "../format";

const measures = [
  { key: "latency_cycles", label: "Time", show: cycles, unit: " cycles", least: leastCycles },
  { key: "energy_pj", label: "Energy", show: energy, unit: "", least: leastEnergy },
] as const;

interface ComparisonProps {
  measure: (typeof measures)[number];
  cost: Cost;
  inference: Cost | null; // null: there is no step to compare it with
  bound: Bound | null; // null: the costs are bounds themselves
}

function Comparison({ measure: { key, label, show, unit, least }, cost, inference, bound }: ComparisonProps) {
  const atLeast = cost.bound ? "at least " : "";
  return (
    <div class="comparison">
      <p class="muted">{label}</p>
      <p class="bound">
        {cost.bound && <span class="at-least">at least</span>} <strong>{show(cost[key])}</strong>
        {unit}
      </p>
      {inference && (
        <p class="muted">
          {inference[key] > 0 && <strong>{ratio(cost[key] / inference[key])}</strong>} inference, {atLeast}
          {show(inference[key])}
        </p>
      )}
      {bound && (
        <p class="muted">
          at least {show(least(bound))}
          {unit} by any schedule
        </p>
      )}
    </div>
  );
}

function Uses({ cost }: { cost: Cost }) {
  const shown = roles.filter((role) => cost.utilisation?.[role] !== undefined);
  if (!shown.length) return null;
  return (
    <dl class="facts" data-testid="uses">
      {shown.map((role) => (
        <div key={role}>
          <dt>Use of the PEs, {words(role)}</dt>
          <dd title="multiply-accumulates / (PEs × cycles) of all contractions in this role">
            {percent(cost.utilisation![role]!)}
          </dd>
        </div>
      ))}
    </dl>
  );
}

// With which widths, on what.
function Counted({ report }: { report: Report }) {
  const { hardware, bounds, settings } = report;
  const operands = settings.widths === "tensors" ? "operands as stored" : "8-bit operands";
  if (!hardware || !modelled(report)) {
    return (
      <p class="muted">
        Lower bounds on {hardware?.name}, {operands}
        {bounds && <>, limited by {bounds.limited_by}</>}: no schedule does better.
      </p>
    );
  }
  const { name, compute_core: core } = hardware;
  const unmapped = report.layers.filter(({ rule }) => rule === "bound").length;
  const runs = report.training?.micro_batches ?? 1;
  return (
    <p class="muted">
      Layer by layer on core {core || name}
      {core && core !== name && ` of ${name}`}, {operands}.
      {unmapped > 0 && ` ${plural(unmapped, "layer")} without a mapping count with their lower bounds.`}
      {runs > 1 && ` Layers are listed for one of ${runs} micro-batches.`}
    </p>
  );
}

export function CostCard({ report }: { report: Report }) {
  const { inference, step, bounds } = report;
  if (!inference) {
    return (
      <section class="card" aria-labelledby="cost-title">
        <h2 id="cost-title">Time and energy</h2>
        <p class="muted">Choose a hardware to see the cycles and energy that a step takes.</p>
      </section>
    );
  }
  const cost = step ?? inference;
  return (
    <section class="card" aria-labelledby="cost-title" data-testid="cost">
      <h2 id="cost-title">{step ? "One step against inference" : "Inference"}</h2>
      {measures.map((measure) => (
        <Comparison
          key={measure.key}
          measure={measure}
          cost={cost}
          inference={step && inference}
          bound={cost.bound || !bounds ? null : step ? bounds : bounds.inference}
        />
      ))}
      <Uses cost={cost} />
      <Counted report={report} />
    </section>
  );
}
