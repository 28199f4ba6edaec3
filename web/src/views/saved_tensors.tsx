// The tensors saved for backward, largest first; each can be recomputed instead.
import { useState } from "preact/hooks";
import type { Report } from "../engine/report";
import { save, stem } from "../files";
import { bytes, csv, exactBytes, integer, plural } from "../format";
import { change, selection, settings } from "../state";
import { LayerLink } from "./layer_link";

const savedAtFirst = 10;

// The tensors that are computed again instead of kept, each with a way back.
function Recomputed({ names }: { names: string[] }) {
  if (!names.length) return null;
  return (
    <div class="recomputed" data-testid="recomputed">
      <span>Computed again in the backward pass:</span>
      {names.map((name) => (
        <button
          key={name}
          type="button"
          class="chip"
          aria-label={`Keep ${name}`}
          title="Keep it again"
          onClick={() => change({ recompute: names.filter((other) => other !== name) })}
        >
          <code>{name}</code> <span aria-hidden="true">×</span>
        </button>
      ))}
      {names.length > 1 && (
        <button type="button" class="quiet" onClick={() => change({ recompute: [] })}>
          Keep all
        </button>
      )}
    </div>
  );
}

export function SavedTensors({ report }: { report: Report }) {
  const [many, setMany] = useState(savedAtFirst);
  const { saved, activations } = report.memory;
  const recompute = settings.value.recompute ?? [];
  if (!saved.length && !recompute.length) return null;
  const most = saved[0]?.bytes || 1;
  return (
    <section class="card" aria-labelledby="saved-title">
      <div class="figure-head">
        <h2 id="saved-title">
          Saved for backward{" "}
          <span class="unit">
            {plural(saved.length, "tensor")}, {bytes(activations)} beside the inputs
          </span>
        </h2>
        <div class="tools">
          <button
            type="button"
            onClick={() =>
              save(
                `${stem(report.model.name)}-saved.csv`,
                csv([
                  ["tensor", "layer", "bytes", "readers", "recomputable"],
                  ...saved.map(({ tensor, layer, bytes: size, readers, recomputable }) => [
                    tensor,
                    layer === null ? "" : (report.layers[layer]?.name ?? ""),
                    size,
                    readers.map((id) => report.layers[id]?.name ?? id).join(" "),
                    recomputable ? "yes" : "no",
                  ]),
                ]),
                "text/csv",
              )
            }
          >
            CSV
          </button>
        </div>
      </div>
      <Recomputed names={recompute} />
      <table class="plain saved">
        <thead>
          <tr>
            <th scope="col">Tensor</th>
            <th scope="col">Made by</th>
            <th scope="col">Read by</th>
            <th scope="col" class="number">
              Bytes
            </th>
            <th scope="col" class="bar-cell">
              <span class="visually-hidden">Relative size</span>
            </th>
            <th scope="col" class="act">
              <span class="visually-hidden">Recompute</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {saved.slice(0, many).map((tensor) => (
            <tr key={tensor.tensor} class={tensor.layer !== null && tensor.layer === selection.value ? "selected" : ""}>
              <td class="name">
                <code>{tensor.tensor}</code>
              </td>
              <td class="name">
                {tensor.layer === null ? (
                  <span class="muted">model input</span>
                ) : (
                  <LayerLink layer={report.layers[tensor.layer]} />
                )}
              </td>
              <td class="name">
                {tensor.readers.slice(0, 2).map((id) => (
                  <LayerLink key={id} layer={report.layers[id]} />
                ))}
                {tensor.readers.length > 2 && <span class="muted">+{tensor.readers.length - 2}</span>}
              </td>
              <td class="number" title={exactBytes(tensor.bytes)}>
                {bytes(tensor.bytes)}
              </td>
              <td class="bar-cell">
                <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                  <rect class="paint-activations" width={(100 * tensor.bytes) / most} height="8" />
                </svg>
              </td>
              <td class="act">
                {tensor.recomputable && !recompute.includes(tensor.tensor) && (
                  <button
                    type="button"
                    class="link"
                    aria-label={`Recompute ${tensor.tensor}`}
                    title="Do not keep it: compute it again in the backward pass"
                    onClick={() => change({ recompute: [...recompute, tensor.tensor] })}
                  >
                    Recompute
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {saved.length > many && (
        <button type="button" class="quiet" onClick={() => setMany(many + 50)}>
          Show more ({integer(saved.length - many)})
        </button>
      )}
    </section>
  );
}
