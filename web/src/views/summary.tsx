// The first screen: the answer in one sentence, then its figures.
import { CapacityBar, GroupedBars, StackedBar, type BarRow } from "../charts/bars";
import { Figure, Legend, Swatch } from "../charts/figure";
import { Timeline } from "../charts/timeline";
import { categories, phases, type Bound, type Report } from "../engine/report";
import { bytes, count, cycles, energy, exactBytes, integer, percent, plural, ratio, words } from "../format";
import { stem } from "../files";
import { InferenceExport } from "./messages";

const optimizerNames: Record<string, string> = { sgd: "SGD", momentum: "momentum", adam: "Adam" };

export function Headline({ report }: { report: Report }) {
  const { memory, training, model } = report;
  const name = stem(model.name);
  if (!training) {
    return (
      <p class="headline" data-testid="headline">
        <strong>{name}</strong> runs forward in{" "}
        <strong title={exactBytes(memory.inference_peak)}>{bytes(memory.inference_peak)}</strong>. What training it
        takes is not known yet: see below why.
      </p>
    );
  }
  const verdict =
    memory.fits === null ? null : memory.fits ? (
      <strong class="good">fits {bytes(memory.capacity!)}</strong>
    ) : (
      <strong class="bad">is {bytes(memory.short_by!)} short</strong>
    );
  return (
    <p class="headline" data-testid="headline">
      Training <strong>{name}</strong> at batch {integer(training.batch)} with{" "}
      {optimizerNames[training.optimizer] ?? training.optimizer} peaks at{" "}
      <strong title={exactBytes(memory.peak)}>{bytes(memory.peak)}</strong>
      {memory.inference_peak > 0 && <>, {ratio(memory.peak / memory.inference_peak)} its inference</>}
      {verdict && <>: it {verdict}</>}.
    </p>
  );
}

function PeakCard({ report }: { report: Report }) {
  const { memory, training } = report;
  const peak = training ? memory.peak : memory.inference_peak;
  const { capacity, largest_batch: largest } = memory;
  return (
    <section class="card" aria-labelledby="peak-title">
      <h2 id="peak-title">{training ? "Peak memory of a step" : "Peak memory, forward"}</h2>
      <p class="big" title={exactBytes(peak)} data-testid="peak">
        {bytes(peak)}
      </p>
      {capacity === null ? (
        <p class="muted">No capacity given: set one to see whether it fits.</p>
      ) : (
        <>
          <CapacityBar
            peak={peak}
            capacity={capacity}
            inference={memory.inference_peak}
            label={`Peak ${bytes(peak)} of a capacity of ${bytes(capacity)}; inference alone ${bytes(memory.inference_peak)}`}
          />
          <p data-testid="fits">
            {memory.fits ? (
              <>
                <strong class="good">Fits</strong> {bytes(capacity)},{" "}
                <span title={exactBytes(capacity - peak)}>{bytes(capacity - peak)}</span> to spare
              </>
            ) : (
              <>
                <strong class="bad">Short by</strong>{" "}
                <span title={exactBytes(memory.short_by ?? 0)}>{bytes(memory.short_by ?? 0)}</span> of {bytes(capacity)}
              </>
            )}
          </p>
        </>
      )}
      <dl class="facts">
        {largest && (
          <div>
            <dt>Largest batch that fits</dt>
            <dd data-testid="largest-batch" title={largest.reason}>
              {largest.value === null ? "unknown" : largest.value === 0 ? "none" : integer(largest.value)}
            </dd>
          </div>
        )}
        {largest?.value === null && <p class="hint">{largest.reason}</p>}
        {training && (
          <div>
            <dt>Inference alone</dt>
            <dd title={exactBytes(memory.inference_peak)}>{bytes(memory.inference_peak)}</dd>
          </div>
        )}
      </dl>
      <InferenceExport />
    </section>
  );
}

interface ComparisonProps {
  label: string;
  cost: number;
  inference: number | null; // null: there is no step to compare it with
  show(value: number): string;
  unit: string;
  atLeast: string;
}

