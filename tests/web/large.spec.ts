// A 3 GB model: read by slices, its payload never. Times are printed, not asserted: they belong to the machine.
import { closeSync, ftruncateSync, openSync, rmSync, writeSync } from "node:fs";
import { bytes, initializerHead, modelHead, node, value } from "./onnx";
import { expect, open, settled, test } from "./site";

// A chain of 1,200 MatMul with [800, 800] float weights, whose payload (2.56 MB each) is a hole in the file.
const tensors = 1200;
const side = 800;
const payload = side * side * 4;

function writeSparse(path: string): number {
  const name = (at: number) => `layer${at}.weight`;
  const layers = Array.from({ length: tensors }, (_, at) => at);
  const nodes = layers.map((at) => node(`layer${at}`, "MatMul", [`x${at}`, name(at)], [`x${at + 1}`]));
  const weights = layers.map((at) => initializerHead(name(at), [side, side], payload));
  const after = Buffer.concat([bytes(2, "sparse"), value(11, "x0", [1, side]), value(12, `x${tensors}`, [1, side])]);
  const size = (parts: Buffer[]) => parts.reduce((sum, part) => sum + part.length, 0);

  const file = openSync(path, "w");
  let at = 0;
  const write = (part: Buffer) => {
    writeSync(file, part, 0, part.length, at);
    at += part.length;
  };
  write(modelHead(size(nodes) + size(weights) + tensors * payload + after.length));
  nodes.forEach(write);
  for (const weight of weights) {
    write(weight);
    at += payload;
  }
  write(after);
  ftruncateSync(file, at);
  closeSync(file);
  return at;
}

test("a 3 GB file opens through the file picker in a few megabytes of memory", async ({ page }, info) => {
  const path = info.outputPath("sparse.onnx");
  const size = writeSparse(path);
  expect(size).toBeGreaterThan(3e9);
  try {
    await open(page);
    await page.getByLabel("Examples").selectOption("lenet5"); // the engine is there, its first call behind it
    await expect(page.getByTestId("headline")).toContainText("lenet5");
    await settled(page);
    const began = Date.now();
    await page.getByLabel("Model, hardware, mapping or .monet.json file").setInputFiles(path);
    await expect(page.getByTestId("headline")).toContainText("sparse", { timeout: 60_000 });
    await settled(page);
    const total = Date.now() - began;
    const provenance = page.getByTestId("provenance");
    const [heap, reads, read, opened] = await Promise.all(
      ["data-heap", "data-reads", "data-read-bytes", "data-open-ms"].map(async (name) =>
        Number(await provenance.getAttribute(name)),
      ),
    );
    console.log(
      `measured: 3 GB file: ${size} bytes; ${read} bytes read in ${reads} reads (${((100 * read!) / size).toFixed(3)}%); ` +
        `structure in ${opened!.toFixed(0)} ms, whole analysis on screen in ${total} ms; ` +
        `WASM heap ${heap} bytes`,
    );
    expect(heap).toBeGreaterThan(0);
    expect(heap).toBeLessThan(200e6);
    expect(read).toBeLessThan(size / 100);
    await expect(page.getByTestId("parameters")).toHaveAttribute(
      "title",
      new RegExp((tensors * side * side).toLocaleString("en-US")),
    );
  } finally {
    rmSync(path);
  }
});
