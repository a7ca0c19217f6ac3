// A field: its name, what it is about, its control, and what is wrong with it.

import { h, icon, newId, setText } from "../dom";
import { visible } from "../text";
import { choiceBody, fixedBody, unionBody } from "./choices";
import { TextContent } from "./contents";
import { jsonBody, numberBody, textBody } from "./entries";
import type { Field } from "./field";
import { listBody } from "./list_view";
import { objectBody } from "./object_view";
import { count } from "./schemas";
import { focusFirst, type Body, type FieldOptions, type FormView, type Shown } from "./view";

const MISFIT = "This does not fit the field, so it stands here as JSON.";

export class FieldView implements Shown {
  readonly element: HTMLElement;
  readonly nameId = newId();
  readonly described: string;
  private readonly name: HTMLElement;
  private readonly nameText = h("span", {});
  private readonly tools = h("div", { class: "yna-form-tools" });
  private readonly body = h("div", { class: "yna-form-body" });
  private readonly note = h("p", { class: "yna-field-about yna-form-note", hidden: true });
  private readonly problem = h("p", { class: "yna-problem yna-form-problem", id: newId(), hidden: true });
  private readonly hint: HTMLElement | null;
  private control: HTMLElement | null = null;
  /** Buttons of the field itself, whose state follows what it holds. */
  private readonly buttons: { element: HTMLElement; update: () => void }[] = [];

  constructor(
    private readonly form: FormView,
    readonly field: Field,
    private readonly options: FieldOptions,
  ) {
    const { shape } = field;
    const { bare, nameControl } = options;
    const mark = field.place.required && field.place.parent ? h("span", { class: "yna-required", title: "Required", "aria-hidden": "true" }, "*") : null;
    const title = shape.title && !isSpelling(shape.title, options.name) ? h("span", { class: "yna-form-title" }, visible(shape.title)) : null;
    this.name = h(field.isComposite || shape.flags ? "span" : "label", { class: "yna-field-name", id: this.nameId }, this.nameText, mark);
    this.hint = shape.hint ? h("span", { class: "yna-field-about yna-form-hint", id: newId() }, visible(shape.hint)) : null;
    const about = shape.description ? h("p", { class: "yna-field-about yna-form-about", id: newId() }, shape.description) : null;
    this.described = bare ? bare.described : [this.hint?.id, about?.id, this.problem.id].filter(Boolean).join(" ");
    const head = h("div", { class: "yna-form-head" }, nameControl, this.name, title, this.hint);
    if (nameControl) this.name.classList.add("yna-hidden");
    this.element = bare
      ? h("div", { class: "yna-form-field yna-form-bare" }, about, this.note, this.body)
      : h("div", { class: "yna-form-field" }, head, this.tools, about, this.note, this.body, this.problem);
    this.element.dataset.kind = shape.kind;
    this.setName(options.name);
    if (!bare) this.makeTools();
    this.render();
  }

  setName(name: string): void {
    this.options.name = name;
    setText(this.nameText, visible(name));
    this.element.dataset.key = name;
  }

  render(): void {
    const { field, options } = this;
    const misfit = field.state === "json";
    this.note.hidden = !misfit;
    if (misfit) this.note.replaceChildren(MISFIT, " ", this.backButton());
    const body = this.makeBody();
    this.control = body?.control ?? null;
    if (body) this.describe(body);
    this.body.replaceChildren(...(body ? [body.element] : []));
    this.body.hidden = !body;
    const simple = body !== null && !field.isComposite && !misfit;
    this.element.classList.toggle("yna-form-simple", simple && !options.bare);
    this.update();
  }

  /** Let the buttons follow what the field holds now. */
  update(): void {
    for (const { update } of this.buttons) update();
    this.tools.hidden = [...this.tools.children].every((tool) => (tool as HTMLElement).hidden);
  }

  /** Tell what is wrong; nothing where the text is empty. */
  complain(message: string): void {
    setText(this.problem, message);
    this.problem.hidden = message === "";
    if (message) this.control?.setAttribute("aria-invalid", "true");
    else this.control?.removeAttribute("aria-invalid");
  }

  focus(): void {
    focusFirst(this.body.hidden ? this.tools : this.body);
  }

