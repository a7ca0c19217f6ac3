// What searches the transcript: a bar above it. Matches are painted by the browser; the nodes stay as they are.

import { h, icon, setText } from "./dom";
import type { Call, Entry } from "./entries";
import { matcher, passages, ranges, type Passage } from "./passages";
import type { Change, Store } from "./store";
import type { TranscriptView } from "./transcript_view";

const ALL = "yna-found";
const CURRENT = "yna-found-now";
/** Milliseconds: of typing that is let pass, of work in one go, and until it is looked whether more is here. */
const TYPING = 120;
const BUDGET = 8;
const AGAIN = 200;
const MOST_PAINTED = 3_000;

/** A hit: the number-th one of an entry's passage. */
interface Current {
  entry: Entry;
  passage: number;
  number: number;
}

export class Search {
  readonly element: HTMLElement;
  private readonly input = h("input", {
    class: "yna-search-input",
    type: "text",
    label: "Search this conversation",
    placeholder: "Search",
    spellcheck: "false",
    autocomplete: "off",
  });
  private readonly count = h("span", { class: "yna-search-count", role: "status" });
  private pattern: RegExp | null = null;
  private readonly found = new Map<Entry, Passage[]>();
  private current: Current | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private marked: HTMLElement | null = null;
  /** Whether the current hit stays in sight while the transcript grows: until the reader goes elsewhere. */
  private kept = false;
  private readonly sizes = new ResizeObserver(() => this.keep());
  private readonly painted = { all: [] as AbstractRange[], now: [] as AbstractRange[] };

  constructor(
    private readonly store: Store,
    private readonly transcript: TranscriptView,
    close: () => void,
  ) {
    const button = (picture: string, name: string, keys: string, act: () => void): HTMLElement =>
      h("button", { class: "yna-quiet", label: name, title: `${name} (${keys})`, onclick: act }, icon(picture));
    this.element = h(
      "div",
      { class: "yna-search" },
      icon("search"),
      this.input,
      this.count,
      button("up", "Previous match", "Shift+Enter", () => this.go(-1)),
      button("down", "Next match", "Enter", () => this.go(1)),
      button("cross", "Close search", "Esc", close),
    );
    this.input.addEventListener("input", () => this.later(TYPING, () => this.start()));
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    for (const name of ["wheel", "touchmove", "pointerdown", "keydown"]) {
      transcript.scroller.addEventListener(name, () => (this.kept = false), { passive: true });
    }
    this.sizes.observe(transcript.log);
    // What was opened may be drawn anew when it hears of it, which is later where the page is busy.
    transcript.scroller.addEventListener("toggle", () => requestAnimationFrame(() => this.keep()), { capture: true });
  }

  /** Have the keyboard, and search again for what was searched for. */
  focus(): void {
    this.input.focus();
    this.input.select();
    if (this.input.value !== "") this.start();
  }

  /** Paint nothing until it has the keyboard again. */
  stop(): void {
    this.pattern = null;
    clearTimeout(this.timer);
    this.clear();
  }

  take(change: Change): void {
    if (!this.pattern) return;
    if (change.kind === "entry" || change.kind === "append") this.found.delete(change.entry);
    else if (change.kind === "call") this.forget(change.call);
    else if (change.kind === "reset") this.forgetGone();
    else if (change.kind !== "prepend") return;
    this.later(AGAIN, () => this.scan());
  }

  private onKey(event: KeyboardEvent): void {
    if (event.key !== "Enter" || event.target !== this.input || event.isComposing) return;
    event.preventDefault();
    if (this.pattern?.source === matcher(this.input.value)?.source) this.go(event.shiftKey ? -1 : 1);
    else this.start();
  }

