// The transcript: renders once a frame, follows its end, and builds what is older when the page is idle.

import { h, icon } from "./dom";
import type { Call, Entry } from "./entries";
import { entryView, type Actions, type EntryView } from "./entry_view";
import { Follower } from "./follow";
import type { Change, Store } from "./store";

/** Milliseconds that building older entries may take: of the first frame, and of an idle moment. */
const FIRST_BUDGET = 8;
const IDLE_BUDGET = 5;
/** How many entries from a place on are built at once, so that the place can be shown. */
const AROUND = 12;
/** Milliseconds to wait for the messages around a place. */
const PATIENCE = 5_000;

const whenIdle =
  "requestIdleCallback" in window
    ? (work: () => void): number => requestIdleCallback(work, { timeout: 200 })
    : (work: () => void): number => setTimeout(work, 16);

/** A place that stays where it is on the screen while the conversation becomes another one. */
interface Anchor {
  index: number;
  /** What in the entry stays, as a selector; empty for the entry itself. */
  at: string;
  /** Its distance from the upper edge. */
  top: number;
  /** Whether it has the keyboard. */
  focused: boolean;
}

export class TranscriptView {
  readonly element: HTMLElement;
  readonly scroller: HTMLElement;
  /** Called when what had the keyboard is gone. */
  onFocusLost: () => void = () => {};
  readonly log: HTMLElement;
  private readonly older = h("div", { class: "yna-older", hidden: true }, "Loading earlier messages…");
  private readonly jump: HTMLButtonElement;
  private readonly follower: Follower;
  private readonly views = new Map<Entry, EntryView>();
  private readonly callOwners = new Map<Call, EntryView>();
  private readonly dirty = new Set<Entry>();
  private readonly dirtyCalls = new Set<Call>();
  /** Entries that wait to be built, the next one last. */
  private queue: Entry[] = [];
  private anchor: Anchor | null = null;
  /** Whether what was shown stays until the messages around the anchor are here. */
  private held: ReturnType<typeof setTimeout> | undefined;
  private fresh = true;
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
    this.scroller = h("div", { class: "yna-scroll", tabindex: "0", role: "region", label: "Transcript" }, empty, this.older, this.log);
    this.jump = h(
      "button",
      { class: "yna-jump", hidden: true, onclick: () => this.toEnd() },
      icon("down"),
      "Jump to latest",
    );
    this.element = h("div", { class: "yna-transcript" }, this.scroller, this.jump);
    this.log.addEventListener("click", (event) => this.onClick(event));
    this.follower = new Follower(this.scroller, () => this.showJump());
    this.sizes = new ResizeObserver(() => this.follower.keep());
    this.sizes.observe(this.scroller);
    this.sizes.observe(this.log);
    this.sync();
  }

  dispose(): void {
    this.disposed = true;
    cancelAnimationFrame(this.frame);
    clearTimeout(this.held);
    this.sizes.disconnect();
    for (const view of this.views.values()) view.dispose();
  }

  take(change: Change): void {
    switch (change.kind) {
      case "reset":
        return this.sync();
      case "prepend":
        if (this.held !== undefined) return this.sync();
        this.queue = [...change.entries.filter((entry) => !this.views.has(entry)), ...this.queue];
        return this.schedule();
      case "append":
      case "entry":
        this.dirty.add(change.entry);
        return this.schedule();
      case "call":
        this.dirtyCalls.add(change.call);
        return this.schedule();
      case "run":
        for (const view of this.views.values()) view.refresh?.(this.store.running);
        return;
      default:
        return;
    }
  }

  toEnd(): void {
    this.follower.toEnd();
  }

  private showJump(): void {
    const held = this.jump === document.activeElement;
    this.jump.hidden = this.follower.following;
    if (held && this.jump.hidden) this.onFocusLost();
  }

  /** What a person opens stays where it is, also at the end, as far as it can be seen there. */
  private onClick(event: Event): void {
    const opener = event.target instanceof Element ? event.target.closest("summary, [aria-expanded]") : null;
    if (!opener) return;
    const details = opener.closest("details");
    const whole = opener.matches("summary") ? details : opener.hasAttribute("aria-controls") ? opener.parentElement : opener;
    this.follower.leave();
    requestAnimationFrame(() => {
      const open = opener.matches("summary") ? details?.open : opener.getAttribute("aria-expanded") === "true";
      // What the search opens, it scrolls to by itself.
      if (open && event.isTrusted && whole instanceof HTMLElement) this.attend(whole);
      requestAnimationFrame(() => this.follower.judge());
    });
  }

  /** Someone works with an element of the transcript: have it in view. */
  attend(element: HTMLElement): void {
    this.follower.leave();
    const [place, frame] = [element.getBoundingClientRect(), this.scroller.getBoundingClientRect()];
    if (place.top < frame.top) this.scroller.scrollTop += place.top - frame.top - 12;
    else if (place.bottom > frame.bottom) this.scroller.scrollTop += Math.min(place.bottom - frame.bottom + 12, place.top - frame.top);
  }

  /** The reader goes somewhere: do not pull them to the end. */
  leaveEnd(): void {
    this.follower.leave();
  }

  /** Whether all messages are here, and have their elements. */
  get whole(): boolean {
    return this.queue.length === 0 && this.store.start === 0 && this.held === undefined;
  }

  viewOf(entry: Entry): EntryView | undefined {
    return this.views.get(entry);
  }

  /** Keep what was pressed in an entry where it is, through the next snapshot. */
  keepInPlace(index: number, pressed: HTMLElement): void {
    const step = pressed.dataset["step"] ?? "";
    const at = step ? `[data-step="${step}"]` : "";
    this.anchor = { index, at, top: this.distance(pressed), focused: pressed === document.activeElement };
  }

  /** The conversation stays as it is. */
  letGo(): void {
    this.anchor = null;
  }

  private distance(element: Element): number {
    return element.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top;
  }

  /** Where the reader is, if that is not the end. */
  private readingAt(): Anchor | null {
    if (this.follower.following) return null;
    const edge = this.scroller.getBoundingClientRect().top;
    for (const [entry, { element }] of this.views) {
      const { top, bottom } = element.getBoundingClientRect();
      if (entry.index >= 0 && top <= edge && bottom > edge) return { index: entry.index, at: "", top: top - edge, focused: false };
    }
    return null;
  }

  /** Show the entries that the store has now; views of entries that are still there stay. */
  private sync(): void {
    const { entries, start, total } = this.store;
    this.asked = -1;
    this.anchor ??= this.readingAt();
    if (this.anchor && this.anchor.index < start && this.anchor.index < total && total > 0) {
      this.held ??= setTimeout(() => this.giveUp(), PATIENCE);
      return this.fetchOlder();
    }
    clearTimeout(this.held);
    this.held = undefined;
    this.dirty.clear();
    this.dirtyCalls.clear();
    const focused = this.log.contains(document.activeElement);
    const now = new Set(entries);
    this.callOwners.clear();
    for (const [entry, view] of this.views) {
      if (now.has(entry)) {
        view.update();
        view.refresh?.(this.store.running);
        this.own(entry, view);
      } else {
        view.dispose();
        view.element.remove();
        this.views.delete(entry);
      }
    }
    this.putInOrder(entries);
    this.queue = entries.filter((entry) => !this.views.has(entry));
    this.fresh = true;
    const { anchor } = this;
    this.anchor = null;
    if (anchor) this.restore(anchor);
    else if (this.views.size === 0) this.follower.following = true;
    if (focused && !this.log.contains(document.activeElement)) this.onFocusLost();
    this.schedule();
  }

  private giveUp(): void {
    this.anchor = null;
    this.follower.following = true;
    this.sync();
  }

  /** What stays may stand in another order, such as a question that is older than a new answer. */
  private putInOrder(entries: Entry[]): void {
    let next: Element | null = null;
    for (const entry of entries.toReversed()) {
      const element = this.views.get(entry)?.element;
      if (!element) continue;
      if (element.nextElementSibling !== next) this.log.insertBefore(element, next);
      next = element;
    }
  }

  private restore({ index, at, top, focused }: Anchor): void {
    const { entries } = this.store;
    const place = entries.findIndex((entry) => entry.index === index);
    const entry = entries[place];
    if (!entry) return;
    const around = entries.slice(Math.max(0, place - 2), place + AROUND);
    for (const each of around) this.place(each);
    // What was never in sight has no height of its own yet, and there is no place without heights.
    const drawn = around.map((each) => this.views.get(each)?.element);
    for (const each of drawn) each?.classList.add("yna-drawn");
    this.queue = this.queue.filter((each) => !this.views.has(each));
    const view = this.views.get(entry);
    if (!view) return;
    const element = (at && view.element.querySelector<HTMLElement>(at)) || view.element;
    this.follower.leave();
    this.scroller.scrollTop += this.distance(element) - top;
    if (focused) element.focus({ preventScroll: true });
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        for (const each of drawn) each?.classList.remove("yna-drawn");
        this.follower.judge();
      }),
    );
  }

  private schedule(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    this.frame = 0;
    if (this.held !== undefined) return;
    for (const entry of [...this.dirty]) {
      this.dirty.delete(entry);
      const view = this.views.get(entry);
      if (!view) {
        if (!this.queue.includes(entry)) this.place(entry);
      } else if (!view.update()) this.dirty.add(entry);
      else this.own(entry, view);
    }
    for (const call of this.dirtyCalls) this.callOwners.get(call)?.updateCall(call);
    this.dirtyCalls.clear();
    if (this.fresh) this.build(FIRST_BUDGET);
    this.fresh = false;
    this.follower.keep();
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
      this.follower.keep();
      this.goOnLater();
    });
  }

  /** Give an entry its element, before that of the next entry which has one. */
  private place(entry: Entry): void {
    if (this.views.has(entry)) return;
    const { entries } = this.store;
    let next: EntryView | undefined;
    for (let at = entries.lastIndexOf(entry) + 1; at < entries.length && !next; at += 1) {
      const after = entries[at];
      if (after) next = this.views.get(after);
    }
    const view = entryView(entry, this.store, this.actions);
    this.views.set(entry, view);
    this.own(entry, view);
    this.log.insertBefore(view.element, next?.element ?? null);
  }

  private own(entry: Entry, view: EntryView): void {
    for (const block of entry.blocks) if (block?.call) this.callOwners.set(block.call, view);
  }

  private build(milliseconds: number): void {
    const end = performance.now() + milliseconds;
    if (!this.follower.following && this.scroller.scrollTop === 0) this.scroller.scrollTop = 1; // for the browser's anchor
    while (this.queue.length > 0 && performance.now() < end) {
      const entry = this.queue.pop();
      if (entry) this.place(entry);
    }
  }

  private fetchOlder(): void {
    if (this.store.start === 0 || this.asked === this.store.start) return;
    this.asked = this.store.start;
    this.askEarlier(this.store.start);
  }
}
