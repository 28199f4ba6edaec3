// The schedule: what a step costs when everything runs tile by tile on the cores, links and memories of the hardware.
import { sum } from "d3-array";
import { useEffect, useState } from "preact/hooks";
import { StackedRows, type StackedRow } from "../charts/bars";
import { Figure, Legend } from "../charts/figure";
import { FootprintChart } from "../charts/footprint";
import { Gantt, type Chosen } from "../charts/gantt";
import { phases, type Layer, type Report } from "../engine/report";
import { energyTerms, waits, type Schedule, type ScheduleReport } from "../engine/schedule";
import { save, stem } from "../files";
import { bytes, cycles, energy, integer, percent, ratio, words } from "../format";
import { refusals, schedule, schedules, trace, wanted } from "../schedules";
import { busy, change, settings } from "../state";
import { rowsOf, type TraceRow } from "../trace";
import { Facts } from "./facts";
import { LayerLink } from "./layer_link";
import { waitNames } from "./layer_schedule";
import { Problems } from "./messages";

interface Whole {
  label: string;
  of: Schedule;
}

const wholes = ({ step, inference }: ScheduleReport): Whole[] => [
  ...(step ? [{ label: "Training step", of: step }] : []),
  { label: "Inference", of: inference },
];
const traffic = ({ offchip }: Schedule) => offchip.read_bytes + offchip.written_bytes;
const termNames: Record<(typeof energyTerms)[number], string> = {
  mac: "operations",
  registers: "registers",
  sram: "on-chip memories",
  links: "links",
  offchip: "off-chip memory",
  eviction: "evictions",
};
const causeNames: Record<string, string> = {
  load: "loads",
  move: "between cores",
  eviction: "evicted",
  write_back: "written back",
  output: "results",
  stream: "streamed by tiles",
};

