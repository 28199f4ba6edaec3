// The graph as forward and mirror: forward layers down the page, their gradients and updates beside them, each a box in
// the colour of its fused group; lines are what passes between layers of one column, and from left to right what backward
// reads of forward. Blocks of a large network stay folded to one line until opened.
import { useMemo, useState } from "preact/hooks";
import { blocksOf, type Block, type Row } from "../blocks";
import type { FusedGroup } from "../engine/fusion";
import type { Layer } from "../engine/report";
import { integer, plural } from "../format";
import { useWidth } from "./figure";

const colours = 12; // paint-group-0 ... in style.css
const most = 260; // layers that are shown unfolded from the start
const height = { row: 20, block: 26 };
const box = { width: 26, height: 14, gap: 4 };
const reach = 6; // lines past so many boxes would cover the picture

export interface Grouping {
  groups: FusedGroup[];
  of: Map<number, number>; // layer -> index into groups
}

export function grouping(groups: FusedGroup[]): Grouping {
  return { groups, of: new Map(groups.flatMap(({ units }, index) => units.map((unit) => [unit, index] as const))) };
}

const paint = (group: number | undefined) => (group === undefined ? "paint-alone" : `paint-group-${group % colours}`);

interface Placed {
  layer: Layer;
  x: number;
  y: number;
  column: number;
}

interface Line {
  block: Block;
  y: number;
  open: boolean;
}

// Where everything stands: a line for each block, below an open one a line for each of its rows.
function place(blocks: Block[], open: Set<number>, columns: number[], widths: number[]) {
  const placed = new Map<number, Placed>();
  const lines: Line[] = [];
  let y = 0;
  const put = (layers: Layer[], column: number, y: number) =>
    layers.forEach((layer, i) => {
      const room = Math.max(1, Math.floor((widths[column]! + box.gap) / (box.width + box.gap)));
      const x = columns[column]! + Math.min(i, room - 1) * (box.width + box.gap);
      placed.set(layer.id, { layer, x, y, column });
    });
  blocks.forEach((block, index) => {
    lines.push({ block, y, open: open.has(index) });
    y += height.block;
    if (!open.has(index)) return;
    for (const row of block.rows) {
      const column = row.forward.phase === "optimizer" ? 2 : row.forward.phase === "backward" ? 1 : 0;
      put([row.forward], column, y);
      put(row.backward, 1, y);
      put(row.optimizer, 2, y);
      y += height.row;
    }
    y += 4;
  });
  return { placed, lines, height: y };
}

const layersOf = (rows: Row[]) => rows.flatMap(({ forward, backward, optimizer }) => [forward, ...backward, ...optimizer]);

interface Props {
  layers: Layer[];
  edges: [number, number][];
  plan: Grouping;
  chosen: number | null; // layer
  choose(layer: number): void;
}

