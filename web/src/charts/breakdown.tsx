// One amount and its parts: a bar, and beneath it each part's value and share.
import { sum } from "d3-array";
import { percent } from "../format";
import { StackedBar, type Part } from "./bars";
import { Swatch } from "./figure";

interface BreakdownProps {
  label: string;
  of: string; // what the parts are, as the table's heading
  unit: string;
  parts: Part[];
}

export function Breakdown({ label, of, unit, parts }: BreakdownProps) {
  const present = parts.filter(({ value }) => value > 0);
  const total = sum(present, ({ value }) => value) || 1;
  return (
    <>
      <StackedBar label={label} parts={present} />
      <table class="plain legend">
        <thead class="visually-hidden">
          <tr>
            <th scope="col">{of}</th>
            <th scope="col">{unit}</th>
            <th scope="col">Share</th>
          </tr>
        </thead>
        <tbody>
          {present.map(({ label: name, paint, text, exact, value }) => (
            <tr key={name}>
              <th scope="row">
                <Swatch label={name} paint={paint} /> {name}
              </th>
              <td title={exact}>{text}</td>
              <td class="muted">{percent(value / total)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
