// The page's state and what changes it. Views read the signals and call the functions; nothing else holds state that
// matters. What the address holds (example, settings, selection) is written back to it by `keepAddress`.
import { batch, computed, effect, signal } from "@preact/signals";
import first from "../first.json";
import { EngineClient } from "./engine/client";
import type { Model, Reading, Task } from "./engine/messages";
import type { Diagnostic, Layer, MappingEntry, Preset, Report, Settings } from "./engine/report";
import { exactBytes, integer, plural } from "./format";
import { isCore, isObject, isSystem, withCoreFiles, type Json, type JsonObject } from "./hardware";
import {
  address,
  decodeFile,
  decodeLink,
  encodeLink,
  LinkError,
  type Figures,
  type Shared,
  type SharedState,
} from "./link";

export interface Source {
  key: number;
  name: string; // file name
  example: string | null;
  linked: Uint8Array<ArrayBuffer> | null; // the structure that came in the address, which therefore keeps it
  load(): Promise<Blob>;
}

export interface Shown {
  source: Source;
  settings: Settings;
  report: Report;
  text: string; // the report's bytes as the engine wrote them
  reading: Reading | null;
  milliseconds: number | null; // of the analysis; null for the report made at build time
}

export interface Busy {
  what: string;
  stage: string;
  fraction: number;
  silent: number; // seconds without a sign of life, 0 while all is well
}

export interface Failure {
  title: string;
  errors: Diagnostic[];
}

export const examples = [
  { name: "lenet5", title: "LeNet-5" },
  { name: "resnet18_cifar", title: "ResNet-18, 32 × 32" },
  { name: "resnet18", title: "ResNet-18" },
  { name: "resnet50", title: "ResNet-50" },
  { name: "mobilenet_v2", title: "MobileNetV2" },
  { name: "vit_b_16", title: "ViT-B/16" },
  { name: "gpt2_small", title: "GPT-2 small" },
];

export const source = signal<Source | null>(null);
export const settings = signal<Settings>({});
export const shown = signal<Shown | null>(null);
export const selection = signal<number | null>(null); // layer id
export const busy = signal<Busy | null>(null);
export const failure = signal<Failure | null>(null);
export const notice = signal<string | null>(null);
export const presets = signal<Preset[]>([]);
export const stopped = signal(false); // the user cancelled: no recompute until asked

export const report = computed(() => shown.value?.report ?? null);
export const selected = computed<Layer | null>(() =>
  selection.value === null ? null : (report.value?.layers[selection.value] ?? null),
);
const settingsText = computed(() => JSON.stringify(settings.value));
export const stale = computed(
  () =>
    shown.value !== null &&
    (shown.value.source.key !== source.value?.key || JSON.stringify(shown.value.settings) !== settingsText.value),
);

export const engine = new EngineClient();

let keys = 0;
let sender: { engine: string; figures: Figures } | null = null; // of the link that was opened, until compared

const generated = (name: string) => `${import.meta.env.BASE_URL}generated/${name}`;

async function fetched(name: string): Promise<Response> {
  const response = await fetch(generated(name));
  if (!response.ok) throw new Error(`${name} could not be loaded (${response.status})`);
  return response;
}

function exampleSource(name: string): Source {
  let blob: Promise<Blob> | null = null;
  const load = () => {
    blob ??= fetched(`models/${name}.onnx`).then((response) => response.blob());
    blob.catch(() => (blob = null));
    return blob;
  };
  return { key: ++keys, name: `${name}.onnx`, example: name, linked: null, load };
}

const fileSource = (name: string, file: Blob, linked: Source["linked"] = null): Source => ({
  key: ++keys,
  name,
  example: null,
  linked,
  load: () => Promise.resolve(file),
});

const problem = (message: string, hint: string): Diagnostic => ({ code: "page", message, node: "", tensor: "", hint });
const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

// The same layer in another report: ids of backward and optimizer layers shift with what trains.
function sameLayer(old: Layer | undefined, next: Report): number | null {
  if (!old) return null;
  const same = (layer: Layer | undefined) =>
    layer !== undefined && layer.name === old.name && layer.phase === old.phase && layer.role === old.role;
  if (same(next.layers[old.id])) return old.id;
  return next.layers.find(same)?.id ?? null;
}

