// The schedule of a step: its figures are the engine's, its events can be seen one by one, its trace and pictures saved,
// its settings shared; a hardware of one's own is edited in place or dropped with its core files.
import AxeBuilder from "@axe-core/playwright";
import { readFileSync } from "node:fs";
import { type Page } from "@playwright/test";
import { analyze, loadEngine, openModel, schedule as scheduled } from "../../scripts/engine.mjs";
import type { ScheduleReport } from "../../web/src/engine/schedule.ts";
import { expect, example, hardware, open, root, settled, test } from "./site";

const chart = (page: Page) => page.getByRole("application", { name: "Schedule by core and link" });
const event = (page: Page) => page.getByTestId("gantt-event");
const headline = (page: Page) => page.getByTestId("schedule-headline");
const span = (page: Page) => page.getByTestId("gantt-span");
const grouped = (value: number) => Math.ceil(value).toLocaleString("en-US");

async function ask(page: Page) {
  await page.getByRole("button", { name: "Schedule this step" }).click();
  await expect(chart(page)).toBeVisible();
  await settled(page);
}

async function opened(page: Page, on = "edge_tpu") {
  await open(page);
  await example(page, "lenet5");
  await hardware(page, on);
  await ask(page);
}

async function downloaded(page: Page, name: string): Promise<Buffer> {
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name, exact: true }).click();
  return readFileSync(await (await download).path());
}
const shown = async (page: Page) => JSON.parse((await downloaded(page, "Schedule (JSON)")).toString()) as ScheduleReport;

test("the figures are those that the engine makes in Node, byte for byte", async ({ page }) => {
  await opened(page);
  const bytes = (await downloaded(page, "Schedule (JSON)")).toString();
  const report = JSON.parse(bytes) as ScheduleReport;
  const { session } = openModel(await loadEngine(), new URL("examples/models/lenet5.onnx", root).pathname);
  expect(bytes).toBe(scheduled(session, report.settings).bytes);
  const rows = headline(page).locator("tbody tr");
  await expect(rows.filter({ hasText: "Cycles" })).toContainText(grouped(report.step!.latency_cycles));
  await expect(rows.filter({ hasText: "Cycles" })).toContainText(grouped(report.inference.latency_cycles));
  for (const phase of ["forward", "backward", "optimizer"] as const) {
    const row = page.getByRole("table", { name: "Each phase of the step" }).getByRole("row", { name: phase });
    await expect(row).toContainText(grouped(report.step!.phases[phase]!.latency_cycles));
  }
  const { step } = report;
  expect(step!.latency_cycles).toBeGreaterThanOrEqual(step!.bounds.latency_cycles);
  await expect(page.getByTestId("waits")).toContainText(/^Of the time of all tiles, waiting included: .*computing \d+%/);
});

test("one event can be chosen with the mouse, zoomed to, and leads to its layer", async ({ page }) => {
  await opened(page);
  const report = await shown(page);
  await expect(span(page)).toHaveText(
    `0 to ${grouped(report.step!.latency_cycles)} of ${grouped(report.step!.latency_cycles)} cycles`,
  );
  const { width } = (await chart(page).boundingBox())!;
  // Somewhere on the first core's row an event lies under the mouse.
  for (let x = 160; x < width && !(await event(page).count()); x += 10) {
    await chart(page).click({ position: { x, y: 9 } });
  }
  await expect(event(page)).toContainText("Start");
  await page.getByRole("button", { name: "Zoom to the event" }).click();
  const seen = (await span(page).textContent())!.match(/[\d,]+/g)!.map((text) => Number(text.replaceAll(",", "")));
  const times = (await event(page).locator("dd").allTextContents()).map((text) => Number(text.replaceAll(",", "")));
  expect(seen[0]).toBeLessThanOrEqual(times[0]!);
  expect(seen[1]).toBeGreaterThanOrEqual(times[1]!);
  expect(seen[1]! - seen[0]!).toBeLessThan(2 * (times[1]! - times[0]!) + 8);
  await event(page).locator("button.link").click();
  const panel = page.getByTestId("layer-panel");
  const name = (await panel.locator("h2").textContent())!.split(" ")[0]!;
  const unit = report.step!.units.find((unit) => unit.name === name && unit.start <= times[0]! && unit.end >= times[1]!)!;
  await expect(panel.getByTestId("layer-schedule")).toContainText(`cycle ${grouped(unit.start)} to ${grouped(unit.end)}`);
});

