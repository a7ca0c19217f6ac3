// A list of which one is chosen: one stop for Tab, arrow keys within, Enter or Space chooses.

import { h, icon, newId } from "./dom";

const MOST_SHOWN = 200;

export interface Choice {
  key: string;
  label: string;
}

export class ChoiceList {
  readonly element: HTMLElement;
  private readonly list = h("div", { class: "yna-choices", role: "radiogroup" });
  private readonly more = h("p", { class: "yna-muted yna-choices-more", hidden: true });
  private choices: Choice[] = [];
  private chosen = "";

  constructor(
    title: string,
    private readonly choose: (key: string) => void,
    ...children: (Node | null)[]
  ) {
    const id = newId();
    const [before = null, after = null] = children;
    this.list.setAttribute("aria-labelledby", id);
    this.element = h(
      "div",
      { class: "yna-choice-list" },
      h("div", { class: "yna-panel-title", id }, title),
      before,
      this.list,
      this.more,
      after,
    );
    this.list.addEventListener("keydown", (event) => this.onKey(event));
  }

  get count(): number {
    return this.choices.length;
  }

  /** Show these choices; what had the focus keeps it. */
  show(choices: Choice[], chosen: string): void {
    const same =
      chosen === this.chosen &&
      choices.length === this.choices.length &&
      choices.every((choice, at) => choice.key === this.choices[at]?.key && choice.label === this.choices[at]?.label);
    if (same) return;
    const focused = this.list.contains(document.activeElement) ? (document.activeElement as HTMLElement) : null;
    const at = focused ? this.buttons.indexOf(focused as HTMLButtonElement) : -1;
    const key = this.choices[at]?.key;
    this.choices = choices;
    this.chosen = chosen;
    const shown = choices.slice(0, MOST_SHOWN);
    this.list.replaceChildren(...shown.map((choice) => this.item(choice)));
    this.more.hidden = choices.length <= MOST_SHOWN;
    this.more.textContent = `${choices.length - MOST_SHOWN} more: search to find them.`;
    const buttons = this.buttons;
    const current = buttons.find((button) => button.getAttribute("aria-checked") === "true") ?? buttons[0];
    if (current) current.tabIndex = 0;
    if (focused) this.focus(shown.findIndex((choice) => choice.key === key));
  }

  private get buttons(): HTMLButtonElement[] {
    return [...this.list.children] as HTMLButtonElement[];
  }

  private item({ key, label }: Choice): HTMLButtonElement {
    const isChosen = key === this.chosen;
    return h(
      "button",
      {
        class: "yna-choice",
        role: "radio",
        "aria-checked": String(isChosen),
        tabindex: "-1",
        title: label,
        onclick: () => {
          if (!isChosen) this.choose(key);
        },
      },
      icon("check"),
      h("span", { class: "yna-choice-name" }, label),
    );
  }

  private focus(at: number): void {
    const buttons = this.buttons;
    const button = buttons[Math.max(0, Math.min(at, buttons.length - 1))];
    if (!button) return;
    for (const each of buttons) each.tabIndex = each === button ? 0 : -1;
    button.focus();
  }

  private onKey(event: KeyboardEvent): void {
    const at = this.buttons.indexOf(document.activeElement as HTMLButtonElement);
    const steps: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this.choices.length };
    const to = steps[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    this.focus(to);
  }
}
