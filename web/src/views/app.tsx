// The page: header, settings beside the results, and a drop zone everywhere.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { bytes, integer, percent } from "../format";
import { openFiles, report, selected, shown, source, stale } from "../state";
import { Costs } from "./costs";
import { FusionSection } from "./fusion";
import { Header } from "./header";
import { LayerPanel } from "./layer_panel";
import { LayerTable } from "./layer_table";
import { Failures, Notice, Progress, Warnings } from "./messages";
import { ScheduleSection } from "./schedule";
import { SavedTensors } from "./saved_tensors";
import { SettingsPanel } from "./settings";
import { Share } from "./share";
import { Headline, Summary } from "./summary";

const dragging = signal(false);
export const update = signal<(() => void) | null>(null); // a newer version of the site is ready

function useDrop() {
  useEffect(() => {
    const holdsFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const over = (event: DragEvent) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      dragging.value = true;
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) dragging.value = false;
    };
    const drop = (event: DragEvent) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      dragging.value = false;
      openFiles(event.dataTransfer?.files);
    };
    addEventListener("dragover", over);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  }, []);
}

// How the figures came about: what was read of the file, with how much memory, in what time.
function Provenance() {
  const now = shown.value;
  if (!now) return null;
  const { reading, milliseconds } = now;
  return (
    <p
      class="muted"
      data-testid="provenance"
      data-heap={reading?.heap}
      data-reads={reading?.reads}
      data-read-bytes={reading?.read_bytes}
      data-open-ms={reading?.milliseconds}
    >
      Engine {now.report.engine.version}
      {milliseconds === null && " · analysed when this site was built"}
      {milliseconds !== null && ` · analysed here in ${integer(Math.round(milliseconds))} ms`}
      {reading &&
        ` · read ${bytes(reading.read_bytes)} of ${bytes(reading.file_bytes)} (${percent(reading.read_bytes / Math.max(1, reading.file_bytes))}) in ${integer(reading.reads)} reads · engine memory ${bytes(reading.heap)}`}
    </p>
  );
}

export function App() {
  useDrop();
  const now = report.value;
  return (
    <>
      <Header />
      <div class="layout">
        <aside>
          <p class="private">
            <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
              <path d="M8 0a4 4 0 0 0-4 4v3H3v9h10V7h-1V4a4 4 0 0 0-4-4zm2 7H6V4a2 2 0 1 1 4 0z" />
            </svg>
            <span>
              <strong>Drop an ONNX model anywhere.</strong> Your file stays on this machine.
            </span>
          </p>
          <details class="settings-fold" open={matchMedia("(min-width: 900px)").matches}>
            <summary>Settings</summary>
            <SettingsPanel />
          </details>
        </aside>
        <main>
          <Notice />
          <Failures />
          <Progress />
          {now ? (
            <div class={`results ${stale.value ? "stale" : ""}`} aria-busy={stale.value} data-testid="results">
              <Headline report={now} />
              {!now.training && <Warnings />}
              <Summary report={now} />
              <Costs report={now} />
              <div class={selected.value ? "layers-row with-panel" : "layers-row"}>
                <LayerTable report={now} />
                <LayerPanel report={now} />
              </div>
              <ScheduleSection report={now} />
              <FusionSection report={now} />
              <SavedTensors report={now} />
              {now.training && <Warnings />}
            </div>
          ) : (
            <p class="muted loading">{source.value ? "" : "Loading…"}</p>
          )}
        </main>
      </div>
      <footer>
        <Provenance />
        <p class="muted">
          MONET models the training of neural networks on dataflow accelerators. Method: arXiv 2603.15002, after Stream
          and ZigZag.
          {update.value && (
            <button type="button" class="link" onClick={update.value}>
              A new version is ready: reload
            </button>
          )}
        </p>
      </footer>
      <Share />
      {dragging.value && (
        <div class="drop-zone">Drop an ONNX model, a hardware description, a mapping or a .monet.json file</div>
      )}
    </>
  );
}
