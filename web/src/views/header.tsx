// The top of the page: what this is, how to open a model, share, theme.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { save, stem } from "../files";
import { layersCsv } from "../layer_csv";
import { examples, openExample, shown, source, trainingGraph } from "../state";
import { FilePicker } from "./file_picker";
import { sharing } from "./share";

type Theme = "light" | "dark";

const dark = matchMedia("(prefers-color-scheme: dark)");
const chosenTheme = (): Theme =>
  (document.documentElement.dataset.theme as Theme | undefined) ?? (dark.matches ? "dark" : "light");
const theme = signal<Theme>(chosenTheme());
dark.addEventListener("change", () => (theme.value = chosenTheme()));

function toggleTheme() {
  const next: Theme = theme.value === "dark" ? "light" : "dark";
  theme.value = next;
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("monet-theme", next);
  } catch {
    // Storage is off: the choice holds until the page is closed.
  }
}

// A menu that closes after a choice, on Escape, and on a click elsewhere.
function SaveMenu() {
  const menu = useRef<HTMLDetailsElement>(null);
  const now = shown.value;
  useEffect(() => {
    const outside = (event: MouseEvent) => {
      if (!menu.current?.contains(event.target as Node)) menu.current?.removeAttribute("open");
    };
    addEventListener("click", outside);
    return () => removeEventListener("click", outside);
  }, []);
  if (!now) return null;
  const name = stem(now.report.model.name);
  const item = (label: string, act: () => void) => (
    <button
      type="button"
      onClick={() => {
        menu.current?.removeAttribute("open");
        act();
      }}
    >
      {label}
    </button>
  );
  return (
    <details
      class="menu"
      ref={menu}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        menu.current?.removeAttribute("open");
        menu.current?.querySelector("summary")?.focus();
      }}
    >
      <summary>Save</summary>
      <div>
        {item("Report (JSON)", () => save(`${name}-report.json`, now.text, "application/json"))}
        {item("Layers (CSV)", () => save(`${name}-layers.csv`, layersCsv(now.report.layers), "text/csv"))}
        {now.report.training &&
          item(
            "Training graph (ONNX)",
            () => void trainingGraph().then((graph) => graph && save(`${name}-training.onnx`, graph)),
          )}
      </div>
    </details>
  );
}

export function Header() {
  const picker = useRef<HTMLInputElement>(null);
  const example = source.value?.example ?? "";
  return (
    <header class="top">
      <div class="brand">
        <img src="./favicon.svg" alt="" width="28" height="28" />
        <div>
          <h1>MONET</h1>
          <p>What training a neural network costs, read from its ONNX file</p>
        </div>
      </div>
      <div class="actions">
        <FilePicker
          picker={picker}
          label="Model, hardware, mapping or .monet.json file"
          accept=".onnx,.json,.yaml,.yml"
        />
        <button type="button" class="primary" onClick={() => picker.current?.click()}>
          Open model…
        </button>
        <select
          aria-label="Examples"
          value={example}
          onChange={(event) => event.currentTarget.value && openExample(event.currentTarget.value)}
        >
          <option value="">Examples</option>
          {examples.map(({ name, title }) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
        <SaveMenu />
        <button type="button" onClick={() => (sharing.value = true)} disabled={!source.value}>
          Share
        </button>
        <button
          type="button"
          class="icon"
          aria-label={theme.value === "dark" ? "Light theme" : "Dark theme"}
          title={theme.value === "dark" ? "Light theme" : "Dark theme"}
          onClick={toggleTheme}
        >
          <svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">
            {theme.value === "dark" ? (
              <path d="M10 5a5 5 0 1 0 0 10 5 5 0 0 0 0-10zm-.8-5h1.6v3H9.2zm0 17h1.6v3H9.2zM0 9.2h3v1.6H0zm17 0h3v1.6h-3zM2.4 3.5l1.1-1.1 2.1 2.1-1.1 1.1zm12 12 1.1-1.1 2.1 2.1-1.1 1.1zm2.1-13.1 1.1 1.1-2.1 2.1-1.1-1.1zm-12 12 1.1 1.1-2.1 2.1-1.1-1.1z" />
            ) : (
              <path d="M8 2a8 8 0 1 0 10 10A7 7 0 0 1 8 2z" />
            )}
          </svg>
        </button>
      </div>
    </header>
  );
}
