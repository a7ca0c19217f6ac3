// A form made from a JSON Schema.

import { h } from "../dom";
import "../styles/schema_form.css";
import { keyOf } from "./check";
import type { Field } from "./field";
import { FieldView } from "./field_view";
import { fromPlain, readExactJson, writeJson } from "./json_value";
import { Model, type Problem } from "./model";
import type { Schema } from "./schemas";
import type { FieldOptions, FormView, Shown } from "./view";

export type { Problem } from "./model";

export interface SchemaFormOptions {
  /** What it holds at first, as a page parsed it; `setText` takes it as it is written. */
  value?: unknown;
  /** What the whole is called, for those who do not see it. */
  label?: string;
}

/**
 * What a person does not touch stays absent, but for what is required and known: a default, a
 * constant, the empty object or list. Numbers keep the spelling that they were entered with.
 * What no control can show stays, as JSON in its place.
 */
export class SchemaForm implements FormView {
  readonly element: HTMLElement;
  /** Called after each change by a person, and not after `setText`. */
  onChange: (() => void) | null = null;
  private readonly model: Model;
  private readonly views = new WeakMap<Element, FieldView>();
  private readonly label: string;
  private root: FieldView;
  private revealed = false;

  /** `schema` is what a page parsed, or better a JSON text: then its numbers, too, are exact. */
  constructor(schema: Schema, { value, label = "Arguments" }: SchemaFormOptions = {}) {
    this.label = label;
    this.model = new Model(schema);
    const given = value === undefined ? undefined : fromPlain(value);
    if (given !== undefined) this.model.fill(given);
    this.element = h("div", { class: "yna-form" });
    this.root = this.showAll();
  }

  /** The value as JSON text; empty while there is none. */
  get text(): string {
    return this.model.text;
  }

  /**
   * Fill the form from JSON.
   *
   * @returns why it cannot be, in words; then the form stays as it is. Null where it was filled: what
   *   does not fit the schema is kept too, and told by `problems`.
   */
  setText(text: string): string | null {
    if (text.trim() === "") {
      const empty = new Model(this.model.schema);
      if (empty.text !== "") return "There is no value: at least {} or [] is expected.";
      this.model.root.start();
    } else {
      const read = readExactJson(text);
      if ("problem" in read) return read.problem;
      if (writeJson(read.value) === this.text) return null;
      this.model.fill(read.value);
    }
    this.root = this.showAll();
    return null;
  }

  /** What keeps the value from fitting the schema. */
  problems(): Problem[] {
    return this.model.problems().map(({ path, message }) => ({ path, message }));
  }

  /** Show all problems, those of untouched fields too, and go to the first one; returns whether there are any. */
  reveal(): boolean {
    this.revealed = true;
    this.complain();
    const first = this.element.querySelector(".yna-form-problem:not([hidden])")?.parentElement;
    if (first) this.views.get(first)?.focus();
    return this.model.problems().length > 0;
  }

  focus(): void {
    this.root.focus();
  }

  dispose(): void {
    this.onChange = null;
    this.element.replaceChildren();
  }

  show(field: Field, options: FieldOptions): Shown {
    const view = new FieldView(this, field, options);
    this.views.set(view.element, view);
    return view;
  }

  changed(field: Field): void {
    for (let each: Field | null = field; each; each = each.place.parent) each.touched = true;
    this.complain();
    this.onChange?.();
  }

  private showAll(): FieldView {
    const view = new FieldView(this, this.model.root, { name: this.label });
    this.views.set(view.element, view);
    view.element.classList.add("yna-form-root");
    this.element.replaceChildren(view.element);
    this.root = view;
    this.complain();
    return view;
  }

  /** Put each problem beside its field; one that nobody touched yet is not called wrong. */
  private complain(): void {
    const messages = new Map<string, string>();
    for (const { keys, message } of this.model.problems()) {
      const key = keyOf(keys);
      if (!messages.has(key)) messages.set(key, message);
    }
    for (const element of this.element.querySelectorAll(".yna-form-field")) {
      const view = this.views.get(element);
      if (!view) continue;
      const { field } = view;
      const isTold = this.revealed || field.touched || field.state !== "unset";
      view.update();
      view.complain(isTold ? (messages.get(keyOf(field.keys)) ?? "") : "");
    }
  }
}
