import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { numbersOf, withCoreFiles, withNumber, type JsonObject, type NumberGroup } from "../../../web/src/hardware";

const file = (name: string) => fileURLToPath(new URL(`../../../examples/hardware/${name}.json`, import.meta.url));
const preset = (name: string) => JSON.parse(readFileSync(file(name), "utf8")) as JsonObject;

const at = (group: NumberGroup, ...titles: string[]): NumberGroup =>
  titles.reduce((now, title) => {
    const next = now.groups.find((part) => part.title === title);
    if (!next) throw new Error(`${title} is not among ${now.groups.map((part) => part.title).join(", ")}`);
    return next;
  }, group);
const number = (group: NumberGroup, label: string) => {
  const found = group.numbers.find((entry) => entry.label === label);
  if (!found) throw new Error(`${label} is not among ${group.numbers.map((entry) => entry.label).join(", ")}`);
  return found;
};

describe("numbers of a description", () => {
  const edge = preset("edge_tpu");
  const numbers = numbersOf(edge);

  it("stand where the description nests them, with their units", () => {
    const sram = at(numbers, "core types", "pe", "memories", "sram 2MB");
    expect(number(sram, "size")).toMatchObject({ value: 16777216, unit: "bit" });
    expect(number(sram, "r cost")).toMatchObject({ value: 416.16, unit: "pJ" });
    expect(number(at(sram, "ports", "r port 1"), "bandwidth max")).toMatchObject({ value: 2048, unit: "bit/cycle" });
    expect(number(at(numbers, "core types", "pe", "operational array"), "size of D1")).toMatchObject({ value: 64 });
  });

  it("are one for equal links, and change in all of them", () => {
    const links = number(at(numbers, "connections"), "56 links, bandwidth");
    expect(links.value).toBe(32);
    const made = withNumber(edge, links, 48).core_connectivity as { type: string; bandwidth: number }[];
    expect(made.filter(({ type }) => type === "link").every(({ bandwidth }) => bandwidth === 48)).toBe(true);
    expect(made.filter(({ type }) => type === "bus").map(({ bandwidth }) => bandwidth)).toEqual([128]);
  });

  it("change one place and leave the description they came from", () => {
    const size = number(at(numbers, "core types", "pe", "memories", "sram 2MB"), "size");
    const made = withNumber(edge, size, 4e6);
    expect(number(at(numbersOf(made), "core types", "pe", "memories", "sram 2MB"), "size").value).toBe(4e6);
    expect(edge).toEqual(preset("edge_tpu"));
    expect(withNumber(made, size, 16777216)).toEqual(edge);
  });

  it("are read from YAML's strings and from unrollings", () => {
    const core: JsonObject = {
      operational_array: { dimensions: ["D1", "D2"], sizes: [32, 32], unit_energy: 0.5 },
      memories: { sram: { size: "16_777_216" } },
      dataflows: { D1: ["K, 32"], D2: ["C, 32", "FX, 3"] },
    };
    const found = numbersOf(core);
    expect(number(at(found, "memories", "sram"), "size").value).toBe(16777216);
    const unrolled = number(at(found, "dataflows", "D2"), "at most of FX");
    expect((withNumber(core, unrolled, 5).dataflows as { D2: string[] }).D2).toEqual(["C, 32", "FX, 5"]);
  });

  it.each(["edge_tpu", "fusemax", "tpu_like_quad_core", "simba", "tpu_v7_ironwood", "meta_prototype"])(
    "of %s have a place each, and setting one to what it is changes nothing",
    (name) => {
      const description = preset(name);
      const places = new Set<string>();
      const visit = (group: NumberGroup) => {
        for (const entry of group.numbers) {
          expect(withNumber(description, entry, entry.value)).toEqual(description);
          for (const path of entry.paths) {
            expect(places.has(path.join("."))).toBe(false);
            places.add(path.join("."));
          }
        }
        group.groups.forEach(visit);
      };
      visit(numbersOf(description));
      expect(places.size).toBeGreaterThan(20);
    },
  );
});

describe("a system and its core files", () => {
  const system: JsonObject = { name: "s", cores: { 0: "./cores/pe.yaml", 1: "./cores/pe.yaml" }, offchip_core: "dram.yaml" };
  const pe = { memories: {} };
  const dram = { memories: { dram: {} } };

  it("are matched by name, whatever the extension", () => {
    expect(withCoreFiles(system, [{ name: "pe.json", json: pe }, { name: "dram.yaml", json: dram }])).toEqual({
      ...system,
      core_types: { "./cores/pe.yaml": pe, "dram.yaml": dram },
    });
  });

  it("stay as they are when nothing came along", () => {
    expect(withCoreFiles(system, [{ name: "other.yaml", json: pe }])).toEqual(system);
    expect(withCoreFiles({ name: "broken", cores: "none" }, [{ name: "pe.yaml", json: pe }])).toEqual({
      name: "broken",
      cores: "none",
    });
  });
});
