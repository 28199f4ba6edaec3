// The frame of every chart: title, units, legend, and the chart as a file.
import type { ComponentChildren, Ref } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { savePng, saveSvg, stem } from "../files";
import { report } from "../state";

export interface LegendItem {
  label: string;
  paint: string; // class that fills
}

export function Swatch({ label, paint }: LegendItem) {
  return (
    <svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">
      <rect class={paint} width="10" height="10" rx="2" data-label={label} />
    </svg>
  );
}

export function Legend({ items }: { items: LegendItem[] }) {
  return (
    <ul class="legend">
      {items.map((item) => (
        <li key={item.label}>
          <Swatch {...item} /> {item.label}
        </li>
      ))}
    </ul>
  );
}

interface FigureProps {
  id: string;
  title: string;
  unit: string;
  class?: string;
  children: ComponentChildren;
}

export function Figure({ id, title, unit, class: extra = "", children }: FigureProps) {
  const frame = useRef<HTMLElement>(null);
  const file = () => `${stem(report.value?.model.name ?? "monet")}-${id}`;
  return (
    <section
      class={`card figure ${extra}`}
      aria-labelledby={`${id}-title`}
      ref={frame}
      data-title={`${title} (${unit})`}
    >
      <div class="figure-head">
        <h2 id={`${id}-title`}>
          {title} <span class="unit">{unit}</span>
        </h2>
        <div class="tools">
          <button
            type="button"
            class="quiet"
            aria-label={`Save “${title}” as SVG`}
            onClick={() => saveSvg(file(), frame.current!)}
          >
            SVG
          </button>
          <button
            type="button"
            class="quiet"
            aria-label={`Save “${title}” as PNG`}
            onClick={() => void savePng(file(), frame.current!)}
          >
            PNG
          </button>
        </div>
      </div>
      {children}
    </section>
  );
}

interface ChartProps {
  box: Ref<HTMLDivElement>;
  width: number;
  height: number;
  label: string; // what the chart says, for those who cannot see it
  children: ComponentChildren;
}

// A drawing as wide as the box that useWidth measures.
export function Chart({ box, width, height, label, children }: ChartProps) {
  return (
    <div ref={box} class="chart-box">
      <svg class="chart" viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={label}>
        {children}
      </svg>
    </div>
  );
}

// The width that the chart's box has, in CSS pixels.
export function useWidth(otherwise: number) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(otherwise);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(120, Math.floor(entry!.contentRect.width))));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  return [box, width] as const;
}
