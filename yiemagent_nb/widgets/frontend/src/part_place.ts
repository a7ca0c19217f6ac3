// A place that a part of the front end fills: it says that it loads, and what to do where it could not be loaded.

import { h, type Attributes } from "./dom";
import { loadPart, loadedPart, type PartName, type Parts } from "./parts";
import type { Refusal } from "./protocol";

/** What a part makes for a place. */
interface Content {
  readonly element: HTMLElement;
  /** Take the keyboard. */
  focus(): void;
}

export class PartPlace<Name extends PartName, Made extends Content> {
  readonly element: HTMLElement;
  /** What fills the place, once the part is there. */
  content: Made | null = null;
  private loading = false;

  /** `what` names the part to a person. */
  constructor(
    private readonly name: Name,
    private readonly what: string,
    private readonly make: (part: Parts[Name]) => Made,
    attributes: Attributes = {},
  ) {
    this.element = h("div", attributes);
  }

  /** Have the place filled: at once where the part is there. */
  open(): void {
    if (this.content || this.loading) return;
    const part = loadedPart(this.name);
    if (part) return this.fill(part);
    this.loading = true;
    this.show(h("p", { class: "yna-loading", role: "status", tabindex: "-1" }, "Loading…"));
    loadPart(this.name)
      .then((part) => this.fill(part))
      .catch((error: Error | Refusal) => this.fail(error))
      .finally(() => (this.loading = false));
  }

  /** Give the keyboard to what stands here, and to what comes in its place as long as it stays here. */
  focus(): void {
    if (this.content) this.content.focus();
    else this.element.querySelector<HTMLElement>("button, [tabindex]")?.focus();
  }

  private fill(part: Parts[Name]): void {
    const made = this.make(part);
    this.content = made;
    this.show(made.element);
  }

  private fail(error: Error | Refusal): void {
    const why = "hint" in error ? `${error.message} ${error.hint}` : error.message;
    const retry = h("button", { class: "yna-button", onclick: () => this.open() }, "Retry");
    this.show(h("p", { class: "yna-loading", role: "alert" }, `${this.what} could not be loaded: ${why} `, retry));
  }

  private show(element: HTMLElement): void {
    const held = this.element.contains(document.activeElement);
    this.element.replaceChildren(element);
    if (held) this.focus();
  }
}
