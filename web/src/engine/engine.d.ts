// The engine module as Emscripten builds it (wasm-bindings/).
declare module "#engine/monet.mjs" {
  import type { Program, Solution } from "./fusion";
  export interface Session {
    open(name: string, size: number, read: (offset: number, length: number) => Uint8Array): string;
    analyze(settings: string, progress: (stage: string, fraction: number) => boolean): string;
    // monet.schedule/1, and a Chrome trace; of refused input {"errors": [...]}.
    schedule(
      settings: string,
      inferenceOnly: boolean,
      progress: (stage: string, fraction: number) => boolean,
    ): string;
    trace(settings: string, inference: boolean, progress: (stage: string, fraction: number) => boolean): string;
    // Bytes of ONNX, or {"errors": [...]} as JSON.
    trainingGraph(settings: string): Uint8Array<ArrayBuffer> | string;
    structure(shortNames: boolean): Uint8Array<ArrayBuffer> | string;
    // A search for fused groups, or {"errors": [...]}; whether units (a JSON list of ids) may be one group.
    fuse(settings: string, inference: boolean): Fusion | string;
    growth(settings: string, inference: boolean, units: string): string;
    delete(): void;
  }
  // step() while it says there is more, then program() to solve and answer(), until there is none. All but program()
  // give {"errors": [...]} for what they refuse, and otherwise nothing or what their names say.
  export interface Fusion {
    step(): string; // {"more": true, "done": 0.3}
    strategy(): number; // how many strategies are done: the index of the one being solved
    program(): Program | undefined;
    incumbent(best: Solution): string;
    answer(best: Solution): string;
    stop(): string;
    report(): string;
    delete(): void;
  }
  export interface Engine {
    version(): string;
    presets(): string;
    Session: new () => Session;
  }
  export interface ModuleOptions {
    instantiateWasm?: (
      imports: WebAssembly.Imports,
      receive: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void,
    ) => object;
  }
  export default function create(options?: ModuleOptions): Promise<Engine>;
}

// The solver's module.
declare module "#engine/solver.mjs" {
  import type { Program, Solution } from "./fusion";
  export interface Solver {
    solve(
      program: Program["program"],
      gap: number,
      nodes: number,
      start: Float64Array,
      progress: (best: Solution) => void,
    ): Solution;
  }
  export default function create(options: { locateFile: (name: string) => string }): Promise<Solver>;
}
