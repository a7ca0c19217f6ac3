// A list of many rows of one height, of which only those that can be seen are elements.
//
// The list has the keyboard, and names its active row by aria-activedescendant: rows come and go while
// it is scrolled, and the focus stays. A row keeps its element as long as it is shown, by its key.
// Browsers hold elements of up to 16 million pixels: at 24 pixels a row that is 600,000 rows.

import "./styles/virtual_list.css";
import { h, newId } from "./dom";

const ROW_ROLES = { listbox: "option", list: "listitem", tree: "treeitem", treegrid: "row", grid: "row" } as const;
/** Pixels above and below what is seen in which there are rows. */
const MARGIN = 130;

/** Fills the element of a row. It may hold what was shown in it before, of this row or another. */
export type RenderRow = (element: HTMLElement, index: number) => void;

export interface VirtualListOptions {
  role: keyof typeof ROW_ROLES;
  label: string;
  /** Pixels. */
  rowHeight: number;
  class?: string;
  /** A row of column names that stays at the top; it is to have the role `row`. */
  header?: HTMLElement;
  headerHeight?: number;
  /** The active row is another, by the keyboard or a pointer; -1 when there is none. */
  onMove?: (index: number) => void;
  /** A row was clicked, or Enter or Space was pressed on it. */
  onActivate?: (index: number, event: Event) => void;
  /** A key that the list may not know, such as those that fold; returns whether it was used. */
  onKey?: (event: KeyboardEvent, index: number) => boolean;
  /** Which rows are seen has changed, or the list is seen again; `end` is not one of them. */
  onShown?: (start: number, end: number) => void;
  /** The reader came to the end or left it. */
  onFollow?: (following: boolean) => void;
}

interface Shown {
  element: HTMLElement;
  index: number;
}

export class VirtualList {
  readonly element: HTMLElement;
  /** How many rows there are. */
  count = 0;
  private readonly rows = h("div", { class: "yna-virtual-rows", role: "presentation" });
  private readonly shown = new Map<string, Shown>();
  private readonly spare: HTMLElement[] = [];
  private readonly resizes: ResizeObserver;
  private readonly headerHeight: number;
  private render: RenderRow = () => {};
  private key: (index: number) => string = String;
  private activeIndex = -1;
  private isFollowing = false;
  /** What was last seen of the layout: reading it again would have the browser lay out. */
  private top = 0;
  private height = 0;
  /** The last place to scroll to, as drawn: rows that were added since do not mean that the reader left the end. */
  private drawnLast = 0;
  private shifted = 0;
  private frame = 0;
  private look = 0;
  private stale = false;
  private seen = "";

