// The tree of rows with its time axis: a list of which only what is seen is there.

import { h } from "../dom";
import { VirtualList } from "../virtual_list";
import type { Line } from "./filter";
import { AxisView } from "./axis_view";
import { LineView } from "./line_view";
import { Range } from "./range";
import type { Row, Rows } from "./rows";
import { Axis } from "./scale";

const ROW_HEIGHT = 26;
/** Milliseconds from one look at what goes on to the next. */
const TICK = 200;
/** Milliseconds without scrolling. */
const REST = 120;
/** Milliseconds from one axis to the next while rows come in. */
const FLOOD = 300;
const COLUMNS = ["name", "state", "started", "time", "tokens", "cost"] as const;
const NAMES = { name: "Name", state: "State", started: "Started", time: "Time", tokens: "Tokens", cost: "Cost" } as const;

export interface TreeActions {
  /** The active row is another. */
  onMove(row: Row): void;
  onOpen(row: Row): void;
  onFold(row: Row, open: boolean): void;
  /** What is seen has changed, or whether the list follows its end. */
  onFollow(): void;
  /** Something goes on: sums grow with the time. */
  onTime(): void;
}

export class TreeView {
  readonly list: VirtualList;
  lines: readonly Line[] = [];
  private readonly views = new WeakMap<HTMLElement, LineView>();
  readonly axisView: AxisView;
  private readonly range: Range;
  private axis = new Axis([]);
  private fittedAt = 0;
  private resting: ReturnType<typeof setTimeout> | undefined;
  private ticking: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly rows: Rows,
    private readonly actions: TreeActions,
  ) {
    this.range = new Range(rows);
    this.axisView = new AxisView({
      onFit: (fit) => {
        this.range.fit = fit;
        this.showAxis();
      },
      onZoom: (factor, centre) => this.zoom(factor, centre),
      onPart: (from, to) => {
        this.range.show(from, to);
        this.showAxis();
      },
    });
    const header = h(
      "div",
      { class: "yna-trace-line yna-trace-header", role: "row", "aria-rowindex": "1" },
      ...COLUMNS.map((name) => h("span", { class: `yna-trace-cell yna-trace-${name}`, role: "columnheader" }, NAMES[name])),
      this.axisView.ruler,
    );
    this.list = new VirtualList({
      role: "treegrid",
      label: "Runs, turns and calls",
      rowHeight: ROW_HEIGHT,
      class: "yna-trace-list",
      header,
      onMove: (index) => this.moved(index),
      onActivate: (index) => this.withRow(index, (row) => actions.onOpen(row)),
      onKey: (event, index) => this.pressed(event, index),
      onShown: () => {
        this.fitSoon();
        actions.onFollow();
      },
      onFollow: () => actions.onFollow(),
    });
    this.list.element.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey || !(event.target as Element).closest(".yna-trace-axis")) return;
        event.preventDefault(); // the browser would zoom the page
        this.zoom(1.002 ** event.deltaY, this.axisView.place(event.clientX));
      },
      { passive: false },
    );
    const turn = (target: Element): void => {
      const element = target.closest<HTMLElement>(".yna-virtual-row");
      const line = element ? this.lines[Number(element.dataset["index"])] : undefined;
      if (line && line.open !== null) actions.onFold(line.row, !line.open);
    };
    this.list.element.addEventListener("click", ({ target }) => {
      if ((target as Element).closest(".yna-trace-fold")) turn(target as Element);
    });
    this.list.element.addEventListener("dblclick", ({ target }) => {
      if (!(target as Element).closest(".yna-trace-fold")) turn(target as Element);
    });
  }

  /** Show other lines; `chosen` is the row that is to be active. */
  show(lines: readonly Line[], chosen: number | null): void {
    const anchor = this.lines[this.list.first]?.row.row;
    const from = this.list.first;
    this.lines = lines;
    // Another axis has all bars drawn anew: where rows come in a flood, that is done now and then.
    if (this.axis.stretches.length === 0 || performance.now() - this.fittedAt > FLOOD) {
      this.fittedAt = performance.now();
      this.axis = this.newAxis();
      this.axisView.show(this.axis, this.range.fit, this.list.element);
    } else this.fitSoon();
    this.list.setRows(lines.length, this.render, this.key);
    this.list.active = chosen === null ? -1 : this.indexOf(chosen);
    if (anchor !== undefined && !this.list.following) {
      const to = this.indexOf(anchor);
      if (to >= 0) this.list.shift(to - from);
    }
    this.tick(lines.some(({ row }) => row.state === "running"));
  }

  indexOf(row: number): number {
    return this.lines.findIndex((line) => line.row.row === row);
  }

  dispose(): void {
    this.list.dispose();
    this.axisView.dispose();
    clearTimeout(this.resting);
    clearInterval(this.ticking);
  }

  private readonly key = (index: number): string => String(this.lines[index]?.row.row ?? `none ${index}`);

  private readonly render = (element: HTMLElement, index: number): void => {
    const line = this.lines[index];
    if (!line) return;
    let view = this.views.get(element);
    if (!view) {
      view = new LineView(element);
      this.views.set(element, view);
    }
    view.show(line, this.rows, this.axis, Date.now());
  };

  /** Have bars grow while something goes on. */
  private tick(running: boolean): void {
    if (running === (this.ticking !== undefined)) return;
    clearInterval(this.ticking);
    this.ticking = running
      ? setInterval(() => {
          if (!this.list.element.isConnected || document.hidden) return;
          if (!this.showAxis()) this.list.update();
          this.actions.onTime();
        }, TICK)
      : undefined;
  }

  /** The axis is fitted to what is in sight once the list rests. */
  private fitSoon(): void {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.showAxis(), REST);
  }

  /** Show the time that is to be shown; returns whether it is another. */
  private showAxis(): boolean {
    const axis = this.newAxis();
    this.axisView.show(axis, this.range.fit, this.list.element);
    if (axis === this.axis) return false;
    this.axis = axis;
    this.list.update();
    return true;
  }

  private newAxis(): Axis {
    if (this.list.hidden) return this.axis; // it is fitted when the list is seen again
    const { first, end } = this.list.sight(this.lines.length);
    const seen = new Set(this.lines.slice(first, end).map(({ row }) => this.rows.rootOf(row)));
    const chosen = this.lines[this.list.active] ?? this.lines[end - 1];
    return this.range.axisOf(() => this.roots(), seen, chosen && this.rows.rootOf(chosen.row), Date.now());
  }

  /** All runs and calls by hand that are listed. */
  private roots(): Row[] {
    return this.lines.filter(({ level }) => level === 1).map(({ row }) => row);
  }

  private zoom(factor: number, centre?: number): void {
    this.range.zoom(this.axis, this.roots(), Date.now(), factor, centre);
    this.showAxis();
  }

  private withRow(index: number, act: (row: Row) => void): void {
    const line = this.lines[index];
    if (line) act(line.row);
  }

  private moved(index: number): void {
    this.list.following = index === this.lines.length - 1;
    this.showAxis();
    this.withRow(index, (row) => this.actions.onMove(row));
  }

  private pressed(event: KeyboardEvent, index: number): boolean {
    const line = this.lines[index];
    if (event.altKey || event.ctrlKey || event.metaKey) return false;
    if (event.key === "+" || event.key === "-") {
      this.zoom(event.key === "+" ? 0.6 : 1.6);
      return true;
    }
    if (!line) return false;
    if (event.key === "ArrowRight") {
      if (line.open === false) this.actions.onFold(line.row, true);
      else if (line.open) this.list.move(index + 1);
      return true;
    }
    if (event.key !== "ArrowLeft") return false;
    if (line.open) this.actions.onFold(line.row, false);
    else if (line.row.parent !== null) {
      const parent = this.indexOf(line.row.parent);
      if (parent >= 0) this.list.move(parent);
    }
    return true;
  }
}
