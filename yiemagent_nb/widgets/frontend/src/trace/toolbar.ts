// What chooses which rows are shown.

import { h, icon, newId } from "../dom";
import { NO_FILTER, isOn, type Filter } from "./filter";
import type { Kind } from "./rows";

/** Milliseconds of typing that is let pass. */
const TYPING = 150;

const KINDS: [kind: Kind, name: string][] = [
  ["model", "Model"],
  ["tool", "Tools"],
  ["hand", "By hand"],
];

export class Toolbar {
  readonly element: HTMLElement;
  filter: Filter = NO_FILTER;
  private readonly search = h("input", {
    class: "yna-trace-search",
    type: "search",
    label: "Show rows with this text",
    placeholder: "Filter",
    spellcheck: "false",
    autocomplete: "off",
  });
  private readonly slower: HTMLInputElement;
  private readonly kinds = new Map<Kind, HTMLButtonElement>();
  private readonly failed: HTMLButtonElement;
  private readonly reset: HTMLButtonElement;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly onFilter: () => void,
    ...others: HTMLElement[]
  ) {
    const toggle = (name: string, ...picture: Element[]): HTMLButtonElement => {
      const button = h("button", { class: "yna-trace-chip", "aria-pressed": "false" }, ...picture, name);
      button.addEventListener("click", () => {
        button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
        this.read();
      });
      return button;
    };
    for (const [kind, name] of KINDS) this.kinds.set(kind, toggle(name));
    this.failed = toggle("Failed", icon("alert"));
    const id = newId();
    this.slower = h("input", { id, class: "yna-trace-slower", type: "number", min: "0", step: "any", placeholder: "0" });
    this.reset = h("button", { class: "yna-trace-chip yna-trace-reset", hidden: true, onclick: () => this.clear() }, "Show all");
    const slower = h("span", { class: "yna-trace-limit" }, h("label", { for: id }, "Slower than"), this.slower, "s");
    this.element = h(
      "div",
      { class: "yna-trace-toolbar", role: "group", label: "Filter" },
      h("span", { class: "yna-trace-find" }, icon("search"), this.search),
      h("span", { class: "yna-trace-chips" }, ...this.kinds.values(), this.failed),
      slower,
      this.reset,
      ...others,
    );
    for (const input of [this.search, this.slower]) {
      input.addEventListener("input", () => {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.read(), TYPING);
      });
      input.addEventListener("keydown", (event) => {
        if (event.key !== "Escape" || input.value === "") return;
        event.preventDefault(); // it would close the panel
        input.value = "";
        this.read();
      });
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
  }

  private clear(): void {
    for (const button of [...this.kinds.values(), this.failed]) button.setAttribute("aria-pressed", "false");
    for (const input of [this.search, this.slower]) input.value = "";
    this.search.focus();
    this.read();
  }

  private read(): void {
    clearTimeout(this.timer);
    const on = (button: HTMLButtonElement): boolean => button.getAttribute("aria-pressed") === "true";
    this.filter = {
      text: this.search.value.trim().toLowerCase(),
      kinds: new Set([...this.kinds].filter(([, button]) => on(button)).map(([kind]) => kind)),
      failedOnly: on(this.failed),
      slowerThan: Math.max(0, Number(this.slower.value) || 0),
    };
    this.reset.hidden = !isOn(this.filter);
    this.onFilter();
  }
}