  constructor(private readonly options: VirtualListOptions) {
    const { role, label, header, class: name } = options;
    this.headerHeight = header ? (options.headerHeight ?? options.rowHeight) : 0;
    this.element = h("div", { class: `yna-virtual ${name ?? ""}`.trim(), role, label, tabindex: "0" }, header, this.rows);
    this.element.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.pressed(event));
    this.rows.addEventListener("click", (event) => this.clicked(event));
    this.resizes = new ResizeObserver(() => this.resized());
    this.resizes.observe(this.element);
  }

  /** Whether the list stays at its end while rows are added. It ends when a person scrolls away. */
  get following(): boolean {
    return this.isFollowing;
  }

  set following(following: boolean) {
    this.follow(following);
    if (following) this.schedule();
  }

  /** The active row, or -1. Set, it is not scrolled to. */
  get active(): number {
    return this.activeIndex;
  }

  set active(index: number) {
    this.activeIndex = Math.min(index, this.count - 1);
    this.schedule();
  }

  /**
   * Show other rows, or more of them; what is seen is rendered anew with the next frame.
   *
   * The active row stays at its index: where rows moved, set `active` as well. `key` names a row
   * wherever it stands.
   */
  setRows(count: number, render: RenderRow = this.render, key: (index: number) => string = this.key): void {
    this.count = count;
    this.render = render;
    this.key = key;
    this.activeIndex = Math.min(this.activeIndex, count - 1);
    this.stale = true;
    this.schedule();
  }

  /** After `setRows`: so many rows came (or, negative, went) above what is seen, which stays where it is. */
  shift(rows: number): void {
    if (rows === 0 || this.isFollowing) return;
    this.shifted += rows * this.options.rowHeight;
    this.stale = true;
    this.schedule();
  }

  /** Whether the last row is seen. */
  get atEnd(): boolean {
    return this.top >= this.drawnLast - this.options.rowHeight / 2;
  }

  /** The first row that is seen, whole or in part. */
  get first(): number {
    return Math.max(0, Math.min(Math.floor(this.top / this.options.rowHeight), this.count - 1));
  }

  /** Whether a host hides the list, or has not laid it out yet: then no row is seen. */
  get hidden(): boolean {
    return this.height === 0;
  }

  /** The rows that are seen, or will be with the next frame where the list follows its end; `end` is not one of them. */
  sight(count = this.count): { first: number; end: number } {
    const { rowHeight } = this.options;
    const room = this.height - this.headerHeight;
    const top = this.isFollowing ? Math.max(0, count * rowHeight - room) : this.top;
    return { first: Math.floor(top / rowHeight), end: Math.min(count, Math.ceil((top + room) / rowHeight)) };
  }

  /** Render a row anew, if it is shown; without an index, all that are. */
  update(index?: number): void {
    if (this.stale) return;
    for (const row of this.shown.values()) if (index === undefined || row.index === index) this.render(row.element, row.index);
  }

  /** Show a row: where it is not seen already, at the near edge, or in the middle. */
  scrollTo(index: number, where: "near" | "middle" = "near"): void {
    const { rowHeight } = this.options;
    const room = this.height - this.headerHeight;
    const start = index * rowHeight;
    const end = start + rowHeight;
    if (this.stale) this.draw();
    if (start >= this.top && end <= this.top + room) return;
    if (where === "middle") this.moveTo(start - (room - rowHeight) / 2);
    else this.moveTo(start < this.top ? start : end - room);
  }

  /** The element of a row, if it is shown. */
  elementOf(index: number): HTMLElement | null {
    for (const row of this.shown.values()) if (row.index === index) return row.element;
    return null;
  }

  /** Make a row the active one as the keyboard does. */
  move(index: number): void {
    const next = Math.max(0, Math.min(index, this.count - 1));
    if (this.count === 0) return;
    const changed = next !== this.activeIndex;
    this.activeIndex = next;
    this.scrollTo(next);
    this.draw();
    if (changed) this.options.onMove?.(next);
  }

  focus(): void {
    this.element.focus({ preventScroll: true });
  }

  dispose(): void {
    this.resizes.disconnect();
    cancelAnimationFrame(this.frame);
    cancelAnimationFrame(this.look);
  }

  private get last(): number {
    return Math.max(0, this.count * this.options.rowHeight - this.height + this.headerHeight);
  }

  private moveTo(top: number): void {
    const next = Math.max(0, Math.min(top, this.last));
    this.element.scrollTop = next;
    this.top = next;
    this.draw();
  }

  private follow(following: boolean): void {
    if (following === this.isFollowing) return;
    this.isFollowing = following;
    this.options.onFollow?.(following);
  }

  private resized(): void {
    const { rowHeight } = this.options;
    const start = this.activeIndex * rowHeight;
    const seen = (): boolean => start >= this.top && start + rowHeight <= this.top + this.height - this.headerHeight;
    const before = this.activeIndex >= 0 && seen();
    if (this.hidden) this.seen = "";
    this.height = this.element.clientHeight;
    if (this.hidden) return;
    this.top = this.element.scrollTop;
    this.draw();
    if (before && !seen()) this.scrollTo(this.activeIndex); // it stays in sight where there is less room
  }

  private scrolled(): void {
    if (this.element.clientHeight !== this.height) {
      // A host hides it for a moment, and it seems to be scrolled to its start: look again when it is shown.
      cancelAnimationFrame(this.look);
      this.look = requestAnimationFrame(() => this.resized());
      return;
    }
    const top = this.element.scrollTop;
    const moved = top !== this.top;
    this.top = top;
    if (moved) this.follow(this.atEnd);
    this.draw();
  }

  private schedule(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (this.hidden) return;
    const { rowHeight, onShown } = this.options;
    const { stale, last } = this;
    this.stale = false;
    this.drawnLast = last;
    if (stale) {
      this.rows.style.height = `${this.count * rowHeight}px`;
      if (this.rowRole === "row") this.element.setAttribute("aria-rowcount", String(this.count + (this.headerHeight ? 1 : 0)));
    }
    const top = this.isFollowing ? last : Math.max(0, Math.min(this.top + this.shifted, last));
    if (top !== this.top) this.element.scrollTop = top;
    this.top = top;
    this.shifted = 0;
    const start = Math.max(0, Math.floor((this.top - MARGIN) / rowHeight));
    const end = Math.min(this.count, Math.ceil((this.top + this.height + MARGIN) / rowHeight));
    this.place(start, end, stale);
    const seen = `${start} ${end}`;
    if (onShown && (stale || seen !== this.seen)) onShown(start, end);
    this.seen = seen;
  }

  /** Have elements for the rows of a range, the active one, and one in which something has the focus. */
  private place(start: number, end: number, stale: boolean): void {
    const focused = document.activeElement;
    const wanted = new Map<string, number>();
    for (let index = start; index < end; index += 1) wanted.set(this.key(index), index);
    if (this.activeIndex >= 0) wanted.set(this.key(this.activeIndex), this.activeIndex);
    for (const [key, row] of this.shown) {
      if (wanted.has(key)) continue;
      if (!stale && row.element !== focused && row.element.contains(focused)) {
        wanted.set(key, row.index);
        continue;
      }
      this.shown.delete(key);
      row.element.remove();
      this.spare.push(row.element);
    }
    let before: HTMLElement | null = null;
    for (const [key, index] of [...wanted].sort(([, one], [, other]) => one - other)) {
      const known = this.shown.get(key);
      const row: Shown = known ?? { element: this.newRow(), index: -1 };
      if (!known) this.shown.set(key, row);
      if (!known || row.index !== index || stale) this.fill(row, index);
      if (!known && before) before.after(row.element);
      else if (!known) this.rows.prepend(row.element);
      before = row.element;
    }
    this.mark();
  }

  private get rowRole(): string {
    return ROW_ROLES[this.options.role];
  }

  private newRow(): HTMLElement {
    const made = this.spare.pop();
    if (made) return made;
    const element = h("div", { class: "yna-virtual-row", role: this.rowRole, id: newId() });
    element.style.height = `${this.options.rowHeight}px`;
    return element;
  }

  private fill(row: Shown, index: number): void {
    row.index = index;
    const { element } = row;
    element.style.transform = `translateY(${index * this.options.rowHeight}px)`;
    element.dataset.index = String(index);
    if (this.rowRole === "row") {
      element.setAttribute("aria-rowindex", String(index + (this.headerHeight ? 2 : 1)));
    } else {
      element.setAttribute("aria-setsize", String(this.count));
      element.setAttribute("aria-posinset", String(index + 1));
    }
    this.render(element, index);
  }

  private mark(): void {
    let active: string | null = null;
    for (const { element, index } of this.shown.values()) {
      const isActive = index === this.activeIndex;
      if (this.rowRole !== "listitem") element.setAttribute("aria-selected", String(isActive));
      element.classList.toggle("yna-active", isActive);
      if (isActive) active = element.id;
    }
    if (active === null) this.element.removeAttribute("aria-activedescendant");
    else this.element.setAttribute("aria-activedescendant", active);
  }

  private clicked(event: MouseEvent): void {
    const target = event.target as HTMLElement;
    const row = target.closest<HTMLElement>(".yna-virtual-row");
    if (!row || target.closest("button, a, input, select, textarea, summary")) return;
    const index = Number(row.dataset.index);
    this.move(index);
    this.options.onActivate?.(index, event);
  }

  private pressed(event: KeyboardEvent): void {
    if (event.target !== this.element || event.defaultPrevented || event.isComposing) return;
    if (this.options.onKey?.(event, this.activeIndex)) {
      event.preventDefault();
      return;
    }
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { key } = event;
    const at = this.activeIndex;
    const page = Math.max(1, Math.floor((this.height - this.headerHeight) / this.options.rowHeight) - 1);
    const steps: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at < 0 ? this.count - 1 : at - 1,
      Home: 0,
      End: this.count - 1,
      PageDown: at + page,
      PageUp: at - page,
    };
    if (Object.hasOwn(steps, key)) this.move(steps[key] ?? 0);
    else if ((key === "Enter" || key === " ") && at >= 0) this.options.onActivate?.(at, event);
    else return;
    event.preventDefault();
  }
}
