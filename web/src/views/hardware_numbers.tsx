// Every number of the chosen hardware, to be changed in place. A changed preset becomes the reader's own description,
// which settings, links and files carry whole.
import { useMemo, useState } from "preact/hooks";
import { save } from "../files";
import { bytes } from "../format";
import { numbersOf, withNumber, type HardwareNumber, type JsonObject, type NumberGroup } from "../hardware";
import { change, presets, settings } from "../state";
import { Text } from "./fields";

const readNumber = (text: string): number | undefined => {
  const value = Number(text);
  return text.trim() !== "" && Number.isFinite(value) && value >= 0 ? value : undefined;
};

// The description in use, and the name under which a change of it goes.
function described(): { description: JsonObject; name: string } | null {
  const { hardware = "none" } = settings.value;
  if (typeof hardware === "object") return { description: hardware as JsonObject, name: String(hardware.name ?? "own") };
  const preset = presets.value.find(({ name }) => name === hardware);
  if (!preset) return null;
  return { description: JSON.parse(preset.json) as JsonObject, name: `${preset.name}, changed` };
}

function Numbers({ group, id, set }: { group: NumberGroup; id: string; set(number: HardwareNumber, to: number): void }) {
  return (
    <>
      {group.numbers.map((number) => (
        <Text<number>
          key={number.paths[0]!.join(".")}
          id={`hw-${number.paths[0]!.join("-")}`}
          label={number.unit ? `${number.label} (${number.unit})` : number.label}
          value={number.value}
          show={String}
          read={readNumber}
          hint={number.label === "size" && number.value >= 8192 ? `${bytes(number.value / 8)} per instance` : undefined}
          wrong="A number from 0"
          numeric
          onChange={(to) => set(number, to)}
        />
      ))}
      {group.groups.map((part, at) => (
        <Part key={`${id}.${at}`} group={part} id={`${id}.${at}`} set={set} />
      ))}
    </>
  );
}

// Opened parts alone are drawn: a chip of many different cores has thousands of numbers.
function Part({ group, id, set }: { group: NumberGroup; id: string; set(number: HardwareNumber, to: number): void }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="part" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{group.title}</summary>
      {open && <Numbers group={group} id={id} set={set} />}
    </details>
  );
}

function Editor() {
  const { hardware } = settings.value;
  const now = useMemo(described, [hardware, presets.value]);
  const groups = useMemo(() => now && numbersOf(now.description), [now]);
  if (!now || !groups) return null;
  const set = (number: HardwareNumber, to: number) =>
    change({ hardware: { ...withNumber(now.description, number, to), name: now.name } });
  return (
    <>
      <Numbers group={groups} id="hw" set={set} />
      <button
        type="button"
        class="quiet"
        onClick={() => save(`${now.name}.json`, JSON.stringify(now.description, null, 2) + "\n", "application/json")}
      >
        Save as JSON
      </button>
    </>
  );
}

export function HardwareNumbers() {
  const { hardware = "none" } = settings.value;
  const [open, setOpen] = useState(false);
  if (hardware === "none") return null;
  return (
    <details class="numbers" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Its numbers</summary>
      {open && <Editor />}
    </details>
  );
}
