import { deflateRawSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import {
  address,
  decodeFile,
  decodeLink,
  encodeFile,
  encodeLink,
  LinkError,
  type Shared,
  type SharedState,
} from "../../../web/src/link.ts";

const state: SharedState = {
  engine: "0.1.0",
  settings: { hardware: "edge_tpu", batch: 8, dims: { Länge: 3 }, train: ["layer4.*"] },
  selection: 17,
  figures: { peak_bytes: 327_000_001, saved_bytes: 1, forward_macs: 2, step_cycles: 3.5, step_pj: null },
  model: { name: "größe.onnx" },
};

// A reproducible stream of bytes that deflate cannot shorten.
function noise(length: number): Uint8Array<ArrayBuffer> {
  let seed = 1;
  return Uint8Array.from({ length }, () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed >>> 24;
  });
}

const packed = (json: string, structure = Buffer.alloc(0)) => {
  const head = Buffer.alloc(4);
  head.writeUInt32LE(Buffer.byteLength(json));
  return `m1.${deflateRawSync(Buffer.concat([head, Buffer.from(json), structure])).toString("base64url")}`;
};

describe("link", () => {
  it.each([0, 1, 2, 3, 70_001])("brings back state and %i bytes of structure", async (length) => {
    const shared: Shared = { state, structure: length ? noise(length) : null };
    const fragment = await encodeLink(shared);
    expect(fragment).toMatch(/^m1\.[\w-]+$/); // nothing that an address would escape
    expect(await decodeLink(fragment)).toEqual(shared);
  });
  it("keeps an example's name", async () => {
    const example = { ...state, model: { example: "resnet18" }, figures: null, selection: null };
    expect((await decodeLink(await encodeLink({ state: example, structure: null })))?.state).toEqual(example);
  });
  it("reads what another deflate wrote", async () => {
    expect((await decodeLink(packed(JSON.stringify(state))))?.state).toEqual(state);
  });
  it("is absent from an empty fragment", async () => expect(await decodeLink("")).toBeNull());

  it("says that it is damaged, whatever is cut or changed", async () => {
    const fragment = await encodeLink({ state, structure: noise(50) });
    const bad = [
      fragment.slice(0, -20),
      fragment.slice(0, 3),
      fragment.replace(".", ""),
      `m1.${fragment.slice(20)}`,
      "m1.!!!",
      "m1.AAAAA",
      "layers",
      "m.abc",
      packed("not json"),
      packed("[]"),
      packed(JSON.stringify({ ...state, settings: 3 })),
      packed(JSON.stringify({ ...state, model: null })),
      `m1.${deflateRawSync(Buffer.from([255, 255, 255, 255, 1])).toString("base64url")}`,
      `m1.${deflateRawSync(Buffer.from([1])).toString("base64url")}`,
    ];
    for (const text of bad) {
      await expect(decodeLink(text), text).rejects.toThrow(LinkError);
      await expect(decodeLink(text), text).rejects.toThrow(/damaged/);
    }
  });
  it("names a newer format", async () => {
    await expect(decodeLink("m2.AAAA")).rejects.toThrow(/newer MONET \(format 2, this page reads 1\)/);
  });
  it("stops inflating at 16 MB", { timeout: 30_000 }, async () => {
    const zeros = (size: number) => packed(JSON.stringify(state), Buffer.alloc(size));
    const bomb = zeros(250e6);
    expect(bomb.length).toBeLessThan(400_000);
    await expect(decodeLink(bomb)).rejects.toThrow(/more than 16 MB/);
    expect((await decodeLink(zeros(15e6)))?.structure?.length).toBe(15e6);
  });
  it("drops fields of a wrong type instead of passing them on", async () => {
    const odd = { ...state, selection: "7", engine: 3, figures: { peak_bytes: "x" } };
    expect((await decodeLink(packed(JSON.stringify(odd))))?.state).toMatchObject({
      selection: null,
      engine: "",
      figures: { peak_bytes: 0, step_cycles: null },
    });
  });
  it("is refused beyond what an address can hold", () => {
    expect(address("https://a.org/x/#old", "m1.abc")).toBe("https://a.org/x/#m1.abc");
    const room = 2 * 1024 * 1024 - "https://a.org/#".length;
    expect(address("https://a.org/", "x".repeat(room))).toHaveLength(2 * 1024 * 1024);
    expect(() => address("https://a.org/", "x".repeat(room + 1))).toThrow(/\.monet\.json/);
  });
});

describe(".monet.json", () => {
  it("brings back state and structure", async () => {
    for (const structure of [noise(5000), null]) {
      expect(await decodeFile(JSON.parse(await encodeFile({ state, structure })))).toEqual({ state, structure });
    }
  });
  it("is told from other JSON", async () => {
    for (const other of [null, 3, [], { cores: {} }]) expect(await decodeFile(other)).toBeNull();
  });
  it("says what is wrong with it", async () => {
    const json = JSON.parse(await encodeFile({ state, structure: noise(500) }));
    await expect(decodeFile({ ...json, monet: 2 })).rejects.toThrow(/newer/);
    await expect(decodeFile({ ...json, structure: "AAAA" })).rejects.toThrow(/damaged/);
    await expect(decodeFile({ ...json, settings: null })).rejects.toThrow(/damaged/);
  });
});
