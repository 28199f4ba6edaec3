// Settings: what they change, what is stale meanwhile, cancelling, selection.
import { inferenceExport, withoutGradient } from "./onnx";
import { expect, example, holdEngine, open, peak, pick, results, saved, settled, test } from "./site";

test("the batch is taken while typing and changes the figures", async ({ page }) => {
  await open(page);
  const before = await peak(page);
  await page.getByLabel("Batch", { exact: true }).fill("16");
  await expect(results(page)).toHaveAttribute("aria-busy", "true"); // greyed until recomputed
  await expect(page.getByTestId("headline")).toContainText("batch 16");
  await settled(page);
  expect(await peak(page)).not.toBe(before);
  await page.getByLabel("Batch", { exact: true }).fill("none");
  await expect(page.getByText("A whole number from 1")).toBeVisible();
  await settled(page);
});

test("capacity decides whether it fits, and by how much not", async ({ page }) => {
  await open(page);
  await page.getByLabel("Memory capacity").fill("100 MB");
  await expect(page.getByTestId("fits")).toContainText("Short by");
  await expect(page.getByTestId("headline")).toContainText("short");
  await page.getByLabel("Memory capacity").fill("64 GB");
  await expect(page.getByTestId("fits")).toContainText("Fits 64 GB");
  await expect(page.getByTestId("largest-batch")).toHaveText(/^[\d,]+$/);
});

test("without hardware memory and operations remain", async ({ page }) => {
  await open(page);
  await page.getByLabel("Hardware", { exact: true }).selectOption("none");
  await expect(page.getByText("Choose a hardware to see the cycles")).toBeVisible();
  await expect(page.getByText("Choose a hardware to see what runs when")).toBeVisible();
  await expect(page.getByRole("columnheader", { name: "Cycles ≥" })).toHaveCount(0);
  await expect(page.getByText("No capacity given")).toBeVisible();
});

test("optimizer, precision per class, update order and patterns reach the report", async ({ page }) => {
  await open(page);
  await page.getByLabel("Optimizer", { exact: true }).selectOption("momentum");
  await page.getByLabel("Precision").selectOption("per_class");
  await page.getByLabel("activations", { exact: true }).selectOption("bf16");
  await page.getByText("fp32 master weights", { exact: true }).click();
  await page.getByText("More settings").click();
  await page.getByLabel("Updates run").selectOption("immediate");
  await page.getByLabel("BatchNorm", { exact: true }).selectOption("frozen");
  await page.getByLabel("Loss", { exact: true }).selectOption("mse");
  await page.getByLabel("Freeze").fill("layer1.*, conv1.weight");
  await expect(results(page)).toHaveAttribute("aria-busy", "true");
  await settled(page);
  const report = JSON.parse((await saved(page, "Report (JSON)")).toString());
  expect(report.settings).toMatchObject({
    optimizer: "momentum",
    precision: { activations: "bf16", parameters: "model", master_weights: true },
    update: "immediate",
    batch_norm: "frozen",
    loss: "mse",
    freeze: ["layer1.*", "conv1.weight"],
  });
});

test("micro-batches, clipping, decay and adapters reach the report", async ({ page }) => {
  await open(page);
  await page.getByLabel("Optimizer", { exact: true }).selectOption("adamw");
  await page.getByText("More settings").click();
  await page.getByLabel("Micro-batches per step").fill("4");
  await page.getByLabel("Weight decay").fill("0.05");
  await page.getByLabel("Clip gradient norm").fill("1");
  await page.getByLabel("LoRA rank").fill("2");
  await expect(results(page)).toHaveAttribute("aria-busy", "true");
  await settled(page);
  await expect(page.locator("section", { hasText: "Model and work" }).last()).toContainText("4 micro-batches a step");
  const report = JSON.parse((await saved(page, "Report (JSON)")).toString());
  expect(report.settings).toMatchObject({
    optimizer: "adamw",
    micro_batches: 4,
    weight_decay: 0.05,
    clip_norm: 1,
    lora_rank: 2,
  });
  expect(report.training.micro_batches).toBe(4);
  expect(report.training.trained_parameters).toBeLessThan(report.model.parameters);
  await page.getByLabel("LoRA rank").fill("x");
  await expect(page.getByText("A whole number from 1")).toBeVisible();
  await page.getByLabel("LoRA rank").fill("");
  await page.getByText("Train biases only").click();
  await settled(page);
  expect(JSON.parse((await saved(page, "Report (JSON)")).toString()).settings).toMatchObject({
    lora_rank: null,
    biases_only: true,
  });
});

