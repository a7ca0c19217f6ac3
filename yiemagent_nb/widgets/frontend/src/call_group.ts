// The calls that stand side by side in an answer: several are one group, which folds to one line when it is done.

import { countCalls, namesOf, statusOf, titleOf, type CallCounts } from "./batch";
import { markOf, type CallView } from "./call_view";
import { h, icon, newId, setText } from "./dom";
import type { Call, Entry } from "./entries";
import { turnOf } from "./outcome";
import type { Store } from "./store";
import { seconds } from "./text";

/** A part of an answer; `view` is there where it is a call. */
export interface Item {
  element: HTMLElement;
  view: CallView | null;
  /** Nothing is seen of it. */
  empty: boolean;
}

/** Puts the parts of an answer in their order, and the calls among them in groups. */
export class CallGroups {
  private groups: CallGroup[] = [];
  private readonly of = new Map<Call, CallGroup>();

  constructor(
    private readonly entry: Entry,
    private readonly store: Store,
  ) {}

  /** Put the items behind the first child of `place`; what stands where it should is not touched. */
  arrange(place: HTMLElement, items: Item[]): void {
    const runs: CallView[][] = [];
    let open = false;
    for (const { view, empty } of items) {
      if (view && open) runs.at(-1)?.push(view);
      else if (view) runs.push([view]);
      if (view || !empty) open = view !== null;
    }
    const left = new Set(this.groups);
    this.of.clear();
    this.groups = runs.map((run) => {
      const known = [...left].find(({ list }) => run.some(({ element }) => element.parentElement === list));
      if (known) left.delete(known);
      const group = known ?? new CallGroup(this.entry, this.store);
      for (const { call } of run) this.of.set(call, group);
      return group;
    });
    this.groups.forEach((group, at) => group.take(runs[at] ?? []));
    for (const group of left) group.dispose();
    let before = place.firstElementChild;
    for (const { element, view } of items) {
      const top = (view && this.of.get(view.call)?.element) ?? element;
      if (top === before) continue;
      if (before?.nextElementSibling !== top) before?.after(top);
      before = top;
    }
  }

  update(call: Call): void {
    if (this.of.has(call)) for (const group of this.groups) group.schedule(); // one that waits holds back all of its batch
  }

  dispose(): void {
    for (const group of this.groups) group.dispose();
  }
}

class CallGroup {
  readonly list = h("div", { class: "yna-group-calls" });
  private readonly mark = h("span", { class: "yna-call-mark" });
  private readonly title = h("span", { class: "yna-call-what" });
  private readonly names = h("span", { class: "yna-group-names" });
  private readonly time = h("span", { class: "yna-call-time" });
  private readonly row: HTMLButtonElement;
  readonly element = h("div", { class: "yna-group", role: "group" });
  private views: CallView[] = [];
  /** Whether a person wants it open; null while they have not said. */
  private wish: boolean | null = null;
  private readonly stopListening: () => void;
  private scheduled = false;

  constructor(
    private readonly entry: Entry,
    private readonly store: Store,
  ) {
    this.list.id = newId();
    this.row = h(
      "button",
      { class: "yna-group-row", "aria-expanded": "true", "aria-controls": this.list.id, onclick: () => this.toggle() },
      this.mark,
      this.title,
      this.names,
      this.time,
      icon("chevron"),
    );
    this.element.append(this.row, this.list);
    this.stopListening = store.listen((change) => {
      if (change.kind === "run" || (change.kind === "append" && change.entry.role === "assistant")) this.schedule();
    });
  }

  /** Its calls in their order; those that are new are moved here. */
  take(views: CallView[]): void {
    views.forEach(({ element }, at) => {
      const there = this.list.children[at] ?? null;
      if (there !== element) this.list.insertBefore(element, there);
    });
    this.views = views;
    this.update();
  }

  dispose(): void {
    this.stopListening();
    this.element.remove();
  }

  /** Many calls may end at once: the header is written once for all. */
  schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    queueMicrotask(() => this.update());
  }

  private toggle(): void {
    this.wish = this.row.getAttribute("aria-expanded") !== "true";
    this.update();
  }

  private update(): void {
    this.scheduled = false;
    const batch = this.entry.blocks.flatMap(({ call }) => (call ? [call] : []));
    for (const view of this.views) view.queue(turnOf(view.call, batch, this.entry.live));
    const several = this.views.length > 1;
    this.element.classList.toggle("yna-several-calls", several);
    this.row.hidden = !several;
    const facts = countCalls(this.views.map(({ call }) => call));
    if (several) this.showHeader(facts);
    const open = !several || facts.waiting > 0 || (this.wish ?? !(facts.done === this.views.length && this.isPast()));
    this.row.setAttribute("aria-expanded", String(open));
    this.element.classList.toggle("yna-folded", !open);
    setText(this.names, open ? "" : namesOf(this.views.map(({ label }) => label)));
  }

  private showHeader(facts: CallCounts): void {
    const status = statusOf(facts);
    if (this.row.dataset["state"] !== status) {
      this.row.dataset["state"] = status;
      this.mark.replaceChildren(markOf(status));
    }
    setText(this.title, titleOf(facts));
    setText(this.time, facts.open > 0 || facts.seconds === null ? "" : seconds(facts.seconds));
    this.element.setAttribute("aria-label", titleOf(facts));
  }

  /** Whether the conversation has gone on after this answer. */
  private isPast(): boolean {
    const last = this.store.entries.findLast(({ role }) => role === "assistant");
    return !this.entry.live && (last !== this.entry || !this.store.running);
  }
}
