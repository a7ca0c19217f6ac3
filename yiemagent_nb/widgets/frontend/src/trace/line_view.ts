// One line of the tree: what it is, how it went, and its bar on the time axis.

import { h, icon, setText } from "../dom";
import { seconds, visible } from "../text";
import type { Line } from "./filter";
import type { Kind, Row, Rows } from "./rows";
import { asked, clockText, piecesOf, smallOf, spanOf, type Axis } from "./scale";
import { KIND_NAMES, money, stateName, timesText, tokensText, waits } from "./words";

const ICONS: Record<Kind, string> = { run: "ask", turn: "again", model: "thought", tool: "tools", hand: "play" };
const LONGEST = 300;

export function kindIcon(kind: Kind): SVGSVGElement {
  return icon(ICONS[kind]);
}

/** The sign of a state that is not the usual one. */
function stateMark(row: Row): Element | string {
  if (row.state === "failed") return icon("alert");
  if (row.state === "aborted") return icon("pause");
  if (row.state === "done") return icon("check");
  return waits(row) ? icon("clock") : h("span", { class: "yna-spinner", "aria-hidden": "true" });
}

function cell(name: string, ...children: (Node | string)[]): HTMLElement {
  return h("span", { class: `yna-trace-cell yna-trace-${name}`, role: "gridcell" }, ...children);
}

export class LineView {
  private readonly fold = h(
    "button",
    { class: "yna-trace-fold", tabindex: "-1", "aria-hidden": "true" },
    icon("chevron"),
  );
  private readonly picture = h("span", { class: "yna-trace-picture" });
  private readonly title = h("span", { class: "yna-trace-title" });
  private readonly summary = h("span", { class: "yna-trace-summary" });
  private readonly stateText = h("span", { class: "yna-trace-state-name" });
  private readonly stateSign = h("span", { class: "yna-trace-sign" });
  private readonly name = cell("name", this.fold, this.picture, this.title, this.summary);
  private readonly state = cell("state", this.stateSign, this.stateText);
  private readonly started = cell("started");
  private readonly time = cell("time");
  private readonly tokens = cell("tokens");
  private readonly cost = cell("cost");
  private readonly bars = h("span", { class: "yna-trace-bars", "aria-hidden": "true" });
  private readonly words = h("span", { class: "yna-hidden" });
  private readonly place = cell("axis", this.bars, this.words);
  private kind: Kind | null = null;
  private sign = "";
  private drawn = "";
  private shown: Line | null = null;
  private axis: Axis | null = null;

  constructor(private readonly element: HTMLElement) {
    element.classList.add("yna-trace-line");
    element.replaceChildren(this.name, this.state, this.started, this.time, this.tokens, this.cost, this.place);
  }

  show(line: Line, rows: Rows, axis: Axis, now: number): void {
    const { row } = line;
    const { element, shown } = this;
    if (
      shown?.row === row &&
      row.duration !== null &&
      this.axis === axis &&
      shown.level === line.level &&
      shown.dim === line.dim &&
      shown.open === line.open
    ) {
      return; // nothing of it has changed, nor will it by itself
    }
    this.shown = line;
    this.axis = axis;
    element.dataset["row"] = String(row.row);
    element.dataset["kind"] = row.kind;
    element.dataset["state"] = row.state;
    element.classList.toggle("yna-trace-dim", line.dim);
    element.setAttribute("aria-level", String(line.level));
    element.style.setProperty("--yna-level", String(line.level - 1));
    if (line.open === null) element.removeAttribute("aria-expanded");
    else element.setAttribute("aria-expanded", String(line.open));
    this.fold.classList.toggle("yna-trace-leaf", line.open === null);
    if (this.kind !== row.kind) {
      this.kind = row.kind;
      this.picture.replaceChildren(kindIcon(row.kind), h("span", { class: "yna-hidden" }, `${KIND_NAMES[row.kind]}: `));
    }
    setText(this.title, visible(row.title.slice(0, LONGEST)));
    setText(this.summary, visible(row.summary.slice(0, LONGEST)));
    const clock = clockText(row.started);
    setText(this.started, clock);
    const tip = `${KIND_NAMES[row.kind]}: ${visible(row.title.slice(0, LONGEST))}\nStarted at ${clock}`;
    if (this.name.title !== tip) this.name.title = tip;
    const state = stateName(row);
    if (this.sign !== state) {
      this.sign = state;
      this.stateSign.replaceChildren(stateMark(row));
      setText(this.stateText, state);
      this.state.title = state;
    }
    this.showNumbers(row);
    this.showTimes(row, rows, axis, now);
  }

  /** What changes while time goes by. */
  showTimes(row: Row, rows: Rows, axis: Axis, now: number): void {
    const elapsed = rows.elapsed(row, now);
    setText(this.time, seconds(elapsed));
    const words = timesText(row, (row.started - rows.rootOf(row).started) / 1000, (row.started - asked(row, rows)) / 1000, elapsed);
    setText(this.words, words);
    if (this.place.title !== words) this.place.title = words;
    this.showBars(row, rows, axis, elapsed, now);
  }

  private showNumbers(row: Row): void {
    setText(this.tokens, row.tokens ? tokensText(row.tokens) : "");
    const { tokens } = row;
    const tip = tokens
      ? `${tokens.input.toLocaleString()} tokens in, ${tokens.cached.toLocaleString()} of them cached, ${tokens.output.toLocaleString()} out`
      : "";
    if (this.tokens.title !== tip) this.tokens.title = tip;
    setText(this.cost, row.cost === null ? "" : money(row.cost));
  }

  private showBars(row: Row, rows: Rows, axis: Axis, elapsed: number, now: number): void {
    const specs: [name: string, from: number, to: number, lane: number][] = [];
    if (row.kind === "run" || row.kind === "turn") {
      const { part, from, to } = spanOf(row, axis, elapsed);
      specs.push([part === "work" ? "span" : part, from, to, -1]);
      for (const { kind, failed, lane, from, to } of smallOf(row, rows, axis, now)) {
        specs.push([`small yna-trace-of-${kind}${failed ? " yna-trace-bad" : ""}`, from, to, lane]);
      }
    } else {
      for (const { part, from, to } of piecesOf(row, rows, axis, elapsed)) {
        specs.push([`${part} yna-trace-of-${row.kind}`, from, to, -1]);
      }
    }
    const text = specs.map(([name, from, to, lane]) => `${name} ${from.toFixed(4)} ${to.toFixed(4)} ${lane}`).join("|");
    if (text === this.drawn) return;
    this.drawn = text;
    // Bars are kept: those that grow do not flicker, and nothing is made anew five times a second.
    const { children } = this.bars;
    for (const [at, [name, from, to, lane]] of specs.entries()) {
      const bar = (children[at] as HTMLElement | undefined) ?? this.bars.appendChild(h("span"));
      bar.className = `yna-trace-bar yna-trace-${name}`;
      bar.style.left = `${(from * 100).toFixed(3)}%`;
      bar.style.width = `${((to - from) * 100).toFixed(3)}%`;
      if (lane >= 0) bar.style.setProperty("--yna-lane", String(lane));
    }
    while (children.length > specs.length) this.bars.lastElementChild?.remove();
  }
}
