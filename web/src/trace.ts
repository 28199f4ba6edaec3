// A Chrome trace as the Gantt chart draws it: flat columns, events of each row in order of time.
import { ascending, bisector, bisectRight } from "d3-array";
import type { Cause } from "./engine/schedule";
import type { Phase } from "./engine/report";

export interface TraceEvent {
  name: string;
  kind: Phase | Cause; // what it is coloured by
  layer: number; // -1: for no layer
  start: number; // cycles
  end: number;
  detail: Record<string, string | number>;
}

export interface TraceRow {
  name: string;
  events: TraceEvent[]; // by start
  reach: number[]; // the latest end up to each event: where to begin to look
  busy: number; // cycles with an event
}

interface Raw {
  ph: string;
  pid: number;
  tid: number;
  name: string;
  cat?: Phase | Cause;
  ts: number;
  dur: number;
  args: Record<string, string | number>;
}

const cores = 1; // process ids of the trace; 3 holds counters
const links = 2;

// Cycles that the events cover, overlaps once.
function covered(events: TraceEvent[]): number {
  let sum = 0;
  let until = 0;
  for (const { start, end } of events) {
    sum += Math.max(0, end - Math.max(start, until));
    until = Math.max(until, end);
  }
  return sum;
}

export function rowOf(name: string, unordered: TraceEvent[]): TraceRow {
  const events = [...unordered].sort((a, b) => ascending(a.start, b.start) || ascending(a.end, b.end));
  let until = 0;
  return { name, events, reach: events.map(({ end }) => (until = Math.max(until, end))), busy: covered(events) };
}

// Rows that have events: cores, then links.
export function rowsOf(text: string): TraceRow[] {
  const { traceEvents } = JSON.parse(text) as { traceEvents: Raw[] };
  const rows = new Map<string, { name: string; events: TraceEvent[] }>();
  for (const pid of [cores, links])
    for (const raw of traceEvents)
      if (raw.ph === "M" && raw.name === "thread_name" && raw.pid === pid)
        rows.set(`${pid}/${raw.tid}`, { name: String(raw.args.name), events: [] });
  for (const { ph, pid, tid, name, cat, ts, dur, args } of traceEvents) {
    if (ph !== "X") continue;
    const { layer, ...detail } = args;
    rows.get(`${pid}/${tid}`)?.events.push({ name, kind: cat!, layer: Number(layer), start: ts, end: ts + dur, detail });
  }
  return [...rows.values()].filter(({ events }) => events.length).map(({ name, events }) => rowOf(name, events));
}

export interface Span {
  from: number;
  to: number;
}

export interface Mark {
  x: number; // pixels
  width: number;
  kind: TraceEvent["kind"];
}

const byStart = bisector<TraceEvent, number>(({ start }) => start);

// What is to be drawn of a row: events that touch the span, those of one kind that fall into one pixel as one mark.
export function marks({ events, reach }: TraceRow, { from, to }: Span, width: number): Mark[] {
  const scale = width / Math.max(1e-9, to - from);
  const drawn: Mark[] = [];
  for (let at = bisectRight(reach, from); at < events.length && events[at]!.start < to; ++at) {
    const { start, end, kind } = events[at]!;
    if (end <= from) continue;
    const x = Math.max(0, (start - from) * scale);
    const right = Math.min(width, (end - from) * scale);
    const last = drawn.at(-1);
    if (last && last.kind === kind && x <= last.x + last.width + 0.5 && right - last.x < last.width + 1) {
      last.width = Math.max(last.width, right - last.x);
    } else {
      drawn.push({ x, width: Math.max(0.5, right - x), kind });
    }
  }
  return drawn;
}

// The event of a row at a time, the shortest of several; null where there is none within the slack.
export function eventAt({ events, reach }: TraceRow, time: number, slack: number): TraceEvent | null {
  let found: TraceEvent | null = null;
  for (let at = byStart.right(events, time + slack) - 1; at >= 0 && reach[at]! + slack >= time; --at) {
    const event = events[at]!;
    if (event.end + slack >= time && (!found || event.end - event.start < found.end - found.start)) found = event;
  }
  return found;
}

// The span by a factor smaller (or larger) around a time, kept within the whole.
export function zoomed({ from, to }: Span, factor: number, around: number, whole: number): Span {
  const size = Math.min(whole, Math.max(4, (to - from) * factor));
  const share = (around - from) / Math.max(1e-9, to - from);
  return moved({ from: around - share * size, to: around - share * size + size }, 0, whole);
}

export function moved({ from, to }: Span, by: number, whole: number): Span {
  const size = to - from;
  const start = Math.max(0, Math.min(whole - size, from + by));
  return { from: start, to: start + size };
}
