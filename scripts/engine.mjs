// Loads the WebAssembly engine in Node: for the demo, benchmarks, the site's build and tests.
import { readFileSync, openSync, readSync, fstatSync, closeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const built = join(dirname(fileURLToPath(import.meta.url)), '../build/wasm/bin');

// The module is built for browsers' workers. Emscripten 3.1.6 decides where it runs by what is defined, so for the time of
// loading Node looks like a worker.
export async function loadEngine(folder = built) {
  const { default: factory } = await import(pathToFileURL(join(folder, 'monet.mjs')));
  const added = { importScripts: () => {}, self: globalThis, location: { href: pathToFileURL(folder + '/').href } };
  const before = Object.keys(added).filter((key) => key in globalThis);
  for (const key of Object.keys(added)) if (!before.includes(key)) globalThis[key] = added[key];
  try {
    return await factory({ wasmBinary: readFileSync(join(folder, 'monet.wasm')), locateFile: (name) => join(folder, name) });
  } finally {
    for (const key of Object.keys(added)) if (!before.includes(key)) delete globalThis[key];
  }
}

// Opens an ONNX file in a new session, reading only the parts that the engine asks for; throws what it refuses.
export function openModel(engine, path) {
  const file = openSync(path, 'r');
  try {
    const session = new engine.Session();
    const opened = JSON.parse(
      session.open(basename(path), fstatSync(file).size, (offset, length) => {
        const bytes = new Uint8Array(length);
        const read = readSync(file, bytes, 0, length, offset);
        return read === length ? bytes : bytes.subarray(0, read);
      }),
    );
    if (opened.errors) throw new Refused(opened.errors);
    return { session, ...opened };
  } finally {
    closeSync(file);
  }
}

export function analyze(session, settings = {}) {
  const bytes = session.analyze(JSON.stringify(settings), undefined);
  const report = JSON.parse(bytes);
  if (report.errors) throw new Refused(report.errors);
  return { bytes, report };
}

// The schedules of inference and of a step.
export function schedule(session, settings = {}) {
  const bytes = session.schedule(JSON.stringify(settings), false, undefined);
  const report = JSON.parse(bytes);
  if (report.errors) throw new Refused(report.errors);
  return { bytes, report };
}

export class Refused extends Error {
  constructor(problems) {
    super(problems.map((p) => p.message + (p.hint ? ` (${p.hint})` : '')).join('\n'));
    this.problems = problems;
  }
}
