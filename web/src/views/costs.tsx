// Where time and energy go: phases, memory levels, the array. Lower bounds where nothing is modelled.
import { StackedRows, type StackedRow } from "../charts/bars";
import { Figure, Legend } from "../charts/figure";
import { UseChart } from "../charts/uses";
import {
  inOrder,
  leastCycles,
  leastEnergy,
  levelNames,
  levelPaint,
  modelled,
  useRows,
  whyBelow,
} from "../costs";
import { corrections, phases, roles, type Bound, type Cost, type PhaseCost, type Report } from "../engine/report";
import { cycles, energy, integer, percent, words } from "../format";
import { change } from "../state";
import { Bounds } from "./bounds";
import { showBelowRoof } from "./layer_table";
import { PhaseTable } from "./phase_table";

interface Whole {
  label: string;
  of: string; // within a sentence
  cost: Cost;
  bound: Bound;
}

function wholes({ step, inference, bounds }: Report): Whole[] {
  if (!bounds || !inference) return [];
  return [
    ...(step ? [{ label: "Training step", of: "the training step", cost: step, bound: bounds }] : []),
    { label: "Inference", of: "inference", cost: inference, bound: bounds.inference },
  ];
}

const boundMark = { label: "lower bound", paint: "paint-mark" };

function TimeByPhase({ report }: { report: Report }) {
  const all = wholes(report);
  const rows = all.map(({ label, cost, bound }): StackedRow => {
    const least = leastCycles(bound);
    return {
      label,
      parts: phases.flatMap((phase) => {
        const of = cost.phases[phase];
        const text = of && `${cycles(of.latency_cycles)} cycles`;
        return of ? [{ label: phase, value: of.latency_cycles, paint: `paint-${phase}`, text: text! }] : [];
      }),
      text: cycles(cost.latency_cycles),
      mark: { value: least, text: `lower bound ${cycles(least)}` },
    };
  });
  const present = phases.filter((phase) => all.some(({ cost }) => cost.phases[phase]));
  return (
    <Figure id="cycles" title="Time by phase" unit="cycles">
      <StackedRows rows={rows} label="Cycles by phase, for the training step and for inference" />
      <Legend items={[...present.map((phase) => ({ label: phase, paint: `paint-${phase}` })), boundMark]} />
      <PhaseTable caption={report.step ? "Each phase of the step" : "Forward"} cost={report.step ?? report.inference} />
      <p class="muted">
        Any schedule takes at least {all.map(({ of, bound }) => `${cycles(leastCycles(bound))} for ${of}`).join(", ")}.
      </p>
    </Figure>
  );
}

function EnergyByLevel({ report }: { report: Report }) {
  const names = levelNames(report);
  const all = wholes(report);
  const parts = (cost: PhaseCost) =>
    inOrder(names, cost.levels ?? []).map(({ level, energy_pj }) => ({
      label: level,
      value: energy_pj,
      paint: levelPaint(names, level),
      text: energy(energy_pj),
    }));
  const rows = all.flatMap(({ label, cost, bound }): StackedRow[] => {
    const least = leastEnergy(bound);
    const whole = {
      label,
      parts: parts(cost),
      text: energy(cost.energy_pj),
      mark: { value: least, text: `lower bound ${energy(least)}` },
    };
    const each = phases.flatMap((phase) => {
      const of = cost.phases[phase];
      return of ? [{ label: phase, parts: parts(of), text: energy(of.energy_pj) }] : [];
    });
    return each.length > 1 ? [whole, ...each] : [whole];
  });
  const used = names.filter((name) => all.some(({ cost }) => cost.levels?.some(({ level }) => level === name)));
  const at = (cost: Cost, name: string) => cost.levels?.find(({ level }) => level === name)?.energy_pj ?? 0;
  return (
    <Figure id="energy" title="Energy by memory level" unit="J">
      <StackedRows rows={rows} label="Energy by memory level, for the training step and for inference" />
      <Legend items={[...used.map((name) => ({ label: name, paint: levelPaint(names, name) })), boundMark]} />
      <table class="plain phases">
        <caption>Each level</caption>
        <thead>
          <tr>
            <th scope="col">Level</th>
            {all.map(({ label }) => (
              <th scope="col" key={label}>
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {used.map((name) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {all.map(({ label, cost }) => (
                <td key={label}>
                  {energy(at(cost, name))}{" "}
                  <span class="muted">{percent(cost.energy_pj > 0 ? at(cost, name) / cost.energy_pj : 0)}</span>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      <p class="muted">
        Any schedule takes at least {all.map(({ of, bound }) => `${energy(leastEnergy(bound))} for ${of}`).join(", ")}.
      </p>
    </Figure>
  );
}

// How well the array is used by what an operator does forward and by its gradients: a dataflow that suits one may
// leave the array idle in another.
function UseByRole({ report }: { report: Report }) {
  const rows = useRows(report.layers);
  if (!rows.length) return null;
  const present = roles.filter((role) => rows.some(({ uses }) => uses[role]));
  return (
    <Figure id="uses" title="Use of the PEs by role" unit="multiply-accumulates / (PEs × cycles)">
      <Legend items={present.map((role) => ({ label: words(role), paint: `paint-${role}` }))} />
      <UseChart rows={rows} roles={present} />
      <p class="muted">A full bar: every PE multiplies in every cycle. A bar selects its layer.</p>
    </Figure>
  );
}

// What the layers below their own lower bounds are, and where to find them.
function BelowRoof({ report }: { report: Report }) {
  const below = report.bounds?.below_roof ?? [];
  if (!below.length) return null;
  return (
    <p class="muted" data-testid="below-roof">
      <button type="button" class="link" onClick={showBelowRoof}>
        {below.length === 1 ? "1 layer lies" : `${integer(below.length)} layers lie`} below the off-chip roof
      </button>
      : {whyBelow}.{" "}
      <button type="button" class="link" onClick={() => change({ corrections: [...corrections] })}>
        Choose the corrected model
      </button>
    </p>
  );
}

export function Costs({ report }: { report: Report }) {
  if (!modelled(report)) return <Bounds report={report} />;
  return (
    <>
      <div class="pair">
        <TimeByPhase report={report} />
        <EnergyByLevel report={report} />
      </div>
      <UseByRole report={report} />
      <BelowRoof report={report} />
    </>
  );
}
