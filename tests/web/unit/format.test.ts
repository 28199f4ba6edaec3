import { describe, expect, it } from "vitest";
import {
  bytes,
  count,
  csv,
  cycles,
  energy,
  parseBytes,
  percent,
  plural,
  ratio,
  shape,
} from "../../../web/src/format.ts";

describe("numbers as people read them", () => {
  it("uses decimal units with three digits", () => {
    expect([0, 999, 1000, 1234, 46758048, 2e9].map(bytes)).toEqual([
      "0 B",
      "999 B",
      "1 kB",
      "1.23 kB",
      "46.8 MB",
      "2 GB",
    ]);
  });
  it("moves to the next unit where rounding would show four digits", () => {
    expect([999_400, 999_499, 999_500, 999_999, 1_000_000].map(bytes)).toEqual([
      "999 kB",
      "999 kB",
      "1 MB",
      "1 MB",
      "1 MB",
    ]);
  });
  it("keeps what has no larger unit", () => {
    expect(bytes(1.5e18)).toBe("1,500 PB");
  });
  it("counts, cycles and energies", () => {
    expect(count(1_814_073_344)).toBe("1.81 G");
    expect(count(12)).toBe("12");
    expect(cycles(2_887_804.5)).toBe("2,887,805"); // a bound in halves of cycles is reached only after the whole one
    expect(energy(1_903_229_377.55)).toBe("1.9 mJ");
    expect(energy(0.5)).toBe("0.5 pJ");
  });
  it("ratios, shares, shapes, plurals", () => {
    expect([2.94, 12.4, 1534].map(ratio)).toEqual(["2.9×", "12×", "1,534×"]);
    expect([0, 0.0002, 0.004, 0.5, 1].map(percent)).toEqual(["0%", "< 0.1%", "0.4%", "50%", "100%"]);
    expect(shape([])).toBe("scalar");
    expect(shape([1, 64, 56, 56])).toBe("1×64×56×56");
    expect(plural(1, "node") + plural(2000, "node")).toBe("1 node2,000 nodes");
  });
});

describe("sizes as people write them", () => {
  it.each([
    ["512 MB", 512e6],
    ["8GB", 8e9],
    ["1.5 gb", 1.5e9],
    ["4 GiB", 4 * 2 ** 30],
    ["16 KiB", 16384],
    ["1,000", 1000],
    ["0", 0],
  ])("reads %s", (text, size) => expect(parseBytes(text)).toBe(size));
  it.each(["", "MB", "-1 GB", "1 XB", "1 iB", "1.2.3 MB", "NaN", "1e9"])("refuses %j", (text) =>
    expect(parseBytes(text)).toBeNull(),
  );
});

describe("csv", () => {
  it("quotes what needs it and defuses formulas", () => {
    expect(
      csv([
        ["a,b", 'say "x"', "two\nlines"],
        ["=1+1", -3, null],
      ]),
    ).toBe('"a,b","say ""x""","two\nlines"\r\n\'=1+1,-3,\r\n');
  });
});
