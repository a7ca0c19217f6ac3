// The transcript: renders once a frame, follows its end, and builds what is older when the page is idle.

import { h, icon } from "./dom";
import type { Call, Entry } from "./entries";
import { entryView, type Actions, type EntryView } from "./entry_view";
import type { Change, Store } from "./store";

/** Milliseconds that building older entries may take: of the first frame, and of an idle moment. */
const FIRST_BUDGET = 8;
const IDLE_BUDGET = 5;
const NEAR = 40;

const whenIdle =
  "requestIdleCallback" in window
    ? (work: () => void): number => requestIdleCallback(work, { timeout: 200 })
    : (work: () => void): number => setTimeout(work, 16);

export class TranscriptView {
  readonly element: HTMLElement;
  private readonly scroller: HTMLElement;
  private readonly log: HTMLElement;
  private readonly older = h("div", { class: "yna-older", hidden: true }, "Loading earlier messages…");
  private readonly jump: HTMLButtonElement;
  private readonly views = new Map<Entry, EntryView>();
  private readonly callOwners = new Map<Call, EntryView>();
  private readonly dirty = new Set<Entry>();
  private readonly dirtyCalls = new Set<Call>();
  /** Entries that wait to be built, the newest last. */
  private queue: Entry[] = [];
  private firstBuilt: HTMLElement | null = null;
  private following = true;
  private top = 0;
  private frame = 0;
  private idle = 0;
  private disposed = false;
  private asked = -1;
  private readonly sizes: ResizeObserver;

  constructor(
    private readonly store: Store,
    private readonly actions: Actions,
    private readonly askEarlier: (before: number) => void,
    empty: HTMLElement,
  ) {
    this.log = h("div", { class: "yna-log", role: "log", "aria-live": "off", label: "Conversation" });
    this.scroller = h("div", { class: "yna-scroll", tabindex: "-1" }, empty, this.older, this.log);
    this.jump = h(
      "button",
      { class: "yna-jump", hidden: true, onclick: () => this.toEnd() },
      icon("down"),
      "Jump to latest",
    );
    this.element = h("div", { class: "yna-transcript" }, this.scroller, this.jump);
    this.scroller.addEventListener("scroll", () => this.onScroll(), { passive: true });
    this.sizes = new ResizeObserver(() => this.keepEnd());
    this.sizes.observe(this.scroller);
    this.sizes.observe(this.log);
    this.rebuild();
  }

  dispose(): void {
    this.disposed = true;
    cancelAnimationFrame(this.frame);
    this.sizes.disconnect();
    for (const view of this.views.values()) view.dispose();
  }

  take(change: Change): void {
    switch (change.kind) {
      case "reset":
        return this.rebuild();
      case "append":
        this.dirty.add(change.entry);
        return this.schedule();
      case "prepend":
        this.queue = [...change.entries, ...this.queue];
        return this.schedule();
      case "entry":
        this.dirty.add(change.entry);
        return this.schedule();
      case "call":
        this.dirtyCalls.add(change.call);
        return this.schedule();
      default:
        return;
    }
  }

  toEnd(): void {
    this.following = true;
    this.jump.hidden = true;
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  private rebuild(): void {
    for (const view of this.views.values()) view.dispose();
    this.views.clear();
    this.callOwners.clear();
    this.dirty.clear();
    this.dirtyCalls.clear();
    this.log.replaceChildren();
    this.firstBuilt = null;
    this.asked = -1;
    this.queue = [...this.store.entries];
    this.following = true;
    this.schedule();
  }

  private schedule(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    this.frame = 0;
    for (const entry of [...this.dirty]) {
      this.dirty.delete(entry);
      const view = this.views.get(entry);
      if (!view) {
        if (!this.queue.includes(entry)) this.append(entry);
      } else if (!view.update()) this.dirty.add(entry);
      else this.own(entry, view);
    }
    for (const call of this.dirtyCalls) this.callOwners.get(call)?.updateCall(call);
    this.dirtyCalls.clear();
    if (this.firstBuilt === null) this.build(FIRST_BUDGET);
    this.keepEnd();
    if (this.dirty.size > 0) this.schedule();
    this.goOnLater();
  }

  /** Go on with older entries when the page has nothing better to do. */
  private goOnLater(): void {
    this.older.hidden = this.queue.length === 0 && this.store.start === 0;
    if (this.queue.length === 0) return this.fetchOlder();
    if (this.idle !== 0) return;
    this.idle = whenIdle(() => {
      this.idle = 0;
      if (this.disposed) return;
      this.build(IDLE_BUDGET);
      this.keepEnd();
      this.goOnLater();
    });
  }

  private append(entry: Entry): void {
    const view = this.make(entry);
    this.log.append(view.element);
    this.firstBuilt ??= view.element;
  }

  private make(entry: Entry): EntryView {
    const view = entryView(entry, this.store, this.actions);
    this.views.set(entry, view);
    this.own(entry, view);
    return view;
  }

  private own(entry: Entry, view: EntryView): void {
    for (const block of entry.blocks) if (block?.call) this.callOwners.set(block.call, view);
  }

  private build(milliseconds: number): void {
    const end = performance.now() + milliseconds;
    if (!this.following && this.scroller.scrollTop === 0) this.scroller.scrollTop = 1; // for the browser's anchor
    while (this.queue.length > 0 && performance.now() < end) {
      const entry = this.queue.pop();
      if (!entry || this.views.has(entry)) continue;
      const { element } = this.make(entry);
      this.log.insertBefore(element, this.firstBuilt);
      this.firstBuilt = element;
    }
  }

  private fetchOlder(): void {
    if (this.store.start === 0 || this.asked === this.store.start) return;
    this.asked = this.store.start;
    this.askEarlier(this.store.start);
  }

  private onScroll(): void {
    const distance = this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight;
    if (distance < NEAR) this.following = true;
    else if (this.scroller.scrollTop < this.top - 1) this.following = false; // only a reader scrolls up
    this.top = this.scroller.scrollTop;
    this.jump.hidden = this.following;
  }

  private keepEnd(): void {
    if (this.following) this.scroller.scrollTop = this.scroller.scrollHeight;
  }
}
