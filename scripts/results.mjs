// Writes the measured figures as a page: node scripts/results.mjs FILE. Called by results.sh, which builds first.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { analyze, loadEngine, openModel, schedule } from './engine.mjs';

const top = new URL('..', import.meta.url).pathname;
const run = (command, ...args) => execFileSync(command, args, { cwd: top, maxBuffer: 1 << 26 }).toString();
const firstLine = (text) => text.trim().split('\n')[0];
const grouped = (n) => Math.round(n).toLocaleString('en-US');
const table = (head, rows) =>
  [head, head.map((_, i) => (i ? '---:' : '---')), ...rows].map((r) => `| ${r.join(' | ')} |`).join('\n');
const code = (text) => '```\n' + text.trimEnd() + '\n```';

const engine = await loadEngine();
const folder = join(top, 'examples/models');
const examples = readdirSync(folder).filter((n) => n.endsWith('.onnx')).sort();
const report = (name, settings) => {
  const { session } = openModel(engine, join(folder, name));
  const result = analyze(session, settings).report;
  session.delete();
  return result;
};

const figures = examples.map((name) => {
  const r = report(name, { hardware: 'edge_tpu' });
  const t = r.training;
  return [
    name,
    grouped(r.model.parameters),
    grouped(r.model.forward_macs),
    t ? grouped(t.macs.total) : 'forward only',
    t ? `${(r.memory.activations / 1e6).toFixed(2)} MB` : '',
    `${(r.memory.peak / 1e6).toFixed(2)} MB`,
    grouped(r.inference.latency_cycles),
    r.step ? grouped(r.step.latency_cycles) : '',
  ];
});

// A step on accelerators of one compute core, layer by layer at 8-bit operands.
const percent = (share) => (share === undefined || share === null ? '' : `${(100 * share).toFixed(1)}%`);
const modelled = examples.flatMap((name) =>
  ['edge_tpu_like', 'tpu_like', 'fusemax'].map((hardware) => {
    const { inference, step, bounds } = report(name, { hardware });
    const use = step.utilisation;
    return [
      name,
      hardware,
      grouped(inference.latency_cycles),
      grouped(step.latency_cycles),
      (step.latency_cycles / inference.latency_cycles).toFixed(2),
      grouped(Math.max(bounds.compute_cycles, bounds.traffic_cycles)),
      `${(step.energy_pj / 1e9).toFixed(3)} mJ`,
      ...['forward', 'input_gradient', 'weight_gradient'].map((role) => percent(use[role])),
      bounds.below_roof.length,
    ];
  }),
);
const resnet18 = report('resnet18.onnx', { hardware: 'edge_tpu_like', batch: 1 });
const roles = resnet18.layers
  .filter((layer) => layer.phase === 'forward' && layer.rule === 'mapping')
  .map((forward) => {
    const gradient = (role) => resnet18.layers.find((layer) => layer.origin === forward.id && layer.role === role);
    return [
      forward.name,
      ...[forward, gradient('input_gradient'), gradient('weight_gradient')].flatMap((layer) => [
        layer ? grouped(layer.latency_cycles) : '',
        percent(layer?.utilisation),
      ]),
    ];
  });

const oracleFile = join(top, '../shared/oracles/pytorch_saved_activations.json');
const names = { resnet18: 'resnet18', resnet50: 'resnet50', mobilenet_v2: 'mobilenet_v2', resnet18_cifar_stem_10: 'resnet18_cifar', vit_b_16: 'vit_b_16' };
const saved = !existsSync(oracleFile)
  ? []
  : JSON.parse(readFileSync(oracleFile, 'utf8'))
      .filter((row) => names[row.model])
      .map((row) => {
        const r = report(names[row.model] + '.onnx', { batch: row.input[0] });
        const theirs = row.saved_activation_bytes + row.saved_input_bytes;
        const ours = r.memory.saved.reduce((sum, s) => sum + s.bytes, 0);
        return [row.model, row.input[0], grouped(theirs), r.training ? grouped(ours) : 'forward only', r.training ? (ours / theirs).toFixed(4) : ''];
      });

