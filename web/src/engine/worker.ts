// The engine's worker: instantiates the compiled module it is given, holds one open model, and runs one job at a time.
import create, { type Engine, type Session } from "#engine/monet.mjs";
import type { FromWorker, Model, Reading, Result, Task, ToWorker } from "./messages";
import type { Diagnostic, Report } from "./report";
import type { ScheduleReport } from "./schedule";

declare const self: DedicatedWorkerGlobalScope;

const progressInterval = 50; // ms between two progress messages of one stage

let engine: Promise<Engine> | null = null;
let memory: WebAssembly.Memory | null = null;
let open: { key: number; session: Session; reading: Reading } | null = null;
const cancelled = new Set<number>();

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

function perform(id: number, session: Session, task: Task): Result {
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
