// A bar that says how much waits for a person, and leads there. Every view has one.

import { h, icon, setText } from "./dom";
import type { Change, Store } from "./store";

const CARDS = ".yna-approval, .yna-question";

export class WaitsView {
  private readonly words = h("span", {});
  private readonly button = h("button", { class: "yna-button", onclick: () => this.show() }, "Show");
  readonly element = h("div", { class: "yna-waits", role: "group", label: "What waits for you", hidden: true }, icon("hand"), this.words, this.button);
  private shown: Element | null = null;

  /** `cards` is where what waits is shown; `reach` makes sure that its end is there. */
  constructor(
    private readonly store: Store,
    private readonly cards: HTMLElement,
    private readonly reach: () => void,
  ) {
    this.update();
  }

  take(change: Change): void {
    if (["asked", "call", "run", "reset"].includes(change.kind)) this.update();
  }

  private update(): void {
    const { waiting } = this.store;
    this.element.hidden = waiting === 0;
    if (waiting > 0) setText(this.words, waitsText(waiting, this.store.questions));
  }

  /** Lead to the oldest card, and from each to the next. */
  private show(): void {
    const cards = [...this.cards.querySelectorAll<HTMLElement>(CARDS)];
    const next = cards[(this.shown ? cards.indexOf(this.shown as HTMLElement) + 1 : 0) % cards.length] ?? cards[0];
    if (!next) return this.reach();
    this.shown = next;
    if (!next.hasAttribute("tabindex")) next.tabIndex = -1;
    next.scrollIntoView({ block: "nearest" });
    next.focus({ preventScroll: true });
  }
}

/** What waits, in words. */
function waitsText(waiting: number, questions: number): string {
  const many = waiting > 1;
  const kind = questions === 0 ? "approval" : questions === waiting ? "question" : "";
  return kind ? `${waiting} ${kind}${many ? "s wait" : " waits"} for you` : `${waiting} wait for you`;
}
