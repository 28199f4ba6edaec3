// The solver's worker: loads HiGHS, a module of its own, when it is started, and solves one program at a time. Nothing
// stops it but being terminated: what it found by then it has told.
import create, { type Solver } from "#engine/solver.mjs";
import wasmUrl from "#engine/solver.wasm?url";
import type { Program, Solution } from "./fusion";

declare const self: DedicatedWorkerGlobalScope;

export type FromSolver =
  | { type: "incumbent"; best: Solution }
  | { type: "solved"; best: Solution }
  | { type: "failed"; message: string };

const post = (message: FromSolver) => self.postMessage(message);
const solver: Promise<Solver> = create({ locateFile: () => wasmUrl });

self.onmessage = async ({ data }: MessageEvent<Program>) => {
  try {
    const { solve } = await solver;
    const best = solve(data.program, data.gap, data.nodes, data.start, (best) => post({ type: "incumbent", best }));
    post({ type: "solved", best });
  } catch (error) {
    post({ type: "failed", message: error instanceof Error ? error.message : String(error) });
  }
};
