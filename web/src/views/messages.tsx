// What the page has to say: failures, warnings, progress, notices.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Diagnostic } from "../engine/report";
import { integer, percent, plural } from "../format";
import { analyze, busy, cancel, change, failure, notice, report, shown, source, stale, stopped } from "../state";

const shownAtFirst = 5;

// A hint that several problems share is said once, after the last of them.
export function Problems({ problems }: { problems: Diagnostic[] }) {
  const [all, setAll] = useState(false);
  const list = all ? problems : problems.slice(0, shownAtFirst);
  return (
    <>
      <ul class="problems">
        {list.map(({ message, node, tensor, hint }, index) => {
          const where = [node, tensor].filter((name) => name && !message.includes(name));
          return (
            <li key={index}>
              <p class="message">{message}</p>
              {where.length > 0 && <p class="where">{where.join(" · ")}</p>}
              {hint && hint !== list[index + 1]?.hint && <p class="hint">{hint}</p>}
            </li>
          );
        })}
      </ul>
      {problems.length > list.length && (
        <button type="button" class="quiet" onClick={() => setAll(true)}>
          Show all {integer(problems.length)}
        </button>
      )}
    </>
  );
}

export function Failures() {
  const card = useRef<HTMLElement>(null);
  const failed = failure.value;
  useEffect(() => card.current?.scrollIntoView({ block: "nearest" }), [failed]);
  if (!failed) return null;
  return (
    <section class="card failure" role="alert" ref={card}>
      <div class="figure-head">
        <h2>{failed.title}</h2>
        <button type="button" class="quiet" onClick={() => (failure.value = null)}>
          Dismiss
        </button>
      </div>
      <Problems problems={failed.errors} />
      {shown.value && <p class="muted">The results below are those of {shown.value.source.name}, analysed before.</p>}
    </section>
  );
}

export function Notice() {
  if (!notice.value) return null;
  return (
    <section class="card notice" role="status">
      <p>{notice.value}</p>
      <button type="button" class="quiet" onClick={() => (notice.value = null)}>
        Dismiss
      </button>
    </section>
  );
}

// Progress of what runs; a way to go on after a cancel.
export function Progress() {
  const running = busy.value;
  if (running) {
    return (
      <div class="progress" role="status">
        <progress max="1" value={running.fraction} aria-label={running.what} />
        <span class="grow">
          {running.what}: {running.stage} {running.fraction > 0 && percent(running.fraction)}
          {running.silent > 0 && `, no sign of life for ${running.silent} s`}
        </span>
        <button type="button" onClick={cancel}>
          Cancel
        </button>
      </div>
    );
  }
  if (!stale.value || failure.value) return null;
  return (
    <div class="progress" role="status">
      <span class="grow">
        {stopped.value ? "Cancelled." : "Settings have changed."} The results are those of the settings before.
      </span>
      <button type="button" onClick={() => void analyze()} disabled={!source.value}>
        Analyse again
      </button>
    </div>
  );
}

export const exportSnippet = `torch.onnx.export(model.train(), example, "model.onnx",
    training=torch.onnx.TrainingMode.TRAINING,
    do_constant_folding=False)`;

// Beside the figure that it makes doubtful (never a silent headline).
export function InferenceExport() {
  if (!report.value?.model.inference_export) return null;
  if (report.value.settings.assume_batch_norm) {
    return (
      <div class="caution" role="note" aria-label="Inference export">
        <p>An inference export: a BatchNorm is assumed after each of its convolutions that had one folded in.</p>
      </div>
    );
  }
  return (
    <div class="caution" role="note" aria-label="Inference export">
      <p>
        <strong>This looks like an inference export.</strong> Its BatchNorms are folded away or its dropouts gone:
        training the real model keeps more activations than shown.
      </p>
      <details>
        <summary>Export that keeps them</summary>
        <pre>
          <code>{exportSnippet}</code>
        </pre>
      </details>
      <button type="button" onClick={() => change({ assume_batch_norm: true })}>
        Assume BatchNorm after each Conv
      </button>
    </div>
  );
}

export function Warnings() {
  const warnings = report.value?.warnings ?? [];
  if (!warnings.length) return null;
  const forwardOnly = report.value!.training === null;
  return (
    <details class="card warnings" open={forwardOnly}>
      <summary>
        {forwardOnly ? "Forward only: why no training step could be built" : plural(warnings.length, "warning")}
      </summary>
      <Problems problems={warnings} />
    </details>
  );
}
