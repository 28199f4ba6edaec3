// Horizontal bars: parts of a whole, and amounts side by side.
import { max, sum } from "d3-array";
import { scaleLinear } from "d3-scale";
import { Chart, useWidth } from "./figure";

export interface Part {
  label: string;
  value: number;
  paint: string; // class that fills
  text: string; // value as shown
  exact?: string | undefined; // as a tooltip, where the text is rounded
}

// One bar of the parts, left to right.
export function StackedBar({ parts, label }: { parts: Part[]; label: string }) {
  const said = parts.map((part) => `${part.label} ${part.text}`).join(", ");
  const [box, width] = useWidth(280);
  const height = 26;
  const scale = scaleLinear(
    [
      0,
      Math.max(
        1,
        sum(parts, (part) => part.value),
      ),
    ],
    [0, width],
  );
  let before = 0;
  return (
    <Chart box={box} width={width} height={height} label={`${label}: ${said}`}>
        {parts.map((part) => {
          const x = scale(before);
          before += part.value;
          return (
            <rect key={part.label} class={`${part.paint} cell`} x={x} width={scale(part.value)} height={height}>
              <title>{`${part.label}: ${part.text}`}</title>
            </rect>
          );
        })}
    </Chart>
  );
}

export interface BarRow {
  label: string;
  bars: Part[];
}

// Bars from zero, grouped in rows, each with its value at its end.
export function GroupedBars({ rows, label }: { rows: BarRow[]; label: string }) {
  const said = rows
    .map((row) => `${row.label}: ${row.bars.map((part) => `${part.label} ${part.text}`).join(", ")}`)
    .join("; ");
  const [box, width] = useWidth(380);
  const bar = 16;
  const gap = 3;
  const heading = 20;
  const between = 10;
  const room = 124; // for the value at the bar's end
  const most = max(rows.flatMap((row) => row.bars.map((part) => part.value))) ?? 0;
  const scale = scaleLinear([0, most || 1], [0, Math.max(20, width - room)]);
  const starts: number[] = [];
  let height = 0;
  for (const row of rows) {
    starts.push(height);
    height += heading + row.bars.length * (bar + gap) + between;
  }
  return (
    <Chart box={box} width={width} height={height} label={`${label}. ${said}`}>
        {rows.map((row, at) => (
          <g key={row.label} transform={`translate(0 ${starts[at]})`}>
            <text class="row-label" y="14">
              {row.label}
            </text>
            {row.bars.map((part, index) => (
              <g key={part.label} transform={`translate(0 ${heading + index * (bar + gap)})`}>
                <rect
                  class={part.paint}
                  width={Math.max(part.value > 0 ? 1 : 0, scale(part.value))}
                  height={bar}
                  rx="2"
                />
                <text class="value" x={scale(part.value) + 6} y={bar - 4}>
                  {part.text}
                </text>
              </g>
            ))}
          </g>
        ))}
    </Chart>
  );
}

export interface StackedRow {
  label: string;
  parts: Part[];
  text: string; // the sum as shown
  mark?: { value: number; text: string };
}

// Bars of parts on one scale, each with its sum at its end and, where given, a mark on the way to it.
export function StackedRows({ rows, label }: { rows: StackedRow[]; label: string }) {
  const said = rows.map(
    ({ label, text, parts, mark }) =>
      `${label} ${text}: ${parts.map((part) => `${part.label} ${part.text}`).join(", ")}${mark ? `, ${mark.text}` : ""}`,
  );
  const [box, width] = useWidth(380);
  const bar = 16;
  const heading = 20;
  const each = heading + bar + 10;
  const room = 100; // for the sum at the bar's end
  const ends = rows.map(({ parts, mark }) => Math.max(sum(parts, ({ value }) => value), mark?.value ?? 0));
  const scale = scaleLinear([0, max(ends) || 1], [0, Math.max(20, width - room)]);
  return (
    <Chart box={box} width={width} height={rows.length * each} label={`${label}. ${said.join("; ")}`}>
      {rows.map(({ label, parts, text, mark }, at) => {
        let before = 0;
        return (
          <g key={label} transform={`translate(0 ${at * each})`}>
            <text class="row-label" y="14">
              {label}
            </text>
            <g transform={`translate(0 ${heading})`}>
              {parts.map((part) => {
                const x = scale(before);
                before += part.value;
                return (
                  <rect key={part.label} class={part.paint} x={x} width={scale(part.value)} height={bar}>
                    <title>{`${part.label}: ${part.text}`}</title>
                  </rect>
                );
              })}
              {mark && (
                <line class="mark" x1={scale(mark.value)} x2={scale(mark.value)} y1="-3" y2={bar + 3}>
                  <title>{mark.text}</title>
                </line>
              )}
              <text class="value" x={scale(ends[at]!) + 6} y={bar - 4}>
                {text}
              </text>
            </g>
          </g>
        );
      })}
    </Chart>
  );
}

// The peak on the way to the capacity: what is held, what is over, and where inference alone would stand.
export function CapacityBar({
  peak,
  capacity,
  inference,
  label,
}: {
  peak: number;
  capacity: number;
  inference: number;
  label: string;
}) {
  const [box, width] = useWidth(280);
  const height = 34;
  const bar = 18;
  const scale = scaleLinear([0, Math.max(peak, capacity)], [0, width]);
  const over = peak > capacity;
  return (
    <Chart box={box} width={width} height={height} label={label}>
        <rect class="track" width={scale(capacity)} height={bar} rx="3" />
        <rect
          class={over ? "paint-full" : "paint-held"}
          width={Math.max(2, scale(Math.min(peak, capacity)))}
          height={bar}
          rx="3"
        />
        {over && <rect class="paint-over" x={scale(capacity)} width={scale(peak - capacity)} height={bar} rx="3" />}
        <line class="mark" x1={scale(inference)} x2={scale(inference)} y1="0" y2={bar + 4} />
        {scale(inference) < width - 150 && (
          <text
            class="tick"
            x={scale(inference)}
            y={height - 2}
            text-anchor={scale(inference) < 30 ? "start" : "middle"}
          >
            inference
          </text>
        )}
        <line
          class="limit"
          x1={Math.min(width - 1, scale(capacity))}
          x2={Math.min(width - 1, scale(capacity))}
          y1="-2"
          y2={bar + 4}
        />
        <text
          class="tick"
          x={Math.min(width, scale(capacity))}
          y={height - 2}
          text-anchor={over && scale(capacity) < 60 ? "start" : "end"}
        >
          capacity
        </text>
    </Chart>
  );
}
