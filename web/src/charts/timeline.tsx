// Bytes held while each layer runs, stacked by category, with the step's phases as bands. A slider to assistive
// technology: arrow keys walk through the layers and the readout says what each holds; Enter selects.
import { max } from "d3-array";
import { scaleLinear } from "d3-scale";
import { area, curveStepAfter } from "d3-shape";
import { useMemo, useState } from "preact/hooks";
import { categories, type Category, type Phase, type Report } from "../engine/report";
import { bytes, integer, words } from "../format";
import { selection } from "../state";
import { Legend, useWidth } from "./figure";

const height = 270;
const margin = { top: 24, right: 12, bottom: 30, left: 58 };

interface Run {
  phase: Phase;
  from: number;
  to: number;
}

interface Stack {
  category: Category;
  low: number[];
  high: number[];
}

function stacked({ memory }: Report): Stack[] {
  const { timeline } = memory;
  let low = timeline.layer.map(() => 0);
  const stacks: Stack[] = [];
  for (const category of categories) {
    if (!max(timeline[category])) continue;
    const high = low.map((value, at) => value + timeline[category][at]!);
    stacks.push({ category, low, high });
    low = high;
  }
  return stacks;
}

function runs({ layers, memory }: Report): Run[] {
  const found: Run[] = [];
  memory.timeline.layer.forEach((id, at) => {
    const phase = layers[id]?.phase ?? "forward";
    const last = found.at(-1);
    if (last?.phase === phase) last.to = at + 1;
    else found.push({ phase, from: at, to: at + 1 });
  });
  return found;
}