test("the keyboard walks the events; inference alone leads to the same layers by name", async ({ page }) => {
  await opened(page);
  await page.getByRole("checkbox", { name: "Inference alone" }).check();
  const report = await shown(page);
  await expect(span(page)).toContainText(`of ${grouped(report.inference.latency_cycles)} cycles`);
  await chart(page).focus();
  await page.keyboard.press("ArrowRight");
  const first = await event(page).textContent();
  await page.keyboard.press("ArrowRight");
  await expect(event(page)).not.toHaveText(first!);
  await page.keyboard.press("Enter");
  await expect(span(page)).not.toContainText(/^0 to/);
  const name = (await event(page).locator("strong").textContent())!;
  await event(page).locator("button.link").click();
  await expect(page.getByTestId("layer-panel").locator("h2")).toContainText(name.split(" ")[0]!);
  await expect(page.getByTestId("layer-panel").locator(".phase")).toHaveText("forward");
  await chart(page).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Home");
  await expect(span(page)).toContainText(/^0 to/);
});

test("the trace is what Perfetto reads; the chart is saved as it stands", async ({ page }) => {
  await opened(page);
  const report = await shown(page);
  const { traceEvents } = JSON.parse((await downloaded(page, "Trace for Perfetto")).toString()) as {
    traceEvents: { ph: string; pid: number; tid: number; ts: number; dur: number; name: string }[];
  };
  const runs = traceEvents.filter(({ ph }) => ph === "X");
  expect(Math.max(...runs.map(({ ts, dur }) => ts + dur))).toBe(report.step!.latency_cycles);
  const named = new Set(traceEvents.filter(({ ph }) => ph === "M").map(({ pid, tid }) => `${pid}/${tid}`));
  for (const { pid, tid } of runs) expect(named).toContain(`${pid}/${tid}`);
  const png = await downloaded(page, "Save the chart as PNG");
  expect(png.subarray(1, 4).toString()).toBe("PNG");
  expect(png.length).toBeGreaterThan(5000);
});

test("what leaves the chip by setting costs more traffic, and a link carries the setting", async ({ page, browser }) => {
  await opened(page);
  const before = await shown(page);
  await page.getByLabel("What passes between layers goes off the chip").check();
  await settled(page);
  await expect(page.getByRole("button", { name: "Schedule (JSON)" })).toBeVisible(); // schedules follow every analysis
  const after = await shown(page);
  expect(after.settings).toMatchObject({ write_back: true });
  const traffic = ({ step }: ScheduleReport) => step!.offchip.read_bytes + step!.offchip.written_bytes;
  expect(traffic(after)).toBeGreaterThan(traffic(before));

  const other = await (await browser.newContext()).newPage();
  await other.goto(page.url());
  await expect(other.getByTestId("headline")).toContainText("lenet5");
  await settled(other);
  await ask(other);
  expect(await shown(other)).toEqual(after);
  await other.context().close();
});

test("cores of several kinds take layers side by side", async ({ page }) => {
  await opened(page, "tpu_like_quad_core");
  const { step } = await shown(page);
  const used = step!.cores.filter(({ busy_cycles }) => busy_cycles > 0);
  expect(used.length).toBeGreaterThan(3);
  await page.getByText("Rows as a table").click();
  const rows = page.getByRole("table").filter({ hasText: "Core or link" });
  for (const { name } of used) await expect(rows.getByRole("rowheader", { name }).first()).toBeVisible();
});

test("any number of the hardware can be changed, and the figures follow", async ({ page }) => {
  await opened(page);
  const before = await shown(page);
  await page.getByText("Its numbers", { exact: true }).click();
  await page.getByText("connections", { exact: true }).click();
  const field = page.getByLabel("bus, bandwidth (bit/cycle)");
  await expect(field).toHaveValue("128");
  await field.fill("16");
  await field.press("Enter");
  await expect(page.getByTestId("schedule").getByRole("heading")).toContainText("edge_tpu, changed");
  await settled(page);
  await expect(page.getByRole("button", { name: "Schedule (JSON)" })).toBeVisible();
  const after = await shown(page);
  expect(after.step!.links.find(({ name }) => name === "bus 0")!.bits_per_cycle).toBe(16);
  expect(after.step!.latency_cycles).toBeGreaterThan(before.step!.latency_cycles);
  await field.fill("-3");
  await expect(page.getByText("A number from 0")).toBeVisible();
});

