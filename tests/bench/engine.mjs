// node tests/bench/engine.mjs: the same figures as engine_bench, for the WASM engine in Node; medians of 15 runs.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { analyze, loadEngine, openModel } from '../../scripts/engine.mjs';

const folder = new URL('../../examples/models', import.meta.url).pathname;
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const time = (work) => {
  const start = performance.now();
  work();
  return performance.now() - start;
};

const start = performance.now();
const engine = await loadEngine();
console.log(`loading the module: ${(performance.now() - start).toFixed(0)} ms`);
console.log('model'.padEnd(20), 'open ms'.padStart(10), 'new batch ms'.padStart(14), 'new capacity ms'.padStart(16));
for (const name of readdirSync(folder).filter((n) => n.endsWith('.onnx')).sort()) {
  const opens = [], batches = [], capacities = [];
  for (let i = 0; i < 15; ++i) {
    let model;
    opens.push(time(() => (model = openModel(engine, join(folder, name)))));
    batches.push(time(() => analyze(model.session, { hardware: 'edge_tpu', batch: 1 + 16 * i })));
    capacities.push(time(() => analyze(model.session, { hardware: 'edge_tpu', batch: 1 + 16 * i, capacity_bytes: 1e9 + i })));
    model.session.delete();
  }
  console.log(
    name.padEnd(20),
    median(opens).toFixed(1).padStart(10),
    median(batches).toFixed(1).padStart(14),
    median(capacities).toFixed(1).padStart(16),
  );
}
