// The share dialog: a link with the settings, and on request with the model's structure (names and shapes, no weights).
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { save, stem } from "../files";
import { bytes, integer } from "../format";
import { address, encodeFile, encodeLink, shortLink } from "../link";
import { sharedState, source, structure } from "../state";

export const sharing = signal(false);

export function Share() {
  const dialog = useRef<HTMLDialogElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const [withStructure, setWithStructure] = useState(false);
  const [short, setShort] = useState(false);
  const [link, setLink] = useState("");
  const [said, setSaid] = useState("");

  const content = async () => {
    const state = sharedState();
    if (!withStructure) return { state, structure: null };
    // The structure is then what is restored, under the file's name.
    return { state: { ...state, model: { name: source.value!.name } }, structure: await structure(short) };
  };

  useEffect(() => {
    if (!sharing.value) return;
    let gone = false;
    dialog.current?.showModal();
    setLink("");
    setSaid("");
    void content()
      .then(encodeLink)
      .then((fragment) => !gone && setLink(address(location.href, fragment)))
      .catch((error: unknown) => !gone && setSaid(error instanceof Error ? error.message : String(error)));
    return () => {
      gone = true;
    };
  }, [sharing.value, withStructure, short]);

  if (!sharing.value) return null;
  const example = source.value?.example;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(link);
      setSaid("Copied.");
    } catch {
      field.current?.select();
      setSaid("Press Ctrl+C to copy.");
    }
  };
  const close = () => {
    sharing.value = false;
    setWithStructure(false);
    setShort(false);
  };
  return (
    <dialog ref={dialog} aria-labelledby="share-title" onClose={close}>
      <h2 id="share-title">Share this analysis</h2>
      <p class="muted">
        {withStructure
          ? "The link holds the model's structure: operators, names and shapes. Weights are never in it."
          : example
            ? "The link holds the example's name, the settings and the selected layer."
            : "The link holds the settings and the selected layer; the reader needs the model's file."}{" "}
        It is the part after #, which browsers send to no server.
      </p>
      <label class="check">
        <input
          type="checkbox"
          checked={withStructure}
          onChange={(event) => setWithStructure(event.currentTarget.checked)}
        />
        Include the model's structure
      </label>
      {withStructure && (
        <label class="check">
          <input type="checkbox" checked={short} onChange={(event) => setShort(event.currentTarget.checked)} />
          Shorten names
        </label>
      )}
      {link.length > shortLink && (
        <p class="caution">
          This link is long ({bytes(link.length)}): some mail and chat programs cut it. Shorten the names, or save a
          .monet.json file and send that.
        </p>
      )}
      <textarea
        ref={field}
        readOnly
        rows={4}
        aria-label="Link"
        value={link}
        onFocus={(event) => event.currentTarget.select()}
      />
      <p class="muted" role="status" data-testid="share-status">
        {said || (link ? `${integer(link.length)} characters` : "Preparing…")}
      </p>
      <div class="dialog-actions">
        <button
          type="button"
          onClick={() =>
            void content()
              .then(encodeFile)
              .then((text) => save(`${stem(source.value!.name)}.monet.json`, text, "application/json"))
              .catch((error: unknown) => setSaid(error instanceof Error ? error.message : String(error)))
          }
        >
          Save .monet.json
        </button>
        <span class="grow" />
        <button type="button" onClick={close}>
          Close
        </button>
        <button type="button" class="primary" disabled={!link} onClick={() => void copy()}>
          Copy link
        </button>
      </div>
    </dialog>
  );
}
