// The settings: every change is analysed after a moment.
import { useRef } from "preact/hooks";
import type { Dtype, PrecisionPerClass, Settings } from "../engine/report";
import { bytes, exactBytes, parseBytes, words } from "../format";
import { change, presets, report, settings, source } from "../state";
import { CostSettings } from "./cost_settings";
import { options, readAmount, readCount, Select, Text } from "./fields";
import { FilePicker } from "./file_picker";
import { HardwareNumbers } from "./hardware_numbers";

const optimizers = options({
  sgd: "SGD",
  momentum: "SGD with momentum",
  nesterov: "SGD with Nesterov momentum",
  adam: "Adam",
  adamw: "AdamW",
  adagrad: "Adagrad",
  rmsprop: "RMSprop",
  lion: "Lion",
});
const losses = options({
  auto: "Automatic",
  cross_entropy: "Cross-entropy",
  mse: "Mean squared error",
  sum: "Sum of the output",
});
const dtypes: Dtype[] = ["model", "fp32", "fp16", "bf16"];
const precisions = options({
  model: "As in the model",
  fp32: "fp32",
  fp16: "fp16",
  bf16: "bf16",
  mixed_fp16: "Mixed fp16, fp32 master weights",
  mixed_bf16: "Mixed bf16, fp32 master weights",
  per_class: "Per class…",
});
const updates = options({ end: "After the backward pass", immediate: "As soon as a gradient is complete" });
const withoutGradient = options({
  refuse: "Analyse forward only",
  stop: "Stop the gradient there",
  pass: "Pass the gradient on unchanged",
});
const batchNorms = options({ batch: "Batch statistics", frozen: "Frozen running statistics" });

const readList = (text: string) =>
  text
    .split(/[,\n]/)
    .map((pattern) => pattern.trim())
    .filter(Boolean);

function Hardware() {
  const picker = useRef<HTMLInputElement>(null);
  const { hardware = "none" } = settings.value;
  const own = typeof hardware === "object" ? String(hardware.name ?? "own hardware") : null;
  const described = report.value?.hardware;
  return (
    <div class="field">
      <label for="hardware">Hardware</label>
      <select
        id="hardware"
        value={own === null ? String(hardware) : "own"}
        onChange={(event) => {
          const { value } = event.currentTarget;
          if (value === "file") {
            event.currentTarget.value = own === null ? String(hardware) : "own";
            picker.current?.click();
          } else if (value !== "own") {
            change({ hardware: value });
          }
        }}
      >
        <option value="none">None: memory and operations only</option>
        {presets.value.map(({ name, title }) => (
          <option key={name} value={name}>
            {title.split(":")[0] || name}
          </option>
        ))}
        {own !== null && <option value="own">{own}</option>}
        <option value="file">From a file…</option>
      </select>
      <FilePicker picker={picker} label="Hardware description file" accept=".json,.yaml,.yml" />
      {described && (
        <p class="hint">
          {described.description || "Or drop a Stream or ZigZag description, with its core files, on the page."}
        </p>
      )}
      <HardwareNumbers />
    </div>
  );
}

function Dims() {
  const dims = report.value?.model.dims ?? [];
  const values = settings.value.dims ?? {};
  if (!dims.length) return null;
  return (
    <fieldset class="dims">
      <legend>Open dimensions</legend>
      {dims.map(({ name, tensor, axis, value, defaulted }) => {
        const id = `dim-${name}`;
        return (
          <div class={`chip ${defaulted ? "defaulted" : ""}`} key={name} title={`Axis ${axis} of ${tensor}`}>
            <label for={id}>{name}</label>
            <input
              id={id}
              type="text"
              inputMode="numeric"
              value={String(values[name] ?? value)}
              onChange={(event) => {
                const next = readCount(event.currentTarget.value);
                const { [name]: _, ...others } = values;
                if (next === undefined) event.currentTarget.value = String(values[name] ?? value);
                else change({ dims: next === null ? others : { ...others, [name]: next } });
              }}
            />
            {defaulted && <span class="badge">defaulted to 1</span>}
          </div>
        );
      })}
    </fieldset>
  );
}

function Precision() {
  const { precision = "model" } = settings.value;
  const perClass = typeof precision === "object" ? precision : null;
  const set = (part: Partial<PrecisionPerClass>) => perClass && change({ precision: { ...perClass, ...part } });
  const start: PrecisionPerClass = {
    parameters: "model",
    gradients: "model",
    activations: "model",
    optimizer_state: "model",
    master_weights: false,
  };
  return (
    <>
      <Select
        id="precision"
        label="Precision"
        value={perClass ? "per_class" : String(precision)}
        list={precisions}
        onChange={(value) => change({ precision: value === "per_class" ? start : value })}
      />
      {perClass && (
        <div class="per-class">
          {(["parameters", "gradients", "activations", "optimizer_state"] as const).map((name) => (
            <Select
              key={name}
              id={`precision-${name}`}
              label={words(name)}
              value={perClass[name]}
              list={dtypes.map((value) => ({ value, label: value }))}
              onChange={(value) => set({ [name]: value as Dtype })}
            />
          ))}
          <label class="check">
            <input
              type="checkbox"
              checked={perClass.master_weights}
              onChange={(event) => set({ master_weights: event.currentTarget.checked })}
            />
            fp32 master weights
          </label>
        </div>
      )}
    </>
  );
}