test("a system as Stream's YAML is dropped with its core files; without one of them it is said which", async ({ page }) => {
  await open(page);
  await example(page, "lenet5");
  const { core_types } = JSON.parse(readFileSync(new URL("examples/hardware/fusemax.json", root), "utf8")) as {
    core_types: Record<string, object>;
  };
  const system =
    "name: own_system\ncores:\n  0: inputs/cores/array.yaml\n  1: inputs/cores/vector.yaml\n" +
    "offchip_core: inputs/cores/dram.yaml\ncore_connectivity: []\ncore_memory_sharing:\n  - 0, 1\n" +
    "bandwidth: 512\nunit_energy_cost: 0\n";
  const core = (name: string, as = name) => ({
    name: `${as}.yaml`,
    mimeType: "application/yaml",
    buffer: Buffer.from(JSON.stringify(core_types[name])), // which is YAML, too
  });
  const files = page.getByLabel("Model, hardware, mapping or .monet.json file");
  const whole = { name: "system.yaml", mimeType: "application/yaml", buffer: Buffer.from(system) };
  const dram = Object.keys(core_types).find((name) => !["array", "vector"].includes(name))!;
  await files.setInputFiles([whole, core("array"), core(dram, "dram")]);
  await expect(page.getByRole("alert").first()).toContainText("inputs/cores/vector.yaml");
  await files.setInputFiles([whole, core("array"), core("vector"), core(dram, "dram")]);
  await expect(page.getByRole("alert")).toHaveCount(0);
  await settled(page);
  await ask(page);
  await expect(page.getByTestId("schedule").getByRole("heading")).toContainText("own_system");
  const { step } = await shown(page);
  expect(step!.cores.filter(({ busy_cycles }) => busy_cycles > 0)).toHaveLength(2);
});

test("what cannot run is said in one line with what would let it run", async ({ page }) => {
  await open(page);
  await example(page, "lenet5");
  await hardware(page, "fusemax");
  await page.getByText("Its numbers", { exact: true }).click();
  const { session } = openModel(await loadEngine(), new URL("examples/models/lenet5.onnx", root).pathname);
  const description = JSON.parse(readFileSync(new URL("examples/hardware/fusemax.json", root), "utf8"));
  description.name = "no room";
  for (const type of Object.values(description.core_types) as { type: string; memories: Record<string, { size: number }> }[])
    if (type.type !== "memory")
      for (const [name, memory] of Object.entries(type.memories)) if (name.startsWith("sram")) memory.size = 64;
  let message = "";
  try {
    scheduled(session, { ...analyze(session, { hardware: description }).report.settings });
  } catch (error) {
    message = (error as Error).message;
  }
  expect(message).not.toBe("");
  await page.getByLabel("Model, hardware, mapping or .monet.json file").setInputFiles({
    name: "no_room.json",
    mimeType: "application/json",
    buffer: Buffer.from(JSON.stringify(description)),
  });
  await settled(page);
  await page.getByRole("button", { name: "Schedule this step" }).click();
  await expect(page.getByTestId("schedule").getByRole("alert")).toContainText(message.split("\n")[0]!.split(" (")[0]!);
});

for (const colorScheme of ["light", "dark"] as const) {
  test(`axe finds nothing in a schedule, ${colorScheme}; a narrow screen holds it`, async ({ browser }, info) => {
    const page = await (await browser.newContext({ colorScheme })).newPage();
    await opened(page);
    await page.setViewportSize({ width: 420, height: 900 });
    await chart(page).focus();
    await page.keyboard.press("ArrowRight");
    await event(page).locator("button.link").click();
    const { violations } = await new AxeBuilder({ page }).analyze();
    expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ")}`)).toEqual([]);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(wide).toBeLessThanOrEqual(0);
    await info.attach(colorScheme, {
      body: await page.screenshot({ path: info.outputPath(`schedule-${colorScheme}.png`), fullPage: true }),
      contentType: "image/png",
    });
    await page.context().close();
  });
}