export function headline(of: Report): Figures {
  return {
    peak_bytes: of.memory.peak,
    saved_bytes: of.memory.activations,
    forward_macs: of.model.forward_macs,
    step_cycles: of.step?.latency_cycles ?? null,
    step_pj: of.step?.energy_pj ?? null,
  };
}

const figureNames: Record<keyof Figures, string> = {
  peak_bytes: "peak",
  saved_bytes: "saved for backward",
  forward_macs: "forward MACs",
  step_cycles: "cycles",
  step_pj: "energy",
};

function figureText(name: keyof Figures, value: number | null): string {
  if (value === null) return "none";
  return name === "step_pj" ? `${value} pJ` : name.endsWith("bytes") ? exactBytes(value) : integer(value);
}

function compareWithSender(report: Report) {
  if (!sender) return;
  const mine = headline(report);
  const names = Object.keys(mine) as (keyof Figures)[];
  const theirs = sender.figures;
  const changed = names.filter((name) => mine[name] !== theirs[name]);
  const versions =
    sender.engine === report.engine.version
      ? `engine ${report.engine.version}`
      : `engine ${sender.engine} then, ${report.engine.version} now`;
  notice.value = changed.length
    ? `Figures differ from the sender's (${versions}): ${changed
        .map((name) => `${figureNames[name]} ${figureText(name, theirs[name])} → ${figureText(name, mine[name])}`)
        .join(", ")}.`
    : `Restored from a link: the figures equal the sender's (${versions}).`;
  sender = null;
}

function show(next: Shown) {
  batch(() => {
    const before = shown.value;
    if (before?.source.key === next.source.key && selection.value !== null) {
      selection.value = sameLayer(before.report.layers[selection.value], next.report);
    } else if (selection.value !== null && !next.report.layers[selection.value]) {
      selection.value = null;
    }
    shown.value = next;
    failure.value = null;
    compareWithSender(next.report);
  });
}

// Runs a task of the engine and shows its progress.
export async function perform(what: string, from: Source, task: Task) {
  stopped.value = false;
  const mine: Busy = { what, stage: engine.version ? "starting" : "loading the engine", fraction: 0, silent: 0 };
  let current = mine;
  const update = (change: Partial<Busy>) => {
    if (busy.value === current) busy.value = current = { ...current, ...change };
  };
  busy.value = current;
  try {
    const model: Model = { key: from.key, name: from.name, file: await from.load() };
    return await engine.run(model, task, {
      progress: (stage, fraction) => update({ stage, fraction, silent: 0 }),
      silent: (seconds) => update({ silent: seconds }),
    });
  } finally {
    if (busy.value === current) busy.value = null;
  }
}

interface Before {
  source: Source | null;
  settings: Settings;
  selection: number | null;
}

// Analyses the model with the settings as they are now. `previous` is what to go back to when the file is no model.
export async function analyze(previous: Before | null = null) {
  const from = source.value;
  if (!from) return;
  const asked = settings.value;
  try {
    const { result, reading } = await perform(`Analysing ${from.name}`, from, { kind: "analyze", settings: asked });
    if (source.value !== from || settings.value !== asked) return; // a later change has its own analysis
    if (result.kind === "report") {
      show({ ...result, source: from, settings: asked, reading });
    } else if (result.kind === "errors") {
      batch(() => {
        const opened = reading !== null;
        failure.value = { title: `${from.name} could not be ${opened ? "analysed" : "opened"}`, errors: result.errors };
        if (!opened && previous?.source) {
          source.value = previous.source;
          settings.value = previous.settings;
          selection.value = previous.selection;
        }
      });
    }
  } catch (error) {
    failure.value = {
      title: `${from.name} could not be analysed`,
      errors: [problem(reasonOf(error), "Try again; if it happens again, reload the page.")],
    };
  }
}

let timer = 0;
const settle = 300; // ms after the last change of a setting

export function change(part: Partial<Settings>) {
  settings.value = { ...settings.value, ...part };
  clearTimeout(timer);
  timer = window.setTimeout(() => {
    if (stale.value) void analyze();
    else failure.value = null; // back to the settings shown
  }, settle);
}

export function cancel() {
  clearTimeout(timer);
  stopped.value = true;
  busy.value = null;
  void engine.cancel();
}

// A new model keeps the machine and the recipe; what named parts of the old model goes.
const carriedOver = ({
  batch: _batch,
  dims: _dims,
  output: _output,
  train: _train,
  freeze: _freeze,
  recompute: _recompute,
  partition: _partition,
  ...rest
}: Settings) => {
  const { assume_batch_norm: _assume, ...kept } = rest;
  return kept;
};