type NumberSetting = "weight_decay" | "clip_norm" | "micro_batches" | "last_layers" | "lora_rank";

// A setting that is a number or, when empty, the engine's default.
const number = (name: NumberSetting, label: string, placeholder: string, whole: boolean) => (
  <Text<number | null>
    id={name.replace("_", "-")}
    label={label}
    value={settings.value[name] ?? null}
    show={(value) => (value === null ? "" : String(value))}
    read={whole ? readCount : readAmount}
    placeholder={placeholder}
    wrong={whole ? "A whole number from 1" : "A number from 0"}
    numeric={whole}
    onChange={(value) => change({ [name]: name === "micro_batches" ? (value ?? 1) : value } as Partial<Settings>)}
  />
);

const patterns = (name: "train" | "freeze", label: string, placeholder: string, hint: string) => (
  <Text<string[]>
    id={name}
    label={label}
    value={settings.value[name] ?? []}
    show={(list) => list.join(", ")}
    read={readList}
    placeholder={placeholder}
    hint={hint}
    wrong=""
    onChange={(list) => change({ [name]: list } as Partial<Settings>)}
  />
);

export function SettingsPanel() {
  const { value } = settings;
  const offchip = report.value?.hardware?.offchip_bytes;
  const first = report.value?.model.inputs[0];
  return (
    <form class="settings" aria-label="Settings" onSubmit={(event) => event.preventDefault()} key={source.value?.key}>
      <Hardware />
      <Text<number | null>
        id="capacity"
        label="Memory capacity"
        value={value.capacity_bytes ?? null}
        show={(size) => (size === null ? "" : parseBytes(bytes(size)) === size ? bytes(size) : exactBytes(size))}
        read={(text) => (text.trim() === "" ? null : (parseBytes(text) ?? undefined))}
        placeholder={offchip ? `the hardware's: ${bytes(offchip)}` : "none; e.g. 8 GB"}
        wrong="A size such as 512 MB, 8 GB or 4 GiB"
        onChange={(capacity_bytes) => change({ capacity_bytes })}
      />
      <Text<number | null>
        id="batch"
        label="Batch"
        value={value.batch ?? null}
        show={(batch) => (batch === null ? "" : String(batch))}
        read={readCount}
        placeholder={first?.shape.length ? `the model's: ${first.shape[0]}` : "the model's"}
        wrong="A whole number from 1"
        numeric
        onChange={(batch) => change({ batch })}
      />
      <Dims />
      <Select
        id="optimizer"
        label="Optimizer"
        value={value.optimizer ?? "sgd"}
        list={optimizers}
        onChange={(optimizer) => change({ optimizer })}
      />
      <Precision />
      <CostSettings />
      <details>
        <summary>More settings</summary>
        <Select
          id="loss"
          label="Loss"
          value={value.loss ?? "auto"}
          list={losses}
          onChange={(loss) => change({ loss })}
        />
        {(report.value?.model.outputs.length ?? 0) > 1 && (
          <Select
            id="output"
            label="Output of the loss"
            value={value.output ?? ""}
            list={[
              { value: "", label: "Automatic" },
              ...report.value!.model.outputs.map(({ name }) => ({ value: name, label: name })),
            ]}
            onChange={(output) => change({ output })}
          />
        )}
        <Select
          id="update"
          label="Updates run"
          value={value.update ?? "end"}
          list={updates}
          onChange={(update) => change({ update })}
        />
        {number("micro_batches", "Micro-batches per step", "1: no accumulation", true)}
        {number("weight_decay", "Weight decay", "the optimizer's own", false)}
        {number("clip_norm", "Clip gradient norm", "no clipping; e.g. 1", false)}
        <Select
          id="batch-norm"
          label="BatchNorm"
          value={value.batch_norm ?? "batch"}
          list={batchNorms}
          onChange={(batch_norm) => change({ batch_norm })}
        />
        <label class="check">
          <input
            type="checkbox"
            checked={value.assume_batch_norm ?? false}
            onChange={(event) => change({ assume_batch_norm: event.currentTarget.checked })}
          />
          Assume BatchNorm after each Conv
        </label>
        {patterns("train", "Train only", "all parameters", "Names with * and ?, separated by commas")}
        {patterns("freeze", "Freeze", "nothing", "e.g. layer1.*, conv1.weight")}
        {number("last_layers", "Train the last layers", "all layers; e.g. 1", true)}
        <label class="check">
          <input
            type="checkbox"
            checked={value.biases_only ?? false}
            onChange={(event) => change({ biases_only: event.currentTarget.checked })}
          />
          Train biases only
        </label>
        {number("lora_rank", "LoRA rank", "no adapters; e.g. 8", true)}
        <Select
          id="unsupported"
          label="At operators without a gradient"
          value={value.unsupported ?? "refuse"}
          list={withoutGradient}
          onChange={(unsupported) => change({ unsupported })}
        />
      </details>
    </form>
  );
}
