// Writes the measured figures as a page: node scripts/results.mjs FILE. Called by results.sh, which builds first.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { analyze, loadEngine, openModel } from './engine.mjs';

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
