// Writes the measured figures as a page: node scripts/results.mjs FILE. Called by results.sh, which builds first.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { analyze, fuse, loadEngine, loadSolver, openModel, schedule } from './engine.mjs';

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

// Fused groups, in WebAssembly.
const solver = await loadSolver();
const fused = (name, settings) => {
  const { session } = openModel(engine, join(folder, name));
  const result = fuse(session, solver, settings);
  session.delete();
  return result;
};
const called = (s) => (s.name === 'solver' ? `solver(${s.max_group || 'any'})` : s.name);
// What the MONET paper reports for ResNet-18 on its Edge TPU: groups, cycles, pJ.
const paper = { none: [217, 2.14e7, 4.02e9], manual: [53, 1.87e7, 3.91e9], 'solver(4)': [49, 1.62e7, 3.79e9], 'solver(6)': [45, 1.58e7, 3.75e9] };
const exponent = (n) => n.toExponential(2).replace('+', '');
const fusionRows = [
  ['resnet18_cifar.onnx', '32 x 32, batch 4', true, false, 'groups'],
  ['resnet18_cifar.onnx', '32 x 32, batch 4', true, false, 'latency'],
  ['resnet18.onnx', '224 x 224, batch 1', true, false, 'groups'],
  ['resnet18.onnx', '224 x 224, batch 1', true, false, 'latency'],
  ['resnet18_cifar.onnx', '32 x 32, batch 4', true, true, 'latency'],
  ['resnet18_cifar.onnx', '32 x 32, batch 4', false, false, 'latency'],
].flatMap(([name, size, write_back, one_output, objective]) => {
  const settings = { hardware: 'edge_tpu', batch: name === 'resnet18.onnx' ? 1 : 4, optimizer: 'adam', write_back, fusion: { one_output, objective } };
  return fused(name, settings).report.strategies.map((s) => {
    const theirs = write_back && !one_output && objective === 'groups' && name !== 'resnet18.onnx' && paper[called(s)];
    return [
      called(s), s.objective ?? '', size, write_back ? 'off the chip' : 'kept if it fits', one_output ? 'one' : 'any',
      s.groups, exponent(s.schedule.latency_cycles), exponent(s.schedule.energy_pj), megabytes(s.schedule.offchip_bytes), exponent(s.estimate.latency_cycles),
      ...(theirs ? [theirs[0], exponent(theirs[1]), exponent(theirs[2])] : ['', '', '']),
    ];
  });
});
const adviceRows = [['resnet18_cifar.onnx', 'edge_tpu'], ['vit_b_16.onnx', 'edge_tpu'], ['vit_b_16.onnx', 'fusemax']].flatMap(([name, hardware]) =>
  [{}, { updates_apart: true }, { activations_apart: true }, { contractions: 1 }].map((rules) => {
    const settings = { hardware, batch: name === 'vit_b_16.onnx' ? 1 : 4, optimizer: 'adam', write_back: true, fusion: { one_output: false, max_group: [6], ...rules } };
    const best = fused(name, settings).report.strategies.at(-1);
    return [name, hardware, Object.keys(rules).join(', ').replaceAll('_', ' ') || 'as above', best.groups, exponent(best.schedule.latency_cycles), exponent(best.schedule.energy_pj), megabytes(best.schedule.offchip_bytes)];
  }),
);
const timeRows = [
  ...[2, 3, 4, 5, 6, 7, 8].map((limit) => ['resnet18_cifar.onnx', 'edge_tpu', 4, 'latency', limit]),
  ...['lenet5.onnx', 'resnet18.onnx', 'resnet50.onnx', 'mobilenet_v2.onnx'].map((name) => [name, 'edge_tpu', 1, 'latency', 6]),
  ...['vit_b_16.onnx', 'gpt2_small.onnx'].flatMap((name) => ['latency', 'energy', 'edp', 'traffic', 'groups'].map((o) => [name, 'edge_tpu', 1, o, 6])),
].map(([name, hardware, batch, objective, limit]) => {
  const settings = { hardware, batch, optimizer: 'adam', write_back: true, fusion: { one_output: false, objective, max_group: [limit] } };
  const { report: r, milliseconds, solving } = fused(name, settings);
  const s = r.strategies.at(-1).solver;
  return [name, objective, limit, r.units, grouped(r.candidates.found), grouped(r.candidates.scheduled), grouped(s.columns), s.solves, s.cuts, (solving.reduce((t, p) => t + p.milliseconds, 0) / 1000).toFixed(2), (milliseconds / 1000).toFixed(2), s.status === 'optimal' && s.gap < 1e-9 ? 'proven' : percent(s.gap)];
});
const estimates = run('build/native/bin/fusion_test', '--gtest_filter=*Estimate*').split('\n').filter((l) => l.includes('MEASURED')).map((l) => `- ${l.replace('[ MEASURED ] ', '')}`).join('\n');

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

