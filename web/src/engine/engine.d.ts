// The engine module as Emscripten builds it (wasm-bindings/).
declare module "#engine/monet.mjs" {
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