export function Timeline({ report }: { report: Report }) {
  const [box, width] = useWidth(640);
  const [hover, setHover] = useState<number | null>(null);
  const { timeline, peak, capacity } = report.memory;
  const steps = timeline.layer.length;
  const stacks = useMemo(() => stacked(report), [report]);
  const bands = useMemo(() => runs(report), [report]);
  const totals = stacks.at(-1)?.high ?? [];
  const peakAt = Math.max(0, totals.indexOf(max(totals) ?? 0));
  // A capacity far above the peak would flatten the drawing.
  const withCapacity = capacity !== null && capacity > 0 && capacity < peak * 1.5;
  const x = scaleLinear([0, Math.max(1, steps)], [margin.left, width - margin.right]);
  const y = scaleLinear(
    [0, Math.max(1, withCapacity ? Math.max(peak, capacity) : peak)],
    [height - margin.bottom, margin.top],
  ).nice(4);
  const paths = useMemo(() => {
    const shape = area<number>()
      .x((_, at) => x(at))
      .curve(curveStepAfter);
    return stacks.map(({ category, low, high }) => {
      const last = steps - 1;
      const path = shape.y0((_, at) => y(low[Math.min(at, last)]!)).y1((_, at) => y(high[Math.min(at, last)]!));
      return { category, d: path(Array.from({ length: steps + 1 }, (_, at) => at)) ?? "" };
    });
  }, [stacks, width, y.domain()[1]]);

  const chosen = selection.value === null ? -1 : timeline.layer.indexOf(selection.value);
  const at = hover ?? (chosen >= 0 ? chosen : peakAt);
  const layer = report.layers[timeline.layer[at]!];
  const parts = stacks.filter(({ category }) => timeline[category][at]! > 0);
  const readout = layer
    ? `${layer.name}, ${layer.op} ${words(layer.role)}: ${bytes(totals[at] ?? 0)}`
    : "nothing is held";

  const go = (next: number) => setHover(Math.max(0, Math.min(steps - 1, next)));
  const page = Math.max(1, Math.round(steps / 10));
  const keys: Record<string, () => void> = {
    ArrowLeft: () => go(at - 1),
    ArrowRight: () => go(at + 1),
    ArrowDown: () => go(at - 1),
    ArrowUp: () => go(at + 1),
    PageDown: () => go(at - page),
    PageUp: () => go(at + page),
    Home: () => go(0),
    End: () => go(steps - 1),
    Enter: () => layer && (selection.value = layer.id),
  };
  const indexOf = (event: PointerEvent | MouseEvent) => {
    const drawn = (event.currentTarget as SVGSVGElement).getBoundingClientRect();
    return Math.max(0, Math.min(steps - 1, Math.floor(x.invert(event.clientX - drawn.left))));
  };
  const middle = (index: number) => x(index + 0.5);

  return (
    <>
      <div ref={box} class="chart-box">
        <svg
          class="chart interactive"
          viewBox={`0 0 ${width} ${height}`}
          width={width}
          height={height}
          tabindex={0}
          role="slider"
          aria-label="Memory over the step, layer by layer: arrow keys move, Enter selects the layer"
          aria-orientation="horizontal"
          aria-valuemin={1}
          aria-valuemax={Math.max(1, steps)}
          aria-valuenow={at + 1}
          aria-valuetext={readout}
          onPointerMove={(event) => setHover(indexOf(event))}
          onPointerLeave={() => setHover(null)}
          onBlur={() => setHover(null)}
          onClick={(event) => {
            const id = timeline.layer[indexOf(event)];
            if (id !== undefined) selection.value = id;
          }}
          onKeyDown={(event) => {
            const act = keys[event.key];
            if (!act) return;
            event.preventDefault();
            act();
          }}
        >
          {bands.map(({ phase, from, to }, index) => (
            <g key={from}>
              <rect
                class={`band-${index % 2}`}
                x={x(from)}
                width={x(to) - x(from)}
                y={margin.top}
                height={height - margin.top - margin.bottom}
              />
              {x(to) - x(from) > phase.length * 7 && (
                <text class="band-label" x={(x(from) + x(to)) / 2} y={margin.top - 8} text-anchor="middle">
                  {phase}
                </text>
              )}
            </g>
          ))}
          {y.ticks(4).map((tick) => (
            <g key={tick}>
              <line class="grid" x1={margin.left} x2={width - margin.right} y1={y(tick)} y2={y(tick)} />
              <text class="tick" x={margin.left - 6} y={y(tick) + 4} text-anchor="end">
                {bytes(tick)}
              </text>
            </g>
          ))}
          {paths.map(({ category, d }) => (
            <path key={category} class={`paint-${category}`} d={d} />
          ))}
          {withCapacity && (
            <g>
              <line class="limit" x1={margin.left} x2={width - margin.right} y1={y(capacity)} y2={y(capacity)} />
              <text class="tick" x={width - margin.right} y={y(capacity) - 4} text-anchor="end">
                capacity {bytes(capacity)}
              </text>
            </g>
          )}
          <circle class="peak" cx={middle(peakAt)} cy={y(totals[peakAt] ?? 0)} r="4" />
          {chosen >= 0 && (
            <line class="chosen" x1={middle(chosen)} x2={middle(chosen)} y1={margin.top} y2={height - margin.bottom} />
          )}
          {hover !== null && (
            <line class="cursor" x1={middle(at)} x2={middle(at)} y1={margin.top} y2={height - margin.bottom} />
          )}
          <text class="tick" x={margin.left} y={height - 10}>
            layers in execution order
          </text>
          <text class="tick" x={width - margin.right} y={height - 10} text-anchor="end">
            {integer(steps)}
          </text>
        </svg>
      </div>
      <p class="readout" data-testid="timeline-readout">
        <strong>{hover === null && chosen < 0 ? "Peak: " : `${integer(at + 1)}: `}</strong>
        {readout}
        <span class="muted">
          {" "}
          = {parts.map(({ category }) => `${words(category)} ${bytes(timeline[category][at]!)}`).join(" + ")}
        </span>
      </p>
      <Legend items={stacks.map(({ category }) => ({ label: words(category), paint: `paint-${category}` }))} />
    </>
  );
}
