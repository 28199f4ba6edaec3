// The fields that settings are made of.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export interface Option {
  value: string;
  label: string;
}

export const options = (labels: Record<string, string>): Option[] =>
  Object.entries(labels).map(([value, label]) => ({ value, label }));

export function Field({
  id,
  label,
  hint,
  children,
}: {
  id: string;
  label: string;
  hint?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      {hint && <p class="hint">{hint}</p>}
    </div>
  );
}

export function Select({
  id,
  label,
  value,
  list,
  onChange,
}: {
  id: string;
  label: string;
  value: string;
  list: Option[];
  onChange(value: string): void;
}) {
  return (
    <Field id={id} label={label}>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {list.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
    </Field>
  );
}

interface TextProps<T> {
  id: string;
  label: string;
  value: T;
  show(value: T): string;
  read(text: string): T | undefined; // undefined: not valid
  placeholder?: string;
  hint?: ComponentChildren;
  wrong: string;
  numeric?: boolean;
  onChange(value: T): void;
}

// A text whose value is taken while typing as soon as it is valid.
export function Text<T>({ id, label, value, show, read, placeholder, hint, wrong, numeric, onChange }: TextProps<T>) {
  const [text, setText] = useState(show(value));
  const own = useRef(value);
  useEffect(() => {
    // Changed from elsewhere (another model, a link): show that.
    if (JSON.stringify(value) !== JSON.stringify(own.current)) setText(show(value));
    own.current = value;
  }, [value]);
  const bad = read(text) === undefined;
  return (
    <Field id={id} label={label} hint={bad ? wrong : hint}>
      <input
        id={id}
        type="text"
        inputMode={numeric ? "numeric" : "text"}
        autocomplete="off"
        spellcheck={false}
        value={text}
        placeholder={placeholder}
        aria-invalid={bad}
        onInput={(event) => {
          const next = event.currentTarget.value;
          setText(next);
          const parsed = read(next);
          if (parsed === undefined || JSON.stringify(parsed) === JSON.stringify(own.current)) return;
          own.current = parsed;
          onChange(parsed);
        }}
      />
    </Field>
  );
}

export const readCount = (text: string): number | null | undefined => {
  if (text.trim() === "") return null;
  const value = Number(text);
  return Number.isInteger(value) && value >= 1 ? value : undefined;
};

export const readAmount = (text: string): number | null | undefined => {
  if (text.trim() === "") return null;
  const value = Number(text);
  return Number.isFinite(value) && value >= 0 ? value : undefined;
};
