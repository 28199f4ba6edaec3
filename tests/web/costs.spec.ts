// Time and energy on an accelerator with one compute core: modelled layer by layer, and what the settings change.
import { type Page } from "@playwright/test";
import { corrections, type Report } from "../../web/src/engine/report.ts";
import { expect, drop, hardware, open, pick, saved, settled, test } from "./site";

const reportOf = async (page: Page) => JSON.parse((await saved(page, "Report (JSON)")).toString()) as Report;
const cost = (page: Page) => page.getByTestId("cost");
const cycles = (page: Page) => cost(page).locator(".bound strong").first().textContent();
const energy = (page: Page) => cost(page).locator(".bound strong").last().textContent();
const costSettings = (page: Page) => page.getByText("How time and energy are counted").click();
const table = (page: Page) => page.locator("table.layers");
const panel = (page: Page) => page.getByTestId("layer-panel");

async function modelled(page: Page) {
  await open(page);
  await hardware(page, "edge_tpu_like");
}

test("one compute core: figures are modelled, bounds stand beside", async ({ page }) => {
  await modelled(page);
  await expect(cost(page).locator(".at-least")).toHaveCount(0);
  await expect(cost(page)).toContainText("Layer by layer on core");
  await expect(cost(page)).toContainText("8-bit operands");
  await expect(cost(page).getByText(/^at least [\d,]+ cycles by any schedule$/)).toBeVisible();
  const report = await reportOf(page);
  expect(report.step!.bound).toBe(false);
  const number = async (text: Promise<string | null>) => Number((await text)!.replaceAll(",", ""));
  expect(await number(cycles(page))).toBe(Math.ceil(report.step!.latency_cycles));
  const uses = page.getByTestId("uses");
  for (const role of ["forward", "input gradient", "weight gradient"]) {
    await expect(uses.locator("div", { hasText: `Use of the PEs, ${role}` }).locator("dd")).toHaveText(/%$/);
  }
});

test("the cost columns are in sight at 1280 pixels, sortable, and in the CSV", async ({ page }) => {
  await modelled(page);
  const frame = (await page.locator(".table-frame").boundingBox())!;
  for (const title of ["Cycles", "Energy", "Use", "Bound by"]) {
    const box = (await table(page).getByRole("columnheader", { name: title, exact: true }).boundingBox())!;
    expect(box.x + box.width, title).toBeLessThanOrEqual(frame.x + frame.width);
  }
  await expect(page.getByRole("columnheader", { name: /≥/ })).toHaveCount(0);
  await page.getByRole("button", { name: "Use", exact: true }).click();
  const titles = await page.locator(".layers thead th").allTextContents();
  const column = titles.findIndex((title) => title.startsWith("Use")) + 1;
  const shown = await page.locator(`.layers tbody tr:not(.spacer) td:nth-child(${column})`).allTextContents();
  const shares = shown.filter((text) => text.endsWith("%")).map((text) => Number(text.replace(/[<%]/g, "")));
  expect(shares.length).toBeGreaterThan(20);
  expect(shares).toEqual([...shares].sort((a, b) => b - a));
  const csv = (await saved(page, "Layers (CSV)")).toString();
  expect(csv.split("\r\n")[0]).toMatch(/,rule,latency_cycles,energy_pj,utilisation,bound_by,bound_cycles,/);
});

test("a layer shows where its cycles and energy go, and its mapping as a loop nest", async ({ page }) => {
  await modelled(page);
  await page.getByLabel("Search layers").fill("conv");
  await page.locator(".layers tbody tr").first().click();
  const report = await reportOf(page);
  const id = Number((await page.locator(".layers tr.selected").getAttribute("id"))!.replace("layer-", ""));
  const layer = report.layers[id]!;
  const mapping = report.mappings[layer.mapping!]!;

  const costs = page.getByTestId("layer-cost");
  await expect(costs).toContainText("computation");
  await expect(costs).toContainText(Math.ceil(layer.latency_cycles!).toLocaleString("en-US"));
  await expect(costs.getByText(/^At least [\d,]+ by any mapping$/)).toBeVisible();
  for (const { level, energy_pj } of layer.levels) if (energy_pj > 0) await expect(costs).toContainText(level);

  const nest = (await costs.locator("pre.nest").textContent())!.split("\n");
  expect(nest).toHaveLength(mapping.order.length + mapping.spatial.length);
  const outermost = mapping.order.at(-1)!;
  expect(nest[0]).toMatch(new RegExp(`^for ${outermost.loop} in ${outermost.size}  +.* in dram`));
  expect(nest.at(-1)).toMatch(/^ *parallel for \w+ in [\d.]+ over D\d$/);

  await costs.getByText("Operands by memory level").click();
  const levels = mapping.operands.flatMap((operand) => operand.levels);
  await expect(costs.locator(".accesses tbody tr")).toHaveCount(levels.length);
});

