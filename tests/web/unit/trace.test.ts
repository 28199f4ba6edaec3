import { describe, expect, it } from "vitest";
import { eventAt, marks, moved, rowOf, rowsOf, zoomed, type TraceEvent } from "../../../web/src/trace";

const event = (start: number, end: number, kind: TraceEvent["kind"] = "forward"): TraceEvent => ({
  name: `${start}-${end}`,
  kind,
  layer: 0,
  start,
  end,
  detail: {},
});

describe("rows of a trace", () => {
  const text = JSON.stringify({
    traceEvents: [
      { ph: "M", name: "process_name", pid: 1, tid: 0, args: { name: "cores" } },
      { ph: "M", name: "thread_name", pid: 2, tid: 0, args: { name: "link" } },
      { ph: "M", name: "thread_name", pid: 1, tid: 0, args: { name: "core 0" } },
      { ph: "M", name: "thread_name", pid: 1, tid: 1, args: { name: "core 1" } },
      { ph: "X", pid: 1, tid: 0, ts: 10, dur: 5, name: "b", cat: "backward", args: { layer: 3, op: "Conv" } },
      { ph: "X", pid: 1, tid: 0, ts: 0, dur: 4, name: "a", cat: "forward", args: { layer: 1, op: "Conv" } },
      { ph: "X", pid: 2, tid: 0, ts: 2, dur: 8, name: "t", cat: "load", args: { layer: 3, bits: 64 } },
      { ph: "X", pid: 2, tid: 0, ts: 4, dur: 3, name: "t", cat: "load", args: { layer: 3, bits: 64 } },
      { ph: "C", pid: 3, name: "on-chip bytes", ts: 0, args: { parameters: 1 } },
    ],
  });

  it("are cores, then links, those with events, in order of time", () => {
    const rows = rowsOf(text);
    expect(rows.map(({ name }) => name)).toEqual(["core 0", "link"]);
    expect(rows[0]!.events.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(rows[0]!.events[1]).toEqual({
      name: "b",
      kind: "backward",
      layer: 3,
      start: 10,
      end: 15,
      detail: { op: "Conv" },
    });
    expect(rows[0]!.busy).toBe(9);
  });

  it("count what overlaps on a link once", () => expect(rowsOf(text)[1]!.busy).toBe(8));
});

describe("marks", () => {
  const row = rowOf("core 0", [event(0, 100), event(100, 101), event(101, 102), event(500, 600, "backward")]);

  it("cover what the span shows, in pixels", () => {
    const drawn = marks(row, { from: 0, to: 1000 }, 100);
    expect(drawn.at(-1)).toEqual({ x: 50, width: 10, kind: "backward" });
    expect(drawn[0]).toMatchObject({ x: 0, kind: "forward" });
    expect(drawn[0]!.width).toBeCloseTo(10.2);
    expect(drawn).toHaveLength(2); // what falls into one pixel is one mark
  });

  it("begin at the edge for an event that reaches into the span", () => {
    expect(marks(row, { from: 550, to: 1050 }, 100)).toEqual([{ x: 0, width: 10, kind: "backward" }]);
    expect(marks(row, { from: 50, to: 60 }, 100)).toEqual([{ x: 0, width: 100, kind: "forward" }]);
    expect(marks(row, { from: 200, to: 300 }, 100)).toEqual([]);
  });

  it("keep an event that others which ended earlier hide", () => {
    const overlapping = rowOf("link", [event(0, 1000), event(10, 20), event(30, 40)]);
    expect(marks(overlapping, { from: 500, to: 600 }, 100)).toEqual([{ x: 0, width: 100, kind: "forward" }]);
  });
});

describe("the event at a time", () => {
  const row = rowOf("link", [event(0, 100), event(100, 200), event(100, 130), event(400, 402)]);
  it("is the shortest of several", () => expect(eventAt(row, 110, 0)?.name).toBe("100-130"));
  it("is found within the slack", () => expect(eventAt(row, 396, 5)?.name).toBe("400-402"));
  it("is none in a gap", () => expect(eventAt(row, 300, 5)).toBeNull());
  it("is a long one that began before others", () => {
    expect(eventAt(rowOf("link", [event(0, 1000), event(10, 20), event(30, 40)]), 500, 0)?.name).toBe("0-1000");
  });
});

describe("zooming", () => {
  it("keeps what is under the pointer in its place", () => {
    expect(zoomed({ from: 0, to: 1000 }, 0.5, 250, 1000)).toEqual({ from: 125, to: 625 });
  });
  it("stays within the whole", () => {
    expect(zoomed({ from: 0, to: 1000 }, 2, 500, 1000)).toEqual({ from: 0, to: 1000 });
    expect(moved({ from: 100, to: 200 }, -500, 1000)).toEqual({ from: 0, to: 100 });
    expect(moved({ from: 100, to: 200 }, 5000, 1000)).toEqual({ from: 900, to: 1000 });
  });
});
