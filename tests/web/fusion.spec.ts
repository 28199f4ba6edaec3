// Fused groups: the search's figures are the engine's, plans are applied, shown on the graph and saved; a group says why
// it does not grow; a search that is cancelled keeps the best plan so far.
import AxeBuilder from "@axe-core/playwright";
import { readFileSync } from "node:fs";
import { type Page } from "@playwright/test";
import { fuse, loadEngine, loadSolver, openModel } from "../../scripts/engine.mjs";
import type { FusionReport } from "../../web/src/engine/fusion.ts";
import { expect, example, hardware, open, root, settled, test } from "./site";

const table = (page: Page) => page.getByTestId("strategies");
const row = (page: Page, name: string) => table(page).locator("tbody tr").filter({ hasText: name });
const grouped = (value: number) => Math.ceil(value).toLocaleString("en-US");

async function search(page: Page) {
  await settled(page);
  await page.getByRole("button", { name: /^(Find fused groups|Search again)$/ }).click();
  await expect(table(page)).toBeVisible({ timeout: 60_000 });
  await settled(page);
}

async function opened(page: Page, name: string, on: string) {
  await open(page);
  await example(page, name);
  await hardware(page, on);
  await page.getByLabel("What passes between layers goes off the chip").check();
  await page.getByLabel("One layer of a group is read outside it").uncheck();
  await settled(page);
}

async function downloaded(page: Page, name: string): Promise<string> {
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name, exact: true }).click();
  return readFileSync(await (await download).path(), "utf8");
}

test("the figures are those that the engine makes in Node, byte for byte", async ({ page }) => {
  await opened(page, "lenet5", "edge_tpu");
  await search(page);
  const bytes = await downloaded(page, "Search (JSON)");
  const report = JSON.parse(bytes) as FusionReport;
  const { session } = openModel(await loadEngine(), new URL("examples/models/lenet5.onnx", root).pathname);
  expect(bytes).toBe(fuse(session, await loadSolver(), report.settings).bytes);
  expect(report.settings.fusion.one_output).toBe(false);
  for (const [index, strategy] of report.strategies.entries()) {
    const cells = table(page).locator("tbody tr").nth(index).locator("td");
    await expect(cells.nth(0)).toHaveText(String(strategy.groups));
    await expect(cells.nth(1)).toContainText(grouped(strategy.schedule!.latency_cycles));
  }
  await expect(row(page, "solver, up to 6")).toContainText("proven best");
  expect(report.strategies.at(-1)!.schedule!.latency_cycles).toBeLessThan(report.strategies[0]!.schedule!.latency_cycles);
});

test("a plan is applied, scheduled as the table says, saved, and dropped again", async ({ page }) => {
  await opened(page, "lenet5", "edge_tpu");
  await search(page);
  const report = JSON.parse(await downloaded(page, "Search (JSON)")) as FusionReport;
  const solver = report.strategies.at(-1)!;
  const plan = await downloaded(page, "Save the plan “solver, up to 6”");
  expect(JSON.parse(plan)).toEqual(solver.plan);
  await page.getByRole("button", { name: "Apply the plan “solver, up to 6”" }).click();
  await settled(page);
  await expect(row(page, "solver, up to 6").getByRole("button", { name: /Apply/ })).toHaveText("Applied");
  await page.getByRole("button", { name: "Schedule this step" }).click();
  const headline = page.getByTestId("schedule-headline").locator("tbody tr").filter({ hasText: "Cycles" });
  await expect(headline).toContainText(grouped(solver.schedule!.latency_cycles));
  // The link holds it.
  await settled(page);
  await page.waitForTimeout(400);
  await page.reload();
  await settled(page);
  await page.getByRole("button", { name: "Remove the fused groups" }).click();
  await settled(page);
  // The file, dropped, brings it back.
  await page.setInputFiles('input[type="file"]', { name: "plan.json", mimeType: "application/json", buffer: Buffer.from(plan) });
  await expect(page.getByRole("button", { name: "Remove the fused groups" })).toBeVisible();
  await settled(page);
  await page.getByRole("button", { name: "Schedule this step" }).click();
  await expect(headline).toContainText(grouped(solver.schedule!.latency_cycles));
});

test("groups are coloured on the graph, blocks fold, and a group says why it ends", async ({ page }) => {
  await opened(page, "lenet5", "edge_tpu");
  await search(page);
  const report = JSON.parse(await downloaded(page, "Search (JSON)")) as FusionReport;
  const graph = page.locator(".group-graph");
  await row(page, "solver, up to 6").getByRole("button", { name: "solver, up to 6", exact: true }).click();
  const { groups } = report.strategies.at(-1)!.plan;
  for (const [index, { units }] of groups.entries())
    await expect(graph.locator(`.unit rect[data-group="${index}"]`)).toHaveCount(units.length);
  await page.getByRole("button", { name: "Fold all", exact: true }).click();
  await expect(graph.locator(".unit")).toHaveCount(0);
  await graph.locator(".fold").first().press("Enter");
  await expect(graph.locator(".unit")).not.toHaveCount(0);
  await page.getByRole("button", { name: "Unfold all" }).click();
  await graph.locator('.unit rect[data-group="0"]').first().click();
  const group = page.getByTestId("group");
  await expect(group).toContainText(`A group of ${groups[0]!.units.length} layers`);
  await expect(group.locator(".facts div").first()).toBeVisible();
  // Groups of at most two layers end because they have two.
  await page.getByLabel("Layers of a group, at most").fill("2");
  await settled(page);
  await page.waitForTimeout(400);
  await search(page);
  await graph.locator('.unit rect[data-group="0"]').first().click();
  await expect(group).toContainText("it would have more than 2 units");
});

test("a search that is cancelled while it solves keeps the best plan", async ({ page }) => {
  await opened(page, "gpt2_small", "edge_tpu");
  await page.getByLabel("Plans with").selectOption("groups");
  await settled(page);
  await page.waitForTimeout(400);
  await settled(page);
  await page.getByRole("button", { name: "Find fused groups" }).click();
  await expect(page.getByText(/solving for groups of up to 4 units/)).toBeVisible({ timeout: 60_000 });
  await page.getByRole("button", { name: "Cancel" }).click();
  await expect(table(page)).toBeVisible();
  await expect(row(page, "solver, up to 4")).toContainText(/cancelled|proven best/);
  // And the next search runs to its end.
  await page.getByLabel("Plans with").selectOption("latency");
  await page.waitForTimeout(400);
  await search(page);
  await expect(row(page, "solver, up to 6")).toContainText("proven best");
});

test("axe finds nothing, and a narrow screen holds it", async ({ page }) => {
  await opened(page, "lenet5", "edge_tpu");
  await search(page);
  await page.locator(".group-graph .unit").first().click();
  await expect(page.getByTestId("group")).toBeVisible();
  await settled(page);
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    const found = await new AxeBuilder({ page })
      .include('[data-testid="fusion"]')
      .include('section[aria-labelledby="groups-title"]')
      .analyze();
    expect(found.violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
  }
  await page.setViewportSize({ width: 400, height: 800 });
  await page.waitForTimeout(200);
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
});
