// Fused groups: native and WebAssembly agree byte for byte (where several plans have the least, each may find another, and
// they agree on all but that plan), follow their schema; plans keep what they promise when they
// are scheduled by the command line; cancelling keeps the best; bad input is one clear line.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { fuse, loadEngine, loadSolver, openModel } from '../../scripts/engine.mjs';

const top = new URL('../..', import.meta.url).pathname;
const folder = join(top, 'examples/models');
const schema = JSON.parse(readFileSync(join(top, 'engine/report/report.schema.json'), 'utf8'));
const validate = new Ajv2020({ strict: false }).addSchema(schema).getSchema('monet.report/1#/$defs/fusion_report');
let engine, solver, scratch;
before(async () => {
  engine = await loadEngine();
  solver = await loadSolver();
  scratch = mkdtempSync(join(tmpdir(), 'monet-'));
});
after(() => rmSync(scratch, { recursive: true }));

const monet = (command, ...args) =>
  spawnSync(join(top, 'build/native/bin/monet'), [command, ...args], { maxBuffer: 1 << 28, encoding: 'utf8' });
const written = (name, value) => {
  const file = join(scratch, name);
  writeFileSync(file, JSON.stringify(value));
  return file;
};

const several = { one_output: false };
const cases = [
  ['lenet5.onnx', { hardware: 'edge_tpu', batch: 4, optimizer: 'adam' }],
  ['lenet5.onnx', { hardware: 'fusemax', write_back: true, fusion: { ...several, max_group: [0], objective: 'edp' } }],
  ['resnet18_cifar.onnx', { hardware: 'edge_tpu', batch: 4, optimizer: 'adam', write_back: true, fusion: several }],
  ['resnet18_cifar.onnx', { hardware: 'fusemax', batch: 4, write_back: true, fusion: { ...several, objective: 'groups', max_group: [4] } }],
  ['gpt2_small.onnx', { hardware: 'fusemax', optimizer: 'adam', write_back: true, fusion: { ...several, objective: 'energy', max_group: [4] } }],
];
for (const [name, settings] of cases)
  test(`${name} ${JSON.stringify(settings)}: the same bytes, and plans that hold`, () => {
    const { session } = openModel(engine, join(folder, name));
    const { bytes, report, milliseconds, solving } = fuse(session, solver, settings);
    console.log(`# measured ${name}: ${Math.round(milliseconds)} ms, of which solving ${Math.round(solving.reduce((t, s) => t + s.milliseconds, 0))} ms, in WebAssembly`);
    const file = written('settings.json', settings);
    const native = monet('fuse', join(folder, name), '--settings', file, '--json', '-');
    assert.equal(native.status, 0, native.stderr);
    const others = (text) => {
      const all = JSON.parse(text);
      for (const s of all.strategies)
        if (s.name === 'solver') s.estimate = s.schedule = s.plan = s.largest_group = s.solver.nodes = s.solver.solves = null;
      return all;
    };
    if (report.settings.fusion.objective === 'groups') assert.deepEqual(others(bytes), others(native.stdout));
    else assert.ok(bytes + '\n' === native.stdout, 'native and WebAssembly differ');
    assert.ok(validate(report), JSON.stringify(validate.errors));

    const { objective } = report.settings.fusion;
    const estimated = ({ estimate, groups }) =>
      ({ groups, latency: estimate.latency_cycles, energy: estimate.energy_pj, traffic: estimate.offchip_bytes, edp: estimate.latency_cycles * estimate.energy_pj })[objective];
    const solvers = report.strategies.filter((s) => s.name === 'solver');
    assert.deepEqual(solvers.map((s) => s.max_group), report.settings.fusion.max_group);
    for (const strategy of report.strategies) {
      assert.equal(strategy.refused, null);
      // Every unit in one group.
      const fused = strategy.plan.groups.flatMap((g) => g.units);
      assert.equal(new Set(fused).size, fused.length);
      assert.equal(strategy.groups, report.units - fused.length + strategy.plan.groups.length);
      if (strategy.max_group && strategy.name !== 'manual')
        for (const group of strategy.plan.groups) assert.ok(group.units.length <= strategy.max_group);
      if (strategy.name !== 'solver') continue;
      assert.equal(strategy.solver.status, 'optimal');
      assert.ok(strategy.solver.gap < 1e-9);
      // Under the same rules no baseline is estimated better (greedy may have larger groups than the first limit).
      for (const other of report.strategies)
        if (strategy.max_group === 0 || other.largest_group <= strategy.max_group)
          assert.ok(estimated(strategy) <= estimated(other) * (1 + 1e-9), `${strategy.name} ${strategy.max_group} against ${other.name}`);
    }
    // A plan is a partition: scheduled by itself it costs what the table says.
    const best = solvers.at(-1);
    const scheduled = monet('schedule', join(folder, name), '--training', '--settings', file, '--partition', written('plan.json', best.plan), '--json', '-');
    assert.equal(scheduled.status, 0, scheduled.stderr);
    const { step } = JSON.parse(scheduled.stdout);
    assert.equal(step.latency_cycles, best.schedule.latency_cycles);
    assert.equal(step.energy_pj, best.schedule.energy_pj);
    session.delete();
  });

