// node scripts/analyze.mjs MODEL.onnx [SETTINGS-JSON]: the table of `monet analyze`, made by the WASM engine.
import { analyze, loadEngine, openModel, Refused } from './engine.mjs';

const [model, settings = '{}'] = process.argv.slice(2);
try {
  const engine = await loadEngine();
  const { session } = openModel(engine, model);
  process.stdout.write(engine.table(analyze(session, JSON.parse(settings)).bytes));
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  console.error(error.message);
  process.exit(1);
}
