// Links: the analysis in the part of the address after `#`, which no browser sends to a server.
//
//   #m1.<base64url of deflate-raw of: u32 length of the JSON, the JSON, the model's structure (ONNX) if any>
//
// The number after `m` is the format's version. The same content can be kept as a `.monet.json` file.
import type { Settings } from "./engine/report";

export const linkVersion = 1;
export const shortLink = 32_000; // characters; beyond it the page offers short names or a file
const longestAddress = 2 * 1024 * 1024; // Chromium drops a longer address without an error
const inflateLimit = 16e6; // bytes: a link of 261 kB can inflate to 256 MB

// What the sender saw, so that a later engine can say what changed.
export interface Figures {
  peak_bytes: number;
  saved_bytes: number;
  forward_macs: number;
  step_cycles: number | null;
  step_pj: number | null;
}

export interface SharedState {
  engine: string;
  settings: Settings;
  selection: number | null; // layer id
  figures: Figures | null;
  model: { example: string } | { name: string };
}

export interface Shared {
  state: SharedState;
  structure: Uint8Array<ArrayBuffer> | null;
}

// Its message is the one line shown.
export class LinkError extends Error {}

const damaged = () => new LinkError("This link is damaged or cut short: ask for it again, or for a .monet.json file.");

async function collect(stream: ReadableStream<Uint8Array>, limit: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > limit) {
      await reader.cancel();
      throw new LinkError(`This link unpacks to more than ${limit / 1e6} MB, which no model needs: it was not opened.`);
    }
    chunks.push(value);
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

const piped = (bytes: Uint8Array<ArrayBuffer>, through: CompressionStream | DecompressionStream) =>
  new Blob([bytes]).stream().pipeThrough(through);

const deflate = (bytes: Uint8Array<ArrayBuffer>) =>
  collect(piped(bytes, new CompressionStream("deflate-raw")), Number.POSITIVE_INFINITY);
const inflate = (bytes: Uint8Array<ArrayBuffer>) =>
  collect(piped(bytes, new DecompressionStream("deflate-raw")), inflateLimit);

function toBase64Url(bytes: Uint8Array): string {
  let text = "";
  const slice = 0x8000; // fromCharCode takes its arguments on the stack
  for (let at = 0; at < bytes.length; at += slice) text += String.fromCharCode(...bytes.subarray(at, at + slice));
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  if (!/^[\w-]*$/.test(text)) throw damaged();
  try {
    return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  } catch {
    throw damaged();
  }
}

function checked(state: unknown): SharedState {
  const object = (value: unknown): value is Record<string, unknown> =>
    typeof value === "object" && value !== null && !Array.isArray(value);
  if (!object(state) || !object(state.settings) || !object(state.model)) throw damaged();
  const { engine, settings, selection, figures, model } = state;
  const name = typeof model.example === "string" ? { example: model.example } : { name: String(model.name ?? "model") };
  const number = (value: unknown) => (typeof value === "number" && Number.isFinite(value) ? value : null);
  return {
    engine: typeof engine === "string" ? engine : "",
    settings: settings as Settings, // the engine checks every field and names what is wrong
    selection: number(selection),
    figures: object(figures)
      ? {
          peak_bytes: number(figures.peak_bytes) ?? 0,
          saved_bytes: number(figures.saved_bytes) ?? 0,
          forward_macs: number(figures.forward_macs) ?? 0,
          step_cycles: number(figures.step_cycles),
          step_pj: number(figures.step_pj),
        }
      : null,
    model: name,
  };
}

// The fragment, without the `#`.
export async function encodeLink({ state, structure }: Shared): Promise<string> {
  const json = new TextEncoder().encode(JSON.stringify(state));
  const bytes = new Uint8Array(4 + json.length + (structure?.length ?? 0));
  new DataView(bytes.buffer).setUint32(0, json.length, true);
  bytes.set(json, 4);
  if (structure) bytes.set(structure, 4 + json.length);
  return `m${linkVersion}.${toBase64Url(await deflate(bytes))}`;
}

// Null when the fragment is not a link of ours at all. Throws LinkError.
export async function decodeLink(fragment: string): Promise<Shared | null> {
  if (fragment === "") return null;
  const match = /^m(\d+)\.(.*)$/s.exec(fragment);
  if (!match) throw damaged();
  if (Number(match[1]) > linkVersion) {
    throw new LinkError(
      `This link was made by a newer MONET (format ${match[1]}, this page reads ${linkVersion}): reload the page or open it where it was made.`,
    );
  }
  let bytes: Uint8Array<ArrayBuffer>;
  let state: unknown;
  let length = 0;
  try {
    bytes = await inflate(fromBase64Url(match[2]!));
    length = new DataView(bytes.buffer).getUint32(0, true);
    if (length > bytes.length - 4) throw damaged();
    state = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(4, 4 + length)));
  } catch (error) {
    throw error instanceof LinkError ? error : damaged();
  }
  return { state: checked(state), structure: bytes.length > 4 + length ? bytes.slice(4 + length) : null };
}

// The whole address for a fragment; throws LinkError when a browser would drop it.
export function address(page: string, fragment: string): string {
  const link = `${page.split("#")[0]}#${fragment}`;
  if (link.length > longestAddress) {
    throw new LinkError(
      "This model's structure is too long for an address (over 2 MiB): save a .monet.json file instead.",
    );
  }
  return link;
}

export async function encodeFile({ state, structure }: Shared): Promise<string> {
  const packed = structure ? toBase64Url(await deflate(structure)) : null;
  return JSON.stringify({ monet: linkVersion, ...state, structure: packed }, null, 1) + "\n";
}

// Null when the JSON is no .monet.json. Throws LinkError.
export async function decodeFile(json: unknown): Promise<Shared | null> {
  if (typeof json !== "object" || json === null || !("monet" in json)) return null;
  const { monet, structure, ...state } = json as { monet: unknown; structure?: unknown };
  if (typeof monet !== "number" || monet > linkVersion) {
    throw new LinkError(
      `This file was made by a newer MONET (format ${String(monet)}, this page reads ${linkVersion}).`,
    );
  }
  if (typeof structure !== "string") return { state: checked(state), structure: null };
  try {
    return { state: checked(state), structure: await inflate(fromBase64Url(structure)) };
  } catch (error) {
    throw error instanceof LinkError && !/damaged/.test(error.message)
      ? error
      : new LinkError("This .monet.json file is damaged.");
  }
}
