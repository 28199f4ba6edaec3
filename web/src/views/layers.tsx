// The layer table (only the rows in sight are drawn once there are many), the selected layer, the saved tensors.
import { computed, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { phases, type Layer, type Report } from "../engine/report";
import { save, stem } from "../files";
import { bytes, count, csv, cycles, energy, exactBytes, integer, plural, shape, words } from "../format";
import { change, report, selected, selection, settings } from "../state";

interface Column {
  key: keyof Layer;
  title: string;
  numeric: boolean;
  show(layer: Layer): string;
  exact?(layer: Layer): string;
  needsHardware?: boolean;
}

const dash = "–";
// A loss layer runs forward too: its phase says more.
const roleOf = (layer: Layer) => (layer.phase === "loss" ? "loss" : words(layer.role));
const size = (key: "parameter_bytes" | "saved_bytes" | "bytes", title: string): Column => ({
  key,
  title,
  numeric: true,
  show: (layer) => (layer[key] ? bytes(layer[key]) : dash),
  exact: (layer) => exactBytes(layer[key]),
});

const columns: Column[] = [
  { key: "id", title: "#", numeric: true, show: (layer) => integer(layer.id) },
  { key: "name", title: "Layer", numeric: false, show: (layer) => layer.name, exact: (layer) => layer.name },
  { key: "op", title: "Operator", numeric: false, show: (layer) => layer.op },
  {
    key: "role",
    title: "Role",
    numeric: false,
    show: roleOf,
    exact: (layer) => `${layer.phase}, ${words(layer.role)}`,
  },
  { key: "shape", title: "Output", numeric: false, show: (layer) => shape(layer.shape) },
  {
    key: "macs",
    title: "MACs",
    numeric: true,
    show: (layer) => (layer.macs ? count(layer.macs) : dash),
    exact: (layer) => integer(layer.macs),
  },
  size("parameter_bytes", "Parameters"),
  size("saved_bytes", "Saved"),
  size("bytes", "Traffic"),
  {
    key: "latency_cycles",
    title: "Cycles ≥",
    numeric: true,
    show: (layer) => (layer.latency_cycles === null ? dash : cycles(layer.latency_cycles)),
    needsHardware: true,
  },
  {
    key: "energy_pj",
    title: "Energy ≥",
    numeric: true,
    show: (layer) => (layer.energy_pj === null ? dash : energy(layer.energy_pj)),
    needsHardware: true,
  },
  { key: "bound_by", title: "Bound by", numeric: false, show: (layer) => layer.bound_by ?? dash, needsHardware: true },
];

const rowHeight = 30; // as in the style sheet
const drawAllUpTo = 200; // rows
const beyond = 12; // rows drawn outside the visible part

const search = signal("");
const phase = signal("");
const order = signal<{ key: keyof Layer; down: boolean }>({ key: "id", down: false });

const value = (layer: Layer, key: keyof Layer): number | string => {
  const found = layer[key];
  if (Array.isArray(found)) return (found as number[]).reduce((product, length) => product * length, 1);
  return found ?? -1;
};

const compare = (a: number | string, b: number | string) =>
  typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;

const rows = computed(() => {
  const wanted = search.value.trim().toLowerCase();
  const { key, down } = order.value;
  return (report.value?.layers ?? [])
    .filter((layer) => !phase.value || layer.phase === phase.value)
    .filter((layer) => !wanted || `${layer.name} ${layer.op} ${words(layer.role)}`.toLowerCase().includes(wanted))
    .sort((a, b) => (down ? -1 : 1) * compare(value(a, key), value(b, key)) || a.id - b.id);
});

const csvKeys = [
  "id",
  "name",
  "op",
  "phase",
  "role",
  "origin",
  "shape",
  "macs",
  "operations",
  "bytes",
  "parameter_bytes",
  "saved_bytes",
  "nodes",
  "latency_cycles",
  "energy_pj",
  "bound_by",
] as const;

export function layersCsv(layers: Layer[]): string {
  return csv([
    csvKeys,
    ...layers.map((layer) => csvKeys.map((key) => (key === "shape" ? layer.shape.join("x") : layer[key]))),
  ]);
}

export function LayerTable({ report }: { report: Report }) {
  const frame = useRef<HTMLDivElement>(null);
  const [scroll, setScroll] = useState(0);
  const [viewport, setViewport] = useState(460);
  const list = rows.value;
  const shownColumns = columns.filter((column) => report.hardware || !column.needsHardware);
  const all = list.length <= drawAllUpTo;
  const from = all ? 0 : Math.max(0, Math.floor(scroll / rowHeight) - beyond);
  const to = all ? list.length : Math.min(list.length, Math.ceil((scroll + viewport) / rowHeight) + beyond);
  const at = list.findIndex((layer) => layer.id === selection.value);

  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setViewport(entry!.contentRect.height));
    observer.observe(frame.current!);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (at < 0 || !frame.current) return;
    const top = at * rowHeight;
    const { scrollTop, clientHeight } = frame.current;
    if (top < scrollTop || top + 2 * rowHeight > scrollTop + clientHeight)
      frame.current.scrollTop = top - clientHeight / 2;
  }, [selection.value, list]);

  const move = (next: number) => {
    const layer = list[Math.max(0, Math.min(list.length - 1, next))];
    if (layer) selection.value = layer.id;
  };
  const keys: Record<string, () => void> = {
    ArrowDown: () => move(at + 1),
    ArrowUp: () => move(at < 0 ? 0 : at - 1),
    PageDown: () => move(at + 10),
    PageUp: () => move(at - 10),
    Home: () => move(0),
    End: () => move(list.length - 1),
    Escape: () => (selection.value = null),
  };

  return (
    <section class="card" aria-labelledby="layers-title">
      <div class="figure-head">
        <h2 id="layers-title">
          Layers{" "}
          <span class="unit">
            {list.length === report.layers.length
              ? integer(list.length)
              : `${integer(list.length)} of ${integer(report.layers.length)}`}
          </span>
        </h2>
        <div class="tools">
          <input
            type="search"
            aria-label="Search layers"
            placeholder="Name or operator"
            value={search.value}
            onInput={(event) => (search.value = event.currentTarget.value)}
          />
          <select
            aria-label="Phase"
            value={phase.value}
            onChange={(event) => (phase.value = event.currentTarget.value)}
          >
            <option value="">All phases</option>
            {phases
              .filter((name) => report.layers.some((layer) => layer.phase === name))
              .map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
          </select>
          <button
            type="button"
            onClick={() => save(`${stem(report.model.name)}-layers.csv`, layersCsv(list), "text/csv")}
          >
            CSV
          </button>
        </div>
      </div>
      <div class="table-frame" ref={frame} onScroll={(event) => setScroll(event.currentTarget.scrollTop)}>
        <table
          class="layers"
          role="grid"
          tabIndex={0}
          aria-label="Layers: up and down arrows select"
          aria-rowcount={list.length + 1}
          aria-activedescendant={at >= from && at < to ? `layer-${list[at]!.id}` : undefined}
          onKeyDown={(event) => {
            const act = keys[event.key];
            if (!act || event.target !== event.currentTarget) return;
            event.preventDefault();
            act();
          }}
        >
          <colgroup>
            {shownColumns.map(({ key }) => (
              <col key={key} class={`col-${key}`} />
            ))}
          </colgroup>
          <thead>
            <tr>
              {shownColumns.map(({ key, title, numeric }) => {
                const sorted = order.value.key === key;
                return (
                  <th
                    key={key}
                    scope="col"
                    class={numeric ? "number" : ""}
                    aria-sort={sorted ? (order.value.down ? "descending" : "ascending") : "none"}
                  >
                    <button
                      type="button"
                      onClick={() =>
                        (order.value = { key, down: sorted ? !order.value.down : numeric && key !== "id" })
                      }
                    >
                      {title}
                      <span class="arrow" aria-hidden="true">
                        {sorted ? (order.value.down ? "↓" : "↑") : ""}
                      </span>
                    </button>
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody>
            {from > 0 && (
              <tr class="spacer" aria-hidden="true">
                <td colSpan={shownColumns.length} height={from * rowHeight} />
              </tr>
            )}
            {list.slice(from, to).map((layer, index) => (
              <tr
                key={layer.id}
                id={`layer-${layer.id}`}
                aria-rowindex={from + index + 2}
                aria-selected={layer.id === selection.value}
                class={layer.id === selection.value ? "selected" : ""}
                onClick={() => (selection.value = layer.id === selection.value ? null : layer.id)}
              >
                {shownColumns.map(({ key, numeric, show, exact }) => (
                  <td key={key} class={numeric ? "number" : `text-${key}`} title={exact?.(layer)}>
                    {key === "role" ? <span class={`phase phase-${layer.phase}`}>{show(layer)}</span> : show(layer)}
                  </td>
                ))}
              </tr>
            ))}
            {to < list.length && (
              <tr class="spacer" aria-hidden="true">
                <td colSpan={shownColumns.length} height={(list.length - to) * rowHeight} />
              </tr>
            )}
          </tbody>
        </table>
        {list.length === 0 && <p class="muted empty">No layer matches.</p>}
      </div>
    </section>
  );
}

function LayerLink({ layer }: { layer: Layer | undefined }) {
  if (!layer) return null;
  return (
    <button type="button" class="link" onClick={() => (selection.value = layer.id)}>
      {layer.name} <span class="muted">{layer.phase === "forward" ? layer.op : words(layer.role)}</span>
    </button>
  );
}

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
        {layer.latency_cycles !== null && (
          <div>
            <dt>Time</dt>
            <dd>
              at least {cycles(layer.latency_cycles)} cycles <span class="muted">({layer.bound_by})</span>
            </dd>
          </div>
        )}
        {layer.energy_pj !== null && (
          <div>
            <dt>Energy</dt>
            <dd>at least {energy(layer.energy_pj)}</dd>
          </div>
        )}
        <div>
          <dt>ONNX nodes</dt>
          <dd>{integer(layer.nodes)}</dd>
        </div>
        <LoopNest loops={layer.loops} />
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

const savedAtFirst = 10;

// The tensors that are computed again instead of kept, each with a way back.
function Recomputed({ names }: { names: string[] }) {
  if (!names.length) return null;
  return (
    <div class="recomputed" data-testid="recomputed">
      <span>Computed again in the backward pass:</span>
      {names.map((name) => (
        <button
          key={name}
          type="button"
          class="chip"
          aria-label={`Keep ${name}`}
          title="Keep it again"
          onClick={() => change({ recompute: names.filter((other) => other !== name) })}
        >
          <code>{name}</code> <span aria-hidden="true">×</span>
        </button>
      ))}
      {names.length > 1 && (
        <button type="button" class="quiet" onClick={() => change({ recompute: [] })}>
          Keep all
        </button>
      )}
    </div>
  );
}

export function SavedTensors({ report }: { report: Report }) {
  const [many, setMany] = useState(savedAtFirst);
  const { saved, activations } = report.memory;
  const recompute = settings.value.recompute ?? [];
  if (!saved.length && !recompute.length) return null;
  const most = saved[0]?.bytes || 1;
  return (
    <section class="card" aria-labelledby="saved-title">
      <div class="figure-head">
        <h2 id="saved-title">
          Saved for backward{" "}
          <span class="unit">
            {plural(saved.length, "tensor")}, {bytes(activations)} beside the inputs
          </span>
        </h2>
        <div class="tools">
          <button
            type="button"
            onClick={() =>
              save(
                `${stem(report.model.name)}-saved.csv`,
                csv([
                  ["tensor", "layer", "bytes", "readers", "recomputable"],
                  ...saved.map(({ tensor, layer, bytes: size, readers, recomputable }) => [
                    tensor,
                    layer === null ? "" : (report.layers[layer]?.name ?? ""),
                    size,
                    readers.map((id) => report.layers[id]?.name ?? id).join(" "),
                    recomputable ? "yes" : "no",
                  ]),
                ]),
                "text/csv",
              )
            }
          >
            CSV
          </button>
        </div>
      </div>
      <Recomputed names={recompute} />
      <table class="plain saved">
        <thead>
          <tr>
            <th scope="col">Tensor</th>
            <th scope="col">Made by</th>
            <th scope="col">Read by</th>
            <th scope="col" class="number">
              Bytes
            </th>
            <th scope="col" class="bar-cell">
              <span class="visually-hidden">Relative size</span>
            </th>
            <th scope="col" class="act">
              <span class="visually-hidden">Recompute</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {saved.slice(0, many).map((tensor) => (
            <tr key={tensor.tensor} class={tensor.layer !== null && tensor.layer === selection.value ? "selected" : ""}>
              <td class="name">
                <code>{tensor.tensor}</code>
              </td>
              <td class="name">
                {tensor.layer === null ? (
                  <span class="muted">model input</span>
                ) : (
                  <LayerLink layer={report.layers[tensor.layer]} />
                )}
              </td>
              <td class="name">
                {tensor.readers.slice(0, 2).map((id) => (
                  <LayerLink key={id} layer={report.layers[id]} />
                ))}
                {tensor.readers.length > 2 && <span class="muted">+{tensor.readers.length - 2}</span>}
              </td>
              <td class="number" title={exactBytes(tensor.bytes)}>
                {bytes(tensor.bytes)}
              </td>
              <td class="bar-cell">
                <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                  <rect class="paint-activations" width={(100 * tensor.bytes) / most} height="8" />
                </svg>
              </td>
              <td class="act">
                {tensor.recomputable && !recompute.includes(tensor.tensor) && (
                  <button
                    type="button"
                    class="link"
                    aria-label={`Recompute ${tensor.tensor}`}
                    title="Do not keep it: compute it again in the backward pass"
                    onClick={() => change({ recompute: [...recompute, tensor.tensor] })}
                  >
                    Recompute
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {saved.length > many && (
        <button type="button" class="quiet" onClick={() => setMany(many + 50)}>
          Show more ({integer(saved.length - many)})
        </button>
      )}
    </section>
  );
}
