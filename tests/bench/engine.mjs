// node tests/bench/engine.mjs: the same figures as engine_bench, for the WASM engine in Node; medians of 15 runs.
// Then mapping the contractions of ResNet-18 on edge_tpu_like, nothing remembered before: what takes ZigZag 3.8.5 76 s.
// And schedules of inference and a step, as the page asks for them: cold (mappings included, nothing remembered), with one
// more pair of units fused (mappings and tile costs remembered), and asked again.
// Over examples/models, and build/models where scripts/results.sh exports larger ones.
import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { analyze, loadEngine, openModel, schedule } from '../../scripts/engine.mjs';

const files = ['../../examples/models', '../../build/models']
  .map((folder) => new URL(folder, import.meta.url).pathname)
  .filter((folder) => existsSync(folder))
  .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
  .filter((path) => path.endsWith('.onnx'))
  .sort((a, b) => (basename(a) < basename(b) ? -1 : 1));
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const time = (work) => {
  const start = performance.now();
  work();
  return performance.now() - start;
};

const start = performance.now();
const engine = await loadEngine();
console.log(`loading the module: ${(performance.now() - start).toFixed(0)} ms`);
console.log('model'.padEnd(20), 'nodes'.padStart(6), 'open ms'.padStart(10), 'graph ms'.padStart(10), 'new batch ms'.padStart(14), 'new capacity ms'.padStart(16));
for (const path of files) {
  let nodes;
  const opens = [], graphs = [], batches = [], capacities = [];
  for (let i = 0; i < 15; ++i) {
    let model;
    opens.push(time(() => (model = openModel(engine, path))));
    graphs.push(time(() => model.session.trainingGraph('{}'))); // and writing it as ONNX
    batches.push(time(() => analyze(model.session, { hardware: 'edge_tpu', batch: 1 + 16 * i })));
    capacities.push(time(() => analyze(model.session, { hardware: 'edge_tpu', batch: 1 + 16 * i, capacity_bytes: 1e9 + i })));
    nodes = model.model.nodes;
    model.session.delete();
  }
  console.log(
    basename(path).padEnd(20),
    String(nodes).padStart(6),
    median(opens).toFixed(1).padStart(10),
    median(graphs).toFixed(1).padStart(10),
    median(batches).toFixed(1).padStart(14),
    median(capacities).toFixed(1).padStart(16),
  );
}

// With the last layer alone to train, the analysis with hardware differs from that without by the search for the forward
// pass and one weight gradient.
const resnet18 = files.find((path) => basename(path) === 'resnet18.onnx');
const searches = [];
for (let i = 0; i < 15; ++i) {
  const { session } = openModel(engine, resnet18);
  const forward = { batch: 1, last_layers: 1 };
  analyze(session, forward);
  const without = time(() => analyze(session, forward));
  let report;
  searches.push(time(() => ({ report } = analyze(session, { ...forward, hardware: 'edge_tpu_like' }))) - without);
  if (report.layers.filter((layer) => layer.rule === 'mapping').length !== 22) throw new Error('not 22 contractions');
  session.delete();
}
const first = searches[0];
console.log(`mapping ResNet-18's 21 contractions and a gradient on edge_tpu_like: ${median(searches).toFixed(1)} ms, ${first.toFixed(1)} ms the first time (code not yet optimised)`);

console.log('schedule, JSON included'.padEnd(34), 'cold ms'.padStart(10), 'pair fused ms'.padStart(15), 'again ms'.padStart(10));
for (const [name, settings] of [
  ['resnet18_cifar.onnx', { hardware: 'edge_tpu', batch: 4, optimizer: 'adam' }],
  ['gpt2_small.onnx', { hardware: 'fusemax', optimizer: 'adam' }],
  ['resnet50.onnx', { hardware: 'tpu_like_quad_core', optimizer: 'adam' }],
]) {
  const cold = [], fused = [], again = [];
  for (let i = 0; i < 7; ++i) {
    const { session } = openModel(engine, files.find((path) => basename(path) === name));
    cold.push(time(() => schedule(session, settings)));
    for (let pair = 0; pair < 5; ++pair) {
      const partition = { groups: [{ units: [2 * pair, 2 * pair + 1], tiles: 4, axis: 'rows' }] };
      fused.push(time(() => schedule(session, { ...settings, partition })));
      again.push(time(() => schedule(session, { ...settings, partition })));
    }
    session.delete();
  }
  console.log(
    `${name} on ${settings.hardware}`.padEnd(34),
    median(cold).toFixed(0).padStart(10),
    median(fused).toFixed(1).padStart(15),
    median(again).toFixed(1).padStart(10),
  );
}
