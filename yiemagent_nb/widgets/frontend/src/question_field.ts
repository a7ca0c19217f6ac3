// One field of a question. What a person does not touch keeps its default, or stays absent.

import { h, newId } from "./dom";
import type { QuestionField } from "./protocol";

const INPUT_TYPES: Record<QuestionField["format"], string> = {
  "": "text",
  email: "email",
  uri: "url",
  date: "date",
  "date-time": "datetime-local",
};
const PLACEHOLDERS: Partial<Record<QuestionField["format"], string>> = {
  email: "name@example.org",
  uri: "https://example.org",
};

type Control = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

/** What was found in a field: a value, nothing, or what is wrong. */
type Reading = { value: unknown } | { absent: true } | { problem: string };

const ABSENT: Reading = { absent: true };

export class FieldView {
  readonly element: HTMLElement;
  private readonly controls: Control[];
  private readonly problem = h("p", { class: "yna-problem", role: "alert", hidden: true });

  /** `draft` keeps what was entered, by the names of fields. */
  constructor(
    private readonly field: QuestionField,
    private readonly draft: Map<string, unknown>,
  ) {
    const id = newId();
    const { title, description, hint, required, kind } = field;
    this.controls = this.makeControls();
    const [first] = this.controls;
    const many = kind === "choices";
    const checkbox = first instanceof HTMLInputElement && first.type === "checkbox" && !many;
    const mark = required ? h("span", { class: "yna-required", title: "Required" }, "*") : null;
    const name = h(many ? "span" : "label", { class: "yna-field-name", id: `${id}-name`, for: many ? undefined : id }, title, mark);
    const what = hint ? h("span", { class: "yna-field-about", id: `${id}-hint` }, hint) : null;
    const about = description ? h("p", { class: "yna-field-about", id: `${id}-about` }, description) : null;
    const described = [what?.id, about?.id].filter(Boolean).join(" ") || undefined;
    for (const control of many ? [] : this.controls) {
      control.id = id;
      if (described) control.setAttribute("aria-describedby", described);
      if (required) control.setAttribute("aria-required", "true");
    }
    const body = many
      ? h("div", { class: "yna-checks", role: "group", "aria-labelledby": `${id}-name`, "aria-describedby": described }, ...this.labelled())
      : first;
    const row = checkbox ? h("div", { class: "yna-check" }, first, name) : h("div", { class: "yna-field-title" }, name, what);
    this.element = h("div", { class: "yna-question-field" }, row, about, checkbox ? null : body, this.problem);
    const touched = (): void => {
      draft.set(field.name, this.raw());
      this.complain("");
    };
    for (const control of this.controls) control.addEventListener("input", touched);
  }

  /** Put the value, if there is one, into an answer; returns whether nothing is wrong. */
  readInto(content: Record<string, unknown>): boolean {
    const { name, required, nullable } = this.field;
    let reading = this.read();
    if ("absent" in reading && required && !nullable) reading = { problem: "This is asked for." };
    this.complain("problem" in reading ? reading.problem : "");
    if ("value" in reading) content[name] = reading.value;
    else if (required && nullable) content[name] = null;
    return !("problem" in reading);
  }

  focus(): void {
    this.controls[0]?.focus();
  }

  private complain(text: string): void {
    this.problem.textContent = text;
    this.problem.hidden = text === "";
    for (const control of this.controls) {
      if (text) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
    }
  }

  private read(): Reading {
    const { field } = this;
    const [control] = this.controls;
    if (control instanceof HTMLInputElement && (control.validity.badInput || control.validity.typeMismatch)) {
      return { problem: control.validationMessage };
    }
    if (!this.draft.has(field.name)) {
      if (field.default !== null) return { value: field.default };
      return field.kind === "boolean" && field.required && !field.nullable ? { value: false } : ABSENT;
    }
    const raw = this.raw();
    if (Array.isArray(raw)) {
      if (raw.length === 0 && !field.required) return ABSENT;
      return { value: raw.map((at: number) => field.choices[at]?.value) };
    }
    if (typeof raw === "boolean") return { value: raw };
    if (raw === "") return ABSENT;
    return this.parse(raw);
  }