export function GroupGraph({ layers, edges, plan, chosen, choose }: Props) {
  const blocks = useMemo(() => blocksOf(layers, edges), [layers, edges]);
  const all = useMemo(() => new Set(blocks.map((_, index) => index)), [blocks]);
  const [open, setOpen] = useState<Set<number>>(() => (layers.length <= most ? all : new Set<number>()));
  const [frame, width] = useWidth(640);
  const names = Math.min(230, Math.floor(width * 0.34));
  const each = Math.floor((width - names) / 3);
  const columns = [names, names + each, names + 2 * each];
  const widths = [each - 12, each - 12, each - 12];
  const { placed, lines, height: whole } = place(blocks, open, columns, widths);
  const toggle = (index: number) => {
    const next = new Set(open);
    if (!next.delete(index)) next.add(index);
    setOpen(next);
  };
  const group = chosen === null ? undefined : plan.of.get(chosen);
  const several = plan.groups.length;
  return (
    <>
      <div class="gantt-tools">
        <button type="button" onClick={() => setOpen(all)} disabled={open.size === blocks.length}>
          Unfold all
        </button>
        <button type="button" onClick={() => setOpen(new Set())} disabled={open.size === 0}>
          Fold all
        </button>
        <span class="muted">
          {plural(several, "group")} of several layers, {integer(layers.length)} layers in {plural(blocks.length, "block")}
        </span>
      </div>
      <div ref={frame} class="chart-box group-graph" role="region" aria-label="Graph of groups" tabindex={0}>
        <svg
          class="chart"
          viewBox={`0 0 ${width} ${whole + 24}`}
          width={width}
          height={whole + 24}
          role="group"
          aria-label={`Layers by fused group: ${several} groups of several layers`}
        >
          {["forward", "backward", "optimizer"].map((name, column) => (
            <text key={name} class="axis" x={columns[column]} y="12">
              {name}
            </text>
          ))}
          <g transform="translate(0 20)">
            {lines.map(({ block, y, open: unfolded }, index) => (
              <g key={index}>
                <g
                  class="fold"
                  role="button"
                  tabindex={0}
                  aria-expanded={unfolded}
                  aria-label={`${block.name}, ${plural(block.rows.length, "layer")}`}
                  onClick={() => toggle(index)}
                  onKeyDown={(event) => {
                    if (event.key !== "Enter" && event.key !== " ") return;
                    event.preventDefault();
                    toggle(index);
                  }}
                >
                  <rect class="paint-row" x="0" y={y} width={width} height={height.block - 4} rx="4" />
                  <text class="label" x="6" y={y + 15}>
                    {unfolded ? "▾" : "▸"} {short(block.name, Math.floor(names / 7) - 3)}
                  </text>
                </g>
                {!unfolded &&
                  [0, 1, 2].map((column) => (
                    <Strip
                      key={column}
                      x={columns[column]!}
                      y={y + 4}
                      width={widths[column]!}
                      plan={plan}
                      choose={choose}
                      layers={layersOf(block.rows).filter(({ phase }) => columnOf(phase) === column)}
                    />
                  ))}
                {unfolded &&
                  block.rows.map(({ forward }) => {
                    const at = placed.get(forward.id)!;
                    return (
                      <text key={forward.id} class="value" x="14" y={at.y + 11}>
                        <title>{forward.name}</title>
                        {short(forward.name.slice(forward.name.startsWith(block.name) ? block.name.length : 0) || forward.op, Math.floor(names / 7) - 2)}
                      </text>
                    );
                  })}
              </g>
            ))}
            {edges.map(([from, to]) => {
              const a = placed.get(from);
              const b = placed.get(to);
              if (!a || !b) return null;
              const same = a.column === b.column;
              if (!same && a.y !== b.y) return null;
              if (same && Math.abs(b.y - a.y) > reach * height.row) return null;
              const inside = plan.of.get(from) !== undefined && plan.of.get(from) === plan.of.get(to);
              const [x1, y1] = same ? [a.x + 5, a.y + box.height / 2] : [a.x + box.width, a.y + box.height / 2];
              const [x2, y2] = same ? [b.x + 5, b.y + box.height / 2] : [b.x, b.y + box.height / 2];
              const far = same && Math.abs(b.y - a.y) > height.row;
              return (
                <path
                  key={`${from}-${to}`}
                  class={inside ? "edge inside" : "edge"}
                  d={far ? `M${x1 - 5} ${y1} C${x1 - 22} ${y1} ${x2 - 22} ${y2} ${x2 - 5} ${y2}` : `M${x1} ${y1} L${x2} ${y2}`}
                />
              );
            })}
            {[...placed.values()].map(({ layer, x, y }) => {
              const own = plan.of.get(layer.id);
              const lit = layer.id === chosen ? "chosen" : own !== undefined && own === group ? "lit" : "";
              return (
                <g
                  key={layer.id}
                  class={`unit ${lit}`}
                  role="button"
                  tabindex={0}
                  aria-label={nameOf(layer, own)}
                  onClick={() => choose(layer.id)}
                  onKeyDown={(event) => {
                    if (event.key !== "Enter" && event.key !== " ") return;
                    event.preventDefault();
                    choose(layer.id);
                  }}
                >
                  <title>{nameOf(layer, own)}</title>
                  <rect class={paint(own)} x={x} y={y} width={box.width} height={box.height} rx="3" data-group={own ?? ""} />
                </g>
              );
            })}
          </g>
        </svg>
      </div>
    </>
  );
}

const columnOf = (phase: string) => (phase === "optimizer" ? 2 : phase === "backward" || phase === "recompute" ? 1 : 0);
const nameOf = (layer: Layer, group: number | undefined) =>
  `${layer.name} (${layer.phase === "forward" ? layer.op : layer.role.replaceAll("_", " ")})${group === undefined ? ", alone" : `, group ${group + 1}`}`;
const short = (text: string, room: number) => (text.length <= room ? text : `…${text.slice(text.length - Math.max(3, room - 1))}`);

// A folded block: its groups side by side, each as wide as its share of the layers.
function Strip(props: { x: number; y: number; width: number; layers: Layer[]; plan: Grouping; choose(layer: number): void }) {
  const { x, y, width, layers, plan, choose } = props;
  const parts: { group: number | undefined; layers: Layer[] }[] = [];
  for (const layer of layers) {
    const group = plan.of.get(layer.id);
    const known = parts.find((part) => part.group === group);
    if (known) known.layers.push(layer);
    else parts.push({ group, layers: [layer] });
  }
  let at = x;
  return (
    <>
      {parts.map((part) => {
        const wide = (width * part.layers.length) / Math.max(1, layers.length);
        const left = at;
        at += wide;
        return (
          <rect
            key={part.group ?? "alone"}
            class={paint(part.group)}
            x={left}
            y={y}
            width={Math.max(1, wide - 1)}
            height="14"
            rx="2"
            onClick={() => choose(part.layers[0]!.id)}
          >
            <title>
              {part.group === undefined ? "alone" : `group ${part.group + 1}`}: {plural(part.layers.length, "layer")}
            </title>
          </rect>
        );
      })}
    </>
  );
}
