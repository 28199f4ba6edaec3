// What every browser test stands on: a context that is watched, workers included, and checked at the end. No console
// error, no uncaught error, no breach of the policy, no request to another origin.
import { test as base, expect, type BrowserContext, type Page } from "@playwright/test";
import { readFileSync } from "node:fs";
import { bare, headed } from "./addresses";

export { expect };

export const root = new URL("../../", import.meta.url);
export const model = (name: string) => readFileSync(new URL(`examples/models/${name}.onnx`, root));

export interface Watch {
  errors: string[];
  foreign: string[];
  requests: number;
}

export function watch(context: BrowserContext): Watch {
  const seen: Watch = { errors: [], foreign: [], requests: 0 };
  context.on("request", (request) => {
    const url = request.url();
    seen.requests++;
    if (![headed, bare].some((own) => url.startsWith(own)) && !/^(blob|data):/.test(url)) seen.foreign.push(url);
  });
  // Page and worker consoles; Chromium reports breaches of the policy there as errors.
  context.on("console", (message) => {
    if (message.type() === "error" || /Content.Security.Policy/i.test(message.text())) seen.errors.push(message.text());
  });
  context.on("weberror", (error) => seen.errors.push(String(error.error())));
  return seen;
}

export const test = base.extend<{ seen: Watch }>({
  seen: [
    async ({ context }, use) => {
      const seen = watch(context);
      await use(seen);
      expect(seen.errors, "console errors").toEqual([]);
      expect(seen.foreign, "requests to other origins").toEqual([]);
    },
    { auto: true },
  ],
});

// The page with the build-time report on it.
export async function open(page: Page, address = "./") {
  await page.goto(address);
  await expect(page.getByTestId("headline")).toContainText("resnet18");
}

export const results = (page: Page) => page.getByTestId("results");
export const peak = (page: Page) => page.getByTestId("peak").getAttribute("title");

// The results are those of the settings shown, and nothing runs.
export async function settled(page: Page) {
  await expect(page.getByRole("button", { name: "Cancel" })).toHaveCount(0);
  await expect(results(page)).toHaveAttribute("aria-busy", "false");
}

export async function example(page: Page, name: string) {
  await page.getByLabel("Examples").selectOption(name);
  await expect(page.getByTestId("headline")).toContainText(name);
  await settled(page);
}

export async function hardware(page: Page, name: string) {
  await page.getByLabel("Hardware", { exact: true }).selectOption(name);
  await settled(page);
}

export const pick = (page: Page, name: string, bytes: Buffer) =>
  page
    .getByLabel("Model, hardware, mapping or .monet.json file")
    .setInputFiles({ name, mimeType: "application/octet-stream", buffer: bytes });

// Drops a file on the page as a user's drag does.
export async function drop(page: Page, name: string, bytes: Buffer) {
  const transfer = await page.evaluateHandle(
    ({ name, base64 }) => {
      const transfer = new DataTransfer();
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      transfer.items.add(new File([bytes], name));
      return transfer;
    },
    { name, base64: bytes.toString("base64") },
  );
  await page.dispatchEvent("main", "dragover", { dataTransfer: transfer });
  await expect(page.locator(".drop-zone")).toBeVisible();
  await page.dispatchEvent("main", "drop", { dataTransfer: transfer });
}

export async function saved(page: Page, item: string): Promise<Buffer> {
  await page.locator(".menu > summary").click();
  const download = page.waitForEvent("download");
  await page.locator(".menu").getByRole("button", { name: item }).click();
  return readFileSync(await (await download).path());
}

// Keeps the engine's module back until the function that it returns is called.
export async function holdEngine(context: BrowserContext): Promise<() => void> {
  let send: () => void = () => {};
  const held = new Promise<void>((resolve) => (send = resolve));
  await context.route("**/*.wasm", async (route) => {
    await held;
    await route.continue();
  });
  return send;
}
