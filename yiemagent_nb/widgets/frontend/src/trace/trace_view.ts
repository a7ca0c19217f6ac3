// The panel that shows what an agent did: when each call was, what went to the model and what came back.

import { h, icon } from "../dom";
import type { PanelContext, PanelEvent, PanelView } from "../panel";
import type { Change } from "../store";
import { DetailsView } from "./details";
import { isOn, linesOf } from "./filter";
import { SumView, legend } from "./legend";
import { Rows, type Row } from "./rows";
import { splitter } from "./splitter";
import { Toolbar } from "./toolbar";
import { TreeView } from "./tree";
import { problemText } from "./words";

/** So many older rows are asked for at a time. */
const CHUNK = 500;
/** Milliseconds between two drawings while rows come in, and from one chunk to the next. */
const PAUSE = 100;
const REST = 20;
/** Milliseconds from one sum to the next while something goes on. */
const SUM = 1_000;

interface State {
  /** The number of the first row that is kept; `rows` are the newest. */
  start: number;
  total: number;
  rows: Row[];
  /** How often all rows were forgotten. */
  cleared: number;
}

interface Loaded {
  start: number;
  rows: Row[];
}

export class TraceView implements PanelView {
  readonly element: HTMLElement;
  private readonly rows = new Rows();
  private readonly folded = new Set<number>();
  private readonly toolbar: Toolbar;
  private readonly tree: TreeView;
  private readonly details: DetailsView;
  private readonly sum = new SumView();
  private readonly loading = h("span", { class: "yna-trace-loading", hidden: true });
  private readonly jump: HTMLButtonElement;
  private readonly empty = h(
    "div",
    { class: "yna-empty yna-trace-empty" },
    h("p", { class: "yna-empty-title" }, "Nothing has run yet"),
    h(
      "p",
      { class: "yna-muted" },
      "Runs appear here while they happen: their turns, calls of the model and of tools, when each was, what exactly was sent and what came back.",
    ),
  );
  private readonly nothing = h("p", { class: "yna-trace-nothing", hidden: true }, "No row matches the filter.");
  private readonly folding: HTMLButtonElement;
  private readonly clearing: HTMLElement;
  private chosen: number | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private drawnAt = 0;
  private filtered = false;
  /** Older rows are asked for once at a time; a newer state ends what goes on. */
  private age = 0;
  private cleared = 0;

