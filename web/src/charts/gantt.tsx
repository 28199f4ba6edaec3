// What runs when: a row per core and per link, drawn on a canvas because a step has tens of thousands of events. Wheel,
// buttons and keys zoom; dragging moves; a click chooses an event, a double click fills the width with it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { phases } from "../engine/report";
import { causes } from "../engine/schedule";
import { save } from "../files";
import { cycles, percent, words } from "../format";
import { eventAt, marks, moved, zoomed, type Span, type TraceEvent, type TraceRow } from "../trace";
import { Legend, useWidth } from "./figure";

const rowHeight = 18;
const gap = 4;
const axis = 22;
const labels = 150;

export interface Chosen {
  row: number;
  event: TraceEvent;
}

interface GanttProps {
  name: string; // of the file that a picture is saved to
  rows: TraceRow[];
  whole: number; // cycles
  chosen: Chosen | null;
  choose(chosen: Chosen | null): void;
}

// Colours come from the stylesheet, through elements that are painted by class.
function usePaints(kinds: string[]) {
  const probe = useRef<SVGSVGElement>(null);
  const paints = () => {
    const found = new Map<string, string>();
    probe.current?.querySelectorAll("rect").forEach((rect) => {
      found.set(rect.dataset.kind!, getComputedStyle(rect).fill);
    });
    return found;
  };
  const svg = (
    <svg ref={probe} width="0" height="0" class="hidden-probe" aria-hidden="true">
      {kinds.map((kind) => (
        <rect key={kind} data-kind={kind} class={`paint-${kind}`} />
      ))}
    </svg>
  );
  return [svg, paints] as const;
}

// Phases and causes share colours: cores run the ones, links the others.
function Kinds({ of, kinds }: { of: string; kinds: readonly TraceEvent["kind"][] }) {
  if (!kinds.length) return null;
  return (
    <div class="kinds muted">
      {of} <Legend items={kinds.map((kind) => ({ label: words(kind), paint: `paint-${kind}` }))} />
    </div>
  );
}

// The chart as it stands, with what is seen of it written above.
function saveCanvas(chart: HTMLCanvasElement, file: string, title: string) {
  const sharp = devicePixelRatio || 1;
  const margin = 8 * sharp;
  const head = 28 * sharp;
  const canvas = document.createElement("canvas");
  canvas.width = chart.width + 2 * margin;
  canvas.height = chart.height + head + margin;
  const pen = canvas.getContext("2d")!;
  const style = getComputedStyle(chart);
  pen.fillStyle = style.getPropertyValue("--surface");
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = style.getPropertyValue("--ink");
  pen.font = `600 ${13 * sharp}px system-ui, sans-serif`;
  pen.fillText(title, margin, 18 * sharp);
  pen.drawImage(chart, margin, head);
  canvas.toBlob((blob) => blob && save(file, blob));
}

