// Descriptions of hardware as the reader's files hold them (Stream's and ZigZag's format): what numbers they have, and
// a system put together with the core files that it names.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

// One number of a description. Equal links and buses are one: all their places change together.
export interface HardwareNumber {
  label: string;
  unit: string;
  value: number;
  paths: string[][];
}

// Numbers that stand together, as the description nests them.
export interface NumberGroup {
  title: string;
  numbers: HardwareNumber[];
  groups: NumberGroup[];
}

const units: Record<string, string> = {
  size: "bit",
  sizes: "PEs",
  r_cost: "pJ",
  w_cost: "pJ",
  unit_energy: "pJ",
  multiplier_energy: "pJ",
  unit_energy_cost: "pJ/cycle",
  bandwidth: "bit/cycle",
  bandwidth_min: "bit/cycle",
  bandwidth_max: "bit/cycle",
  r_bw: "bit/cycle",
  w_bw: "bit/cycle",
  min_r_granularity: "bit",
  min_w_granularity: "bit",
  lanes: "operations/cycle",
};

// Numbers that name cores or place them in a drawing.
const notFigures = ["offchip_core_id", "core_memory_sharing", "core_coordinates", "cores"];

export const isObject = (value: Json): value is JsonObject => typeof value === "object" && value !== null && !Array.isArray(value);
const isGroup = (value: Json) => typeof value === "object" && value !== null;
const words = (name: string) => name.replaceAll("_", " ");
const isNumberText = (text: string) => /^\d[\d_]*(\.\d+)?$/.test(text);

// 12, "16_777_216" (YAML's) or the unrolling of "K, 64".
function numberOf(value: Json): number | null {
  if (typeof value === "number") return value;
  if (typeof value !== "string") return null;
  const text = /^[^,]+,\s*(\d+)$/.exec(value)?.[1] ?? value;
  return isNumberText(text) ? Number(text.replaceAll("_", "")) : null;
}

const withValue = (old: Json, value: number): Json =>
  typeof old === "string" && old.includes(",") ? old.replace(/\d+$/, String(value)) : value;

// What an entry is called: ports have names, array dimensions names of their own.
function titleOf(key: string, entry: Json, parent: Json): string {
  if (isObject(entry) && typeof entry.name === "string" && Array.isArray(parent)) return words(entry.name);
  return words(key);
}

// Links and buses that differ only in the cores they join.
function connections(list: Json[], path: string[]): NumberGroup {
  const alike = new Map<string, { entry: JsonObject; at: number[] }>();
  list.forEach((entry, at) => {
    if (!isObject(entry)) return;
    const { cores: _cores, ...rest } = entry;
    const key = JSON.stringify(rest);
    alike.set(key, { entry, at: [...(alike.get(key)?.at ?? []), at] });
  });
  const numbers = [...alike.values()].flatMap(({ entry, at }) =>
    Object.entries(entry).flatMap(([field, value]): HardwareNumber[] => {
      const found = notFigures.includes(field) ? null : numberOf(value);
      if (found === null) return [];
      const type = typeof entry.type === "string" ? entry.type : "link";
      const many = type === "bus" ? "buses" : `${type}s`;
      return [
        {
          label: `${at.length === 1 ? type : `${at.length} ${many}`}, ${words(field)}`,
          unit: units[field] ?? "",
          value: found,
          paths: at.map((index) => [...path, String(index), field]),
        },
      ];
    }),
  );
  return { title: "connections", numbers, groups: [] };
}

function groupOf(title: string, value: Json, path: string[]): NumberGroup {
  const group: NumberGroup = { title, numbers: [], groups: [] };
  const entries: [string, Json][] = Array.isArray(value)
    ? value.map((item, at) => [String(at), item])
    : Object.entries(value as JsonObject);
  for (const [key, entry] of entries) {
    const at = [...path, key];
    if (notFigures.includes(key) && !isObject(entry)) continue;
    if (key === "core_connectivity" && Array.isArray(entry)) {
      group.groups.push(connections(entry, at));
    } else if (key === "sizes" && Array.isArray(entry)) {
      const dimensions = isObject(value) && Array.isArray(value.dimensions) ? value.dimensions : [];
      entry.forEach((size, index) => {
        const found = numberOf(size);
        if (found !== null)
          group.numbers.push({
            label: `size of ${String(dimensions[index] ?? index)}`,
            unit: units.sizes!,
            value: found,
            paths: [[...at, String(index)]],
          });
      });
    } else if (isGroup(entry)) {
      group.groups.push(groupOf(titleOf(key, entry, value), entry, at));
    } else {
      const found = numberOf(entry);
      if (found === null) continue;
      const unrolled = typeof entry === "string" && entry.includes(",") ? entry.split(",")[0]! : null;
      group.numbers.push({
        label: unrolled === null ? words(key) : `at most of ${unrolled}`,
        unit: units[key] ?? "",
        value: found,
        paths: [at],
      });
    }
  }
  group.groups = group.groups.filter(({ numbers, groups }) => numbers.length || groups.length);
  return group;
}

export const numbersOf = (description: JsonObject): NumberGroup => groupOf("", description, []);

function replaced(value: Json, path: string[], number: number): Json {
  if (!path.length) return withValue(value, number);
  const [key, ...rest] = path as [string, ...string[]];
  if (Array.isArray(value)) return value.map((item, at) => (String(at) === key ? replaced(item, rest, number) : item));
  const object = value as JsonObject;
  return { ...object, [key]: replaced(object[key]!, rest, number) };
}

// The description with one of its numbers changed, everywhere it stands.
export const withNumber = (description: JsonObject, { paths }: HardwareNumber, value: number): JsonObject =>
  paths.reduce((made, path) => replaced(made, path, value) as JsonObject, description);

const baseName = (path: string) => path.replace(/^.*[/\\]/, "");
const stemOf = (path: string) => baseName(path).replace(/\.(json|ya?ml)$/i, "");

// A system whose cores are named by path, with those of them that came along: matched by file name, JSON or YAML.
export function withCoreFiles(system: JsonObject, files: { name: string; json: Json }[]): JsonObject {
  const cores = isObject(system.cores ?? null) ? Object.values(system.cores as JsonObject) : [];
  const named = [...cores, system.offchip_core ?? null].filter((core): core is string => typeof core === "string");
  const own = isObject(system.core_types ?? null) ? (system.core_types as JsonObject) : {};
  const found: JsonObject = {};
  for (const path of named) {
    if (path in own) continue;
    const file =
      files.find(({ name }) => name === baseName(path)) ?? files.find(({ name }) => stemOf(name) === stemOf(path));
    if (file) found[path] = file.json;
  }
  return Object.keys(found).length ? { ...system, core_types: { ...own, ...found } } : system;
}

export const isSystem = (json: Json): json is JsonObject => isObject(json) && "cores" in json;
export const isCore = (json: Json): json is JsonObject => isObject(json) && "memories" in json && !("cores" in json);
