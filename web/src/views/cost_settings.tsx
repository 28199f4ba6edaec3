// How time and energy are counted on the chosen hardware.
import { useRef } from "preact/hooks";
import { corrections, type Objective } from "../engine/report";
import { change, report, settings } from "../state";
import { options, readCount, Select, Text } from "./fields";
import { FilePicker } from "./file_picker";

const widths = options({ datapath: "8 bit, as ZigZag and Stream", tensors: "As the tensors are stored" });
const objectives = options({ latency: "Time", energy: "Energy", edp: "Energy × time" });
const models = options({ zigzag: "As ZigZag", corrected: "Corrected" });
const custom = options({ custom: "Custom" });
const accessEnergies = options({
  file: "Of the hardware file",
  hp_65nm: "By size, 65 nm, high performance",
  hp_45nm: "By size, 45 nm, high performance",
  hp_32nm: "By size, 32 nm, high performance",
  hp_22nm: "By size, 22 nm, high performance",
  lstp_65nm: "By size, 65 nm, low standby power",
  lstp_45nm: "By size, 45 nm, low standby power",
  lstp_32nm: "By size, 32 nm, low standby power",
  lstp_22nm: "By size, 22 nm, low standby power",
});

const usualLoops = 6; // the engine's default
const mostLoops = 10;

// A link may carry some of the corrections.
function modelOf(corrected: readonly string[]): string {
  if (!corrected.length) return "zigzag";
  return corrections.every((name) => corrected.includes(name)) ? "corrected" : "custom";
}

function MappingFile() {
  const picker = useRef<HTMLInputElement>(null);
  const { mapping } = settings.value;
  const names = Array.isArray(mapping) ? mapping.map((entry) => String(entry?.name ?? "default")) : null;
  return (
    <div class="field" role="group" aria-labelledby="mapping-label">
      <p class="label" id="mapping-label">
        Mapping
      </p>
      <div class="choice">
        {names && (
          <button
            type="button"
            class="chip"
            aria-label={`Remove the mapping of ${names.join(", ")}`}
            title="Remove the mapping file"
            onClick={() => change({ mapping: null })}
          >
            <span class="names">{names.join(", ") || "empty"}</span> <span aria-hidden="true">×</span>
          </button>
        )}
        <button type="button" onClick={() => picker.current?.click()}>
          {names ? "Another file…" : "From a file…"}
        </button>
      </div>
      <FilePicker picker={picker} label="Mapping file" accept=".json,.yaml,.yml" />
      <p class="hint">
        {names
          ? "Layers by these names are mapped as the file says."
          : "The hardware's own dataflow, else the best found."}
      </p>
    </div>
  );
}

export function CostSettings() {
  const { hardware = "none", ...value } = settings.value;
  if (hardware === "none") return null;
  const bounds = report.value?.inference?.bound ?? false;
  const model = modelOf(value.corrections ?? []);
  return (
    <details>
      <summary>How time and energy are counted</summary>
      <Select
        id="widths"
        label="Operand widths"
        value={value.widths ?? "datapath"}
        list={widths}
        onChange={(widths) => change({ widths })}
      />
      {bounds && (
        <p class="hint field">
          This hardware has several compute cores: of a layer alone there are lower bounds. The schedule counts its tiles by
          these rules.
        </p>
      )}
      <Select
        id="objective"
        label="Least"
        value={value.objective ?? "latency"}
        list={objectives}
        onChange={(objective) => change({ objective: objective as Objective })}
      />
      <Text<number | null>
        id="factor-limit"
        label="Temporal loops tried"
        value={value.factor_limit ?? null}
        show={(limit) => (limit === null ? "" : String(limit))}
        read={(text) => {
          const limit = readCount(text);
          return limit && limit > mostLoops ? undefined : limit;
        }}
        placeholder={`${usualLoops}; more take longer`}
        wrong={`A whole number from 1 to ${mostLoops}`}
        numeric
        onChange={(limit) => change({ factor_limit: limit ?? usualLoops })}
      />
      <Select
        id="cost-model"
        label="Cost model"
        value={model}
        list={model === "custom" ? [...models, ...custom] : models}
        onChange={(chosen) => {
          if (chosen !== "custom") change({ corrections: chosen === "corrected" ? [...corrections] : [] });
        }}
      />
      <Select
        id="access-energy"
        label="Access energy"
        value={value.access_energy ?? "file"}
        list={accessEnergies}
        onChange={(access_energy) => change({ access_energy })}
      />
      <MappingFile />
    </details>
  );
}
