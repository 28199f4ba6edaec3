// Links and .monet.json: what one reader shares, another restores.
import { readFileSync } from "node:fs";
import { type Page } from "@playwright/test";
import { longNames } from "./onnx";
import { expect, example, open, peak, pick, model, settled, test, watch } from "./site";

async function link(page: Page, withStructure: boolean, short = false): Promise<string> {
  await page.getByRole("button", { name: "Share" }).click();
  const dialog = page.getByRole("dialog");
  if (withStructure) await dialog.getByLabel("Include the model's structure").check();
  const field = dialog.getByLabel("Link", { exact: true });
  await expect(field).toHaveValue(withStructure ? /#m1\..{1000}/ : /#m1\./);
  if (short) {
    const long = await field.inputValue();
    await dialog.getByLabel("Shorten names").check();
    await expect(field).not.toHaveValue(long);
    await expect(field).toHaveValue(/#m1\./);
  }
  const text = await field.inputValue();
  await page.keyboard.press("Escape");
  await expect(dialog).toHaveCount(0);
  return text;
}

test("a settings link restores example, settings and selection in a fresh context", async ({ page, browser }) => {
  await open(page);
  await example(page, "lenet5");
  await page.getByLabel("Batch", { exact: true }).fill("32");
  await page.getByLabel("Optimizer", { exact: true }).selectOption("momentum");
  await expect(page.getByTestId("headline")).toContainText("batch 32 with momentum");
  await settled(page);
  await page.locator(".layers tbody tr").nth(1).click();
  const before = await peak(page);
  const address = await link(page, false);
  expect(address.length).toBeLessThan(600);

  const context = await browser.newContext();
  const seen = watch(context);
  const other = await context.newPage();
  await other.goto(address);
  await expect(other.getByTestId("headline")).toContainText("lenet5 at batch 32 with momentum");
  await settled(other);
  expect(await peak(other)).toBe(before);
  await expect(other.getByTestId("layer-panel")).toBeVisible();
  await expect(other.getByText("the figures equal the sender's")).toBeVisible();
  expect(seen.errors.concat(seen.foreign)).toEqual([]);
  await context.close();
});

test("a structure link restores a reader's own model in a fresh context, with names and with short ones", async ({
  page,
  browser,
}) => {
  await open(page);
  await pick(page, "private net.onnx", model("resnet18_cifar"));
  await expect(page.getByTestId("headline")).toContainText("private net");
  await page.getByLabel("Batch", { exact: true }).fill("4");
  await expect(page.getByTestId("headline")).toContainText("batch 4");
  await settled(page);
  const before = await peak(page);
  // Without the reader's request no structure goes into the address.
  expect((await link(page, false)).length).toBeLessThan(600);
  const address = await link(page, true);
  expect(address.length).toBeGreaterThan(1000);

  const context = await browser.newContext();
  const other = await context.newPage();
  await other.goto(address);
  await expect(other.getByTestId("headline")).toContainText("private net at batch 4");
  await settled(other);
  expect(await peak(other)).toBe(before);
  await expect(other.getByText("the figures equal the sender's")).toBeVisible();
  // It stays in the address, with the selection.
  await other.locator(".layers tbody tr").first().click();
  await expect(other.getByTestId("layer-panel")).toBeVisible();
  await other.waitForTimeout(500); // longer than the address waits for more changes
  await other.reload();
  await expect(other.getByTestId("headline")).toContainText("private net at batch 4");
  await expect(other.getByTestId("layer-panel")).toBeVisible();
  await context.close();
});

test("a settings link of a reader's own model waits for that file", async ({ page, browser }) => {
  await open(page);
  await pick(page, "mine.onnx", model("lenet5"));
  await expect(page.getByTestId("headline")).toContainText("mine");
  await page.getByLabel("Batch", { exact: true }).fill("12");
  await expect(page.getByTestId("headline")).toContainText("batch 12");
  await settled(page);
  const before = await peak(page);
  const address = await link(page, false);

  const context = await browser.newContext();
  const other = await context.newPage();
  await other.goto(address);
  await expect(other.getByText("the settings for mine.onnx, not the model")).toBeVisible();
  await expect(other.getByTestId("headline")).toContainText("resnet18");
  await pick(other, "mine.onnx", model("lenet5"));
  await expect(other.getByTestId("headline")).toContainText("mine at batch 12");
  await expect(other.getByText("the figures equal the sender's")).toBeVisible();
  expect(await peak(other)).toBe(before);
  await context.close();
});

test("a long link offers short names and a file", async ({ page, browser }) => {
  await open(page);
  await pick(page, "long names.onnx", longNames());
  await expect(page.getByTestId("headline")).toContainText("long names");
  await settled(page);
  const before = await peak(page);
  const long = await link(page, true);
  expect(long.length).toBeGreaterThan(32_000);
  const short = await link(page, true, true);
  expect(short.length).toBeLessThan(long.length / 4);

  await page.getByRole("button", { name: "Share" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Include the model's structure").check();
  await expect(dialog.getByText("This link is long")).toBeVisible();
  const download = page.waitForEvent("download");
  await dialog.getByRole("button", { name: "Save .monet.json" }).click();
  expect((await download).suggestedFilename()).toBe("long names.monet.json");
  const file = readFileSync(await (await download).path());
  await page.keyboard.press("Escape");

  const context = await browser.newContext();
  const other = await context.newPage();
  await other.goto(short);
  await expect(other.getByTestId("headline")).toContainText("long names");
  await settled(other);
  expect(await peak(other)).toBe(before);

  await other.goto("about:blank");
  await open(other);
  await pick(other, "long names.monet.json", file);
  await expect(other.getByTestId("headline")).toContainText("long names");
  await settled(other);
  expect(await peak(other)).toBe(before);
  await context.close();
});

test("a link says what changed when the figures are not the sender's", async ({ page }) => {
  await open(page);
  await page.locator(".layers tbody tr").first().click();
  await expect(page).toHaveURL(/#m1\./);
  const fragment = new URL(page.url()).hash.slice(1);
  const older = await page.evaluate(async (fragment) => {
    const through = async (bytes: Uint8Array<ArrayBuffer>, stream: GenericTransformStream) =>
      new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
    const packed = Uint8Array.from(atob(fragment.slice(3).replaceAll("-", "+").replaceAll("_", "/")), (c) =>
      c.charCodeAt(0),
    );
    const bytes = await through(packed, new DecompressionStream("deflate-raw"));
    const state = JSON.parse(new TextDecoder().decode(bytes.subarray(4)));
    state.figures.peak_bytes -= 1000;
    state.engine = "0.0.1";
    const json = new TextEncoder().encode(JSON.stringify(state));
    const next = new Uint8Array(4 + json.length);
    new DataView(next.buffer).setUint32(0, json.length, true);
    next.set(json, 4);
    const again = await through(next, new CompressionStream("deflate-raw"));
    return (
      "m1." +
      btoa(String.fromCharCode(...again))
        .replaceAll("+", "-")
        .replaceAll("/", "_")
        .replaceAll("=", "")
    );
  }, fragment);
  await page.goto("about:blank");
  await page.goto(`./#${older}`);
  await expect(
    page.getByText(/Figures differ from the sender's \(engine 0\.0\.1 then, .* now\): peak [\d,]+ B → [\d,]+ B\./),
  ).toBeVisible();
});

for (const [what, fragment, text] of [
  ["damaged", "m1.abcdefgh", "This link is damaged"],
  ["foreign", "section-3", "This link is damaged"],
  ["newer", "m9.abc", "made by a newer MONET"],
] as const) {
  test(`a ${what} link gets one line and the example`, async ({ page }) => {
    await open(page, `./#${fragment}`);
    await expect(page.getByRole("status").filter({ hasText: text })).toBeVisible();
  });
}
