// Controls for texts, numbers and JSON.

import { h } from "../dom";
import { JsonContent, NumberContent, TextContent } from "./contents";
import type { Field } from "./field";
import { fromPicker, toPicker, type Format } from "./formats";
import { writeJson, type Json } from "./json_value";
import type { Body, FormView } from "./view";

const LONGEST_PLACEHOLDER = 80;

export function textBody(form: FormView, field: Field, name: string): Body {
  const { format } = field.shape;
  const box = area(format ? "" : "yna-form-long", shownText(field), placeholder(field));
  if (format) {
    box.setAttribute("inputmode", format.keyboard ?? "text");
    box.setAttribute("spellcheck", "false");
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter") event.preventDefault(); // it is one line
    });
  }
  const enter = (text: string): void => {
    enterText(field, withLineEnds(text, shownText(field)));
    form.changed(field);
  };
  box.addEventListener("input", () => enter(box.value));
  if (!format?.picker) return { element: box, control: box, labelled: true };
  const picker = pickerFor(format, box, name, enter);
  return { element: h("div", { class: "yna-form-row" }, box, picker), control: box, labelled: true };
}

export function numberBody(form: FormView, field: Field): Body {
  const { whole } = field.shape;
  const box = h("input", {
    class: "yna-field yna-form-number",
    inputmode: whole ? "numeric" : "decimal",
    autocomplete: "off",
    placeholder: placeholder(field),
  });
  box.value = field.state === "value" && field.content instanceof NumberContent ? field.content.text : "";
  box.addEventListener("input", () => {
    if (box.value.trim() === "") field.clear();
    else {
      if (field.state !== "value") field.begin();
      if (field.content instanceof NumberContent) field.content.text = box.value;
    }
    form.changed(field);
  });
  return { element: box, control: box, labelled: true };
}

/** A field for JSON: of a kind that has no other control, or of a value that does not fit its own. */
export function jsonBody(form: FormView, field: Field): Body {
  const read = (): string => {
    if (field.state === "json") return field.entry;
    return field.state === "value" && field.content instanceof JsonContent ? field.content.text : "";
  };
  const box = area("yna-form-long yna-code-field", read(), field.shape.fallback === undefined ? "JSON" : placeholder(field));
  box.setAttribute("spellcheck", "false");
  box.addEventListener("input", () => {
    if (box.value.trim() === "") field.clear();
    else if (field.state === "json") field.entry = box.value;
    else {
      if (field.state !== "value") field.begin();
      if (field.content instanceof JsonContent) field.content.text = box.value;
    }
    form.changed(field);
  });
  return { element: box, control: box, labelled: true };
}

function area(kind: string, text: string, placeholder: string): HTMLTextAreaElement {
  const box = h("textarea", { class: `yna-field yna-text-field ${kind}`, rows: "1", autocomplete: "off", placeholder });
  box.value = text;
  return box;
}

function shownText(field: Field): string {
  return field.state === "value" && field.content instanceof TextContent ? field.content.text : "";
}

function enterText(field: Field, text: string): void {
  if (text === "" && !field.place.element) {
    field.clear();
    return;
  }
  if (field.state !== "value") field.begin();
  if (field.content instanceof TextContent) field.content.text = text;
}

/** A page's field ends lines by LF alone; where the text had CR LF all through, they come back. */
function withLineEnds(text: string, before: string): string {
  const windows = before.includes("\r\n") && !/(^|[^\r])\n/.test(before);
  return windows ? text.replaceAll("\n", "\r\n") : text;
}

/** What an empty field tells: what is taken if nothing is sent, or an example. */
export function placeholder(field: Field): string {
  const { fallback, example, format } = field.shape;
  const clip = (value: Json): string => {
    const text = typeof value === "string" && value !== "" ? value : writeJson(value, null);
    return text.length > LONGEST_PLACEHOLDER ? `${text.slice(0, LONGEST_PLACEHOLDER)}…` : text;
  };
  if (field.state === "null") return "null";
  if (field.state === "value" && field.isOptional) return "Empty text";
  if (fallback !== undefined && fallback !== null && field.isOptional) return `Default: ${clip(fallback)}`;
  if (example !== undefined) return `Such as ${clip(example)}`;
  if (format?.example) return `Such as ${format.example}`;
  return field.isOptional ? "Not set" : "";
}

function pickerFor(format: Format, box: HTMLTextAreaElement, name: string, enter: (text: string) => void): HTMLElement {
  const picker = h("input", { class: "yna-form-picker", type: format.picker, step: format.picker === "date" ? undefined : "1", label: `Pick: ${name}` });
  picker.value = toPicker(format, box.value);
  box.addEventListener("input", () => (picker.value = toPicker(format, box.value)));
  picker.addEventListener("input", () => {
    if (picker.value === "") return;
    box.value = fromPicker(format, picker.value);
    enter(box.value);
  });
  return picker;
}
