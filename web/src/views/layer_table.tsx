// The layer table; only the rows in sight are drawn once there are many.
import { computed, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { modelled } from "../costs";
import { phases, type Layer, type Report } from "../engine/report";
import { save, stem } from "../files";
import { bytes, count, cycles, energy, exactBytes, integer, percent, shape, words } from "../format";
import { layersCsv } from "../layer_csv";
import { report, selection } from "../state";

interface Column {
  key: keyof Layer;
  title: string;
  numeric: boolean;
  show(layer: Layer): string;
  exact?(layer: Layer): string;
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

const identity: Column[] = [
  { key: "id", title: "#", numeric: true, show: (layer) => integer(layer.id) },
  { key: "name", title: "Layer", numeric: false, show: (layer) => layer.name, exact: (layer) => layer.name },
  { key: "op", title: "Operator", numeric: false, show: (layer) => layer.op, exact: (layer) => layer.op },
  {
    key: "role",
    title: "Role",
    numeric: false,
    show: roleOf,
    exact: (layer) => `${layer.phase}, ${words(layer.role)}`,
  },
];

const work: Column[] = [
  {
    key: "macs",
    title: "MACs",
    numeric: true,
    show: (layer) => (layer.macs ? count(layer.macs) : dash),
    exact: (layer) => integer(layer.macs),
  },
  {
    key: "shape",
    title: "Output",
    numeric: false,
    show: (layer) => shape(layer.shape),
    exact: (layer) => shape(layer.shape),
  },
  size("parameter_bytes", "Parameters"),
  size("saved_bytes", "Saved"),
  size("bytes", "Traffic"),
];

// Where all costs are lower bounds the titles say so, else the rows that are.
function costs(bound: boolean): Column[] {
  const sign = bound ? " ≥" : "";
  const cost = (
    key: "latency_cycles" | "energy_pj",
    title: string,
    least: "bound_cycles" | "bound_energy_pj",
    text: (value: number) => string,
  ): Column => ({
    key,
    title: title + sign,
    numeric: true,
    show: (layer) =>
      layer[key] === null ? dash : `${!bound && layer.rule === "bound" ? "≥ " : ""}${text(layer[key])}`,
    exact: (layer) => (layer[least] === null ? "" : `at least ${text(layer[least])}`),
  });
  const use: Column = {
    key: "utilisation",
    title: "Use",
    numeric: true,
    show: (layer) => (layer.utilisation === null ? dash : percent(layer.utilisation)),
    exact: () => "multiply-accumulates / (PEs × cycles)",
  };
  return [
    cost("latency_cycles", "Cycles", "bound_cycles", cycles),
    cost("energy_pj", "Energy", "bound_energy_pj", energy),
    ...(bound ? [] : [use]),
    { key: "bound_by", title: "Bound by", numeric: false, show: (layer) => layer.bound_by ?? dash },
  ];
}

const columnsOf = (report: Report) => [...identity, ...(report.hardware ? costs(!modelled(report)) : []), ...work];

const rowHeight = 30; // as in the style sheet
const drawAllUpTo = 200; // rows
const beyond = 12; // rows drawn outside the visible part

const search = signal("");
const phase = signal("");
const belowRoof = signal(false); // only layers that are modelled with fewer cycles than their lower bound
const order = signal<{ key: keyof Layer; down: boolean }>({ key: "id", down: false });

const value = (layer: Layer, key: keyof Layer): number | string => {
  const found = layer[key];
  if (Array.isArray(found)) return (found as number[]).reduce((product, length) => product * length, 1);
  return found ?? -1;
};

const compare = (a: number | string, b: number | string) =>
  typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0;

// In the table, the longest first.
export function showBelowRoof() {
  search.value = phase.value = "";
  belowRoof.value = true;
  order.value = { key: "latency_cycles", down: true };
  document.getElementById("layers-title")?.scrollIntoView({ block: "start" });
}

const rows = computed(() => {
  const wanted = search.value.trim().toLowerCase();
  const { key, down } = order.value;
  const below = belowRoof.value ? report.value?.bounds?.below_roof : null;
  return (report.value?.layers ?? [])
    .filter((layer) => !below?.length || below.includes(layer.id))
    .filter((layer) => !phase.value || layer.phase === phase.value)
    .filter((layer) => !wanted || `${layer.name} ${layer.op} ${words(layer.role)}`.toLowerCase().includes(wanted))
    .sort((a, b) => (down ? -1 : 1) * compare(value(a, key), value(b, key)) || a.id - b.id);
});

export function LayerTable({ report }: { report: Report }) {
  const frame = useRef<HTMLDivElement>(null);
  const [scroll, setScroll] = useState(0);
  const [viewport, setViewport] = useState(460);
  const list = rows.value;
  const shownColumns = columnsOf(report);
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
          {belowRoof.value && report.bounds && report.bounds.below_roof.length > 0 && (
            <button type="button" class="chip" title="Show all layers" onClick={() => (belowRoof.value = false)}>
              below the roof <span aria-hidden="true">×</span>
            </button>
          )}
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
