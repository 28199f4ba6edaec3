// Bytes held over the time of a schedule, stacked by category.
import { max } from "d3-array";
import { scaleLinear } from "d3-scale";
import { area, curveStepAfter } from "d3-shape";
import { categories } from "../engine/report";
import type { Footprint } from "../engine/schedule";
import { bytes, cycles, words } from "../format";
import { Chart, Legend, useWidth } from "./figure";

const height = 190;
const margin = { top: 12, right: 12, bottom: 26, left: 62 };

export function FootprintChart({ footprint, whole, label }: { footprint: Footprint; whole: number; label: string }) {
  const [box, width] = useWidth(520);
  const { timeline, peak } = footprint;
  const times = [...timeline.cycle, whole];
  const x = scaleLinear([0, Math.max(1, whole)], [margin.left, width - margin.right]);
  const y = scaleLinear([0, Math.max(1, peak)], [height - margin.bottom, margin.top]).nice(3);
  let low = times.map(() => 0);
  const stacks = categories.flatMap((category) => {
    const values = timeline[category];
    if (!values || !max(values)) return [];
    const from = low;
    // The last point holds until the end.
    low = from.map((value, at) => value + values[Math.min(at, values.length - 1)]!);
    const to = low;
    const shape = area<number>()
      .x((time) => x(time))
      .y0((_, at) => y(from[at]!))
      .y1((_, at) => y(to[at]!))
      .curve(curveStepAfter);
    return [{ category, d: shape(times) ?? "" }];
  });
  return (
    <>
      <Chart box={box} width={width} height={height} label={`${label}: ${bytes(peak)} at the peak`}>
        {y.ticks(3).map((tick) => (
          <g key={tick}>
            <line class="grid" x1={margin.left} x2={width - margin.right} y1={y(tick)} y2={y(tick)} />
            <text class="tick" x={margin.left - 6} y={y(tick) + 4} text-anchor="end">
              {bytes(tick)}
            </text>
          </g>
        ))}
        {stacks.map(({ category, d }) => (
          <path key={category} class={`paint-${category}`} d={d} />
        ))}
        <text class="tick" x={margin.left} y={height - 8}>
          0
        </text>
        <text class="tick" x={width - margin.right} y={height - 8} text-anchor="end">
          {cycles(whole)} cycles
        </text>
      </Chart>
      <Legend items={stacks.map(({ category }) => ({ label: words(category), paint: `paint-${category}` }))} />
    </>
  );
}