function Comparison({ label, cost, inference, show, unit, atLeast }: ComparisonProps) {
  return (
    <div class="comparison">
      <p class="muted">{label}</p>
      <p class="bound">
        <span class="at-least">{atLeast}</span> <strong>{show(cost)}</strong> {unit}
      </p>
      {inference !== null && (
        <p class="muted">
          {inference > 0 && <strong>{ratio(cost / inference)}</strong>} inference, {atLeast} {show(inference)}
        </p>
      )}
    </div>
  );
}

const measures = [
  { key: "latency_cycles", label: "Time", show: cycles, unit: "cycles" },
  { key: "energy_pj", label: "Energy", show: energy, unit: "" },
] as const;

function CostCard({ report }: { report: Report }) {
  const { inference, step, hardware, bounds } = report;
  if (!inference || !hardware) {
    return (
      <section class="card" aria-labelledby="cost-title">
        <h2 id="cost-title">Time and energy</h2>
        <p class="muted">Choose a hardware to see the least cycles and energy that a step takes.</p>
      </section>
    );
  }
  const cost = step ?? inference;
  return (
    <section class="card" aria-labelledby="cost-title" data-testid="cost">
      <h2 id="cost-title">{step ? "One step against inference" : "Inference"}</h2>
      {measures.map(({ key, ...measure }) => (
        <Comparison
          key={key}
          {...measure}
          cost={cost[key]}
          inference={step && inference[key]}
          atLeast={cost.bound ? "at least" : ""}
        />
      ))}
      {cost.bound && (
        <p class="muted">
          Lower bounds on {hardware.name}
          {bounds && <>, limited by {bounds.limited_by}</>}: no schedule does better.
        </p>
      )}
    </section>
  );
}

function ModelCard({ report }: { report: Report }) {
  const { model, training } = report;
  return (
    <section class="card" aria-labelledby="model-title">
      <h2 id="model-title">Model and work</h2>
      <dl class="facts">
        <div>
          <dt>Parameters</dt>
          <dd
            title={`${integer(model.parameters)} elements, ${exactBytes(model.parameter_bytes)}`}
            data-testid="parameters"
          >
            {count(model.parameters)} <span class="muted">{bytes(model.parameter_bytes)}</span>
          </dd>
        </div>
        <div>
          <dt>Forward MACs</dt>
          <dd title={integer(model.forward_macs)} data-testid="macs">
            {count(model.forward_macs)}
          </dd>
        </div>
        {training && (
          <>
            <div>
              <dt>Input gradients</dt>
              <dd title={integer(training.macs.input_gradient)}>{count(training.macs.input_gradient)}</dd>
            </div>
            <div>
              <dt>Weight gradients</dt>
              <dd title={integer(training.macs.weight_gradient)}>{count(training.macs.weight_gradient)}</dd>
            </div>
            <div class="total">
              <dt>Step MACs</dt>
              <dd title={integer(training.macs.total)}>
                {count(training.macs.total)}{" "}
                <span class="muted">{model.forward_macs > 0 && ratio(training.macs.total / model.forward_macs)}</span>
              </dd>
            </div>
            <div>
              <dt>Saved for backward</dt>
              <dd title={exactBytes(report.memory.activations)} data-testid="saved">
                {bytes(report.memory.activations)}
              </dd>
            </div>
          </>
        )}
      </dl>
      <p class="muted">
        {plural(model.nodes, "node")}, opset {model.opset}
        {training && (
          <>
            ; {training.loss.replaceAll("_", "-")} on <code>{training.loss_output}</code>,{" "}
            {plural(training.trained_tensors, "trained tensor")}
            {training.trained_parameters !== model.parameters && ` of ${count(training.trained_parameters)} parameters`}
            {training.micro_batches > 1 && `, ${training.micro_batches} micro-batches a step`}
          </>
        )}
      </p>
    </section>
  );
}

