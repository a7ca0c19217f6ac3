// What an apply does besides: which hook it takes the place of, and what a run does when it fails.

import { h } from "../dom";
import { visible } from "../text";
import { applied, MAY_END, plain, type Hook, type OnError } from "./forms";

/** What is chosen to have one more. */
const ADD = "add";

export class Choices {
  readonly element: HTMLElement;
  private readonly place = h("select", { class: "yna-field" });
  private readonly failing = h("select", { class: "yna-field" });
  private shown = "";
  private count = 0;

  constructor(private readonly hook: Hook) {
    this.failing.append(h("option", { value: "go_on" }, "Go on without it"), h("option", { value: "end" }, "End the run"));
    this.onError = applied(hook)?.on_error ?? "go_on";
    const place = h("label", { hidden: !hook.several }, "Apply", this.place);
    const failing = h("label", { hidden: !MAY_END.has(hook.name) }, "If it fails", this.failing);
    this.element = h("div", { class: "yna-hook-choices" }, place, failing);
  }

  get onError(): OnError {
    return this.failing.value as OnError;
  }

  set onError(value: OnError | null) {
    if (value) this.failing.value = value;
  }

  /** What `replaces` says of the message that applies. */
  get replaces(): number | null {
    if (!this.hook.several) return null;
    return this.place.value === ADD ? this.count : Number(this.place.value);
  }

  /** Take the place of what stands at an index. */
  replace(index: number): void {
    this.place.value = String(index);
  }

  /** What is installed now: this editor's own is what is replaced, where another was not chosen. */
  show({ installed }: Hook): void {
    const names = installed.map(({ name, origin }) => `in place of ${visible(name)} (${visible(plain(origin))})`);
    const now = JSON.stringify(names);
    if (now === this.shown) return;
    this.shown = now;
    this.count = installed.length;
    const own = installed.findLastIndex(({ version }) => version !== null);
    this.place.replaceChildren(
      ...names.map((name, index) => h("option", { value: String(index) }, name)),
      h("option", { value: ADD }, installed.length > 0 ? "behind the others" : "as the only one"),
    );
    this.place.value = own >= 0 ? String(own) : ADD;
  }
}
