// What is installed: its source as it is, and what one may do with it.

import { h, icon } from "../dom";
import { visible } from "../text";
import { plain, type Hook, type Installed } from "./forms";

export interface InstalledActions {
  highlight(element: HTMLElement, text: string): void;
  /** Have it in the editor, to take its place. */
  edit(index: number): void;
  remove(index: number): void;
}

export class InstalledView {
  readonly element = h("section", { class: "yna-installed", label: "Installed" });
  private shown = "";
  private readonly open = new Set<string>();

  constructor(private readonly actions: InstalledActions) {}

  show({ installed, several, waits }: Hook): void {
    const now = JSON.stringify([installed, waits]);
    if (now === this.shown) return; // what is unfolded or focused stays so
    this.shown = now;
    const held = this.element.contains(document.activeElement);
    const rows = installed.map((each, index) => this.row(each, index, several));
    const kind = installed.length > 0 ? "" : "yna-muted";
    const head = h("h4", { class: kind, tabindex: "-1" }, installed.length > 0 ? "Installed" : "Nothing is installed.");
    if (waits) head.append(" ", h("span", { class: "yna-badge yna-hook-waits" }, icon("clock"), "Acts from the next turn on"));
    this.element.replaceChildren(head, ...rows);
    if (held) head.focus();
  }

  private row({ name, source, origin, editable, version }: Installed, index: number, several: boolean): HTMLElement {
    const key = `${name} ${origin} ${version ?? ""}`;
    const shown = visible(name);
    const code = h("pre", { class: "yna-hook-source", tabindex: "0", label: `Source of ${shown}` });
    const summary = h(
      "summary",
      {},
      icon("chevron"),
      several && index >= 0 ? h("span", { class: "yna-installed-place" }, `${index + 1}.`) : null,
      h("code", {}, shown),
      h("span", { class: "yna-muted" }, visible(plain(origin))),
    );
    const details = h("details", { class: "yna-fold", open: this.open.has(key) }, summary, source ? code : h("p", { class: "yna-muted" }, "Its source is not known."));
    const fill = (): void => {
      if (details.open) this.open.add(key);
      else this.open.delete(key);
      if (details.open && source && !code.firstChild) this.actions.highlight(code, source);
    };
    details.addEventListener("toggle", fill);
    fill();
    const buttons = h("div", { class: "yna-installed-buttons" });
    const idle = (): void => {
      const edit = h("button", { class: "yna-ghost", label: `Edit ${shown}`, onclick: () => this.actions.edit(index) }, icon("edit"), "Edit");
      const remove = h("button", { class: "yna-ghost", label: `Remove ${shown}`, onclick: () => ask() }, icon("cross"), "Remove");
      buttons.replaceChildren(...(editable && source ? [edit] : []), remove);
    };
    const ask = (): void => {
      const sure = h("button", { class: "yna-ghost yna-danger", onclick: () => this.actions.remove(index) }, `Remove ${shown}?`);
      const keep = h("button", { class: "yna-ghost" }, "Keep");
      keep.addEventListener("click", () => {
        idle();
        buttons.querySelector<HTMLElement>("button:last-child")?.focus();
      });
      buttons.replaceChildren(sure, keep);
      sure.focus();
    };
    idle();
    return h("div", { class: "yna-installed-row" }, details, buttons);
  }
}