  private makeBody(): Body | null {
    const { field, form } = this;
    const name = visible(this.options.name) || "the value";
    const ids = { named: this.options.bare?.named ?? this.named(), described: this.described };
    if (field.state === "json") return jsonBody(form, field);
    const { kind } = field.shape;
    switch (kind) {
      case "string":
        return textBody(form, field, name);
      case "number":
        return numberBody(form, field);
      case "choice":
        return choiceBody(form, field);
      case "json":
        return jsonBody(form, field);
      case "union":
        return unionBody(form, field, ids);
      default:
        if (field.state === "null") return nothing();
        if (field.state === "unset") return null;
        if (kind === "fixed") return fixedBody(field);
        return kind === "object" ? objectBody(form, field, name) : listBody(form, field, name, this.nameId);
    }
  }

  private describe({ control, labelled }: Body): void {
    const { bare, within } = this.options;
    if (labelled && !bare && this.name instanceof HTMLLabelElement) {
      control.id = newId();
      this.name.htmlFor = control.id;
    }
    if (!labelled || bare || within || !(this.name instanceof HTMLLabelElement)) control.setAttribute("aria-labelledby", bare?.named ?? this.named());
    if (this.described) control.setAttribute("aria-describedby", this.described);
    const isField = /^(INPUT|TEXTAREA|SELECT)$/.test(control.tagName) || control.getAttribute("role") === "radiogroup";
    if (this.field.place.required && isField) control.setAttribute("aria-required", "true");
  }

  private named(): string {
    return [this.options.within, this.nameId].filter(Boolean).join(" ");
  }

  private makeTools(): void {
    const { field } = this;
    const { kind, nullable, keywords, format } = field.shape;
    const addable = kind === "object" || kind === "list" || kind === "fixed";
    if (addable) this.tool("Add", "yna-form-begin", () => field.begin(), () => field.state === "unset" || (field.state === "null" && kind !== "fixed"));
    if (kind === "string" && !field.place.element) {
      const mayBeEmpty = !format && !((count(keywords.get("minLength")) ?? 0) > 0);
      const isEmpty = (): boolean => field.state === "value" && field.content instanceof TextContent && field.content.text === "";
      const toggle = (): void => (isEmpty() ? field.clear() : field.begin());
      this.tool("Empty text", "yna-form-empty", toggle, () => isEmpty() || (mayBeEmpty && field.state === "unset"), isEmpty, "Empty text for");
    }
    if (nullable && kind !== "union") {
      const isNull = (): boolean => field.state === "null";
      const toggle = (): void => {
        if (isNull()) field.start();
        else field.setNull();
      };
      this.tool("Null", "yna-form-nullify", toggle, () => true, isNull, "Null for");
    }
    const hasOwnWay = kind === "choice" || kind === "union";
    if (field.isOptional && !hasOwnWay) this.tool("Clear", "yna-form-clear", () => field.clear(), () => field.state !== "unset");
    this.tools.append(...(this.options.tools ?? []));
  }

  /** A button that changes the state of the field. */
  private tool(text: string, kind: string, act: () => void, isShown: () => boolean, isPressed?: () => boolean, words = text): void {
    const button = h("button", { class: `yna-ghost ${kind}`, title: words.replace(/ for$/, "") }, text);
    button.addEventListener("click", () => {
      act();
      this.render();
      if (!button.hidden && isPressed) button.focus();
      else this.focus();
      this.form.changed(this.field);
    });
    const update = (): void => {
      button.hidden = !isShown();
      button.setAttribute("aria-label", `${words} ${visible(this.options.name)}`.trim());
      if (isPressed) button.setAttribute("aria-pressed", String(isPressed()));
    };
    this.buttons.push({ element: button, update });
    this.tools.append(button);
  }

  /** Leads from JSON that does not fit back to the field's own control. */
  private backButton(): HTMLElement {
    const button = h("button", { class: "yna-ghost yna-form-back" }, icon("again"), "Use the field");
    button.addEventListener("click", () => {
      const { field } = this;
      const value = field.read();
      field.start();
      if (value !== undefined) {
        field.fill(value);
        if (field.state === "json") field.start();
      }
      this.render();
      this.focus();
      this.form.changed(field);
    });
    return button;
  }
}

function nothing(): Body {
  const element = h("output", { class: "yna-form-fixed" }, "null");
  return { element, control: element, labelled: false };
}

/** Whether a title says no more than the name does, as those that libraries make of names. */
function isSpelling(title: string, name: string): boolean {
  const letters = (text: string): string => text.toLowerCase().replace(/[\s_-]+/g, "");
  return letters(title) === letters(name);
}
