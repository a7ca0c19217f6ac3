// An object: its properties in the order of the schema, and those under names of one's own.

import { h, icon } from "../dom";
import { visible } from "../text";
import type { Extra, ObjectContent } from "./composites";
import type { Field } from "./field";
import { arrange, focusFirst, type Body, type FormView, type Shown } from "./view";

const FEW = 40;
/** So many of those that are required or set are shown below the first ones too. */
const MOST_BELOW = 100;

export function objectBody(form: FormView, field: Field, name: string): Body {
  const view = new ObjectView(form, field, field.content as ObjectContent, name);
  return { element: view.element, control: view.element, labelled: false };
}

class ObjectView {
  readonly element = h("div", { class: "yna-form-object", role: "group" });
  private readonly properties = h("div", { class: "yna-form-properties" });
  private readonly more = h("button", { class: "yna-more yna-ghost" });
  private readonly extras = h("div", { class: "yna-form-properties yna-form-extras" });
  private readonly shown = new Map<Field, Shown>();
  private limit = FEW;
  private search = "";

  constructor(
    private readonly form: FormView,
    private readonly field: Field,
    private readonly content: ObjectContent,
    name: string,
  ) {
    const { names, isOpen } = content;
    const nothing = names.length === 0 && !isOpen && content.extras.length === 0;
    const add = h("button", { class: "yna-button yna-form-add", label: `Add property to ${name}` }, "Add property");
    add.addEventListener("click", () => this.add());
    this.more.addEventListener("click", () => this.showMore());
    this.element.append(
      ...(names.length > FEW ? [this.searchField(names.length)] : []),
      ...(nothing ? [h("p", { class: "yna-field-about" }, "There is nothing to fill in.")] : []),
      this.properties,
      this.more,
      this.extras,
      ...(isOpen ? [add] : []),
    );
    this.showProperties();
    this.showExtras();
  }

  private searchField(count: number): HTMLElement {
    const label = `Find one of ${count} properties`;
    const box = h("input", { class: "yna-field yna-form-search", type: "search", placeholder: label, label });
    box.addEventListener("input", () => {
      this.search = box.value.trim().toLowerCase();
      this.limit = FEW;
      this.showProperties();
    });
    return box;
  }

  private showProperties(): void {
    const { content } = this;
    const matching = this.search ? content.names.filter((name) => name.toLowerCase().includes(this.search)) : content.names;
    let below = 0;
    const names = matching.filter((name, at) => {
      if (at < this.limit) return true;
      const wanted = !this.search && (content.isRequired(name) || content.isSet(name)) && below < MOST_BELOW;
      if (wanted) below += 1;
      return wanted;
    });
    arrange(this.properties, names.map((name) => this.show(content.property(name), name).element));
    const left = matching.length - names.length;
    this.more.hidden = left === 0;
    this.more.textContent = `Show ${Math.min(left, FEW)} more of ${left.toLocaleString()}`;
  }

  private showMore(): void {
    const before = new Set(this.properties.children);
    this.limit += FEW;
    this.showProperties();
    focusFirst([...this.properties.children].find((element) => !before.has(element)));
  }

  private show(field: Field, name: string): Shown {
    let shown = this.shown.get(field);
    if (!shown) {
      shown = this.form.show(field, { name });
      this.shown.set(field, shown);
    }
    return shown;
  }

  private showExtras(): void {
    this.extras.replaceChildren(...this.content.extras.map((extra, at) => this.extraElement(extra, at)));
    this.extras.hidden = this.content.extras.length === 0;
  }

  private extraElement(extra: Extra, at: number): HTMLElement {
    const box = h("input", { class: "yna-field yna-form-key", autocomplete: "off", spellcheck: "false", placeholder: "Name", label: `Name of property ${at + 1}` });
    box.value = extra.name;
    const remove = h("button", { class: "yna-quiet yna-form-remove", title: "Remove", label: `Remove property ${visible(extra.name) || at + 1}` }, icon("cross"));
    remove.addEventListener("click", () => this.remove(extra, at));
    const name = extra.named ? visible(extra.name) : `property ${at + 1}`;
    const shown = this.form.show(extra.field, { name, nameControl: box, tools: [remove] });
    box.addEventListener("input", () => {
      const renamed = this.content.rename(extra, box.value);
      shown.setName(visible(box.value));
      if (renamed !== extra) {
        const element = this.extraElement(renamed, at);
        shown.element.replaceWith(element);
        const key = element.querySelector<HTMLInputElement>(".yna-form-key");
        key?.focus();
        key?.setSelectionRange(box.selectionStart, box.selectionEnd);
      }
      this.form.changed(renamed.field);
    });
    return shown.element;
  }

  private add(): void {
    this.content.addExtra();
    this.showExtras();
    this.extras.lastElementChild?.querySelector<HTMLElement>(".yna-form-key")?.focus();
    this.form.changed(this.field);
  }

  private remove(extra: Extra, at: number): void {
    this.content.removeExtra(extra);
    this.showExtras();
    const next = this.extras.children[at] ?? this.extras.lastElementChild ?? this.element.querySelector(":scope > .yna-form-add")?.parentElement;
    const button = next?.querySelector<HTMLElement>(next === this.element ? ":scope > .yna-form-add" : ".yna-form-remove");
    button?.focus();
    this.form.changed(this.field);
  }
}
