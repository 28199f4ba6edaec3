// Fused groups: strategies side by side, the plan on the graph, and what keeps a group from growing.
import { useEffect, useMemo, useState } from "preact/hooks";
import { Figure } from "../charts/figure";
import { grouping, GroupGraph } from "../charts/groups";
import type { FusionReport, Growth, Strategy } from "../engine/fusion";
import type { FusionObjective, FusionSettings, Report } from "../engine/report";
import { save, stem } from "../files";
import { apply, fuse, fusion, growth, isApplied, refusals, strategyName, valueOf } from "../fusions";
import { bytes, cycles, energy, integer, percent, plural } from "../format";
import { busy, change, settings } from "../state";
import { Facts } from "./facts";
import { options, Select, Text } from "./fields";
import { LayerLink } from "./layer_link";
import { Problems } from "./messages";

const objectiveNames: Record<FusionObjective, string> = {
  latency: "least latency",
  energy: "least energy",
  edp: "least energy × latency",
  traffic: "least off-chip traffic",
  groups: "fewest groups",
};

const readLimits = (text: string): number[] | undefined => {
  const parts = text.split(/[\s,]+/).filter(Boolean);
  const limits = parts.map((part) => (part === "any" ? 0 : Number(part)));
  return limits.length && limits.length <= 8 && limits.every((n) => Number.isInteger(n) && n >= 0 && n <= 1000)
    ? limits
    : undefined;
};
const readSmall = (text: string): number | undefined => {
  const value = Number(text);
  return text.trim() !== "" && Number.isInteger(value) && value >= 0 && value <= 1000 ? value : undefined;
};

function Rules() {
  const now = settings.value.fusion ?? {};
  const set = (part: FusionSettings) => change({ fusion: { ...now, ...part } });
  const check = (label: string, field: "one_output" | "updates_apart" | "activations_apart", otherwise: boolean) => (
    <label class="check">
      <input
        type="checkbox"
        checked={now[field] ?? otherwise}
        onChange={(event) => set({ [field]: event.currentTarget.checked })}
      />
      {label}
    </label>
  );
  return (
    <div class="choice rules">
      <Select
        id="fusion-objective"
        label="Plans with"
        value={now.objective ?? "latency"}
        list={options(objectiveNames)}
        onChange={(value) => set({ objective: value as FusionObjective })}
      />
      <Text
        id="fusion-limits"
        label="Layers of a group, at most"
        value={now.max_group ?? [4, 6]}
        show={(limits) => limits.map((n) => (n === 0 ? "any" : String(n))).join(", ")}
        read={readLimits}
        hint="a search for each"
        wrong="whole numbers from 1 to 1,000, or “any”"
        onChange={(limits) => set({ max_group: limits })}
      />
      <Text
        id="fusion-convolutions"
        label="Convolutions of a group"
        value={now.convolutions ?? 3}
        show={String}
        read={readSmall}
        wrong="a whole number up to 1,000"
        numeric
        onChange={(convolutions) => set({ convolutions })}
      />
      <Text
        id="fusion-products"
        label="Matrix products of a group"
        value={now.products ?? 2}
        show={String}
        read={readSmall}
        wrong="a whole number up to 1,000"
        numeric
        onChange={(products) => set({ products })}
      />
      <label class="check">
        <input
          type="checkbox"
          checked={now.contractions === 1}
          onChange={(event) => set({ contractions: event.currentTarget.checked ? 1 : 0 })}
        />
        One of these in all, as MONET’s code has it
      </label>
      {check("One layer of a group is read outside it", "one_output", true)}
      {check("No update beside a weight’s gradient", "updates_apart", false)}
      {check("No activation beside the product that it reads", "activations_apart", false)}
    </div>
  );
}

interface TableProps {
  report: FusionReport;
  solving: number[];
  chosen: number;
  choose(index: number): void;
  model: string;
}

