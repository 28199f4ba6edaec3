// One row per contraction: how much of the array its own layer and its gradients use, side by side. A list box to
// assistive technology: up and down arrows select the contraction; a click on a bar selects the layer it is of.
import { useEffect, useRef } from "preact/hooks";
import type { UseRow } from "../costs";
import type { Role } from "../engine/report";
import { percent, words } from "../format";
import { selection } from "../state";
import { useWidth } from "./figure";

const line = 22;
const bar = 12;
const between = 14; // of two columns
const room = 46; // for the number after a bar
const letter = 7.2; // width of one, about
const narrow = 520; // below it names stand above the bars

// The end of a name tells layers apart.
const shortened = (name: string, most: number) => (name.length > most ? `…${name.slice(1 - most)}` : name);

const say = ({ layer, uses }: UseRow, roles: readonly Role[]) =>
  `${layer.name}: ${roles.map((role) => `${words(role)} ${uses[role] ? percent(uses[role].share) : "none"}`).join(", ")}`;

export function UseChart({ rows, roles }: { rows: readonly UseRow[]; roles: readonly Role[] }) {
  const [box, width] = useWidth(640);
  const frame = useRef<HTMLDivElement>(null);
  const above = width < narrow ? line - 4 : 0;
  const rowHeight = above + line;
  const name = above ? width : Math.min(260, width * 0.3);
  const start = above ? 4 : name; // of the first column
  const column = (width - start) / roles.length;
  const full = Math.max(10, column - between - room); // a bar of the whole array
  const chosen = selection.value;
  const holds = ({ layer, uses }: UseRow) => layer.id === chosen || roles.some((role) => uses[role]?.layer === chosen);
  const at = chosen === null ? -1 : rows.findIndex(holds);

  useEffect(() => {
    if (at < 0 || !frame.current) return;
    const { scrollTop, clientHeight } = frame.current;
    const top = at * rowHeight;
    if (top < scrollTop || top + rowHeight > scrollTop + clientHeight) frame.current.scrollTop = top - clientHeight / 2;
  }, [at]);

  const go = (next: number) => (selection.value = rows[Math.max(0, Math.min(rows.length - 1, next))]!.layer.id);
  const keys: Record<string, () => void> = {
    ArrowDown: () => go(at + 1),
    ArrowUp: () => go(at < 0 ? 0 : at - 1),
    Home: () => go(0),
    End: () => go(rows.length - 1),
    Escape: () => (selection.value = null),
  };

  return (
    <div class="uses-frame" ref={frame}>
      <div ref={box} class="chart-box">
        <svg
          class="chart uses"
          viewBox={`0 0 ${width} ${rows.length * rowHeight}`}
          width={width}
          height={rows.length * rowHeight}
          tabindex={0}
          role="listbox"
          aria-label="Use of the PEs, contraction by contraction: up and down arrows select"
          aria-activedescendant={at < 0 ? undefined : `use-${rows[at]!.layer.id}`}
          onKeyDown={(event) => {
            const act = keys[event.key];
            if (!act) return;
            event.preventDefault();
            act();
          }}
        >
          {rows.map((row, index) => (
            <g
              key={row.layer.id}
              id={`use-${row.layer.id}`}
              role="option"
              aria-selected={index === at}
              aria-label={say(row, roles)}
              transform={`translate(0 ${index * rowHeight})`}
              onClick={() => (selection.value = row.layer.id)}
            >
              <rect class={index === at ? "row selected" : "row"} width={width} height={rowHeight} />
              <text class="name" x="4" y="15">
                <title>{row.layer.name}</title>
                {shortened(row.layer.name, Math.floor((name - 8) / letter))}
              </text>
              {roles.map((role, place) => {
                const use = row.uses[role];
                const x = start + place * column;
                if (!use)
                  return (
                    <text key={role} class="tick" x={x} y={above + 15}>
                      –
                    </text>
                  );
                return (
                  <g
                    key={role}
                    data-role={role}
                    transform={`translate(${x} ${above})`}
                    onClick={(event) => {
                      event.stopPropagation();
                      selection.value = use.layer;
                    }}
                  >
                    <title>{`${words(role)} ${percent(use.share)}`}</title>
                    <rect class="track" y={(line - bar) / 2} width={full} height={bar} />
                    <rect
                      class={`paint-${role}`}
                      y={(line - bar) / 2}
                      width={Math.max(1, full * Math.min(1, use.share))}
                      height={bar}
                    />
                    <text class={use.layer === chosen ? "value chosen-use" : "value"} x={full + 5} y="15">
                      {percent(use.share)}
                    </text>
                  </g>
                );
              })}
            </g>
          ))}
        </svg>
      </div>
    </div>
  );
}