test('the best plan is written as a partition, and a table for people', () => {
  const args = [join(folder, 'lenet5.onnx'), '--hardware', 'edge_tpu', '--write-back', '--several-outputs', '--max-group', '3'];
  const table = monet('fuse', ...args, '--least', 'energy');
  assert.equal(table.status, 0, table.stderr);
  for (const name of ['none', 'manual', 'greedy', 'solver\\(3\\)']) assert.match(table.stdout, new RegExp(`^${name} +\\d+ `, 'm'));
  assert.match(table.stdout, /^solver.* optimal$/m);
  const plan = monet('fuse', ...args, '--plan', '-');
  const { groups } = JSON.parse(plan.stdout);
  assert.ok(groups.length > 0);
  for (const group of groups) assert.ok(group.units.length <= 3);
  // Inference, too: the forward layers alone.
  const inference = monet('fuse', ...args, '--inference', '--json', '-');
  assert.equal(JSON.parse(inference.stdout).graph, 'inference');
});

test('a search that is stopped keeps the best plan so far', () => {
  const { session } = openModel(engine, join(folder, 'resnet18_cifar.onnx'));
  const run = session.fuse(JSON.stringify({ hardware: 'fusemax', write_back: true, fusion: { ...several, max_group: [4, 6] } }), false);
  while (JSON.parse(run.step()).more);
  assert.ok(run.program());
  assert.equal(run.stop(), '');
  run.step();
  const report = JSON.parse(run.report());
  run.delete();
  assert.ok(validate(report), JSON.stringify(validate.errors));
  const [none, , greedy, stopped] = report.strategies;
  assert.equal(stopped.solver.status, 'cancelled');
  assert.ok(stopped.estimate.latency_cycles <= none.estimate.latency_cycles);
  assert.ok(stopped.solver.gap > 0);
  assert.ok(greedy.groups < none.groups);
  session.delete();
});

test('what keeps a group from growing is said', () => {
  const { session } = openModel(engine, join(folder, 'lenet5.onnx'));
  const ask = (units, fusion = {}) => JSON.parse(session.growth(JSON.stringify({ hardware: 'edge_tpu', fusion }), false, JSON.stringify(units)));
  const answer = ask([0, 1]);
  assert.deepEqual(answer.units, [0, 1]);
  assert.ok(answer.neighbours.length > 0);
  for (const { limit, why, name } of answer.neighbours) assert.ok(limit && why && name);
  assert.equal(ask([0, 1], { max_group: [2] }).neighbours[0].limit, 'units');
  assert.equal(ask([0, 99999]).errors[0].code, 'unknown-unit');
  session.delete();
});

test('bad input is one line that names it', () => {
  const lenet5 = join(folder, 'lenet5.onnx');
  const refused = (...args) => {
    const run = monet('fuse', lenet5, ...args);
    assert.equal(run.status, 1, run.stdout);
    return run.stderr.trimEnd().split('\n');
  };
  assert.match(refused()[0], /a schedule needs an accelerator/);
  assert.match(refused('--hardware', 'edge_tpu', '--least', 'money')[0], /setting fusion\.objective is "money".*one of: groups, latency/);
  assert.match(refused('--hardware', 'edge_tpu', '--max-group', '-1')[0], /setting fusion\.max_group must be a list of up to 8 whole numbers/);
  const settings = written('bad.json', { hardware: 'edge_tpu', fusion: { gap: -1, convolutions: 2000, other: 1 } });
  const lines = refused('--settings', settings);
  assert.equal(lines.length, 3);
  for (const field of ['fusion.gap', 'fusion.convolutions', 'fusion.other']) assert.match(lines.join('\n'), new RegExp(`setting ${field}`));
  assert.match(refused('--settings', written('bad.json', { fusion: 3 }))[0], /setting fusion must be an object/);
});

// A search that looks at more sets than it may says so.
test('a search cut short says what is missing', () => {
  const run = monet('fuse', join(folder, 'resnet18_cifar.onnx'), '--hardware', 'fusemax', '--write-back', '--several-outputs', '--max-group', '0', '--convolutions', '40', '--json', join(scratch, 'cut.json'), '--nodes', '1');
  assert.equal(run.status, 0, run.stderr);
  const report = JSON.parse(readFileSync(join(scratch, 'cut.json'), 'utf8'));
  assert.equal(report.candidates.complete, false);
  assert.match(report.warnings[0].message, /search for candidates ended after 200000 sets/);
});
