// What the page and the engine's worker say to each other. A job names everything it needs, the model's file included
// (a File is passed by reference, not copied), so that a fresh worker can take over at any time.
import type { FusionReport, Growth } from "./fusion";
import type { Diagnostic, Report, Settings } from "./report";
import type { ScheduleReport } from "./schedule";

export interface Model {
  key: number; // one per opened model: the worker reopens when it changes
  name: string; // file name
  file: Blob;
}

export type Task =
  | { kind: "analyze"; settings: Settings }
  | { kind: "schedule"; settings: Settings }
  | { kind: "trace"; settings: Settings; inference: boolean }
  | { kind: "fuse"; settings: Settings; inference: boolean }
  | { kind: "growth"; settings: Settings; inference: boolean; units: number[] }
  | { kind: "training-graph"; settings: Settings }
  | { kind: "structure"; shortNames: boolean };

export type ToWorker =
  | { type: "start"; module: WebAssembly.Module }
  | { type: "job"; id: number; model: Model; task: Task }
  | { type: "cancel"; id: number };

// How the engine read the model's file; `heap` is the size of the WASM memory. All in bytes, the time in milliseconds.
export interface Reading {
  file_bytes: number;
  read_bytes: number;
  reads: number;
  heap: number;
  milliseconds: number;
}

export type Result =
  | { kind: "report"; report: Report; text: string; milliseconds: number }
  | { kind: "schedule"; report: ScheduleReport; text: string }
  | { kind: "trace"; text: string }
  // `seconds`: for all of it, and solving, by strategy. Cancelled, it is of what was done by then.
  | { kind: "fusion"; report: FusionReport; text: string; seconds: number; solving: number[] }
  | { kind: "growth"; growth: Growth }
  | { kind: "bytes"; bytes: Uint8Array<ArrayBuffer> }
  | { kind: "errors"; errors: Diagnostic[] }
  | { kind: "cancelled" };

// Every message is also a sign of life.
export type FromWorker =
  | { type: "started"; version: string }
  | { type: "progress"; id: number; stage: string; fraction: number }
  | { type: "done"; id: number; result: Result; reading: Reading | null }
  | { type: "failed"; message: string };