function openSource(next: Source, with_: Settings, at: number | null = null) {
  clearTimeout(timer);
  const previous = { source: source.value, settings: settings.value, selection: selection.value };
  batch(() => {
    source.value = next;
    settings.value = with_;
    selection.value = at;
    failure.value = null;
    notice.value = null;
  });
  void analyze(previous);
}

export const openExample = (name: string) => openSource(exampleSource(name), carriedOver(settings.value));

function openShared({ state, structure }: Shared, inAddress: boolean) {
  if (!structure && !("example" in state.model)) {
    notice.value = `This link holds the settings for ${state.model.name}, not the model: drop that file to restore the analysis.`;
    waiting = state;
    return;
  }
  sender = state.figures ? { engine: state.engine, figures: state.figures } : null;
  const next = structure
    ? fileSource(
        "name" in state.model ? state.model.name : state.model.example,
        new Blob([structure]),
        inAddress ? structure : null,
      )
    : exampleSource("example" in state.model ? state.model.example : "");
  openSource(next, state.settings, state.selection);
}

let waiting: SharedState | null = null; // a settings link whose model the reader has yet to drop

const extension = (name: string) => /\.[^.]*$/.exec(name.toLowerCase())?.[0] ?? "";

const mappingFields = ["spatial_mapping", "memory_operand_links", "temporal_ordering", "core_allocation"];

// A list of which any entry maps something; what else is in it the engine checks.
const isMapping = (json: Json): json is Json[] & MappingEntry[] =>
  Array.isArray(json) &&
  json.some((entry) => typeof entry === "object" && entry !== null && mappingFields.some((field) => field in entry));
const isGroups = (json: Json): json is JsonObject => isObject(json) && "groups" in json;

async function parsed(file: File): Promise<Json> {
  const text = await file.text();
  return (extension(file.name) === ".json" ? JSON.parse(text) : (await import("yaml")).parse(text)) as Json;
}

// Texts opened together: an analysis, or parts of settings. A system takes its core files from among them.
async function openTexts(files: File[]) {
  const hint =
    "Drop an ONNX model, a hardware description (with its core files), a mapping or a partition as JSON or YAML, or a .monet.json file.";
  const errors: Diagnostic[] = [];
  const texts: { name: string; json: Json }[] = [];
  for (const file of files) {
    try {
      const json = await parsed(file);
      const shared = await decodeFile(json);
      if (shared) return openShared(shared, false);
      texts.push({ name: file.name, json });
    } catch (error) {
      errors.push(problem(`${file.name}: ${reasonOf(error)}`, hint));
    }
  }
  const part: Partial<Settings> = {};
  const notes: string[] = [];
  // What is nothing else is taken for a description, too: the engine says what it lacks.
  const described =
    texts.find(({ json }) => isSystem(json)) ??
    texts.find(({ json }) => isCore(json)) ??
    texts.find(({ json }) => isObject(json) && !isGroups(json));
  for (const text of texts) {
    const { name, json } = text;
    if (text === described) {
      const cores = texts.filter((other) => other !== text && isCore(other.json));
      part.hardware = { name: name.replace(/\.[^.]*$/, ""), ...withCoreFiles(json as JsonObject, cores) };
    } else if (isMapping(json)) {
      part.mapping = json;
      if (!described && (settings.value.hardware ?? "none") === "none")
        notes.push(`${name} is kept: choose a hardware to use it.`);
    } else if (isGroups(json)) {
      part.partition = json;
    } else if (isSystem(json) || (isCore(json) && !isSystem(described!.json))) {
      notes.push(`${name} is a second hardware description: ${described!.name} is used.`);
    } else if (!isObject(json)) {
      errors.push(problem(`${name} holds neither a hardware description nor a mapping`, hint));
    }
  }
  if (errors.length) {
    const title = files.length === 1 ? files[0]!.name : plural(errors.length, "file");
    failure.value = { title: `${title} could not be read`, errors };
    return;
  }
  failure.value = null;
  if (notes.length) notice.value = notes.join(" ");
  change(part);
}

