// The selected layer: what it is, what it costs, what it is connected with.
import type { Layer, Report } from "../engine/report";
import { bytes, cycles, energy, exactBytes, integer, shape, words } from "../format";
import { selected, selection } from "../state";
import { LayerLink } from "./layer_link";
import { LayerSchedule } from "./layer_schedule";
import { LayerCost } from "./mapping";

function Links({ title, ids, layers }: { title: string; ids: number[]; layers: Layer[] }) {
  const most = 12;
  if (!ids.length) return null;
  return (
    <div>
      <dt>{title}</dt>
      <dd class="links">
        {ids.slice(0, most).map((id) => (
          <LayerLink key={id} layer={layers[id]} />
        ))}
        {ids.length > most && <span class="muted">and {integer(ids.length - most)} more</span>}
      </dd>
    </div>
  );
}

function LoopNest({ loops }: { loops: Layer["loops"] }) {
  if (!loops.length) return null;
  const lines = loops.map(({ dim, size }, depth) => `${"  ".repeat(depth)}for ${dim} in ${integer(size)}`);
  return (
    <div>
      <dt>Loop nest</dt>
      <dd>
        <pre class="nest">
          <code>{[...lines, `${"  ".repeat(loops.length)}multiply-accumulate`].join("\n")}</code>
        </pre>
      </dd>
    </div>
  );
}

// Of a layer that no mapping and no rule costs.
function LowerBounds({ layer }: { layer: Layer }) {
  if (layer.rule !== "bound" || layer.latency_cycles === null || layer.energy_pj === null) return null;
  return (
    <>
      <div>
        <dt>Time</dt>
        <dd>
          at least {cycles(layer.latency_cycles)} cycles <span class="muted">({layer.bound_by})</span>
        </dd>
      </div>
      <div>
        <dt>Energy</dt>
        <dd>at least {energy(layer.energy_pj)}</dd>
      </div>
    </>
  );
}

export function LayerPanel({ report }: { report: Report }) {
  const layer = selected.value;
  if (!layer) return null;
  const { layers, memory } = report;
  const derived = layers.filter((other) => other.origin === layer.id && other.id !== layer.id).map(({ id }) => id);
  const readers = layers.filter((other) => other.reads.includes(layer.id)).map(({ id }) => id);
  const saved = memory.saved.filter((tensor) => tensor.layer === layer.id);
  return (
    <section class="card layer-panel" aria-labelledby="layer-title" data-testid="layer-panel">
      <div class="figure-head">
        <h2 id="layer-title">
          {layer.name}{" "}
          <span class="unit">
            {layer.op}, {words(layer.role)}
          </span>
        </h2>
        <button type="button" class="quiet" aria-label="Close the layer" onClick={() => (selection.value = null)}>
          Close
        </button>
      </div>
      <LayerCost report={report} layer={layer} />
      <LayerSchedule layer={layer.id} />
      <dl class="facts">
        <div>
          <dt>Phase</dt>
          <dd>
            <span class={`phase phase-${layer.phase}`}>{layer.phase}</span>
          </dd>
        </div>
        <div>
          <dt>Output</dt>
          <dd>{shape(layer.shape)}</dd>
        </div>
        {layer.macs > 0 && (
          <div>
            <dt>MACs</dt>
            <dd>{integer(layer.macs)}</dd>
          </div>
        )}
        {layer.operations > 0 && (
          <div>
            <dt>Vector operations</dt>
            <dd>{integer(layer.operations)}</dd>
          </div>
        )}
        <div>
          <dt>Bytes read and written</dt>
          <dd title={exactBytes(layer.bytes)}>{bytes(layer.bytes)}</dd>
        </div>
        {layer.parameter_bytes > 0 && (
          <div>
            <dt>Parameters</dt>
            <dd title={exactBytes(layer.parameter_bytes)}>{bytes(layer.parameter_bytes)}</dd>
          </div>
        )}
        <LowerBounds layer={layer} />
        <div>
          <dt>ONNX nodes</dt>
          <dd>{integer(layer.nodes)}</dd>
        </div>
        {layer.mapping === null && <LoopNest loops={layer.loops} />}
        {layer.transposed.length > 0 && (
          <div>
            <dt>Transposed operands</dt>
            <dd title="Read or written across their stored layout">{layer.transposed.join(", ")}</dd>
          </div>
        )}
        {saved.map((tensor) => (
          <div key={tensor.tensor}>
            <dt>Saved for backward</dt>
            <dd title={exactBytes(tensor.bytes)}>
              <code>{tensor.tensor}</code> {bytes(tensor.bytes)}
            </dd>
          </div>
        ))}
        {layer.origin !== null && layer.origin !== layer.id && (
          <Links title="Comes from" ids={[layer.origin]} layers={layers} />
        )}
        <Links title="Derived from it" ids={derived} layers={layers} />
        <Links title="Reads from" ids={layer.reads} layers={layers} />
        <Links title="Read by" ids={readers} layers={layers} />
      </dl>
    </section>
  );
}
