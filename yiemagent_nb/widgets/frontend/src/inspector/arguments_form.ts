// The arguments of a call: a form made from the schema, and the same as JSON. The JSON is what is sent.

import { h } from "../dom";
import { readJson } from "../json_text";
import type { PanelContext } from "../panel";
import { SchemaForm, type Problem } from "../schema_form/schema_form";
import { JsonEditor } from "./json_editor";
import { indented } from "./json_layout";
import { keywordsOf } from "./schema_words";
import { Segments } from "./small";

export class ArgumentsForm {
  readonly element: HTMLElement;
  /** None where the schema is too large for one. */
  private readonly form: SchemaForm | null;
  private readonly editor: JsonEditor;
  private readonly panes: HTMLElement;
  private readonly note = h("p", { class: "yna-muted yna-json-note", role: "status" });
  private readonly segments = new Segments("Arguments as", [["form", "Form"], ["json", "JSON"]], (key) => this.show(key));
  /** Why the form does not show what stands in the JSON. */
  private apart = "";

  /** `schema` is a JSON text: so its numbers, too, stay as they are written. */
  constructor(
    context: PanelContext,
    schema: string | null,
    text: string | null,
    private readonly onChange: () => void,
  ) {
    this.form = schema === null ? null : new SchemaForm(schema);
    this.editor = new JsonEditor(context, "Arguments as JSON", (written) => this.takeJson(written));
    if (this.form) this.form.onChange = () => this.takeForm();
    this.panes = h(
      "div",
      { class: "yna-arguments-panes" },
      h("div", { class: "yna-arguments-pane yna-form-pane", role: "group", label: "Arguments" }, this.form?.element ?? h("p", { class: "yna-muted" }, "The schema is too large for a form.")),
      h("div", { class: "yna-arguments-pane yna-json-pane" }, h("p", { class: "yna-pane-title", "aria-hidden": "true" }, "JSON"), this.editor.element, this.note),
    );
    this.element = h("div", { class: "yna-arguments" }, this.segments.element, this.panes);
    this.segments.element.hidden = this.form !== null && text === null && schema !== null && isWithoutParameters(schema);
    this.show(this.form ? "form" : "json");
    if (text === null) this.editor.value = indented(this.form?.text || "{}");
    else this.setText(text);
  }

  /** What is sent. */
  get text(): string {
    return this.editor.value;
  }

  setText(text: string): void {
    this.editor.value = indented(text);
    this.takeJson(this.editor.value);
  }

  /** Why it cannot be sent, or null. */
  fault(): string | null {
    return jsonFault(this.text);
  }

  /** What does not fit the schema; it is shown in the form as well. */
  problems(): Problem[] {
    if (this.apart || !this.form) return [];
    const problems = this.form.problems();
    if (problems.length > 0) this.form.reveal();
    return problems;
  }

  focus(): void {
    if (this.panes.dataset.shown === "json") this.editor.focus();
    else this.form?.focus();
  }

  dispose(): void {
    this.form?.dispose();
    this.editor.dispose();
  }

  private show(key: string): void {
    this.segments.press(key);
    this.panes.dataset.shown = key;
  }

  private takeForm(): void {
    if (!this.form) return;
    this.editor.value = indented(this.form.text || "{}");
    this.say("");
    this.onChange();
  }

  private takeJson(text: string): void {
    const fault = jsonFault(text);
    if (fault) this.say(fault);
    else {
      const why = this.form?.setText(text) ?? null;
      this.say(why === null ? "" : `The form cannot show this: ${why}`);
    }
    this.onChange();
  }

  private say(apart: string): void {
    this.apart = apart;
    this.note.textContent = apart;
    this.panes.classList.toggle("yna-apart", apart !== "");
  }
}

/** Whether nothing can be said to a tool; then there is no choice how. */
function isWithoutParameters(schema: string): boolean {
  const { properties, additionalProperties, ...rest } = keywordsOf(JSON.parse(schema));
  const names = Object.keys(keywordsOf(properties));
  const plain = Object.keys(rest).every((keyword) => ["type", "title", "description", "$schema"].includes(keyword));
  return names.length === 0 && plain && (additionalProperties === undefined || additionalProperties === false);
}

/** Why a text is no JSON object, or null. Numbers of any size are fine: it goes over as a text. */
function jsonFault(text: string): string | null {
  try {
    const value: unknown = JSON.parse(text);
    const fits = typeof value === "object" && value !== null && !Array.isArray(value);
    return fits ? null : "Arguments are a JSON object: write { … }.";
  } catch {
    const read = readJson(text);
    return "value" in read ? null : `Line ${read.line}, column ${read.column}: ${read.problem}`;
  }
}