export function Gantt({ name, rows, whole, chosen, choose }: GanttProps) {
  const [box, outer] = useWidth(900);
  const [span, setSpan] = useState<Span>({ from: 0, to: whole });
  const canvas = useRef<HTMLCanvasElement>(null);
  const drag = useRef<{ x: number; from: Span; far: boolean } | null>(null);
  const kinds = useMemo(() => [...new Set(rows.flatMap(({ events }) => events.map(({ kind }) => kind)))], [rows]);
  const [probe, paints] = usePaints(kinds);
  const width = Math.max(120, outer - labels);
  const height = rows.length * (rowHeight + gap) + axis;

  useEffect(() => setSpan({ from: 0, to: whole }), [rows, whole]);
  useEffect(() => {
    const area = canvas.current!;
    const draw = () => {
      const sharp = devicePixelRatio || 1;
      area.width = outer * sharp;
      area.height = height * sharp;
      const pen = area.getContext("2d")!;
      pen.scale(sharp, sharp);
      const style = getComputedStyle(area);
      const paint = paints();
      pen.font = "12px system-ui, sans-serif";
      pen.textBaseline = "middle";
      rows.forEach((row, index) => {
        const y = index * (rowHeight + gap);
        pen.fillStyle = style.getPropertyValue("--ink");
        pen.textAlign = "left";
        pen.fillText(row.name, 0, y + rowHeight / 2, labels - 10);
        pen.fillStyle = style.getPropertyValue("--sunken");
        pen.fillRect(labels, y, width, rowHeight);
        for (const mark of marks(row, span, width)) {
          pen.fillStyle = paint.get(mark.kind) ?? "gray";
          pen.fillRect(labels + mark.x, y, Math.max(1, mark.width), rowHeight);
        }
        if (chosen?.row === index) {
          const at = (time: number) => labels + ((time - span.from) * width) / (span.to - span.from);
          const left = Math.max(labels, at(chosen.event.start));
          const right = Math.min(labels + width, at(chosen.event.end));
          if (right >= labels && left <= labels + width) {
            pen.strokeStyle = style.getPropertyValue("--ink");
            pen.lineWidth = 2;
            pen.strokeRect(left, y + 1, Math.max(2, right - left), rowHeight - 2);
          }
        }
      });
      pen.fillStyle = style.getPropertyValue("--muted");
      const y = rows.length * (rowHeight + gap) + axis / 2;
      pen.textAlign = "left";
      pen.fillText(cycles(span.from), labels, y);
      pen.textAlign = "center";
      pen.fillText(`${cycles((span.from + span.to) / 2)} cycles`, labels + width / 2, y);
      pen.textAlign = "right";
      pen.fillText(cycles(span.to), labels + width, y);
    };
    draw();
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", draw);
    return () => scheme.removeEventListener("change", draw);
  }, [rows, span, outer, chosen]);

  const seen = `${cycles(span.from)} to ${cycles(span.to)} of ${cycles(whole)} cycles`;
  const perPixel = (span.to - span.from) / width;
  const timeOf = (event: MouseEvent) =>
    span.from + (event.clientX - canvas.current!.getBoundingClientRect().left - labels) * perPixel;
  const found = (event: MouseEvent): Chosen | null => {
    const y = event.clientY - canvas.current!.getBoundingClientRect().top;
    const row = Math.floor(y / (rowHeight + gap));
    const at = rows[row] && eventAt(rows[row], timeOf(event), perPixel);
    return at ? { row, event: at } : null;
  };
  const zoom = (factor: number, around = (span.from + span.to) / 2) => setSpan(zoomed(span, factor, around, whole));
  const fill = ({ event }: Chosen) => {
    const size = Math.max(4, (event.end - event.start) * 1.5);
    const middle = (event.start + event.end) / 2;
    setSpan(moved({ from: middle - size / 2, to: middle + size / 2 }, 0, whole));
  };
  const step = (by: number) => {
    const row = chosen?.row ?? 0;
    const { events } = rows[row]!;
    const at = chosen ? events.indexOf(chosen.event) + by : 0;
    const event = events[Math.max(0, Math.min(events.length - 1, at))];
    if (event) choose({ row, event });
  };
  const turn = (by: number) => {
    const row = Math.max(0, Math.min(rows.length - 1, (chosen?.row ?? -by) + by));
    const { events } = rows[row]!;
    const near = events.find(({ end }) => end > (chosen?.event.start ?? 0)) ?? events[0];
    if (near) choose({ row, event: near });
  };
  const keys: Record<string, () => void> = {
    "+": () => zoom(0.5),
    "=": () => zoom(0.5),
    "-": () => zoom(2),
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    ArrowUp: () => turn(-1),
    ArrowDown: () => turn(1),
    PageUp: () => setSpan(moved(span, (span.from - span.to) / 2, whole)),
    PageDown: () => setSpan(moved(span, (span.to - span.from) / 2, whole)),
    Home: () => setSpan({ from: 0, to: whole }),
    Enter: () => chosen && fill(chosen),
  };
  return (
    <>
      <div class="gantt-tools">
        <button type="button" onClick={() => zoom(0.5)} aria-label="Zoom in">
          +
        </button>
        <button type="button" onClick={() => zoom(2)} aria-label="Zoom out">
          −
        </button>
        <button type="button" onClick={() => setSpan({ from: 0, to: whole })}>
          All
        </button>
        <button type="button" disabled={!chosen} onClick={() => chosen && fill(chosen)}>
          Zoom to the event
        </button>
        <span class="muted" data-testid="gantt-span">
          {seen}
        </span>
        <button
          type="button"
          class="quiet"
          aria-label="Save the chart as PNG"
          onClick={() => saveCanvas(canvas.current!, `${name}-gantt.png`, `${name}: who runs when, ${seen}`)}
        >
          PNG
        </button>
      </div>
      {probe}
      <div ref={box} class="chart-box">
        <canvas
          ref={canvas}
          class="gantt"
          width={outer}
          height={height}
          tabindex={0}
          role="application"
          aria-label="Schedule by core and link. Arrow keys choose an event, Enter zooms to it, plus and minus zoom, Page Up and Page Down move, Home shows all."
          onWheel={(event) => {
            event.preventDefault();
            if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
              setSpan(moved(span, (event.deltaX || event.deltaY) * perPixel, whole));
            else zoom(event.deltaY > 0 ? 1.25 : 0.8, timeOf(event));
          }}
          onPointerDown={(event) => {
            drag.current = { x: event.clientX, from: span, far: false };
            event.currentTarget.setPointerCapture(event.pointerId);
          }}
          onPointerMove={(event) => {
            const held = drag.current;
            if (!held) return;
            const by = event.clientX - held.x;
            held.far ||= Math.abs(by) > 3;
            if (held.far) setSpan(moved(held.from, -by * perPixel, whole));
          }}
          onPointerUp={(event) => {
            if (drag.current && !drag.current.far) choose(found(event));
            drag.current = null;
          }}
          onDblClick={(event) => {
            const at = found(event);
            if (at) fill(at);
          }}
          onKeyDown={(event) => {
            const act = keys[event.key];
            if (!act) return;
            event.preventDefault();
            act();
          }}
        />
      </div>
      <Kinds of="On cores" kinds={phases.filter((kind) => kinds.includes(kind))} />
      <Kinds of="On links" kinds={causes.filter((kind) => kinds.includes(kind))} />
      <details>
        <summary>Rows as a table</summary>
        <table class="plain phases">
          <thead>
            <tr>
              <th scope="col">Core or link</th>
              <th scope="col">Events</th>
              <th scope="col">Busy</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ name, events, busy }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{cycles(events.length)}</td>
                <td>{percent(busy / Math.max(1, whole))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </>
  );
}