// Training against inference on a whole accelerator, phase by phase: figures of the schedule.
const scheduled = (name, settings) => {
  const { session } = openModel(engine, join(folder, name));
  const result = schedule(session, settings).report;
  session.delete();
  return result;
};
const megabytes = (n) => `${(n / 1e6).toFixed(2)} MB`;
const millijoules = (pj) => `${(pj / 1e9).toFixed(3)} mJ`;
// The highest point of a footprint between two times: what held at the first, and every change up to the second.
const highest = ({ timeline }, from, to) => {
  const { cycle, ...categories } = timeline;
  return cycle.reduce((most, at, i) => {
    const until = cycle[i + 1] ?? Infinity;
    if (at > to || until <= from) return most;
    return Math.max(most, Object.values(categories).reduce((sum, values) => sum + values[i], 0));
  }, 0);
};
const phaseRows = (name, hardware, label, { latency_cycles, energy_pj, offchip, onchip, offchip_memory, phases, units, bounds }) => {
  const traffic = offchip.read_bytes + offchip.written_bytes;
  const row = (what, cycles, pj, bytes, on, off, least = '') => [name, hardware, what, grouped(cycles), millijoules(pj), megabytes(bytes), megabytes(on), megabytes(off), least];
  const parts = Object.entries(phases).map(([phase, part]) => {
    const mine = units.filter((unit) => unit.phase === phase && unit.start >= 0);
    const [from, to] = [Math.min(...mine.map((unit) => unit.start)), Math.max(...mine.map((unit) => unit.end))];
    return row(`step: ${phase}`, part.latency_cycles, part.energy_pj, part.offchip_bytes, highest(onchip, from, to), highest(offchip_memory, from, to));
  });
  const whole = row(label, latency_cycles, energy_pj, traffic, onchip.peak, offchip_memory.peak, grouped(bounds.latency_cycles));
  return label === 'inference' ? [whole] : [whole, ...parts];
};
const trainingAgainstInference = [
  ['resnet18_cifar.onnx', { hardware: 'edge_tpu', batch: 4, optimizer: 'adam' }],
  ['resnet18.onnx', { hardware: 'edge_tpu', batch: 1, optimizer: 'adam' }],
  ['gpt2_small.onnx', { hardware: 'fusemax', optimizer: 'adam' }],
].flatMap(([name, settings]) => {
  const { inference, step } = scheduled(name, settings);
  const label = `${name}, batch ${settings.batch ?? 1}`;
  return [...phaseRows(label, settings.hardware, 'inference', inference), ...phaseRows(label, settings.hardware, 'step', step)];
});

// Inference against Stream (commit 303f9dc1 of June 2025), run there on the same model, hardware and allocation.
const stream = join(top, '../shared/oracles/stream');
const againstStream = !existsSync(stream)
  ? []
  : [
      ['two-layer MLP, layer by layer', 'fusemax', 'stream2506_ga__fusemax__mlp2_onnx__lbl', 'stream/custom/mlp2.onnx', 'custom/fm_map.json', true],
      ['two-layer MLP, fused', 'fusemax', 'stream2506_ga__fusemax__mlp2_onnx__fused', 'stream/custom/mlp2.onnx', 'custom/fm_map.json', false],
      ['ResNet-18, layer by layer', 'tpu_like_quad_core', 'stream2506_ga__tpu_like_quad_core__resnet18_onnx__lbl', 'zigzag/resnet18.onnx', 'stream2506_hw/mapping_tpu_like_quad_core_ga.json', true],
    ].map(([what, hardware, oracle, model, mapping, byLayer]) => {
      const theirs = JSON.parse(readFileSync(join(stream, `${oracle}.json`), 'utf8'));
      const args = ['schedule', join(stream, '..', model), '--hardware', join(stream, `stream2506_hw/${hardware}.yaml`), '--mapping', join(stream, mapping)];
      const ours = JSON.parse(run('build/native/bin/monet', ...args, ...(byLayer ? ['--layer-by-layer'] : []), '--json', '-')).inference;
      return [what, hardware, grouped(theirs.latency), grouped(ours.latency_cycles), theirs.energy.toFixed(1), ours.energy_pj.toFixed(1), `${(100 * (ours.energy_pj / theirs.energy - 1)).toFixed(3)}%`];
    });