  private later(milliseconds: number, work: () => void): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(work, milliseconds);
  }

  private start(): void {
    this.clear();
    this.pattern = matcher(this.input.value);
    this.scan();
  }

  private clear(): void {
    this.found.clear();
    this.current = null;
    this.paint([], []);
    this.mark(null);
    setText(this.count, "");
  }

  private forget(call: Call): void {
    const entry = this.store.entries.findLast((each) => each.blocks.some((block) => block?.call === call));
    if (entry) this.found.delete(entry);
  }

  private forgetGone(): void {
    const here = new Set(this.store.entries);
    for (const entry of this.found.keys()) if (!here.has(entry)) this.found.delete(entry);
    if (this.current && !here.has(this.current.entry)) this.current = null;
  }

  /** Look into what was not looked into yet; a little at a time, and again while more is on its way. */
  private scan(): void {
    const { pattern } = this;
    if (!pattern) return;
    const end = performance.now() + BUDGET;
    let more = false;
    for (const entry of this.store.entries) {
      if (this.found.has(entry)) continue;
      const view = this.transcript.viewOf(entry);
      if (!view) continue;
      if (performance.now() > end) {
        more = true;
        break;
      }
      this.found.set(entry, passages(view.element, callElements(entry, view), (name) => this.store.label(name), pattern));
    }
    if (more) return this.later(0, () => this.scan());
    if (!this.transcript.whole) this.later(AGAIN, () => this.scan());
    if (!this.current && this.total > 0) this.show(this.nearest());
    else this.refresh();
  }

  private get total(): number {
    let sum = 0;
    for (const each of this.found.values()) for (const { count } of each) sum += count;
    return sum;
  }

  /** All hits, in the order of the transcript. */
  private hits(): Current[] {
    return this.store.entries.flatMap((entry) =>
      (this.found.get(entry) ?? []).flatMap(({ count }, passage) =>
        Array.from({ length: count }, (_, number) => ({ entry, passage, number })),
      ),
    );
  }

  /** The first hit that the reader sees or that comes below, else the last one. */
  private nearest(): Current | undefined {
    const edge = this.transcript.scroller.getBoundingClientRect().top;
    const hits = this.hits();
    const below = hits.find(({ entry }) => {
      const bottom = this.transcript.viewOf(entry)?.element.getBoundingClientRect().bottom;
      return bottom !== undefined && bottom > edge;
    });
    return below ?? hits.at(-1);
  }

  private go(step: 1 | -1): void {
    const hits = this.hits();
    if (hits.length === 0) return;
    const at = this.place(hits);
    this.show(hits[at < 0 ? 0 : (at + step + hits.length) % hits.length]);
  }

  private place(hits: Current[]): number {
    const { current } = this;
    if (!current) return -1;
    return hits.findIndex(
      (hit) => hit.entry === current.entry && hit.passage === current.passage && hit.number === current.number,
    );
  }

  private show(hit: Current | undefined): void {
    if (!hit) return;
    this.current = hit;
    this.kept = false;
    const passage = this.found.get(hit.entry)?.[hit.passage];
    if (!passage) return;
    this.transcript.leaveEnd();
    this.mark(passage.element);
    if (passage.call) openCall(passage.element);
    this.refresh();
    // What was opened may be filled a moment later.
    requestAnimationFrame(() => {
      if (this.current !== hit) return;
      const target = this.currentRange();
      if (target) reveal(target.startContainer, passage.element);
      else if (passage.call) for (const each of passage.element.querySelectorAll("details")) each.open = true;
      requestAnimationFrame(() => {
        if (this.current !== hit) return;
        const range = this.currentRange();
        if (range) reveal(range.startContainer, passage.element);
        this.refresh();
        this.scrollTo(range ? liveRange(range) : passage.element, 8);
        this.kept = true;
      });
    });
  }

  private keep(): void {
    if (this.painted.now.some(({ startContainer }) => !startContainer.isConnected)) this.refresh();
    const range = this.kept && this.currentRange();
    if (range) this.scrollTo(liveRange(range), 8);
  }

  /** The range of the current hit; null where it is folded away, and not shown by any. */
  private currentRange(): StaticRange | null {
    const { current, pattern } = this;
    if (!current || !pattern) return null;
    const passage = this.found.get(current.entry)?.[current.passage];
    if (!passage) return null;
    const all = this.rangesOf(current.entry, passage);
    const before = passage.call
      ? 0
      : (this.found.get(current.entry) ?? [])
          .slice(0, current.passage)
          .reduce((sum, each) => sum + (each.call ? 0 : each.count), 0);
    return all[Math.min(before + current.number, all.length - 1)] ?? null;
  }

  /** Ranges in a call, or in an answer's own words. */
  private rangesOf(entry: Entry, passage: Passage): StaticRange[] {
    if (!this.pattern) return [];
    if (passage.call) return ranges(passage.element, this.pattern);
    const view = this.transcript.viewOf(entry);
    const calls = view ? callElements(entry, view) : new Map<Element, Call>();
    return ranges(passage.element, this.pattern, (element) => calls.has(element));
  }

  /** Tell how many there are, and paint them. */
  private refresh(): void {
    const { pattern } = this;
    if (!pattern) return;
    const hits = this.hits();
    if (this.current && this.place(hits) < 0) this.current = hits.findLast((hit) => hit.entry === this.current?.entry) ?? null;
    const at = this.place(hits);
    const loading = this.transcript.whole ? "" : " · still loading";
    const told = hits.length === 0 ? (loading ? "Nothing yet" : "No results") : `${at < 0 ? "–" : at + 1} of ${hits.length}`;
    setText(this.count, told + loading);
    this.element.classList.toggle("yna-search-none", hits.length === 0 && loading === "");
    const all: StaticRange[] = [];
    for (const [entry, each] of this.found) {
      if (all.length > MOST_PAINTED) break;
      if (each.some(({ call }) => !call)) {
        const own = each.find(({ call }) => !call);
        if (own) all.push(...this.rangesOf(entry, own));
      }
      for (const passage of each) if (passage.call) all.push(...this.rangesOf(entry, passage));
    }
    const now = this.currentRange();
    this.paint(all, now ? [now] : []);
  }

  /** The names of highlights belong to the page, and other views paint under them too. */
  private paint(all: AbstractRange[], now: AbstractRange[]): void {
    if (typeof Highlight === "undefined" || !CSS.highlights) return;
    const put = (name: string, priority: number, old: AbstractRange[], fresh: AbstractRange[]): AbstractRange[] => {
      const known = CSS.highlights.get(name) ?? new Highlight();
      known.priority = priority;
      for (const range of old) known.delete(range);
      for (const range of fresh) known.add(range);
      CSS.highlights.set(name, known);
      return fresh;
    };
    this.painted.all = put(ALL, 0, this.painted.all, all);
    this.painted.now = put(CURRENT, 1, this.painted.now, now);
  }

  /** Draw the entry of the current hit, also while it is out of sight: else it has no places to scroll to. */
  private mark(element: HTMLElement | null): void {
    const entry = element?.closest<HTMLElement>(".yna-entry") ?? null;
    if (this.marked === entry) return;
    this.marked?.classList.remove("yna-marked");
    entry?.classList.add("yna-marked");
    this.marked = entry;
  }

  /** What comes into sight gets its real height only then: go on until the place stays. */
  private scrollTo(target: Range | Element, tries: number): void {
    const { scroller } = this.transcript;
    const start = target instanceof Range ? target.startContainer.parentElement : target;
    for (let each = start; each && each !== scroller; each = each.parentElement) {
      if (each.scrollHeight > each.clientHeight + 1 || each.scrollWidth > each.clientWidth + 1) bring(each, target);
    }
    const moved = bring(scroller, target);
    if (tries > 0 && moved) requestAnimationFrame(() => this.scrollTo(target, tries - 1));
  }
}