function CategoryCard({ report }: { report: Report }) {
  const held = report.memory.at_peak;
  const total = categories.reduce((sum, name) => sum + held[name], 0) || 1;
  const present = categories.filter((name) => held[name] > 0);
  const peakLayer = report.layers[report.memory.peak_unit];
  return (
    <Figure id="categories" title="What fills the peak" unit="bytes" class="categories">
      <StackedBar
        label="Memory at the peak by category"
        parts={present.map((name) => ({
          label: words(name),
          value: held[name],
          paint: `paint-${name}`,
          text: bytes(held[name]),
        }))}
      />
      <table class="plain legend">
        <thead class="visually-hidden">
          <tr>
            <th scope="col">Category</th>
            <th scope="col">Bytes</th>
            <th scope="col">Share</th>
          </tr>
        </thead>
        <tbody>
          {present.map((name) => (
            <tr key={name}>
              <th scope="row">
                <Swatch label={words(name)} paint={`paint-${name}`} /> {words(name)}
              </th>
              <td title={exactBytes(held[name])}>{bytes(held[name])}</td>
              <td class="muted">{percent(held[name] / total)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {peakLayer && (
        <p class="muted">
          While {peakLayer.name} ({words(peakLayer.role)}) runs
        </p>
      )}
    </Figure>
  );
}

export function Summary({ report }: { report: Report }) {
  return (
    <>
      <div class="cards">
        <PeakCard report={report} />
        <CostCard report={report} />
        <ModelCard report={report} />
      </div>
      <div class="memory-row">
        <CategoryCard report={report} />
        <Figure id="timeline" title="Memory over the step" unit="bytes held while each layer runs">
          <Timeline report={report} />
        </Figure>
      </div>
    </>
  );
}

const roofs = (label: string, bound: Bound): BarRow => ({
  label,
  bars: [
    { label: "compute", value: bound.compute_cycles, paint: "paint-compute", text: cycles(bound.compute_cycles) },
    { label: "traffic", value: bound.traffic_cycles, paint: "paint-traffic", text: cycles(bound.traffic_cycles) },
  ],
});

const energies = (label: string, bound: Bound): BarRow => ({
  label,
  bars: [
    { label: "compute", value: bound.compute_pj, paint: "paint-compute", text: energy(bound.compute_pj) },
    { label: "traffic", value: bound.traffic_pj, paint: "paint-traffic", text: energy(bound.traffic_pj) },
  ],
});

const roofLegend = [
  { label: "compute", paint: "paint-compute" },
  { label: "off-chip traffic", paint: "paint-traffic" },
];

// Where the bounds come from. Time: the longer of the two roofs. Energy: their sum.
export function Bounds({ report }: { report: Report }) {
  const { bounds, hardware, step, inference } = report;
  if (!bounds || !hardware) return null;
  const both = (rows: (label: string, bound: Bound) => BarRow) => [
    ...(step ? [rows("Training step", bounds)] : []),
    rows("Inference", bounds.inference),
  ];
  const phaseCosts = (step ?? inference)?.phases ?? {};
  return (
    <div class="pair">
      <Figure id="cycles" title="Where the time bound comes from" unit="cycles">
        <GroupedBars
          rows={both(roofs)}
          label="Cycles of compute and of off-chip traffic, for the training step and for inference"
        />
        <Legend items={roofLegend} />
        <p class="muted">
          The longer one counts: {plural(hardware.mac_units, "MAC")} a cycle against{" "}
          {integer(hardware.offchip_bits_per_cycle)} bit a cycle for the{" "}
          <span title={exactBytes(bounds.traffic_bytes)}>{bytes(bounds.traffic_bytes)}</span> that must cross the chip's
          edge.
        </p>
        <table class="plain phases">
          <caption>Each phase alone, at least</caption>
          <thead>
            <tr>
              <th scope="col">Phase</th>
              <th scope="col">Cycles</th>
              <th scope="col">Energy</th>
            </tr>
          </thead>
          <tbody>
            {phases.map((phase) => {
              const cost = phaseCosts[phase];
              return (
                cost && (
                  <tr key={phase}>
                    <th scope="row">{phase}</th>
                    <td>{cycles(cost.latency_cycles)}</td>
                    <td>{energy(cost.energy_pj)}</td>
                  </tr>
                )
              );
            })}
          </tbody>
        </table>
      </Figure>
      <Figure id="energy" title="Where the energy bound comes from" unit="J">
        <GroupedBars
          rows={both(energies)}
          label="Energy of compute and of off-chip traffic, for the training step and for inference"
        />
        <Legend items={roofLegend} />
        <p class="muted">
          Both add up: {energy(hardware.mac_energy_pj)} a MAC, {energy(hardware.offchip_pj_per_bit)} a bit across the
          chip's edge.
        </p>
      </Figure>
    </div>
  );
}
