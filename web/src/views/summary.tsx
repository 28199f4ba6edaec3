// The first screen: the answer in one sentence, then its figures.
import { CapacityBar } from "../charts/bars";
import { Breakdown } from "../charts/breakdown";
import { Figure } from "../charts/figure";
import { Timeline } from "../charts/timeline";
import { categories, type Report } from "../engine/report";
import { bytes, count, exactBytes, integer, plural, ratio, words } from "../format";
import { stem } from "../files";
import { CostCard } from "./cost_card";
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
  const peakLayer = report.layers[report.memory.peak_unit];
  return (
    <Figure id="categories" title="What fills the peak" unit="bytes" class="categories">
      <Breakdown
        label="Memory at the peak by category"
        of="Category"
        unit="Bytes"
        parts={categories.map((name) => ({
          label: words(name),
          value: held[name],
          paint: `paint-${name}`,
          text: bytes(held[name]),
          exact: exactBytes(held[name]),
        }))}
      />
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
