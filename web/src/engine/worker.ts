// The engine's worker: instantiates the compiled module it is given, holds one open model, and runs one job at a time.
import create, { type Engine, type Session } from "#engine/monet.mjs";
import type { FromWorker, Model, Reading, Result, Task, ToWorker } from "./messages";
import type { FusionReport, Growth, Program, Solution } from "./fusion";
import type { Diagnostic, Report } from "./report";
import type { ScheduleReport } from "./schedule";
import type { FromSolver } from "./solver";

declare const self: DedicatedWorkerGlobalScope;

const progressInterval = 50; // ms between two progress messages of one stage

let engine: Promise<Engine> | null = null;
let memory: WebAssembly.Memory | null = null;
let open: { key: number; session: Session; reading: Reading } | null = null;
const cancelled = new Set<number>();
const stops = new Map<number, () => void>(); // of searches: ends what is being solved

const post = (message: FromWorker, transfer: Transferable[] = []) => self.postMessage(message, transfer);

function start(module: WebAssembly.Module): Promise<Engine> {
  return create({
    instantiateWasm: (imports, receive) => {
      void WebAssembly.instantiate(module, imports).then((instance) => {
        memory = Object.values(instance.exports).find((value) => value instanceof WebAssembly.Memory) ?? null;
        receive(instance, module);
      });
      return {};
    },
  });
}

// Lets waiting messages in: a cancel can arrive only between two calls of the engine.
const turn = () => new Promise((resolve) => setTimeout(resolve));

function openModel(engine: Engine, model: Model): Diagnostic[] | null {
  if (open?.key === model.key) return null;
  open?.session.delete();
  open = null;
  const began = performance.now();
  const reader = new FileReaderSync();
  const session = new engine.Session();
  const answer = JSON.parse(
    session.open(model.name, model.file.size, (offset, length) => {
      try {
        return new Uint8Array(reader.readAsArrayBuffer(model.file.slice(offset, offset + length)));
      } catch {
        return new Uint8Array(0); // the file changed or went away: the engine says where
      }
    }),
  ) as { errors?: Diagnostic[]; reads?: Omit<Reading, "heap" | "milliseconds"> };
  if (answer.errors || !answer.reads) {
    session.delete();
    return answer.errors ?? [];
  }
  open = { key: model.key, session, reading: { ...answer.reads, heap: 0, milliseconds: performance.now() - began } };
  return null;
}

// "cancelled" is how the engine says that a progress callback stopped it.
const refused = (errors: Diagnostic[]): Result =>
  errors.some((error) => error.code === "cancelled") ? { kind: "cancelled" } : { kind: "errors", errors };

// Solves in a worker of its own, which is terminated when the job is cancelled; then the best that it told is all there is.
let solver: Worker | null = null;
function solve(program: Program, told: (best: Solution) => void, stop: Promise<void>): Promise<Solution | null> {
  solver ??= new Worker(new URL("./solver.ts", import.meta.url), { type: "module", name: "monet solver" });
  const worker = solver;
  const drop = () => {
    worker.terminate();
    solver = null;
  };
  return new Promise((resolve, reject) => {
    void stop.then(() => {
      drop();
      resolve(null);
    });
    const failed = (message: string) => {
      drop();
      reject(new Error(`the solver stopped: ${message}`));
    };
    worker.onerror = (event) => failed(event.message || "its worker did not start");
    worker.onmessage = ({ data }: MessageEvent<FromSolver>) => {
      if (data.type === "incumbent") told(data.best);
      else if (data.type === "solved") resolve(data.best);
      else failed(data.message);
    };
    worker.postMessage(program);
  });
}

const errorsOf = (answer: string): Diagnostic[] | null =>
  answer ? ((JSON.parse(answer) as { errors?: Diagnostic[] }).errors ?? null) : null;