const gz = (path) => gzipSync(readFileSync(path), { level: 9 }).length;
const site = run('node', 'tests/bench/site.mjs');

const page = `# Measured figures

Written by \`scripts/results.sh\`; run it to renew them. ${new Date().toISOString().slice(0, 10)}, commit ${firstLine(run('git', 'rev-parse', '--short', 'HEAD'))}.
Machine: ${cpus()[0].model}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB.
${firstLine(run('c++', '--version'))}; ${firstLine(run('emcc', '--version'))}; Node.js ${process.version}; ${firstLine(run('chromium', '--version', '--no-sandbox'))}.

## Examples: one training step at the file's batch (SGD, the model's own types)
Bounds on \`edge_tpu\`: no mapping or schedule needs fewer cycles.

${table(['model', 'parameters', 'forward MACs', 'MACs of a step', 'saved activations', 'peak', 'inference cycles >=', 'step cycles >='], figures)}

## A training step on one compute core, layer by layer
8-bit operands, every contraction by its best mapping under the hardware's dataflow, everything else by the vector rule.
"Below roof": layers whose modelled cycles lie below their off-chip traffic, as ZigZag's model lets them.

${table(['model', 'hardware', 'inference cycles', 'step cycles', 'ratio', 'step >=', 'energy', 'use forward', 'input gradients', 'weight gradients', 'below roof'], modelled)}

The three roles of ResNet-18's contractions on \`edge_tpu_like\` at batch 1 (K x C x OX x OY unrolled 8 x 8 x 4 x 4 for each):
cycles, and use of the PEs.

${table(['layer', 'forward', 'use', 'input gradient', 'use', 'weight gradient', 'use'], roles)}

## Training against inference on a whole accelerator
Scheduled tile by tile, layer by layer (no fused groups), 8-bit operands, Adam; \`monet schedule MODEL --training --hardware NAME\`.
A phase's cycles are those by which it ends after the one before; on-chip and off-chip are the most held while it runs.

${table(['model', 'hardware', 'what', 'cycles', 'energy', 'off-chip traffic', 'on-chip peak', 'off-chip peak', 'cycles >='], trainingAgainstInference)}

## Inference against Stream
Stream of June 2025 (commit 303f9dc1) on the same model, hardware and allocation of layers to cores; cycles, and energy in pJ.
ResNet-18's energy differs in five layers (by at most 1.1%), where two mappings are equally good by Stream's measure and
another one is kept here; every tile of all three runs on the same core from the same cycle to the same cycle.

${againstStream.length ? table(['model', 'hardware', 'cycles, Stream', 'cycles, MONET', 'energy, Stream', 'energy, MONET', 'difference'], againstStream) : 'The reference figures were not there when this page was written.'}

## Saved for backward against PyTorch 1.13.1 (bytes, fp32, model input included)
PyTorch's figure is the sum of unique storages given to saved-tensor hooks. MobileNetV2: PyTorch keeps ReLU6's input and
output; we read the output alone.

${saved.length ? table(['model', 'batch', 'PyTorch', 'MONET', 'ratio'], saved) : 'The reference figures were not there when this page was written.'}

## Download
Engine module: monet.wasm ${grouped(gz(join(top, 'build/wasm/bin/monet.wasm')))} bytes gzipped, monet.mjs ${grouped(gz(join(top, 'build/wasm/bin/monet.mjs')))}.

${code(site)}

## Engine, native (\`build/native/bin/engine_bench\`)
${code(run('build/native/bin/engine_bench', '--benchmark_min_time=0.3').split('\n').filter((l) => !/^Run on|CPU Caches|^  L\d|Load Average|^\d{4}-/.test(l)).join('\n'))}

## Engine, WASM in Node (\`node tests/bench/engine.mjs\`)
${code(run('node', 'tests/bench/engine.mjs'))}
`;
writeFileSync(process.argv[2], page);
console.log(`wrote ${process.argv[2]}`);
