// A mapping as the loop nest that runs, as `monet cost --nests` prints it: temporal loops, outermost first, beside each
// the memories whose tile it completes; then the loops that are spread over the array.
import type { Mapping } from "./engine/report";
import { integer } from "./format";

export function nest({ order, operands, spatial }: Mapping): string {
  const lines = order.map(({ loop, size }, at) => {
    const held = operands.flatMap(({ name, levels }) => {
      let end = 0;
      return levels
        .filter(({ temporal }) => {
          end += temporal.length;
          return temporal.length > 0 && end === at + 1;
        })
        .map(({ memory }) => `${name} in ${memory}`);
    });
    return { text: `${"  ".repeat(order.length - 1 - at)}for ${loop} in ${integer(size)}`, held: held.join(", ") };
  });
  const column = Math.max(0, ...lines.filter(({ held }) => held).map(({ text }) => text.length)) + 2;
  return [
    ...lines.reverse().map(({ text, held }) => (held ? text.padEnd(column) + held : text)),
    ...spatial.map(
      ({ loop, dimension, units }) =>
        `${"  ".repeat(order.length)}parallel for ${loop} in ${Number(units.toPrecision(6))} over ${dimension}`,
    ),
  ].join("\n");
}