async function fuse(id: number, session: Session, settings: string, inference: boolean): Promise<Result> {
  const began = performance.now();
  const run = session.fuse(settings, inference);
  if (typeof run === "string") return refused(errorsOf(run) ?? []);
  const solving: number[] = [];
  const stop = new Promise<void>((resolve) => stops.set(id, resolve));
  const limit = (most: number) => (most === 0 ? "any number of units" : `up to ${most} units`);
  try {
    for (let turned = performance.now(); ; ) {
      const answer = JSON.parse(run.step()) as { more: boolean; done: number; errors?: Diagnostic[] };
      if (answer.errors) return refused(answer.errors);
      if (performance.now() - turned >= progressInterval) {
        post({ type: "progress", id, stage: "costs of groups", fraction: answer.done });
        await turn();
        turned = performance.now();
        if (cancelled.has(id)) return { kind: "cancelled" };
      }
      if (answer.more) continue;
      const program = run.program();
      if (!program) break;
      const start = performance.now();
      const tell = (gap: number) => {
        const share = Number.isFinite(gap) ? `, gap ${(100 * Math.min(1, gap)).toFixed(2)}%` : "";
        post({ type: "progress", id, stage: `solving for groups of ${limit(program.maxGroup)}${share}`, fraction: answer.done });
      };
      tell(Infinity);
      const best = await solve(program, (incumbent) => {
        run.incumbent(incumbent);
        tell(incumbent.gap);
      }, stop);
      const at = run.strategy();
      solving[at] = (solving[at] ?? 0) + (performance.now() - start) / 1000;
      const errors = errorsOf(best ? run.answer(best) : run.stop());
      if (errors) return refused(errors);
      if (!best) {
        run.step(); // the plan found so far is scheduled
        break;
      }
    }
    const text = run.report();
    const report = JSON.parse(text) as FusionReport | { errors: Diagnostic[] };
    const seconds = (performance.now() - began) / 1000;
    return "errors" in report ? refused(report.errors) : { kind: "fusion", report, text, seconds, solving };
  } finally {
    stops.delete(id);
    run.delete();
  }
}

async function perform(id: number, session: Session, task: Task): Promise<Result> {
  if (task.kind === "structure" || task.kind === "training-graph") {
    const answer =
      task.kind === "structure"
        ? session.structure(task.shortNames)
        : session.trainingGraph(JSON.stringify(task.settings));
    if (typeof answer !== "string") return { kind: "bytes", bytes: answer };
    return refused((JSON.parse(answer) as { errors: Diagnostic[] }).errors);
  }
  const began = performance.now();
  let last = { stage: "", time: 0 };
  const progress = (stage: string, fraction: number) => {
    const time = performance.now();
    if (stage !== last.stage || time - last.time >= progressInterval) {
      last = { stage, time };
      post({ type: "progress", id, stage, fraction });
    }
    return !cancelled.has(id);
  };
  const settings = JSON.stringify(task.settings);
  if (task.kind === "fuse") return fuse(id, session, settings, task.inference);
  if (task.kind === "growth") {
    const text = session.growth(settings, task.inference, JSON.stringify(task.units));
    const growth = JSON.parse(text) as Growth | { errors: Diagnostic[] };
    return "errors" in growth ? refused(growth.errors) : { kind: "growth", growth };
  }
  if (task.kind === "trace") {
    const text = session.trace(settings, task.inference, progress);
    if (!text.startsWith('{"errors"')) return { kind: "trace", text };
    return refused((JSON.parse(text) as { errors: Diagnostic[] }).errors);
  }
  if (task.kind === "schedule") {
    const text = session.schedule(settings, false, progress);
    const report = JSON.parse(text) as ScheduleReport | { errors: Diagnostic[] };
    return "errors" in report ? refused(report.errors) : { kind: "schedule", report, text };
  }
  const text = session.analyze(settings, progress);
  const milliseconds = performance.now() - began;
  const report = JSON.parse(text) as Report | { errors: Diagnostic[] };
  return "errors" in report ? refused(report.errors) : { kind: "report", report, text, milliseconds };
}

async function run(id: number, model: Model, task: Task): Promise<Result> {
  const ready = await engine;
  if (!ready) throw new Error("the engine was not started");
  post({ type: "progress", id, stage: "reading the model", fraction: 0 });
  const errors = openModel(ready, model);
  if (errors) return refused(errors);
  await turn();
  if (cancelled.has(id) || !open) return { kind: "cancelled" };
  return perform(id, open.session, task);
}

let queue: Promise<void> = Promise.resolve();

self.onmessage = ({ data }: MessageEvent<ToWorker>) => {
  if (data.type === "cancel") {
    cancelled.add(data.id);
    stops.get(data.id)?.();
    return;
  }
  if (data.type === "start") {
    engine = start(data.module);
    queue = engine.then(
      (ready) => post({ type: "started", version: ready.version() }),
      (error: unknown) => post({ type: "failed", message: String(error) }),
    );
    return;
  }
  const { id, model, task } = data;
  queue = queue.then(async () => {
    try {
      const result = cancelled.has(id) ? ({ kind: "cancelled" } as const) : await run(id, model, task);
      const reading = open?.key === model.key ? { ...open.reading, heap: memory?.buffer.byteLength ?? 0 } : null;
      post({ type: "done", id, result, reading }, result.kind === "bytes" ? [result.bytes.buffer] : []);
    } catch (error) {
      // A trap (out of memory, a fault of ours): this instance cannot be trusted any more, the page starts another.
      post({ type: "failed", message: error instanceof Error ? error.message : String(error) });
    }
    cancelled.delete(id);
  });
};