test("what is no contraction is costed by the vector rule", async ({ page }) => {
  await modelled(page);
  await page.getByLabel("Search layers").fill("maxpool");
  await page.locator(".layers tbody tr").first().click();
  const costs = page.getByTestId("layer-cost");
  await expect(costs).toContainText("Cycles");
  await expect(costs).toContainText("dram");
  await expect(costs.locator("pre.nest")).toHaveCount(0);
});

test("charts: time by phase, energy by level, and the array's use by role, which selects", async ({ page }) => {
  await modelled(page);
  await expect(page.getByRole("heading", { name: "Time by phase" })).toBeVisible();
  await expect(page.getByRole("heading", { name: "Energy by memory level" })).toBeVisible();
  const uses = page.getByRole("listbox", { name: /Use of the PEs/ });
  const report = await reportOf(page);
  const forward = report.layers.filter(({ role, rule, phase }) => phase === "forward" && role && rule === "mapping");
  await expect(uses.getByRole("option")).toHaveCount(forward.length);
  expect(forward.length).toBe(21);
  await uses.getByRole("option").nth(1).locator("[data-role=weight_gradient]").click();
  await expect(panel(page).locator("h2")).toContainText("weight gradient");
  await expect(panel(page).locator("h2")).toContainText(forward[1]!.name);
  await uses.focus();
  await page.keyboard.press("ArrowDown");
  await expect(panel(page).locator("h2")).toContainText(forward[2]!.name);
  await expect(uses.getByRole("option", { selected: true })).toHaveCount(1);

  const svg = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save “Use of the PEs by role” as SVG" }).click();
  let text = "";
  for await (const chunk of await (await svg).createReadStream()) text += chunk;
  expect(text).toContain("weight gradient");
});

test("layers below their own roof are counted and listed, the corrected model is one click away", async ({ page }) => {
  await modelled(page);
  const below = (await reportOf(page)).bounds!.below_roof;
  expect(below.length).toBeGreaterThan(0);
  const line = page.getByTestId("below-roof");
  await expect(line).toContainText("ZigZag's model hides first transfers");
  await line.getByRole("button", { name: new RegExp(`^${below.length} layers? lies? below`) }).click();
  await expect(page.locator("table.layers")).toHaveAttribute("aria-rowcount", String(below.length + 1));
  await page.getByRole("button", { name: "below the roof" }).click();
  const before = await cycles(page);
  await line.getByRole("button", { name: "Choose the corrected model" }).click();
  await settled(page);
  expect(await cycles(page)).not.toBe(before);
  const { settings, bounds } = await reportOf(page);
  expect(settings.corrections).toEqual([...corrections]);
  expect(bounds!.below_roof).toEqual([]);
  await expect(line.getByRole("button", { name: "Choose the corrected model" })).toHaveCount(0);
});