  constructor(private readonly context: PanelContext) {
    this.folding = h("button", { class: "yna-ghost yna-trace-fold-all", onclick: () => this.foldAll() }, "Fold all");
    this.clearing = h("span", { class: "yna-trace-clearing" });
    this.offerClear();
    this.toolbar = new Toolbar(() => this.filter(), h("span", { class: "yna-trace-end" }, this.folding, this.clearing));
    this.tree = new TreeView(this.rows, {
      onMove: (row) => {
        this.chosen = row.row;
        if (this.details.current) this.details.show(row);
      },
      onOpen: (row) => this.open(row),
      onFold: (row, open) => this.fold(row, open),
      onFollow: () => this.showJump(),
      onTime: () => {
        if (performance.now() - this.drawnAt > SUM) this.later();
      },
    });
    this.tree.list.element.addEventListener("scroll", () => this.showJump(), { passive: true });
    this.details = new DetailsView(context, this.rows, () => this.close());
    this.jump = h(
      "button",
      {
        class: "yna-trace-jump",
        hidden: true,
        onclick: () => {
          this.tree.list.following = true;
          this.tree.list.focus();
        },
      },
      icon("down"),
      "Newest",
    );
    this.tree.list.following = true;
    const main = h("div", { class: "yna-trace-main" }, this.tree.list.element, this.nothing, this.empty);
    const body = h("div", { class: "yna-trace-body" }, main);
    body.append(splitter(body), this.details.element);
    this.element = h(
      "div",
      { class: "yna-trace yna-trace-is-empty" },
      this.toolbar.element,
      body,
      h("div", { class: "yna-trace-foot" }, this.tree.axisView.controls, legend(), this.loading, this.jump, this.sum.element),
    );
    main.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.defaultPrevented || !this.details.current) return;
      event.preventDefault();
      this.close();
    });
  }

  focus(): void {
    this.tree.list.focus();
  }

  receive(event: PanelEvent): void {
    if (event.type === "state") this.renew(event["state"] as State);
    else if (event.type === "rows") {
      const rows = event["rows"] as Row[];
      this.rows.add(rows, true);
      const current = this.details.current && rows.find(({ row }) => row === this.details.current?.row);
      if (current) this.details.show(current);
      this.later();
    }
  }

  take(_change: Change): void {}

  dispose(): void {
    clearTimeout(this.timer);
    this.age += 1;
    this.toolbar.dispose();
    this.tree.dispose();
    this.details.dispose();
  }

  private renew(state: State): void {
    this.age += 1;
    const first = state.rows[0]?.row ?? state.start;
    if (state.cleared !== this.cleared || !this.rows.reaches(first)) this.rows.clear();
    this.cleared = state.cleared;
    this.rows.add(state.rows, false);
    const { current } = this.details;
    if (current) {
      const known = this.rows.get(current.row);
      if (known) this.details.show(known);
      else if (state.total <= current.row || state.rows.length === 0) this.close();
    }
    if (state.rows.length === 0) {
      this.chosen = null;
      this.folded.clear();
      this.tree.list.following = true;
    }
    this.draw();
    const { oldest } = this.rows;
    this.loading.hidden = oldest <= state.start;
    if (oldest > state.start) void this.loadOlder(this.age, oldest, state);
  }

  /** Ask for the rows before one, chunk by chunk, each in a task of its own. */
  private async loadOlder(age: number, before: number, { start: oldest, total }: State): Promise<void> {
    let first = before;
    try {
      while (first > oldest) {
        const start = Math.max(oldest, first - CHUNK);
        this.loading.textContent = `Loading older rows: ${this.rows.size.toLocaleString()} of ${(total - oldest).toLocaleString()}`;
        const { rows } = await this.context.ask<Loaded>({ type: "load_rows", start, count: first - start });
        if (age !== this.age) return;
        this.rows.add(rows, false);
        const next = rows[0]?.row ?? first;
        if (next > start) break; // the older ones were forgotten
        first = next;
        this.later();
        await new Promise((resolve) => setTimeout(resolve, REST));
        if (age !== this.age) return;
      }
      this.loading.hidden = true;
    } catch (error) {
      if (age !== this.age) return;
      this.loading.textContent = `Older rows could not be loaded: ${problemText(error)}`;
    }
  }

  /** Draw soon, and not all the time. */
  private later(): void {
    if (this.timer !== undefined) return;
    const wait = Math.max(0, this.drawnAt + PAUSE - performance.now());
    this.timer = setTimeout(() => this.draw(), wait);
  }

  private draw(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const { lines, sum } = linesOf(this.rows, this.toolbar.filter, this.folded, Date.now());
    this.tree.show(lines, this.chosen);
    this.sum.show(sum, this.filtered);
    // Names get the room of columns in which nothing stands.
    this.element.classList.toggle("yna-trace-no-tokens", sum.input + sum.output === 0);
    this.element.classList.toggle("yna-trace-no-cost", sum.cost === null);
    this.filtered = false;
    const none = this.rows.size === 0;
    this.element.classList.toggle("yna-trace-is-empty", none);
    this.empty.hidden = !none;
    this.tree.list.element.hidden = lines.length === 0;
    this.nothing.hidden = none || lines.length > 0;
    this.folding.textContent = this.folded.size > 0 ? "Open all" : "Fold all";
    this.showJump();
    this.drawnAt = performance.now();
  }

  private filter(): void {
    this.filtered = true;
    this.draw();
    const at = this.chosen === null ? -1 : this.tree.indexOf(this.chosen);
    if (at >= 0) this.tree.list.scrollTo(at);
    else if (isOn(this.toolbar.filter) && !this.tree.list.following) this.tree.list.scrollTo(0);
  }

  private fold(row: Row, open: boolean): void {
    if (open) this.folded.delete(row.row);
    else this.folded.add(row.row);
    this.draw();
  }

  private foldAll(): void {
    if (this.folded.size > 0) this.folded.clear();
    else for (const { row, kind } of this.rows.all()) if (kind === "run" || kind === "turn") this.folded.add(row);
    this.draw();
  }

  private open(row: Row): void {
    this.chosen = row.row;
    this.tree.list.active = this.tree.indexOf(row.row);
    this.details.show(row);
  }

  private close(): void {
    const held = this.details.element.contains(document.activeElement);
    this.details.show(null);
    if (held) this.tree.list.focus();
  }

  private showJump(): void {
    this.jump.hidden = this.tree.list.following || this.tree.list.atEnd || this.rows.size === 0;
  }

  private offerClear(): void {
    const clear = h("button", { class: "yna-ghost", onclick: () => this.askClear() }, icon("cross"), "Clear");
    this.clearing.replaceChildren(clear);
  }

  private askClear(): void {
    const yes = h("button", { class: "yna-ghost yna-danger", onclick: () => this.clear() }, "Clear");
    const no = h("button", { class: "yna-ghost" }, "Keep");
    const back = (): void => {
      this.offerClear();
      this.clearing.querySelector("button")?.focus();
    };
    no.addEventListener("click", back);
    const asking = h("span", { class: "yna-trace-asking", role: "group", label: "Forget all rows?" }, "Forget all rows?", yes, no);
    asking.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      back();
    });
    this.clearing.replaceChildren(asking);
    no.focus();
  }

  private clear(): void {
    this.offerClear();
    this.clearing.querySelector("button")?.focus();
    this.context.act({ type: "clear_trace" }).catch((error: unknown) => {
      this.clearing.append(h("span", { class: "yna-problem", role: "alert" }, problemText(error)));
    });
  }
}
