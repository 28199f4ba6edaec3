// The page's side of the engine: compiles the module once, keeps a worker, sends it one job at a time.
//
// Cancelling is cooperative for 150 ms; a worker that has not answered by then is terminated and another one started
// from the compiled module. Terminating raises no event and a busy worker none either, so liveness is the time since
// its last message.
import wasmUrl from "#engine/monet.wasm?url";
import type { FromWorker, Model, Reading, Result, Task, ToWorker } from "./messages";

const cancelGrace = 150; // ms
const silenceLimit = 10_000; // ms without a sign of life before the page says so

export interface Handlers {
  progress(stage: string, fraction: number): void;
  silent(seconds: number): void; // repeated while a running job gives no sign of life
}

export class EngineError extends Error {}

interface Answer {
  result: Result;
  reading: Reading | null;
}

interface Running {
  id: number;
  kind: Task["kind"];
  handlers: Handlers;
  beat: number;
  resolve(answer: Answer): void;
  reject(error: EngineError): void;
  ended: Promise<unknown>;
}

const cancelled: Answer = { result: { kind: "cancelled" }, reading: null };

async function compile(): Promise<WebAssembly.Module> {
  const response = await fetch(wasmUrl);
  if (!response.ok) throw new EngineError(`the engine could not be loaded (${response.status})`);
  // A host that serves .wasm with another type: compile from bytes.
  const typed = response.headers.get("Content-Type")?.startsWith("application/wasm");
  return typed ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer());
}

export class EngineClient {
  version = "";
  #module: Promise<WebAssembly.Module> | null = null;
  #worker: Promise<Worker> | null = null;
  #running: Running | null = null;
  #ids = 0;
  #latest = 0; // the analysis asked for last

  // Loads the engine ahead of the first job. A failed load is retried by the next call.
  start(): Promise<Worker> {
    this.#worker ??= this.#open().catch((error: unknown) => {
      this.#worker = null;
      this.#module = null;
      throw error instanceof EngineError ? error : new EngineError(`the engine could not be loaded: ${String(error)}`);
    });
    return this.#worker;
  }

  // Runs the task when nothing else runs; an analysis cancels the one before it.
  async run(model: Model, task: Task, handlers: Handlers): Promise<Answer> {
    const id = ++this.#ids;
    const analysis = task.kind === "analyze";
    if (analysis) this.#latest = id;
    for (;;) {
      const worker = await this.start();
      if (analysis && this.#latest !== id) return cancelled;
      if (!this.#running) return this.#send(worker, id, model, task, handlers);
      // An analysis makes what is being computed for older settings pointless; a file being written is finished.
      const pointless = ["analyze", "schedule", "trace", "fuse", "growth"].includes(this.#running.kind);
      await (analysis && pointless ? this.#stop(this.#running) : this.#running.ended);
    }
  }

  // Resolves when the running job has ended, one way or the other.
  async cancel(): Promise<void> {
    this.#latest = 0; // nor does one start that still waits for the engine
    if (this.#running) await this.#stop(this.#running);
  }

  async #stop(running: Running): Promise<void> {
    const worker = await this.start();
    worker.postMessage({ type: "cancel", id: running.id } satisfies ToWorker);
    await Promise.race([running.ended, new Promise((resolve) => setTimeout(resolve, cancelGrace))]);
    if (this.#running === running) this.#drop(worker, () => running.resolve(cancelled));
  }

  #send(worker: Worker, id: number, model: Model, task: Task, handlers: Handlers): Promise<Answer> {
    const answer = new Promise<Answer>((resolve, reject) => {
      this.#running = {
        id,
        kind: task.kind,
        handlers,
        beat: performance.now(),
        resolve,
        reject,
        ended: Promise.resolve(),
      };
    });
    const running = this.#running!;
    const watch = setInterval(() => {
      const silence = performance.now() - running.beat;
      if (silence >= silenceLimit) handlers.silent(Math.round(silence / 1000));
    }, 1000);
    const stop = () => clearInterval(watch);
    running.ended = answer.then(stop, stop);
    worker.postMessage({ type: "job", id, model, task } satisfies ToWorker);
    return answer;
  }

  async #open(): Promise<Worker> {
    this.#module ??= compile();
    const module = await this.#module;
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "monet engine" });
    return new Promise((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
        if (data.type === "started") {
          this.version = data.version;
          resolve(worker);
        } else if (data.type === "failed") {
          this.#fail(worker, data.message, reject);
        } else if (this.#running?.id === data.id) {
          this.#running.beat = performance.now();
          if (data.type === "progress") this.#running.handlers.progress(data.stage, data.fraction);
          else this.#finish((running) => running.resolve(data));
        }
      };
      worker.onerror = (event) => this.#fail(worker, event.message || "its worker did not start", reject);
      worker.postMessage({ type: "start", module } satisfies ToWorker);
    });
  }

  #finish(end: (running: Running) => void) {
    const running = this.#running;
    this.#running = null;
    if (running) end(running);
  }

  #fail(worker: Worker, message: string, reject: (error: EngineError) => void) {
    const error = new EngineError(`the engine stopped: ${message}`);
    this.#drop(worker, (running) => running.reject(error));
    reject(error);
  }

  #drop(worker: Worker, end: (running: Running) => void = () => {}) {
    worker.terminate();
    this.#worker = null;
    this.#finish(end);
    void this.start().catch(() => {}); // the next job reports what is wrong
  }
}