function Strategies({ report, solving, chosen, choose, model }: TableProps) {
  const { objective = "latency" } = report.settings.fusion;
  const none = report.strategies[0];
  const values = report.strategies.map((strategy) => valueOf(strategy, objective));
  const least = Math.min(...values.filter((value) => value !== null));
  const against = (value: number, of: number | undefined) =>
    of && value !== of ? (
      <span class="muted" title="against no fusion">
        {" "}
        {value < of ? "−" : "+"}
        {percent(Math.abs(1 - value / of))}
      </span>
    ) : null;
  return (
    <div class="scroll">
      <table class="plain phases strategies" data-testid="strategies">
        <caption>
          Scheduled, not estimated; beside each figure its difference from no fusion. {integer(report.candidates.found)} groups of{" "}
          {integer(report.units)} layers were allowed by the rules
          {report.candidates.too_large_for_memory > 0 &&
            `, ${integer(report.candidates.too_large_for_memory)} of them too large for the memories`}
          .
        </caption>
        <thead>
          <tr>
            {["Strategy", "Groups", "Cycles", "Energy", "Off-chip", "Solved in", "Gap", ""].map((title) => (
              <th scope="col" key={title}>
                {title || <span class="visually-hidden">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {report.strategies.map((strategy, index) => {
            const { schedule, solver } = strategy;
            return (
              <tr key={index} class={index === chosen ? "selected" : ""}>
                <th scope="row">
                  <button type="button" class="link" aria-pressed={index === chosen} onClick={() => choose(index)}>
                    {strategyName(strategy)}
                  </button>
                  {values[index] === least && <span class="tag"> best</span>}
                </th>
                <td>{integer(strategy.groups)}</td>
                {schedule ? (
                  <>
                    <td title={`estimated ${cycles(strategy.estimate.latency_cycles)}`}>
                      {cycles(schedule.latency_cycles)}
                      {against(schedule.latency_cycles, none?.schedule?.latency_cycles)}
                    </td>
                    <td>
                      {energy(schedule.energy_pj)}
                      {against(schedule.energy_pj, none?.schedule?.energy_pj)}
                    </td>
                    <td>
                      {bytes(schedule.offchip_bytes)}
                      {against(schedule.offchip_bytes, none?.schedule?.offchip_bytes)}
                    </td>
                  </>
                ) : (
                  <td colSpan={3}>{strategy.refused?.message}</td>
                )}
                <td>{solving[index] !== undefined ? `${solving[index].toFixed(2)} s` : ""}</td>
                <td>
                  {solver &&
                    (solver.status === "optimal" && solver.gap < 1e-9
                      ? "proven best"
                      : `${percent(solver.gap)}${solver.status === "cancelled" ? ", cancelled" : ""}`)}
                </td>
                <td>
                  <button
                    type="button"
                    disabled={!schedule || isApplied(strategy)}
                    aria-label={`Apply the plan “${strategyName(strategy)}”`}
                    onClick={() => apply(strategy)}
                  >
                    {isApplied(strategy) ? "Applied" : "Apply"}
                  </button>{" "}
                  <button
                    type="button"
                    class="quiet"
                    aria-label={`Save the plan “${strategyName(strategy)}”`}
                    onClick={() =>
                      save(
                        `${stem(model)}.${strategyName(strategy).replaceAll(/\W+/g, "-")}.plan.json`,
                        JSON.stringify(strategy.plan, null, 1),
                        "application/json",
                      )
                    }
                  >
                    JSON
                  </button>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function GroupFacts({ units, strategy, report }: { units: number[]; strategy: Strategy; report: Report }) {
  const [found, setFound] = useState<Growth | null>(null);
  const key = units.join(" ");
  useEffect(() => {
    let current = true;
    setFound(null);
    void growth(units).then((answer) => current && setFound(answer));
    return () => (current = false);
  }, [key]);
  const group = strategy.plan.groups.find((candidate) => candidate.units.includes(units[0]!));
  return (
    <div class="event" data-testid="group" role="status">
      <p>
        <strong>{units.length === 1 ? "A layer alone" : `A group of ${plural(units.length, "layer")}`}</strong>{" "}
        <span class="muted">
          {group && group.tiles > 1 ? `in ${integer(group.tiles)} tiles along ${group.axis}` : "in one tile"}
        </span>
      </p>
      <ul class="units">
        {units.map((unit) => (
          <li key={unit}>
            <LayerLink layer={report.layers[unit]} />
          </li>
        ))}
      </ul>
      {found && found.neighbours.length > 0 && (
        <>
          <p class="muted">Next to it, and why {units.length === 1 ? "it" : "the group"} may or may not grow by it:</p>
          <Facts
            of={found.neighbours.map(({ unit, name, limit, why }): [string, string] => {
              const layer = report.layers[unit];
              const what = layer && layer.phase !== "forward" ? `, ${layer.role.replaceAll("_", " ")}` : "";
              return [`${name}${what}`, limit === "none" ? "may join" : why];
            })}
          />
        </>
      )}
    </div>
  );
}

export function FusionSection({ report }: { report: Report }) {
  const made = fusion.value;
  const [chosen, setChosen] = useState<number | null>(null);
  const [layer, setLayer] = useState<number | null>(null);
  const strategies = made?.report.strategies ?? [];
  const at = chosen !== null && chosen < strategies.length ? chosen : bestOf(made?.report ?? null);
  const strategy = strategies[at];
  const plan = useMemo(() => grouping(strategy?.plan.groups ?? []), [strategy]);
  useEffect(() => {
    setChosen(null);
    setLayer(null);
  }, [made]);
  if (!report.hardware) return null;
  const group = layer === null ? null : (plan.groups[plan.of.get(layer) ?? -1]?.units ?? [layer]);
  const layers = report.layers.filter(({ phase }) => made?.report.graph === "step" || phase === "forward");
  return (
    <>
      <section class="card" aria-labelledby="fusion-title" data-testid="fusion">
        <div class="figure-head">
          <h2 id="fusion-title">Fused groups</h2>
          {made && (
            <button
              type="button"
              class="quiet"
              onClick={() => save(`${stem(report.model.name)}.fusion.json`, made.text, "application/json")}
            >
              Search (JSON)
            </button>
          )}
        </div>
        <Rules />
        <p>
          <button type="button" class={made ? "" : "primary"} disabled={busy.value !== null} onClick={() => void fuse()}>
            {made ? "Search again" : "Find fused groups"}
          </button>{" "}
          <span class="muted">
            {made
              ? `Searched in ${made.seconds.toFixed(1)} s, ${integer(made.report.candidates.scheduled)} groups scheduled.`
              : "Layers that run tile by tile as one, so that what passes between them stays on the chip; the choice is proven by an integer program."}
          </span>
        </p>
        {refusals.value.length > 0 && !made && (
          <div role="alert">
            <Problems problems={refusals.value} />
          </div>
        )}
        {made && (
          <>
            <Strategies
              report={made.report}
              solving={made.solving}
              chosen={at}
              choose={setChosen}
              model={report.model.name}
            />
            {made.report.warnings.map(({ message, hint }) => (
              <p class="muted" key={message}>
                {message}
                {hint && ` (${hint})`}.
              </p>
            ))}
          </>
        )}
      </section>
      {made && strategy && (
        <Figure id="groups" title={`Groups of “${strategyName(strategy)}”`} unit="a colour for each group">
          <GroupGraph layers={layers} edges={made.report.edges} plan={plan} chosen={layer} choose={setLayer} />
          {group && <GroupFacts units={group} strategy={strategy} report={report} />}
        </Figure>
      )}
    </>
  );
}

function bestOf(report: FusionReport | null): number {
  if (!report) return 0;
  const values = report.strategies.map((s) => valueOf(s, report.settings.fusion.objective ?? "latency") ?? Infinity);
  return values.indexOf(Math.min(...values));
}