## Fused groups
ResNet-18's training step with Adam on \`edge_tpu\`, 8-bit operands, for fewest groups (MONET's) and for least latency; cycles, energy (pJ) and off-chip traffic
are those of the schedule. "Crossing": what passes between groups goes off the chip, as MONET and Stream have it, or stays
if it fits. "Outputs": units of a group that may be read outside it. Up to 3 convolutions and 2 matrix products a group.
Last three columns: what the MONET paper (arXiv 2603.15002) reports.

${table(['strategy', 'least', 'input', 'crossing', 'outputs', 'groups', 'cycles', 'energy', 'off-chip', 'estimated cycles', 'MONET: groups', 'cycles', 'energy'], fusionRows)}

Why they differ from MONET's:
- Units: 220 here against 217 nodes there. A unit of ours is a contraction with its layout moves, one normalisation's
  gradient, one tensor's update; the scalars of Adam's step are one more.
- None: alone, every unit streams its operands from off the chip and its result back, so 64 bit/cycle bound it; the whole is
  within 20% of MONET's cycles. Energy differs throughout by a factor of 4 to 6: off-chip words cost 1,000 pJ as in Stream's
  off-chip core file, and Adam's two states and the parameters cross the edge once each in every plan, which alone is
  about 70 MB, 9 mJ; the paper does not say what its figure holds.
- Manual: practitioners' groups of ours are one forward and one backward group per layer; updates stay alone, which leaves
  twice the paper's groups. The paper does not list its groups.
- Solver: for fewest groups 43 of up to 6 units against MONET's 45, 69 of up to 4 against 49 (no cover of 220 units by groups
  of 4 can have fewer than 55: MONET's limit must count other things), and cycles within 6%. For least latency groups are
  more and cycles fewer. What gains most is an update beside its weight's gradient: the gradient then never leaves the chip.
- One output a group: in a training step backward reads most of what forward makes, so few groups have a single output.
  MONET's 45 groups cannot be had under that rule.
- Kept if it fits: 32 MB on chip hold this step's activations, so fusing has little left to save, and the estimate, which
  sends everything between groups off the chip, ranks plans badly (below).

Two pieces of advice and MONET's released rule (one contraction in all), for the solver with groups of up to 6:

${table(['model', 'hardware', 'rules', 'groups', 'cycles', 'energy', 'off-chip'], adviceRows)}

The estimate of a group (it alone, all that crosses off the chip) against the schedule of the whole step with that group fused
and all other units alone; cycles and energy saved, by rank:

${estimates}

On several cores it errs where groups cut a tensor that they share in different ways, most for ViT-B/16 above (one contraction in
all is estimated worse and scheduled better). On \`edge_tpu\` with tensors kept on the chip it picks wrongly: what a group saves there is mostly what other units then need not
evict, which no sum over groups can know. \`monet fuse\` warns where a baseline is better than the solver's plan when scheduled.

Time of a search in WebAssembly (Node), with costs of all candidates, the baselines and schedules of all plans; gap 0 asked;
any number of outputs, crossing off the chip:

${table(['model', 'least', 'limit', 'units', 'candidates', 'scheduled', 'columns', 'programs', 'cuts', 'solving, s', 'in all, s', 'gap'], timeRows)}

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
Engine module: monet.wasm ${grouped(gz(join(top, 'build/wasm/bin/monet.wasm')))} bytes gzipped, monet.mjs ${grouped(gz(join(top, 'build/wasm/bin/monet.mjs')))}. Solver, loaded when it is first used: solver.wasm
${grouped(gz(join(top, 'build/wasm/bin/solver.wasm')))}, solver.mjs ${grouped(gz(join(top, 'build/wasm/bin/solver.mjs')))}.

${code(site)}

## Engine, native (\`build/native/bin/engine_bench\`)
${code(run('build/native/bin/engine_bench', '--benchmark_min_time=0.3').split('\n').filter((l) => !/^Run on|CPU Caches|^  L\d|Load Average|^\d{4}-/.test(l)).join('\n'))}

## Engine, WASM in Node (\`node tests/bench/engine.mjs\`)
${code(run('node', 'tests/bench/engine.mjs'))}
`;
writeFileSync(process.argv[2], page);
console.log(`wrote ${process.argv[2]}`);
