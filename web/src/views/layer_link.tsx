// A layer by its name: a click selects it everywhere.
import type { Layer } from "../engine/report";
import { words } from "../format";
import { selection } from "../state";

export function LayerLink({ layer }: { layer: Layer | undefined }) {
  if (!layer) return null;
  return (
    <button type="button" class="link" onClick={() => (selection.value = layer.id)}>
      {layer.name} <span class="muted">{layer.phase === "forward" ? layer.op : words(layer.role)}</span>
    </button>
  );
}
