// Schedules: native and WebAssembly agree byte for byte, follow their schema, add up, and their traces are what
// Perfetto reads; the command line as Stream; bad input is one clear line.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { loadEngine, openModel, schedule } from '../../scripts/engine.mjs';

const top = new URL('../..', import.meta.url).pathname;
const folder = join(top, 'examples/models');
const stream = join(top, '../shared/oracles/stream');
const schema = JSON.parse(readFileSync(join(top, 'engine/report/report.schema.json'), 'utf8'));
const validate = new Ajv2020({ strict: false }).addSchema(schema).getSchema('monet.report/1#/$defs/schedule_report');
let engine, scratch;
before(async () => {
  engine = await loadEngine();
  scratch = mkdtempSync(join(tmpdir(), 'monet-'));
});
after(() => rmSync(scratch, { recursive: true }));

const monet = (...args) =>
  spawnSync(join(top, 'build/native/bin/monet'), ['schedule', ...args], { maxBuffer: 1 << 28, encoding: 'utf8' });
const close = (a, b) => Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(b));
const sum = (list) => list.reduce((a, b) => a + b, 0);

const cases = [
  ['lenet5.onnx', { hardware: 'edge_tpu', batch: 4, optimizer: 'adam', micro_batches: 2 }],
  ['lenet5.onnx', { hardware: 'edge_tpu_like', write_back: true, accumulation: 'separate', micro_batches: 3 }],
  ['resnet18_cifar.onnx', { hardware: 'edge_tpu', batch: 4, optimizer: 'adam' }],
  ['mobilenet_v2.onnx', { hardware: 'edge_tpu_like', optimizer: 'momentum' }],
  ['gpt2_small.onnx', { hardware: 'fusemax', optimizer: 'adam' }],
  ['lenet5.onnx', { hardware: 'edge_tpu', batch: 4, partition: { groups: [{ units: [0, 1], tiles: 4, axis: 'batch' }] } }],
];
for (const [name, settings] of cases)
  test(`${name} ${JSON.stringify(settings)}: the same bytes, and they add up`, () => {
    const { session } = openModel(engine, join(folder, name));
    const { bytes, report } = schedule(session, settings);
    const file = join(scratch, 'settings.json');
    writeFileSync(file, JSON.stringify(settings));
    const native = monet(join(folder, name), '--training', '--settings', file, '--json', '-');
    assert.equal(native.status, 0, native.stderr);
    assert.ok(bytes + '\n' === native.stdout);
    assert.ok(validate(report), JSON.stringify(validate.errors));
    assert.ok(schedule(session, report.settings).bytes === bytes, 'a report answers the settings it carries');

    for (const which of ['inference', 'step']) {
      const s = report[which];
      assert.ok(close(sum(Object.values(s.energy)), s.energy_pj));
      assert.ok(close(sum(Object.values(s.phases).map((p) => p.energy_pj)), s.energy_pj));
      assert.ok(close(sum(Object.values(s.phases).map((p) => p.offchip_bytes)), s.offchip.read_bytes + s.offchip.written_bytes) ||
        Math.abs(sum(Object.values(s.phases).map((p) => p.offchip_bytes)) - s.offchip.read_bytes - s.offchip.written_bytes) <= 8);
      for (const unit of s.units) assert.ok(close(sum(Object.values(unit.energy)), unit.energy_pj), unit.name);
      for (const store of s.stores) assert.ok(store.peak_bytes <= store.capacity_bytes, store.name);
      for (const resource of [...s.cores, ...s.links]) assert.ok(resource.utilisation <= 1, resource.name);
      assert.ok(s.latency_cycles >= Math.max(...s.units.map((u) => u.end)));
    }
    // The trace holds every tile where the report says its unit runs.
    const trace = session.trace(JSON.stringify(settings), false, undefined);
    const { traceEvents } = JSON.parse(trace);
    const runs = traceEvents.filter((e) => e.ph === 'X' && e.pid === 1);
    assert.equal(runs.length, report.step.tiles);
    const units = new Map(report.step.units.map((u) => [u.id, u]));
    for (const run of runs) {
      const unit = units.get(run.args.layer);
      assert.ok(run.ts >= unit.start && run.ts + run.dur <= unit.end, unit.name);
    }
    session.delete();
  });

test('the command line schedules inference as Stream does', { skip: !existsSync(stream) && 'no oracles/stream' }, () => {
  for (const extension of ['json', 'yaml']) {
    const args = [
      join(stream, 'custom/mlp2.onnx'),
      '--hardware', join(stream, `stream2506_hw/fusemax.${extension}`),
      '--mapping', join(stream, `custom/fm_map.${extension}`),
    ];
    assert.match(monet(...args).stdout, /in all +100,634 cycles/);
    assert.match(monet(...args, '--layer-by-layer').stdout, /in all +24,704 cycles/);
  }
});

test('bad input is one line that names it', () => {
  const lenet5 = join(folder, 'lenet5.onnx');
  const refused = (...args) => {
    const run = monet(lenet5, ...args);
    assert.equal(run.status, 1, run.stdout);
    return run.stderr.trimEnd().split('\n');
  };
  assert.match(refused()[0], /a schedule needs an accelerator/);
  const partition = (value) => {
    const file = join(scratch, 'partition.json');
    writeFileSync(file, JSON.stringify(value));
    return ['--hardware', 'edge_tpu', '--training', '--partition', file];
  };
  const lines = refused(...partition({ groups: [{ units: ['nothing', 9999], axis: 'up' }, { units: [0, 0] }] }));
  assert.equal(lines.length, 4);
  assert.match(lines.join('\n'), /groups\.0\.units\.0: no layer is called "nothing"/);
  assert.match(refused(...partition({ groups: [{ units: [0, 2] }] }))[0], /wait for each other/);
  // fp32 partial sums do not fit registers of 16 bits; of all layers one line, with what would do.
  const wide = refused('--hardware', 'fusemax', '--training', '--widths', 'tensors');
  assert.equal(wide.length, 1);
  assert.match(wide[0], /layers cannot run; the first of them, .* fits core array in no order of its loops/);
  assert.match(wide[0], /narrower operands/);
  const { session } = openModel(engine, lenet5);
  assert.equal(JSON.parse(session.schedule('{"hardware":"none"}', false, undefined)).errors[0].code, 'no-hardware');
  assert.equal(JSON.parse(session.trace('{"hardware":"none"}', false, undefined)).errors[0].code, 'no-hardware');
  // Cancelled, and asked again.
  const cancelled = session.schedule('{"hardware":"edge_tpu"}', false, () => false);
  assert.equal(JSON.parse(cancelled).errors[0].code, 'cancelled');
  assert.ok(JSON.parse(session.schedule('{"hardware":"edge_tpu"}', false, () => true)).step);
  session.delete();
});