function Headline({ report }: { report: ScheduleReport }) {
  const all = wholes(report);
  const measures = [
    { label: "Cycles", value: (s: Schedule) => s.latency_cycles, least: (s: Schedule) => s.bounds.latency_cycles, show: cycles },
    { label: "Energy", value: (s: Schedule) => s.energy_pj, least: (s: Schedule) => s.bounds.energy_pj, show: energy },
    { label: "Off-chip traffic", value: traffic, least: (s: Schedule) => s.bounds.offchip_bytes, show: bytes },
    { label: "On-chip peak", value: (s: Schedule) => s.onchip.peak, least: null, show: bytes },
    { label: "Off-chip peak", value: (s: Schedule) => s.offchip_memory.peak, least: null, show: bytes },
  ];
  return (
    <table class="plain phases" data-testid="schedule-headline">
      <caption>
        Scheduled tile by tile; beside each figure how far it is from its lower bound.
        {report.settings.widths === "datapath" &&
          " Operands count 8 bit, as in Stream; the memory figures above count tensors as they are stored."}
      </caption>
      <thead>
        <tr>
          <th scope="col">Measure</th>
          {all.map(({ label }) => (
            <th scope="col" key={label}>
              {label}
            </th>
          ))}
          {report.step && <th scope="col">Training / inference</th>}
        </tr>
      </thead>
      <tbody>
        {measures.map(({ label, value, least, show }) => (
          <tr key={label}>
            <th scope="row">{label}</th>
            {all.map(({ label: name, of }) => (
              <td key={name}>
                {show(value(of))}{" "}
                {least && least(of) > 0 && (
                  <span class="muted" title={`at least ${show(least(of))}`}>
                    {ratio(value(of) / least(of))}
                  </span>
                )}
              </td>
            ))}
            {report.step && (
              <td>{value(report.inference) > 0 ? ratio(value(report.step) / value(report.inference)) : ""}</td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Stacks({ report }: { report: ScheduleReport }) {
  const all = wholes(report);
  const present = phases.filter((phase) => all.some(({ of }) => of.phases[phase]));
  const times = all.map(({ label, of }): StackedRow => ({
    label,
    parts: present.flatMap((phase) => {
      const value = of.phases[phase]?.latency_cycles;
      return value ? [{ label: phase, value, paint: `paint-${phase}`, text: `${cycles(value)} cycles` }] : [];
    }),
    text: cycles(of.latency_cycles),
    mark: { value: of.bounds.latency_cycles, text: `lower bound ${cycles(of.bounds.latency_cycles)}` },
  }));
  const partsOf = (terms: Schedule["energy"]) =>
    energyTerms.map((term) => ({
      label: termNames[term],
      value: terms[term],
      paint: `paint-term-${term}`,
      text: energy(terms[term]),
    }));
  const energies = all.flatMap(({ label, of }): StackedRow[] => {
    const whole = {
      label,
      parts: partsOf(of.energy),
      text: energy(of.energy_pj),
      mark: { value: of.bounds.energy_pj, text: `lower bound ${energy(of.bounds.energy_pj)}` },
    };
    const each = phases.flatMap((phase) => {
      const part = of.phases[phase];
      return part ? [{ label: phase, parts: partsOf(part.energy), text: energy(part.energy_pj) }] : [];
    });
    return each.length > 1 ? [whole, ...each] : [whole];
  });
  const mark = { label: "lower bound", paint: "paint-mark" };
  const used = energyTerms.filter((term) => all.some(({ of }) => of.energy[term] > 0));
  return (
    <div class="pair">
      <Figure id="schedule-time" title="Scheduled time by phase" unit="cycles">
        <StackedRows rows={times} label="Cycles by phase of the scheduled training step and of inference" />
        <Legend items={[...present.map((phase) => ({ label: phase, paint: `paint-${phase}` })), mark]} />
        <PhaseTable report={report} />
      </Figure>
      <Figure id="schedule-energy" title="Scheduled energy by term" unit="J">
        <StackedRows rows={energies} label="Energy by term of the scheduled training step and of inference" />
        <Legend items={[...used.map((term) => ({ label: termNames[term], paint: `paint-term-${term}` })), mark]} />
        <Causes report={report} />
      </Figure>
    </div>
  );
}

function PhaseTable({ report }: { report: ScheduleReport }) {
  const of = report.step ?? report.inference;
  return (
    <table class="plain phases">
      <caption>{report.step ? "Each phase of the step" : "Forward"}</caption>
      <thead>
        <tr>
          <th scope="col">Phase</th>
          <th scope="col">Cycles</th>
          <th scope="col">Energy</th>
          <th scope="col">Off-chip</th>
        </tr>
      </thead>
      <tbody>
        {phases.map((phase) => {
          const part = of.phases[phase];
          return (
            part && (
              <tr key={phase}>
                <th scope="row">{phase}</th>
                <td>{cycles(part.latency_cycles)}</td>
                <td>{energy(part.energy_pj)}</td>
                <td>{bytes(part.offchip_bytes)}</td>
              </tr>
            )
          );
        })}
      </tbody>
    </table>
  );
}

// Why bytes cross the chip's edge, and what the time of all layers' tiles goes to.
function Causes({ report }: { report: ScheduleReport }) {
  const of = report.step ?? report.inference;
  const spent = waits.map((wait) => ({ wait, cycles: sum(of.units, (unit) => unit.waits[wait]) }));
  const all = sum(spent, ({ cycles }) => cycles) || 1;
  return (
    <>
      <p class="muted">
        Off-chip:{" "}
        {Object.entries(of.offchip.causes)
          .map(([cause, value]) => `${causeNames[cause] ?? cause} ${bytes(value)}`)
          .join(", ")}
        .
      </p>
      <p class="muted" data-testid="waits">
        Of the time of all tiles, waiting included:{" "}
        {spent
          .filter(({ cycles }) => cycles > 0)
          .sort((a, b) => b.cycles - a.cycles)
          .map(({ wait, cycles }) => `${waitNames[wait]} ${percent(cycles / all)}`)
          .join(", ")}
        .
      </p>
    </>
  );
}

interface EventFactsProps {
  chosen: Chosen;
  rows: TraceRow[];
  layer: Layer | undefined; // that the event belongs to
}

function EventFacts({ chosen, rows, layer }: EventFactsProps) {
  const { event } = chosen;
  return (
    <div class="event" data-testid="gantt-event" role="status">
      <p>
        <strong>{event.name}</strong>{" "}
        <span class="muted">
          {words(event.kind)} on {rows[chosen.row]?.name}
        </span>
      </p>
      <Facts
        of={[
          ["Start", cycles(event.start)],
          ["End", cycles(event.end)],
          ["Cycles", cycles(event.end - event.start)],
          ...Object.entries(event.detail).map(([name, value]): [string, string] => [
            words(name),
            typeof value === "number" ? integer(value) : words(value),
          ]),
        ]}
      />
      <LayerLink layer={layer} />
    </div>
  );
}

function Timelines({ report, of: { layers, model } }: { report: ScheduleReport; of: Report }) {
  const [inference, setInference] = useState(report.step === null);
  const [text, setText] = useState<string | null>(null);
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [rows, setRows] = useState<TraceRow[]>([]);
  const of = inference ? report.inference : report.step!;
  useEffect(() => {
    let current = true;
    setChosen(null);
    void trace(inference).then((found) => {
      if (!current || !found) return;
      setRows(rowsOf(found));
      setText(found);
    });
    return () => (current = false);
  }, [report, inference]);
  // Inference is scheduled on a graph of its own: its layers go by other numbers, and by the same names.
  const layerOf = (id: number): Layer | undefined => {
    if (of === report.step || !report.step) return layers[id];
    const unit = of.units.find((unit) => unit.id === id);
    return layers.find(({ name, phase }) => phase === "forward" && name === unit?.name);
  };
  const whole = Math.max(1, ...rows.map(({ events }) => Math.max(...events.map(({ end }) => end))));
  return (
    <Section title="Who runs when" unit="cycles">
      <div class="gantt-tools">
        {report.step && (
          <label class="check">
            <input type="checkbox" checked={inference} onChange={(e) => setInference(e.currentTarget.checked)} />
            Inference alone
          </label>
        )}
        <button
          type="button"
          disabled={!text}
          onClick={() => text && save(`${stem(model.name)}.trace.json`, text, "application/json")}
        >
          Trace for Perfetto
        </button>
      </div>
      {rows.length > 0 && (
        <Gantt name={stem(model.name)} rows={rows} whole={whole} chosen={chosen} choose={setChosen} />
      )}
      {chosen && <EventFacts chosen={chosen} rows={rows} layer={layerOf(chosen.event.layer)} />}
      <div class="pair plain-pair">
        <Figure id="onchip" title="On-chip memory" unit="bytes, all memories together">
          <FootprintChart footprint={of.onchip} whole={whole} label="On-chip memory over time" />
          <p class="muted">
            {of.stores
              .map(({ name, peak_bytes, capacity_bytes }) => `${name} ${percent(peak_bytes / capacity_bytes)} full`)
              .slice(0, 6)
              .join(", ")}
            {of.stores.length > 6 && `, ${integer(of.stores.length - 6)} more`} at the peak.
          </p>
        </Figure>
        <Figure id="offchip" title="Off-chip memory" unit="bytes">
          <FootprintChart footprint={of.offchip_memory} whole={whole} label="Off-chip memory over time" />
        </Figure>
      </div>
    </Section>
  );
}

function Section({ title, unit, children }: { title: string; unit: string; children: preact.ComponentChildren }) {
  return (
    <section class="card figure" aria-label={title}>
      <h2>
        {title} <span class="unit">{unit}</span>
      </h2>
      {children}
    </section>
  );
}

function Options({ report }: { report: Report }) {
  const { write_back: writeBack = false, accumulation = "in_place", partition = null } = settings.value;
  return (
    <div class="choice">
      <label class="check">
        <input
          type="checkbox"
          checked={writeBack}
          onChange={(event) => change({ write_back: event.currentTarget.checked })}
        />
        What passes between layers goes off the chip
      </label>
      {(report.training?.micro_batches ?? 1) > 1 && (
        <label class="check">
          <input
            type="checkbox"
            checked={accumulation === "separate"}
            onChange={(event) => change({ accumulation: event.currentTarget.checked ? "separate" : "in_place" })}
          />
          Gradients are summed by reading and writing, not in place
        </label>
      )}
      {partition && (
        <button
          type="button"
          class="chip"
          title="Remove the fused groups"
          aria-label="Remove the fused groups"
          onClick={() => change({ partition: null })}
        >
          fused groups <span aria-hidden="true">×</span>
        </button>
      )}
    </div>
  );
}

export function ScheduleSection({ report }: { report: Report }) {
  const made = schedules.value;
  if (!report.hardware) {
    return (
      <section class="card" aria-labelledby="schedule-title">
        <h2 id="schedule-title">Schedule</h2>
        <p class="muted">Choose a hardware to see what runs when, and what it costs on the whole accelerator.</p>
      </section>
    );
  }
  return (
    <>
      <section class="card" aria-labelledby="schedule-title" data-testid="schedule">
        <div class="figure-head">
          <h2 id="schedule-title">Schedule on {report.hardware.name}</h2>
          {made && (
            <button
              type="button"
              class="quiet"
              onClick={() => save(`${stem(report.model.name)}.schedule.json`, made.text, "application/json")}
            >
              Schedule (JSON)
            </button>
          )}
        </div>
        <Options report={report} />
        {made ? (
          <Headline report={made.schedules} />
        ) : refusals.value.length && wanted.value ? (
          <div role="alert">
            <Problems problems={refusals.value} />
          </div>
        ) : (
          <p>
            <button type="button" class="primary" disabled={busy.value !== null} onClick={schedule}>
              Schedule this step
            </button>{" "}
            <span class="muted">
              Tiles on every core, transfers on every link, memories over time. Layers alone, as above, know nothing of
              these.
            </span>
          </p>
        )}
      </section>
      {made && <Stacks report={made.schedules} />}
      {made && <Timelines report={made.schedules} of={report} />}
    </>
  );
}
