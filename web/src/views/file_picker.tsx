// A hidden file input: a click on `picker` shows the system's dialog, what is chosen opens.
import type { RefObject } from "preact";
import { openFiles } from "../state";

interface FilePickerProps {
  picker: RefObject<HTMLInputElement | null>;
  label: string;
  accept: string;
}

export function FilePicker({ picker, label, accept }: FilePickerProps) {
  return (
    <input
      ref={picker}
      type="file"
      class="hidden"
      aria-label={label}
      accept={accept}
      tabIndex={-1}
      multiple // a system and its core files come together
      onChange={(event) => {
        openFiles(event.currentTarget.files);
        event.currentTarget.value = ""; // the same file can be chosen again
      }}
    />
  );
}
