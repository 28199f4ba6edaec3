// `monet cost`, from the files that people have: ONNX models, workloads, hardware and mappings as ZigZag and Stream write
// them, against ZigZag 3.8.5's results (oracles/zigzag); and what it says of bad input.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';

const top = new URL('../..', import.meta.url).pathname;
const oracles = join(top, '../shared/oracles/zigzag');
const lenet5 = join(top, 'examples/models/lenet5.onnx');
const schema = JSON.parse(readFileSync(join(top, 'engine/report/report.schema.json'), 'utf8'));
const validate = new Ajv2020({ strict: false }).addSchema(schema).getSchema('monet.report/1#/$defs/cost_report');
let scratch;
before(() => (scratch = mkdtempSync(join(tmpdir(), 'monet-'))));
after(() => rmSync(scratch, { recursive: true }));

const monet = (...args) =>
  spawnSync(join(top, 'build/native/bin/monet'), ['cost', ...args], { maxBuffer: 1 << 28, encoding: 'utf8' });

function report(...args) {
  const run = monet(...args, '--json', '-');
  assert.equal(run.status, 0, run.stderr);
  const found = JSON.parse(run.stdout);
  assert.ok(validate(found), JSON.stringify(validate.errors));
  return found;
}

function refused(...args) {
  const run = monet(...args);
  assert.equal(run.status, 1, run.stdout);
  return run.stderr.trimEnd().split('\n');
}

const cases = [
  ['resnet18.onnx', 'edge_tpu_like', 'edge_tpu_like', [], 'edge_tpu_like__resnet18_onnx__latency'],
  ['gemm_layer.yaml', 'gemm_l1', 'gemm_l1', ['--factor-limit', '3'], 'lpf3__gemm_l1__gemm_layer_yaml__latency'],
  ['gemm_gkc.json', 'fusemax_array_dram', 'fusemax_dk', [], 'fusemax_array_dram__gemm_gkc_yaml__latency__map_fusemax_dk'],
];
for (const [workload, hardware, mapping, options, result] of cases)
  for (const extension of ['json', 'yaml'])
    test(`${workload} on ${hardware} (${extension}) as ZigZag`, { skip: !existsSync(oracles) && 'no oracles/zigzag' }, () => {
      const file = (name) => join(oracles, `${name}.${extension}`);
      const expected = JSON.parse(readFileSync(join(oracles, `${result}.json`), 'utf8'));
      const found = report(
        join(oracles, workload), '--hardware', file(`hardware_${hardware}`), '--mapping', file(`mapping_${mapping}`), ...options,
      );
      assert.equal(found.totals.cycles, expected.total_latency_cycles);
      assert.ok(Math.abs(found.totals.energy_pj / expected.total_energy_pJ - 1) < 1e-9, found.totals.energy_pj);
      assert.equal(found.layers.length, expected.layers.length);
    });

test('a training step: gradients have the MACs of their nests, and every layer says how it adds up', () => {
  const found = report(lenet5, '--hardware', 'edge_tpu', '--training', '--correct', 'leave_room_above', '--batch', '2');
  const sums = {};
  for (const layer of found.layers) {
    sums[layer.role] = (sums[layer.role] ?? 0) + layer.macs;
    assert.equal(layer.cycles, layer.temporal_cycles + layer.stall + layer.onload + layer.offload);
    assert.equal(layer.stall, Math.max(0, ...layer.stalls.map((port) => port.cycles)));
    assert.equal(layer.loops.reduce((product, { size }) => product * size, 1), layer.macs);
    const memories = layer.operands.flatMap((operand) => operand.levels.map((level) => level.energy_pj));
    const energy = memories.reduce((sum, pj) => sum + pj, layer.mac_energy_pj);
    assert.ok(Math.abs(energy / layer.energy_pj - 1) < 1e-9);
    for (const operand of layer.operands)
      assert.deepEqual(operand.levels.flatMap((level) => level.temporal), layer.order);
  }
  // conv1's input is data: it has no input gradient.
  const macs = { conv1: 28 * 28 * 6 * 25, conv2: 10 * 10 * 16 * 6 * 25, fc: 400 * 120 + 120 * 84 + 84 * 10 };
  const all = 2 * (macs.conv1 + macs.conv2 + macs.fc);
  assert.deepEqual(sums, { forward: all, weight_gradient: all, input_gradient: all - 2 * macs.conv1 });
  assert.equal(found.totals.cycles, found.layers.reduce((sum, { cycles }) => sum + cycles, 0));
});

test('an objective is what it has least of', () => {
  const totals = (objective) => report(lenet5, '--hardware', 'fusemax', '--objective', objective).totals;
  const [latency, energy] = [totals('latency'), totals('energy')];
  assert.ok(latency.cycles <= energy.cycles && energy.energy_pj <= latency.energy_pj);
});

test('the table lists every layer and, asked, its loop nest', () => {
  const run = monet(lenet5, '--hardware', 'edge_tpu', '--nests');
  assert.equal(run.status, 0, run.stderr);
  for (const text of ['conv1', 'fc3', 'total', 'parallel for', 'for '])
    assert.ok(run.stdout.includes(text), `${text}\n${run.stdout}`);
});

test('what is wrong is said in a line that names it', () => {
  assert.match(refused(lenet5, '--hardware', 'edge_tpu', '--core', '999')[0], /has no core 999 \(cores with PEs: 0, 1/);
  assert.match(refused(lenet5, '--hardware', 'none')[0], /costs need a hardware/);
  const workload = join(scratch, 'workload.json');
  writeFileSync(workload, JSON.stringify([{ id: 0, operator_type: 'Gemm', equation: 'O[d][k]+=I[d][c]*W[c][k]', loop_dims: ['D', 'C', 'K'], loop_sizes: [4, -5, 'x'] }]));
  const lines = refused(workload, '--hardware', 'edge_tpu');
  assert.ok(lines.some((line) => line.includes('0.loop_sizes.1')) && lines.some((line) => line.includes('0.loop_sizes.2')), lines.join('\n'));
  const mapping = join(scratch, 'mapping.yaml');
  writeFileSync(mapping, '- name: default\n  spatial_mapping:\n    D1: ["K"]\n');
  assert.match(refused(lenet5, '--hardware', 'edge_tpu', '--mapping', mapping)[0], /0\.spatial_mapping\.D1\.0/);
});
