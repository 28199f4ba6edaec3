// Fills public/generated before a build: the example models, the hardware presets, and the report that the page opens
// on, made by the very engine that the page loads (first.json says of which example and with which settings).
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { analyze, loadEngine, openModel } from "../scripts/engine.mjs";

const here = (path) => new URL(path, import.meta.url);
const models = here("../examples/models/");
const out = here("public/generated/");
const first = JSON.parse(await readFile(here("first.json"), "utf8"));

await rm(out, { recursive: true, force: true });
await mkdir(new URL("models/", out), { recursive: true });
for (const name of (await readdir(models)).filter((name) => name.endsWith(".onnx"))) {
  await copyFile(new URL(name, models), new URL(`models/${name}`, out));
}

const engine = await loadEngine();
await writeFile(new URL("presets.json", out), engine.presets());
const { session } = openModel(engine, fileURLToPath(new URL(`${first.example}.onnx`, models)));
const { bytes, report } = analyze(session, first.settings);
await writeFile(new URL("first.report.json", out), bytes);
console.log(`generated: ${first.example} analysed by engine ${report.engine.version}, ${bytes.length} bytes of report`);