test("saved tensors are recomputed on request, and kept again", async ({ page }) => {
  await open(page);
  const bytes = async () => Number((await page.getByTestId("saved").getAttribute("title"))!.replace(/\D/g, ""));
  const before = await bytes();
  const row = page.locator(".saved tbody tr", { has: page.getByRole("button", { name: /^Recompute / }) }).first();
  const tensor = (await row.locator("code").first().textContent())!;
  await row.getByRole("button", { name: `Recompute ${tensor}` }).click();
  await settled(page);
  await expect(page.getByTestId("recomputed")).toContainText(tensor);
  await expect.poll(bytes).toBeLessThan(before);
  await page.getByLabel("Phase", { exact: true }).selectOption("recompute");
  expect(await page.locator(".layers tbody tr").count()).toBeGreaterThan(0);
  expect(JSON.parse((await saved(page, "Report (JSON)")).toString()).settings.recompute).toEqual([tensor]);
  await page.reload(); // the address holds it
  await expect(page.getByTestId("recomputed")).toContainText(tensor);
  await page.getByRole("button", { name: `Keep ${tensor}` }).click();
  await expect(page.getByTestId("recomputed")).toHaveCount(0);
  await settled(page);
  await expect.poll(bytes).toBe(before);
});

test("where an operator has no gradient, it can be stopped there", async ({ page }) => {
  await open(page);
  await pick(page, "pooled.onnx", withoutGradient);
  await expect(page.getByTestId("headline")).toContainText("runs forward");
  await expect(page.getByText("Forward only: why")).toBeVisible();
  await page.getByText("More settings").click();
  await page.getByLabel("At operators without a gradient").selectOption("stop");
  await expect(page.getByTestId("headline")).toContainText("Training pooled");
  await settled(page);
  const report = JSON.parse((await saved(page, "Report (JSON)")).toString());
  expect(report.training.trained_tensors).toBe(1); // what stands behind the operator
  expect(report.warnings.map(({ message }: { message: string }) => message).join()).toContain("MaxRoiPool");
});

test("a setting that the engine refuses leaves the results, greyed, with the reason", async ({ page }) => {
  await open(page);
  await page.getByText("More settings").click();
  await page.getByLabel("Train only").fill("no.such.parameter");
  await expect(page.getByRole("alert")).toContainText("could not be analysed");
  await expect(results(page)).toHaveAttribute("aria-busy", "true");
  await page.getByLabel("Train only").fill("");
  await expect(page.getByRole("alert")).toHaveCount(0);
  await settled(page);
});

test("an engine that does not answer is terminated on cancel, and the next one works", async ({ page }) => {
  await open(page);
  await page.getByLabel("Batch", { exact: true }).fill("4");
  await expect(page.getByTestId("headline")).toContainText("batch 4");
  await settled(page);
  const [busy] = page.workers();
  void busy!
    .evaluate(() => {
      const until = Date.now() + 60_000;
      while (Date.now() < until);
    })
    .catch(() => {}); // it is terminated
  await page.getByLabel("Batch", { exact: true }).fill("5");
  await expect(page.getByText(/no sign of life for \d+ s/)).toBeVisible();
  await page.getByRole("button", { name: "Cancel" }).click();
  await expect(page.getByText("Cancelled.")).toBeVisible();
  await expect(page.getByTestId("headline")).toContainText("batch 4");
  await expect.poll(() => page.workers().some((worker) => worker !== busy)).toBe(true);
  const began = Date.now();
  await page.getByRole("button", { name: "Analyse again" }).click();
  await expect(page.getByTestId("headline")).toContainText("batch 5");
  expect(Date.now() - began).toBeLessThan(10_000);
});

test("an analysis that still waits for the engine to load is cancelled, too", async ({ page, context }) => {
  const send = await holdEngine(context);
  await open(page);
  await page.getByLabel("Batch", { exact: true }).fill("5");
  await expect(page.getByText("loading the engine")).toBeVisible();
  await page.getByRole("button", { name: "Cancel" }).click();
  send();
  await expect.poll(() => page.workers().length).toBe(1);
  await expect(page.getByText("Cancelled.")).toBeVisible();
  await expect(page.getByTestId("headline")).toContainText("batch 8");
  await page.getByRole("button", { name: "Analyse again" }).click();
  await expect(page.getByTestId("headline")).toContainText("batch 5");
});

test("a setting changed while the engine is stuck supersedes the analysis", async ({ page }) => {
  await open(page);
  await page.getByLabel("Batch", { exact: true }).fill("4");
  await expect(page.getByTestId("headline")).toContainText("batch 4");
  void page
    .workers()[0]!
    .evaluate(() => {
      const until = Date.now() + 60_000;
      while (Date.now() < until);
    })
    .catch(() => {});
  await page.getByLabel("Batch", { exact: true }).fill("6");
  await expect(page.getByRole("button", { name: "Cancel" })).toBeVisible();
  await page.getByLabel("Batch", { exact: true }).fill("7");
  await expect(page.getByTestId("headline")).toContainText("batch 7");
  await settled(page);
});