test("widths, objective, cost model and access energy change the figures; a link restores them", async ({
  page,
  browser,
}) => {
  await modelled(page);
  await costSettings(page);
  const seen = { cycles: await cycles(page), energy: await energy(page) };
  const change = async (label: string, value: string, figure: "cycles" | "energy") => {
    const before = await (figure === "cycles" ? cycles : energy)(page);
    await page.getByLabel(label, { exact: true }).selectOption(value);
    await settled(page);
    expect(await (figure === "cycles" ? cycles : energy)(page), label).not.toBe(before);
  };
  await change("Least", "energy", "energy");
  await change("Access energy", "lstp_22nm", "energy");
  await change("Cost model", "corrected", "cycles");
  await change("Operand widths", "tensors", "cycles");
  await expect(cost(page)).toContainText("operands as stored");
  // No register of this core holds an fp32 word: its contractions are counted with their lower bounds.
  await expect(page.locator("#layer-0 td").nth(4)).toHaveText(/^≥ [\d,]+$/);
  await expect(page.locator("#layer-1 td").nth(4)).toHaveText(/^[\d,]+$/);
  await page.getByLabel("Temporal loops tried").fill("11");
  await expect(page.getByText("A whole number from 1 to 10")).toBeVisible();
  await page.getByLabel("Temporal loops tried").fill("4");
  await settled(page);
  expect((await reportOf(page)).settings).toMatchObject({
    objective: "energy",
    access_energy: "lstp_22nm",
    widths: "tensors",
    factor_limit: 4,
    corrections: [...corrections],
  });
  const last = { cycles: await cycles(page), energy: await energy(page) };
  expect(last).not.toEqual(seen);

  await expect(page).toHaveURL(/#m1\./);
  await page.waitForTimeout(500); // longer than the address waits for more changes
  const other = await (await browser.newContext()).newPage();
  await other.goto(page.url());
  await expect(other.getByTestId("headline")).toContainText("resnet18");
  await settled(other);
  expect({ cycles: await cycles(other), energy: await energy(other) }).toEqual(last);
  await costSettings(other);
  await expect(other.getByLabel("Least", { exact: true })).toHaveValue("energy");
  await expect(other.getByLabel("Cost model")).toHaveValue("corrected");
  await expect(other.getByLabel("Temporal loops tried")).toHaveValue("4");
  await other.context().close();
});

const mapping = (unrolling: string) =>
  Buffer.from(`- name: default
  spatial_mapping:
    D1:
      - ${unrolling}
    D2:
      - C, 4
    D3:
      - OX, 4
    D4:
      - OY, 4
  memory_operand_links:
    O: O
    W: I2
    I: I1
`);

test("a mapping file is used and removed; a bad one is refused with its field", async ({ page }) => {
  await modelled(page);
  await costSettings(page);
  const before = await cycles(page);
  await drop(page, "mapping.yaml", mapping("K, 4"));
  await expect.poll(() => cycles(page)).not.toBe(before);
  await settled(page);
  expect((await reportOf(page)).settings.mapping).toHaveLength(1);
  await page.getByLabel("Search layers").fill("conv");
  await page.locator(".layers tbody tr").first().click();
  await expect(panel(page).locator("pre.nest")).toContainText("parallel for K in 4 over D1");
  await page.waitForTimeout(500); // longer than the address waits for more changes
  await page.reload();
  await expect(page.getByTestId("headline")).toContainText("resnet18");
  await settled(page);
  await expect(panel(page).locator("pre.nest")).toContainText("parallel for K in 4 over D1");
  await costSettings(page);
  await page.getByRole("button", { name: "Remove the mapping of default" }).click();
  await settled(page);
  expect(await cycles(page)).toBe(before);

  await pick(page, "bad.yml", mapping("K"));
  await expect(page.getByRole("alert")).toContainText("0.spatial_mapping.D1.0");
  await page.getByRole("button", { name: "Remove the mapping of default" }).click();
  await expect(page.getByRole("alert")).toHaveCount(0);
  await settled(page);
  expect(await cycles(page)).toBe(before);
});

test("a mapping that comes before its hardware is kept for it", async ({ page }) => {
  await open(page);
  await hardware(page, "none");
  await drop(page, "mapping.yaml", mapping("K, 4"));
  await expect(page.getByText("mapping.yaml is kept: choose a hardware")).toBeVisible();
  await hardware(page, "edge_tpu_like");
  expect((await reportOf(page)).mappings[0]!.spatial[0]).toEqual({ loop: "K", dimension: "D1", units: 4 });
});

test("several compute cores: bounds, and said so", async ({ page }) => {
  await open(page);
  await expect(cost(page)).toContainText("at least");
  await expect(cost(page)).toContainText("no schedule does better");
  await expect(page.getByRole("columnheader", { name: "Cycles ≥" })).toBeVisible();
  await expect(table(page).getByRole("columnheader", { name: "Use", exact: true })).toHaveCount(0);
  await expect(page.getByRole("heading", { name: "Where the time bound comes from" })).toBeVisible();
  await costSettings(page);
  await expect(page.getByText("several compute cores")).toBeVisible();
  await page.getByLabel("Hardware", { exact: true }).selectOption("none");
  await expect(page.getByText("How time and energy are counted")).toHaveCount(0);
});

for (const name of ["tpu_like", "fusemax"]) {
  test(`preset ${name} is modelled`, async ({ page }) => {
    await open(page);
    await hardware(page, name);
    await expect(cost(page)).toContainText("Layer by layer on core");
    await expect(page.getByRole("listbox", { name: /Use of the PEs/ })).toBeVisible();
  });
}
