// Loads the WebAssembly engine in Node: for the demo, benchmarks, the site's build and tests.
import { readFileSync, openSync, readSync, fstatSync, closeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const built = join(dirname(fileURLToPath(import.meta.url)), '../build/wasm/bin');

// The modules are built for browsers' workers. Emscripten 3.1.6 decides where it runs by what is defined, so for the time of
// loading Node looks like a worker.
export const loadEngine = (folder = built) => load('monet', folder);
// The second module: HiGHS.
export const loadSolver = (folder = built) => load('solver', folder);

async function load(name, folder) {
  const { default: factory } = await import(pathToFileURL(join(folder, `${name}.mjs`)));
  const added = { importScripts: () => {}, self: globalThis, location: { href: pathToFileURL(folder + '/').href } };
  const before = Object.keys(added).filter((key) => key in globalThis);
  for (const key of Object.keys(added)) if (!before.includes(key)) globalThis[key] = added[key];
  try {
    return await factory({ wasmBinary: readFileSync(join(folder, `${name}.wasm`)), locateFile: (file) => join(folder, file) });
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

// The search for fused groups; `milliseconds` of all of it, `solving` of each program, in order.
export function fuse(session, solver, settings = {}, inference = false) {
  const began = performance.now();
  const run = session.fuse(JSON.stringify(settings), inference);
  if (typeof run === 'string') throw new Refused(JSON.parse(run).errors);
  const solving = [];
  try {
    for (;;) {
      for (let more = true; more; ) {
        const answer = JSON.parse(run.step());
        if (answer.errors) throw new Refused(answer.errors);
        more = answer.more;
      }
      const program = run.program();
      if (!program) break;
      const start = performance.now();
      const best = solver.solve(program.program, program.gap, program.nodes, program.start, (best) => run.incumbent(best));
      solving.push({ maxGroup: program.maxGroup, milliseconds: performance.now() - start, status: best.status, gap: best.gap });
      run.answer(best);
    }
    const bytes = run.report();
    return { bytes, report: JSON.parse(bytes), milliseconds: performance.now() - began, solving };
  } finally {
    run.delete();
  }
}

export class Refused extends Error {
  constructor(problems) {
    super(problems.map((p) => p.message + (p.hint ? ` (${p.hint})` : '')).join('\n'));
    this.problems = problems;
  }
}
