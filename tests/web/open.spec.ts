// Opening: the build-time report, files dropped and picked, examples, what is no model.
import { expect, drop, example, holdEngine, model, open, peak, pick, results, saved, settled, test } from "./site";
import { cyclic, notSsa, shapeless } from "./onnx";
import first from "../../web/first.json" with { type: "json" };

test("opens on the example's report without waiting for the engine, with a favicon", async ({ page, context }) => {
  const send = await holdEngine(context);
  await open(page);
  await expect(page.getByTestId("provenance")).toContainText("when this site was built");
  await expect(page.getByText("Your file stays on this machine.")).toBeVisible();
  const icon = await page.locator("link[rel=icon]").getAttribute("href");
  const answer = await page.request.get(icon!);
  expect(answer.status()).toBe(200);
  expect(answer.headers()["content-type"]).toBe("image/svg+xml");
  send();
});

test("the report made at build time equals a live one, byte for byte", async ({ page }) => {
  await open(page);
  const built = await saved(page, "Report (JSON)");
  await example(page, "lenet5");
  await example(page, "resnet18");
  await page.getByLabel("Batch", { exact: true }).fill(String(first.settings.batch));
  await expect(page.getByTestId("headline")).toContainText(`batch ${first.settings.batch}`);
  await settled(page);
  await expect(page.getByTestId("provenance")).toContainText("analysed here");
  expect(await saved(page, "Report (JSON)")).toEqual(built);
});

test("a dropped model is analysed, its open dimensions defaulted to 1 and said so", async ({ page }) => {
  await open(page);
  await drop(page, "mine.onnx", model("resnet18_cifar"));
  await expect(page.getByTestId("headline")).toContainText("mine");
  await settled(page);
  await expect(page.locator(".chip.defaulted")).toContainText("defaulted to 1");
  await expect(page.getByTestId("parameters")).toHaveAttribute("title", /11,173,962 elements/);
  await expect(page.getByLabel("Examples")).toHaveValue("");
});

test("a picked model is analysed", async ({ page }) => {
  await open(page);
  await pick(page, "picked.onnx", model("lenet5"));
  await expect(page.getByTestId("headline")).toContainText("picked");
  await settled(page);
});

for (const name of ["lenet5", "resnet18_cifar", "resnet18", "resnet50", "mobilenet_v2", "vit_b_16", "gpt2_small"]) {
  test(`example ${name}`, async ({ page }) => {
    await open(page);
    await page.getByLabel("Batch", { exact: true }).fill("3"); // so that the first example is analysed, too
    await example(page, name);
    // Of these two the weights, gradients and optimizer states alone are more than the 1.25 GB of the first hardware.
    const largest = ["vit_b_16", "gpt2_small"].includes(name) ? "none" : /^[\d,]+$/;
    await expect(page.getByTestId("largest-batch")).toHaveText(largest);
    await expect(page.getByTestId("cost")).toContainText("at least");
  });
}

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
const random = Buffer.from(Array.from({ length: 5000 }, (_, at) => (at * 2654435761) >>> 24));
const bad: [string, () => Buffer][] = [
  ["empty.onnx", () => Buffer.alloc(0)],
  ["truncated.onnx", () => model("resnet18").subarray(0, model("resnet18").length / 2)],
  ["picture.onnx", () => png],
  ["picture.png", () => png],
  ["random.onnx", () => random],
  ["cyclic.onnx", () => cyclic],
  ["not-ssa.onnx", () => notSsa],
];
for (const [name, bytes] of bad) {
  test(`${name} gets an error card and leaves the results`, async ({ page }) => {
    await open(page);
    const before = await peak(page);
    await pick(page, name, bytes());
    const card = page.getByRole("alert");
    await expect(card).toContainText(`${name} could not be opened`);
    await expect(card.locator(".message").first()).not.toBeEmpty();
    await expect(card.locator(".hint").first()).not.toBeEmpty();
    await settled(page);
    expect(await peak(page)).toBe(before);
    // The page goes on from there.
    await example(page, "lenet5");
    await expect(card).toHaveCount(0);
  });
}

test("an input without a shape is refused by name", async ({ page }) => {
  await open(page);
  await pick(page, "shapeless.onnx", shapeless);
  await expect(page.getByRole("alert")).toContainText("shapeless.onnx could not be");
  await expect(page.getByRole("alert")).toContainText("x");
});

test("a hardware file is used, a text that is none is refused", async ({ page }) => {
  await open(page);
  const presets = (await (await page.request.get("generated/presets.json")).json()) as { json: object | string }[];
  const { json } = presets[0]!;
  const own = { ...(typeof json === "string" ? JSON.parse(json) : json), name: "my chip" };
  await pick(page, "chip.json", Buffer.from(JSON.stringify(own)));
  await expect(page.getByLabel("Hardware", { exact: true })).toHaveValue("own");
  await expect(page.getByTestId("cost")).toContainText("my chip");
  await settled(page);

  await pick(page, "chip.json", Buffer.from("{"));
  await expect(page.getByRole("alert")).toContainText("chip.json could not be read");
  await pick(page, "chip.yaml", Buffer.from("name: half a chip\ncores: 3\n"));
  await expect(page.getByRole("alert")).toContainText("could not be analysed");
  await expect(results(page)).toHaveAttribute("aria-busy", "true");
});
