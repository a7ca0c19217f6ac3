// A list: its items, with buttons to add, move and remove them.

import { h, icon } from "../dom";
import type { ListContent } from "./composites";
import type { Field } from "./field";
import { arrange, type Body, type FormView, type Shown } from "./view";

const FEW = 50;

export function listBody(form: FormView, field: Field, name: string, nameId: string): Body {
  const view = new ListView(form, field, field.content as ListContent, name, nameId);
  return { element: view.element, control: view.element, labelled: false };
}

interface Row {
  shown: Shown;
  up: HTMLButtonElement;
  down: HTMLButtonElement;
  remove: HTMLButtonElement;
}

class ListView {
  readonly element = h("div", { class: "yna-form-list", role: "group" });
  private readonly items = h("div", { class: "yna-form-items" });
  private readonly more = h("button", { class: "yna-more yna-ghost" });
  private readonly add: HTMLButtonElement;
  private readonly rows = new Map<Field, Row>();
  /** Items that were added below those that are shown. */
  private readonly added = new Set<Field>();
  private limit = FEW;

  constructor(
    private readonly form: FormView,
    private readonly field: Field,
    private readonly content: ListContent,
    private readonly name: string,
    private readonly nameId: string,
  ) {
    this.add = h("button", { class: "yna-button yna-form-add", label: `Add item to ${name}` }, "Add item");
    this.add.addEventListener("click", () => this.addItem());
    this.more.addEventListener("click", () => {
      this.limit += FEW;
      this.show();
    });
    this.element.append(this.items, this.more, this.add);
    this.show();
  }

  private show(): void {
    const { items } = this.content;
    const shown = items.filter((item, at) => at < this.limit || this.added.has(item));
    const places = new Map(items.map((item, at) => [item, at]));
    arrange(this.items, shown.map((item) => this.row(item, places.get(item) ?? 0).shown.element));
    this.items.hidden = shown.length === 0;
    const left = items.length - shown.length;
    this.more.hidden = left === 0;
    this.more.textContent = `Show ${Math.min(left, FEW)} more of ${left.toLocaleString()}`;
    this.add.hidden = !this.content.mayAdd;
  }

  private row(item: Field, at: number): Row {
    const name = String(at + 1);
    let row = this.rows.get(item);
    if (!row) {
      const isFixed = at < this.content.fixed;
      const up = h("button", { class: "yna-quiet yna-form-up", title: "Move up" }, icon("up"));
      const down = h("button", { class: "yna-quiet yna-form-down", title: "Move down" }, icon("up"));
      const remove = h("button", { class: "yna-quiet yna-form-remove", title: "Remove" }, icon("cross"));
      up.addEventListener("click", () => this.move(item, -1, up));
      down.addEventListener("click", () => this.move(item, 1, down));
      remove.addEventListener("click", () => this.remove(item));
      const tools = isFixed ? [] : [up, down, remove];
      row = { shown: this.form.show(item, { name, within: this.nameId, tools }), up, down, remove };
      this.rows.set(item, row);
    }
    row.shown.setName(name);
    const which = `item ${name} of ${this.name}`;
    row.up.setAttribute("aria-label", `Move up ${which}`);
    row.down.setAttribute("aria-label", `Move down ${which}`);
    row.remove.setAttribute("aria-label", `Remove ${which}`);
    row.up.disabled = !this.content.mayMove(item, -1);
    row.down.disabled = !this.content.mayMove(item, 1);
    return row;
  }

  private addItem(): void {
    const item = this.content.add();
    this.added.add(item);
    this.show();
    this.rows.get(item)?.shown.focus();
    this.form.changed(this.field);
  }

  private move(item: Field, by: -1 | 1, button: HTMLButtonElement): void {
    this.content.move(item, by);
    this.show();
    const row = this.rows.get(item);
    (button.disabled ? (button === row?.up ? row.down : row?.up) : button)?.focus();
    this.form.changed(this.field);
  }

  private remove(item: Field): void {
    const at = this.content.items.indexOf(item);
    this.content.remove(item);
    this.rows.delete(item);
    this.show();
    const next = this.content.items[Math.min(at, this.content.items.length - 1)];
    const button = next ? this.rows.get(next)?.remove : this.add;
    (button?.isConnected && !button.hidden ? button : this.add).focus();
    this.form.changed(this.field);
  }
}
