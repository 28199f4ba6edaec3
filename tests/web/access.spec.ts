// For everyone: axe in both themes, the keyboard alone, a narrow screen, the look.
import AxeBuilder from "@axe-core/playwright";
import { type Page } from "@playwright/test";
import { expect, example, hardware, open, pick, settled, test } from "./site";

async function axe(page: Page) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ")}`)).toEqual([]);
}

for (const colorScheme of ["light", "dark"] as const) {
  test(`axe finds nothing, ${colorScheme}`, async ({ browser }) => {
    const page = await (await browser.newContext({ colorScheme })).newPage();
    await open(page);
    await axe(page);
    await example(page, "lenet5"); // the same views with fewer rows: axe looks at each
    await page.getByText("More settings").click();
    await page.locator(".menu > summary").click();
    await page.locator(".layers tbody tr").nth(3).click();
    await axe(page);
    await hardware(page, "edge_tpu_like");
    await page.getByText("How time and energy are counted").click();
    await page.getByLabel("Search layers").fill("conv");
    await page.locator(".layers tbody tr").first().click();
    await page.getByText("Operands by memory level").click();
    await axe(page);
    await page.getByRole("button", { name: "Share" }).click();
    await expect(page.getByTestId("share-status")).toContainText("characters");
    await axe(page);
    await page.keyboard.press("Escape");
    await pick(page, "empty.onnx", Buffer.alloc(0));
    await expect(page.getByRole("alert")).toBeVisible();
    await axe(page);
    await page.context().close();
  });
}

test("dark follows the system and the toggle, which is kept", async ({ page }, info) => {
  await page.emulateMedia({ colorScheme: "dark" });
  await open(page);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await ground();
  await info.attach("dark", {
    body: await page.screenshot({ path: info.outputPath("dark.png"), fullPage: true }),
    contentType: "image/png",
  });
  const brightness = (color: string) =>
    color
      .match(/\d+/g)!
      .slice(0, 3)
      .reduce((sum, part) => sum + Number(part), 0) / 3;
  expect(brightness(dark)).toBeLessThan(64);
  await page.getByRole("button", { name: "Light theme" }).click();
  expect(brightness(await ground())).toBeGreaterThan(192);
  await page.reload();
  await expect(page.getByTestId("headline")).toBeVisible();
  expect(brightness(await ground())).toBeGreaterThan(192);
  await page.emulateMedia({ colorScheme: "light" });
  await page.getByRole("button", { name: "Dark theme" }).click();
  expect(await ground()).toBe(dark);
});

test("the keyboard alone walks from the model to a layer and a link", async ({ page }) => {
  await open(page);
  const focused = () =>
    page.evaluate(() => {
      const element = document.activeElement!;
      const { outlineStyle, outlineWidth } = getComputedStyle(element);
      const name = element.getAttribute("aria-label") ?? element.textContent!.trim().slice(0, 40);
      return {
        name: `${element.tagName.toLowerCase()} ${name}`,
        visible: outlineStyle !== "none" && parseFloat(outlineWidth) > 0,
      };
    });
  const walked: string[] = [];
  const unseen: string[] = [];
  const tabTo = async (name: RegExp) => {
    for (let step = 0; step < 80; step++) {
      await page.keyboard.press("Tab");
      const at = await focused();
      walked.push(at.name);
      if (!at.visible) unseen.push(at.name);
      if (name.test(at.name)) return;
    }
    throw new Error(`no ${name} among ${walked.join(", ")}`);
  };
  await tabTo(/Open model/);
  await tabTo(/Examples/);
  await tabTo(/Save/);
  await page.keyboard.press("Enter");
  await tabTo(/Report \(JSON\)/);
  await page.keyboard.press("Escape");
  expect((await focused()).name).toMatch(/Save/);
  await tabTo(/Share/);
  await tabTo(/Dark theme/);
  await tabTo(/^svg Memory over the step/);
  await page.keyboard.press("Home");
  const readout = page.getByTestId("timeline-readout");
  await expect(readout).toContainText("1: ");
  await page.keyboard.press("ArrowRight");
  await expect(readout).toContainText("2: ");
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("layer-panel")).toBeVisible();
  const name = await page.locator("#layer-title").textContent();
  await tabTo(/Layers: up and down arrows select/);
  await page.keyboard.press("ArrowDown");
  await expect(page.locator("#layer-title")).not.toHaveText(name!);
  await page.keyboard.press("Escape");
  await expect(page.getByTestId("layer-panel")).toHaveCount(0);
  expect(unseen, "focus must show").toEqual([]);
});

test("the share dialog takes and gives back the focus", async ({ page }) => {
  await open(page);
  await page.getByRole("button", { name: "Share" }).focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("dialog")).toBeVisible();
  expect(await page.evaluate(() => document.activeElement!.closest("dialog") !== null)).toBe(true);
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await expect(page.getByRole("button", { name: "Share" })).toBeFocused();
});

test("400 pixels are enough, without scrolling sideways", async ({ browser }) => {
  const page = await (await browser.newContext({ viewport: { width: 400, height: 800 } })).newPage();
  const width = () => page.evaluate(() => document.documentElement.scrollWidth);
  await open(page);
  expect(await width()).toBe(400);
  await page.getByText("Settings", { exact: true }).click();
  await page.getByText("More settings").click();
  await page.locator(".layers tbody tr").nth(3).click();
  expect(await width()).toBe(400);
  await hardware(page, "edge_tpu_like");
  await page.getByText("How time and energy are counted").click();
  await page.getByLabel("Search layers").fill("conv");
  await page.locator(".layers tbody tr").first().click();
  await page.getByText("Operands by memory level").click();
  expect(await width()).toBe(400);
  await page.getByLabel("Search layers").fill("");
  await example(page, "gpt2_small");
  await settled(page);
  expect(await width()).toBe(400);
  await pick(page, `${"long-name-".repeat(12)}.onnx`, Buffer.alloc(0));
  await expect(page.getByRole("alert")).toBeVisible();
  expect(await width()).toBe(400);
  await page.context().close();
});