// Dropped or picked files: a model (with external data beside it, which is not read), or texts.
export function openFiles(files: FileList | null | undefined) {
  const list = [...(files ?? [])];
  const texts = list.filter(({ name }) => [".json", ".yaml", ".yml"].includes(extension(name)));
  const model = list.find(({ name }) => extension(name) === ".onnx") ?? (texts.length ? undefined : list[0]);
  if (model) openModel(model);
  if (texts.length) void openTexts(texts);
}

function openModel(file: File) {
  const kept = waiting?.model && "name" in waiting.model && waiting.model.name === file.name ? waiting : null;
  waiting = null;
  if (kept?.figures) sender = { engine: kept.engine, figures: kept.figures };
  openSource(fileSource(file.name, file), kept?.settings ?? carriedOver(settings.value), kept?.selection ?? null);
}

export async function structure(shortNames: boolean): Promise<Uint8Array<ArrayBuffer>> {
  const from = source.value;
  if (!from) throw new Error("no model is open");
  const { result } = await perform("Writing the structure", from, { kind: "structure", shortNames });
  if (result.kind === "errors") throw new Error(result.errors.map(({ message }) => message).join(" "));
  if (result.kind !== "bytes") throw new Error("The structure was not written: cancelled.");
  return result.bytes;
}

// Null when it was refused; the failure then says why.
export async function trainingGraph(): Promise<Uint8Array<ArrayBuffer> | null> {
  const from = source.value;
  if (!from) return null;
  const task = { kind: "training-graph", settings: settings.value } as const;
  const title = "The training graph could not be written";
  try {
    const { result } = await perform("Writing the training graph", from, task);
    if (result.kind === "errors") failure.value = { title, errors: result.errors };
    return result.kind === "bytes" ? result.bytes : null;
  } catch (error) {
    failure.value = { title, errors: [problem(reasonOf(error), "Try again.")] };
    return null;
  }
}

export function sharedState(): SharedState {
  const from = source.value;
  return {
    engine: report.value?.engine.version ?? "",
    settings: settings.value,
    selection: selection.value,
    figures: report.value && !stale.value ? headline(report.value) : null,
    model: from?.example ? { example: from.example } : { name: from?.name ?? "" },
  };
}

const isFirst = (state: SharedState) =>
  "example" in state.model &&
  state.model.example === first.example &&
  state.selection === null &&
  JSON.stringify(state.settings) === JSON.stringify(first.settings);

// The address follows the state, without entries in the history. A structure stays in it only when it came in it.
function keepAddress() {
  let timer = 0;
  effect(() => {
    if (!source.value || !shown.value) return;
    const state = sharedState();
    const structure = source.value.linked;
    clearTimeout(timer);
    timer = window.setTimeout(async () => {
      const page = location.pathname + location.search;
      try {
        const next = isFirst(state) ? page : address(page, await encodeLink({ state, structure }));
        history.replaceState(null, "", next);
      } catch (error) {
        if (!(error instanceof LinkError)) throw error; // too long to keep: the address stays as it was
      }
    }, 150);
  });
}

async function openFirst() {
  const from = exampleSource(first.example);
  const text = await (await fetched("first.report.json")).text();
  batch(() => {
    source.value = from;
    settings.value = first.settings;
    show({
      source: from,
      settings: first.settings,
      report: JSON.parse(text) as Report,
      text,
      reading: null,
      milliseconds: null,
    });
  });
}

async function openAddress(): Promise<boolean> {
  try {
    const shared = await decodeLink(location.hash.slice(1));
    if (!shared) return false;
    if (isFirst({ ...shared.state, selection: null }) && !shared.structure) {
      await openFirst();
      selection.value = shared.state.selection;
      if (shared.state.figures) {
        sender = { engine: shared.state.engine, figures: shared.state.figures };
        compareWithSender(report.value!);
      }
    } else {
      openShared(shared, true);
    }
    return source.value !== null;
  } catch (error) {
    notice.value = error instanceof LinkError ? error.message : reasonOf(error);
    return false;
  }
}

export async function boot() {
  void fetched("presets.json")
    .then((response) => response.json())
    .then((list: Preset[]) => (presets.value = list));
  try {
    if (!(await openAddress())) await openFirst();
  } catch (error) {
    notice.value = `The example could not be loaded: ${reasonOf(error)}`;
  }
  keepAddress();
  addEventListener("hashchange", () => void openAddress());
  void engine.start().catch(() => {}); // ahead of the first job, which says what is wrong
}