  private parse(raw: string): Reading {
    const { kind, choices, format } = this.field;
    switch (kind) {
      case "choice":
        return { value: choices[Number(raw)]?.value };
      case "boolean":
        return { value: raw === "1" };
      case "number":
      case "integer":
        return { value: Number(raw) };
      case "json":
        try {
          return { value: JSON.parse(raw) };
        } catch (error) {
          return { problem: `This is not JSON: ${(error as Error).message}` };
        }
      default:
        return { value: format === "date-time" ? withZone(raw) : raw };
    }
  }

  /** What stands in the controls: a text, whether a box is checked, or which ones are. */
  private raw(): string | boolean | number[] {
    const [first] = this.controls;
    if (this.field.kind === "choices") {
      return this.controls.flatMap((control, at) => ((control as HTMLInputElement).checked ? [at] : []));
    }
    if (first instanceof HTMLInputElement && first.type === "checkbox") return first.checked;
    return first?.value ?? "";
  }

  private makeControls(): Control[] {
    const { field, draft } = this;
    const known = draft.get(field.name);
    switch (field.kind) {
      case "choices":
        return field.choices.map(({ value }, at) => checkbox(Array.isArray(known) ? known.includes(at) : isIn(value, field.default)));
      case "choice": {
        const at = field.choices.findIndex(({ value }) => field.default !== null && same(value, field.default));
        return [select(field.choices.map(({ label }) => label), at, known)];
      }
      case "boolean":
        if (field.default === null && (!field.required || field.nullable)) return [select(["No", "Yes"], -1, known)];
        return [checkbox(known === undefined ? field.default === true : known === true)];
      default:
        return [entry(field, known)];
    }
  }

  private labelled(): HTMLElement[] {
    return this.controls.map((control, at) => h("label", { class: "yna-check" }, control, h("span", {}, this.field.choices[at]?.label)));
  }
}

function entry(field: QuestionField, known: unknown): Control {
  const { kind, format } = field;
  const text = typeof field.default === "string" ? field.default : field.default === null ? "" : JSON.stringify(field.default, null, kind === "json" ? 2 : 0);
  const number = kind === "number" || kind === "integer";
  const common = { autocomplete: "off", spellcheck: format ? "false" : "true" };
  const control =
    number || format
      ? h("input", { ...common, class: "yna-field", type: number ? "number" : INPUT_TYPES[format], step: number ? "any" : undefined, placeholder: PLACEHOLDERS[format] })
      : h("textarea", { ...common, class: `yna-field yna-text-field${kind === "json" ? " yna-code-field" : ""}`, rows: kind === "json" ? "3" : "1" });
  control.value = typeof known === "string" ? known : format === "date-time" ? withoutZone(text) : text;
  return control;
}

function checkbox(checked: boolean): HTMLInputElement {
  const box = h("input", { type: "checkbox" });
  box.checked = checked;
  return box;
}

function select(labels: string[], at: number, known: unknown): HTMLSelectElement {
  const options = labels.map((label, value) => h("option", { value: String(value) }, label));
  const box = h("select", { class: "yna-field yna-select" }, h("option", { value: "" }, "Choose…"), ...options);
  box.value = typeof known === "string" ? known : at < 0 ? "" : String(at);
  return box;
}

function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function isIn(value: unknown, values: unknown): boolean {
  return Array.isArray(values) && values.some((each) => same(each, value));
}

/** A time on this computer's clock with its zone, as RFC 3339 has it. */
function withZone(local: string): string {
  const minutes = -new Date(local).getTimezoneOffset();
  const two = (value: number): string => String(Math.trunc(value)).padStart(2, "0");
  const zone = `${minutes < 0 ? "-" : "+"}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
  return `${local.length === 16 ? `${local}:00` : local}${zone}`;
}

function withoutZone(time: string): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "";
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
