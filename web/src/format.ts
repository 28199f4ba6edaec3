// Numbers as people read them: decimal units (1 kB = 1,000 B, as the field counts), three significant digits; `exact`
// forms go into tooltips.
import { format } from "d3-format";

const grouped = format(",");
const significant = format(".3~r");

function scaled(value: number, units: readonly string[], step = 1000): string {
  let unit = 0;
  let rest = value;
  // 999.5 would be rounded to 1,000 of its unit: it belongs to the next.
  while (Math.abs(rest) >= step - 0.5 && unit < units.length - 1) {
    rest /= step;
    unit++;
  }
  const text = Math.abs(rest) >= 1000 ? grouped(Math.round(rest)) : significant(rest);
  return units[unit] ? `${text} ${units[unit]}` : text;
}

const byteUnits = ["B", "kB", "MB", "GB", "TB", "PB"] as const;

export const bytes = (value: number) => scaled(value, byteUnits);
export const exactBytes = (value: number) => `${grouped(value)} B`;
export const count = (value: number) => scaled(value, ["", "k", "M", "G", "T", "P"]);
export const integer = (value: number) => grouped(value);
export const cycles = (value: number) => grouped(Math.ceil(value));
export const energy = (picojoules: number) => scaled(picojoules, ["pJ", "nJ", "µJ", "mJ", "J", "kJ"]);
export const ratio = (value: number) => `${value < 10 ? value.toFixed(1) : grouped(Math.round(value))}×`;
export function percent(part: number): string {
  if (part > 0 && part < 0.001) return "< 0.1%";
  return format(part > 0 && part < 0.01 ? ".1%" : ".0%")(part);
}
export const shape = (dims: readonly number[]) => (dims.length ? dims.join("×") : "scalar");
export const plural = (value: number, noun: string) => `${grouped(value)} ${noun}${value === 1 ? "" : "s"}`;
export const words = (name: string) => name.replaceAll("_", " ");

// "512 MB", "1.5 GB" or plain bytes; null for anything else. MB is 10^6 bytes, MiB 2^20.
export function parseBytes(text: string): number | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([kmgtp]?)(i?)b?\s*$/i.exec(text.replaceAll(",", ""));
  if (!match) return null;
  const power = ["", "k", "m", "g", "t", "p"].indexOf(match[2]!.toLowerCase());
  if (match[3] && power === 0) return null;
  return Math.round(Number(match[1]) * (match[3] ? 1024 : 1000) ** power);
}

// CSV field as RFC 4180 has it; a text that a spreadsheet would run as a formula is kept a text.
function field(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csv = (rows: readonly (readonly (string | number | null)[])[]) =>
  rows.map((row) => row.map(field).join(",") + "\r\n").join("");