test("one selection in timeline, table, saved tensors and address", async ({ page }) => {
  await open(page);
  await page.getByLabel("Search layers").fill("conv");
  await page.locator(".layers tbody tr").nth(2).click();
  const panel = page.getByTestId("layer-panel");
  await expect(panel).toContainText("Loop nest");
  const name = (await panel.locator("h2").textContent())!;
  await expect(page.locator("line.chosen")).toHaveCount(1);
  await expect(page).toHaveURL(/#m1\./);
  await page.reload();
  await expect(panel.locator("h2")).toHaveText(name);
  await expect(page.locator(".layers tr.selected")).toHaveCount(1);
  await panel.locator(".links button").first().click();
  await expect(panel.locator("h2")).not.toHaveText(name);
  await panel.getByRole("button", { name: "Close the layer" }).click();
  await expect(page).not.toHaveURL(/#/);
  await page.locator(".saved button.link").first().click();
  await expect(panel).toBeVisible();
});

test("the layer table sorts, filters, searches, stays small and saves", async ({ page }) => {
  await open(page);
  await example(page, "resnet50");
  const all = Number((await page.locator("table.layers").getAttribute("aria-rowcount"))!) - 1;
  expect(all).toBeGreaterThan(200);
  expect(await page.locator(".layers tbody tr").count()).toBeLessThan(60);
  await page.getByRole("button", { name: "MACs" }).click();
  const column = (await page.locator(".layers thead th").allTextContents()).findIndex((title) =>
    title.startsWith("MACs"),
  );
  const shown = await page.locator(`.layers tbody tr:not(.spacer) td:nth-child(${column + 1})`).allTextContents();
  const numbers = shown.map((text) => Number(text.replaceAll(",", "")));
  expect(numbers.length).toBeGreaterThan(10);
  expect(numbers).toEqual([...numbers].sort((a, b) => b - a));
  await page.getByLabel("Phase", { exact: true }).selectOption("optimizer");
  await expect(page.locator(".layers tbody tr .phase").first()).toHaveText("update");
  const download = page.waitForEvent("download");
  await page
    .locator("section", { has: page.locator("#layers-title") })
    .getByRole("button", { name: "CSV" })
    .click();
  const stream = await (await download).createReadStream();
  let text = "";
  for await (const chunk of stream) text += chunk;
  const lines = text.trim().split("\r\n");
  expect(lines[0]).toMatch(/^id,name,op,phase,/);
  expect(lines.slice(1).every((line) => line.includes(",optimizer,"))).toBe(true);
  await page.locator(".table-frame").evaluate((frame) => (frame.scrollTop = frame.scrollHeight));
  await expect(page.locator(`.layers tr[aria-rowindex="${lines.length}"]`)).toBeVisible();
});

test("charts are saved as SVG and PNG, the training graph as ONNX", async ({ page }) => {
  await open(page);
  const svg = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save “Memory over the step” as SVG" }).click();
  let text = "";
  for await (const chunk of await (await svg).createReadStream()) text += chunk;
  expect(text).toContain("Memory over the step");
  expect(text).toContain("optimizer state");
  expect(text).not.toContain("class=");
  const png = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save “What fills the peak” as PNG" }).click();
  const chunks: Buffer[] = [];
  for await (const chunk of await (await png).createReadStream()) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  expect(bytes.subarray(1, 4).toString()).toBe("PNG");
  expect(bytes.readUInt32BE(16)).toBeGreaterThan(400); // width in pixels
  expect((await saved(page, "Training graph (ONNX)")).length).toBeGreaterThan(1000);
});

test("an inference export is warned of beside the figure, BatchNorm can be assumed", async ({ page }) => {
  await open(page);
  await pick(page, "folded.onnx", inferenceExport);
  await expect(page.getByTestId("headline")).toContainText("folded");
  await settled(page);
  const before = await page.getByTestId("saved").getAttribute("title");
  const caution = page.getByRole("note", { name: "Inference export" });
  await caution.getByText("Export that keeps them").click();
  await expect(caution).toContainText("TrainingMode.TRAINING");
  await caution.getByRole("button").click();
  await expect(caution).toContainText("assumed");
  await settled(page);
  const number = (text: string | null) => Number(text!.replace(/\D/g, ""));
  expect(number(await page.getByTestId("saved").getAttribute("title"))).toBeGreaterThan(number(before));
});