/** The elements of an entry's calls. */
function callElements(entry: Entry, view: { callElement?(call: Call): HTMLElement | undefined }): Map<Element, Call> {
  const found = new Map<Element, Call>();
  for (const block of entry.blocks) {
    const element = block?.call && view.callElement?.(block.call);
    if (element && block.call) found.set(element, block.call);
  }
  return found;
}

function openCall(element: HTMLElement): void {
  reveal(element, element.closest(".yna-entry"));
  const row = element.querySelector<HTMLElement>("button[aria-expanded]");
  if (row?.getAttribute("aria-expanded") === "false") row.click();
}

/** Open what a node is folded away in. */
function reveal(node: Node, root: Element | null): void {
  for (let each = node.parentElement; each && each !== root?.parentElement; each = each.parentElement) {
    if (each instanceof HTMLDetailsElement) each.open = true;
    if (each.id) root?.querySelector<HTMLElement>(`[aria-controls="${each.id}"][aria-expanded="false"]`)?.click();
  }
}

function liveRange(range: StaticRange): Range {
  const live = document.createRange();
  live.setStart(range.startContainer, range.startOffset);
  live.setEnd(range.endContainer, range.endOffset);
  return live;
}

/** Scroll an element so that a target in it is seen; returns whether it had to. */
function bring(scroller: Element, target: Range | Element): boolean {
  const place = target.getBoundingClientRect();
  const frame = scroller.getBoundingClientRect();
  const [top, left] = [scroller.scrollTop, scroller.scrollLeft];
  const room = Math.min(60, frame.height / 4);
  if (place.top < frame.top + room || place.bottom > frame.bottom - room) {
    scroller.scrollTop += place.top - frame.top - Math.max(room, (frame.height - place.height) / 3);
  }
  if (place.left < frame.left || place.right > frame.right) scroller.scrollLeft += place.left - frame.left - frame.width / 3;
  return Math.abs(scroller.scrollTop - top) > 1 || Math.abs(scroller.scrollLeft - left) > 1;
}
