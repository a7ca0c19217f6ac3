// The panel of hooks: a list of them, and the page of one.

import { h } from "../dom";
import type { PanelContext, PanelEvent, PanelView } from "../panel";
import type { Change } from "../store";
import { counted, type Failure, type Hook, type HookName, type HooksState } from "./forms";
import { HookPage } from "./hook_page";

interface Row {
  button: HTMLButtonElement;
  installed: HTMLElement;
  draft: HTMLElement;
  failures: HTMLElement;
}

export class HooksView implements PanelView {
  readonly element = h("div", { class: "yna-hooks" });
  private readonly list = h("nav", { class: "yna-hook-list", label: "Hooks" });
  private readonly place = h("div", { class: "yna-hook-place" });
  private readonly rows = new Map<HookName, Row>();
  private readonly pages = new Map<HookName, HookPage>();
  private state: HooksState | null = null;
  private shown: HookName | null = null;
  private wantsFocus = false;

  constructor(private readonly context: PanelContext) {
    this.element.append(h("div", { class: "yna-hooks-body" }, this.list, this.place));
    this.place.append(h("p", { class: "yna-loading", role: "status", tabindex: "-1" }, "Loading…"));
    window.addEventListener("pagehide", this.onLeave);
    document.addEventListener("visibilitychange", this.onLeave);
  }

  focus(): void {
    const row = this.shown && this.rows.get(this.shown);
    if (row) return row.button.focus();
    this.wantsFocus = true;
    this.place.querySelector<HTMLElement>("[tabindex]")?.focus();
  }

  receive(event: PanelEvent): void {
    if (event.type === "state") this.takeState(event.state as HooksState);
    else if (event.type === "hook") this.takeHook(event as unknown as Hook);
    else if (event.type === "failures") this.takeFailure(event as unknown as Failure);
    else if (event.type === "recorded") this.takeRecorded(event.recorded as HooksState["recorded"]);
  }

  take(change: Change): void {
    if (change.kind === "status" && this.context.connection.status === "ready") this.onLeave();
  }

  dispose(): void {
    window.removeEventListener("pagehide", this.onLeave);
    document.removeEventListener("visibilitychange", this.onLeave);
    for (const page of this.pages.values()) page.dispose();
  }

  private readonly onLeave = (): void => {
    for (const page of this.pages.values()) page.keep();
  };

  private takeState(state: HooksState): void {
    this.state = state;
    for (const hook of state.hooks) {
      const page = this.pages.get(hook.name);
      if (page) {
        page.take(hook, state);
        page.keep();
      } else {
        this.add(hook, state);
      }
    }
    const tells = ({ name, draft, failures }: Hook): boolean => draft !== null || failures.length > 0 || this.pages.get(name)?.offers === true;
    const first = state.hooks.find(tells) ?? state.hooks[0];
    if (this.shown === null && first) this.show(first.name);
    if (this.wantsFocus) this.focus();
    this.wantsFocus = false;
  }

  private takeHook(hook: Hook): void {
    if (!this.state) return;
    this.state.hooks = this.state.hooks.map((each) => (each.name === hook.name ? hook : each));
    this.pages.get(hook.name)?.take(hook);
  }

  private takeFailure(failure: Failure): void {
    const hook = this.state?.hooks.find(({ name }) => name === failure.hook);
    if (!hook) return;
    const same = (each: Failure): boolean =>
      each.version === failure.version && each.line === failure.line && each.message === failure.message;
    const others = hook.failures.filter((each) => !same(each));
    this.takeHook({ ...hook, failures: [failure, ...others].slice(0, 20) });
  }

  private takeRecorded(recorded: HooksState["recorded"]): void {
    for (const page of this.pages.values()) page.count(recorded);
  }

  private add(hook: Hook, state: HooksState): void {
    const page = new HookPage(hook, state, this.context);
    this.pages.set(hook.name, page);
    page.element.hidden = true;
    if (this.pages.size === 1) this.place.replaceChildren();
    this.place.append(page.element);
    const row: Row = {
      button: h("button", { class: "yna-hook-row", onclick: () => this.show(hook.name) }),
      installed: h("span", { class: "yna-hook-installed" }),
      draft: h("span", { class: "yna-hook-mark yna-hook-drafted" }),
      failures: h("span", { class: "yna-hook-mark yna-hook-failed" }),
    };
    row.button.append(
      h("span", { class: "yna-hook-title" }, hook.title),
      h("span", { class: "yna-hook-marks" }, row.installed, row.draft, row.failures),
    );
    this.rows.set(hook.name, row);
    this.list.append(row.button);
    page.onChange = () => this.mark(hook.name);
    page.arrive();
    this.mark(hook.name);
  }

  private show(name: HookName): void {
    if (this.shown && this.shown !== name) this.pages.get(this.shown)?.keep();
    this.shown = name;
    for (const [each, { element }] of this.pages) element.hidden = each !== name;
    for (const [each, { button }] of this.rows) {
      if (each === name) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
    this.pages.get(name)?.open();
  }

  private mark(name: HookName): void {
    const row = this.rows.get(name);
    const hook = this.state?.hooks.find((each) => each.name === name);
    if (!row || !hook) return;
    const { length } = hook.installed;
    row.installed.textContent = length > 0 ? `${length} installed` : "";
    const page = this.pages.get(name);
    row.draft.textContent = page?.drafted ? "draft" : page?.offers ? "from before" : "";
    const failures = hook.failures.reduce((sum, { count }) => sum + count, 0);
    row.failures.textContent = failures > 0 ? counted(failures, "failure") : "";
  }
}
