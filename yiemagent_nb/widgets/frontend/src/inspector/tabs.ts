// Several views of which one is shown; each is built when it is first looked at.

import { h, newId } from "../dom";

export interface Tab {
  key: string;
  title: string;
  build: () => HTMLElement;
}

export class Tabs {
  readonly list: HTMLElement;
  readonly panels = h("div", { class: "yna-tab-panels" });
  shown = "";
  private tabs: Tab[] = [];
  private readonly buttons = new Map<string, HTMLButtonElement>();
  private readonly built = new Map<string, HTMLElement>();

  constructor(
    label: string,
    private readonly onShow: (key: string) => void = () => {},
  ) {
    this.list = h("div", { class: "yna-tab-list", role: "tablist", label });
    this.list.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** Offer these; those that stood here before stay as they are. */
  set(tabs: Tab[]): void {
    if (tabs.map(({ key }) => key).join() === this.tabs.map(({ key }) => key).join()) return;
    const focused = this.buttons.get(this.shown) === document.activeElement;
    this.tabs = tabs;
    for (const { key, title } of tabs) if (!this.buttons.has(key)) this.buttons.set(key, this.button(key, title));
    this.list.replaceChildren(...tabs.map(({ key }) => this.buttons.get(key) ?? ""));
    for (const [key, panel] of this.built) if (!tabs.some((tab) => tab.key === key)) panel.remove();
    this.show(tabs.some(({ key }) => key === this.shown) ? this.shown : (tabs[0]?.key ?? ""));
    if (focused) this.buttons.get(this.shown)?.focus();
  }

  show(key: string): void {
    const tab = this.tabs.find((each) => each.key === key);
    if (!tab) return;
    this.shown = key;
    for (const [name, button] of this.buttons) {
      button.setAttribute("aria-selected", String(name === key));
      button.tabIndex = name === key ? 0 : -1;
    }
    const button = this.buttons.get(key);
    const panel = this.built.get(key) ?? h("div", { class: "yna-tab-panel", role: "tabpanel", id: newId(), "aria-labelledby": button?.id }, tab.build());
    this.built.set(key, panel);
    button?.setAttribute("aria-controls", panel.id);
    this.panels.append(panel);
    for (const [name, each] of this.built) each.hidden = name !== key;
    this.onShow(key);
  }

  private button(key: string, title: string): HTMLButtonElement {
    return h("button", { class: "yna-tab-button", role: "tab", id: newId(), onclick: () => this.show(key) }, title);
  }

  private onKey(event: KeyboardEvent): void {
    const at = this.tabs.findIndex(({ key }) => key === this.shown);
    const last = this.tabs.length - 1;
    const next = { ArrowRight: at < last ? at + 1 : 0, ArrowLeft: at > 0 ? at - 1 : last, Home: 0, End: last }[event.key];
    const tab = next === undefined ? undefined : this.tabs[next];
    if (!tab) return;
    event.preventDefault();
    this.show(tab.key);
    this.buttons.get(tab.key)?.focus();
  }
}
