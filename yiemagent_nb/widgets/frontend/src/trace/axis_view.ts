// The ruler above the bars, and what chooses the time that it shows.

import { h, setText } from "../dom";
import { seconds } from "../text";
import type { Fit } from "./range";
import { clockText, type Axis } from "./scale";

const FITS: [fit: Fit, name: string][] = [
  ["sight", "Rows in sight"],
  ["run", "Chosen run"],
  ["all", "All runs"],
  ["part", "A part"],
];
/** Pixels that a pointer is to be drawn along the ruler, to choose a part. */
const DRAWN = 6;
const STEP = 1.6;
/** About as many pixels has a letter of a mark. */
const LETTER = 6;

export interface AxisActions {
  onFit(fit: Fit): void;
  /** Below 1 to show less; `centre` from 0 to 1. */
  onZoom(factor: number, centre?: number): void;
  onPart(from: number, to: number): void;
}

export class AxisView {
  /** The cell above the bars. */
  readonly ruler: HTMLElement;
  /** What chooses the time. */
  readonly controls: HTMLElement;
  private readonly marks = h("span", { class: "yna-trace-marks" });
  private readonly chosen = h("span", { class: "yna-trace-part", hidden: true });
  private readonly fits = h("select", { class: "yna-field yna-trace-fit", label: "The time axis shows" });
  private readonly told = h("span", { class: "yna-trace-shown" });
  private axis: Axis | null = null;
  private readonly resizes = new ResizeObserver(([entry]) => {
    this.width = entry?.contentRect.width ?? 0;
    if (this.axis) this.drawMarks(this.axis);
  });
  /** Pixels. */
  private width = 0;

  constructor(private readonly actions: AxisActions) {
    this.ruler = h(
      "span",
      { class: "yna-trace-cell yna-trace-axis", role: "columnheader" },
      h("span", { class: "yna-hidden" }, "Timeline"),
      this.marks,
      this.chosen,
    );
    for (const [value, name] of FITS) this.fits.append(h("option", { value, hidden: value === "part" }, name));
    this.fits.addEventListener("change", () => actions.onFit(this.fits.value as Fit));
    const button = (sign: string, label: string, factor: number): HTMLElement =>
      h("button", { class: "yna-quiet yna-trace-zoom", label, title: label, onclick: () => actions.onZoom(factor) }, sign);
    this.controls = h(
      "span",
      { class: "yna-trace-range", role: "group", label: "Time axis" },
      this.fits,
      button("−", "Show more time (−, or Ctrl and the wheel)", STEP),
      button("+", "Show less time (+, Ctrl and the wheel, or draw along the ruler)", 1 / STEP),
      this.told,
    );
    this.resizes.observe(this.marks);
    this.listen();
  }

  dispose(): void {
    this.resizes.disconnect();
  }

  /** `list` has the axis' lines behind its bars. */
  show(axis: Axis, fit: Fit, list: HTMLElement): void {
    if (this.fits.value !== fit) this.fits.value = fit;
    if (axis === this.axis) return;
    this.axis = axis;
    const { cuts } = axis;
    this.drawMarks(axis);
    list.style.setProperty("--yna-trace-lines", lines(axis));
    const many = cuts.length > 0 ? `, ${cuts.length} ${cuts.length === 1 ? "pause" : "pauses"} cut` : "";
    setText(this.told, axis.stretches.length === 0 ? "" : `${seconds(axis.shown / 1000)}${many}`);
    this.ruler.title =
      `One time axis for all rows: ${clockText(axis.start)} to ${clockText(axis.end)}, ${this.told.textContent}. ` +
      (cuts.length > 0 ? "Hatched: nothing ran, and the time is left out. " : "") +
      "Draw along it to look at a part.";
  }

  /** As many marks as there is room for. */
  private drawMarks(axis: Axis): void {
    const { cuts, marks } = axis;
    let free = 0;
    const texts = marks.filter(({ at, end, text }) => {
      const from = at * this.width;
      const to = from + 10 + text.length * LETTER;
      if (from < free || to > end * this.width + LETTER) return false;
      free = to;
      return true;
    });
    this.marks.replaceChildren(
      ...cuts.map(({ from, to, pause }) => {
        const cut = h("span", { class: "yna-trace-cut", title: `Nothing ran for ${seconds(pause / 1000)}` });
        cut.style.left = percent(from);
        cut.style.width = percent(to - from);
        return cut;
      }),
      ...texts.map(({ at, text }) => {
        const mark = h("span", { class: "yna-trace-mark" }, text);
        mark.style.left = `calc(${percent(at)} + 2px)`;
        return mark;
      }),
    );
  }

  /** Where a pointer stands, from 0 to 1. */
  place(x: number): number {
    const { left, width } = this.marks.getBoundingClientRect();
    return Math.max(0, Math.min(1, (x - left) / Math.max(1, width)));
  }

  private listen(): void {
    let from: number | null = null;
    const { ruler, chosen } = this;
    ruler.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      ruler.setPointerCapture(event.pointerId);
      from = event.clientX;
      event.preventDefault();
    });
    ruler.addEventListener("pointermove", (event) => {
      if (from === null) return;
      chosen.hidden = Math.abs(event.clientX - from) < DRAWN;
      const { left } = ruler.getBoundingClientRect();
      chosen.style.left = `${Math.min(from, event.clientX) - left}px`;
      chosen.style.width = `${Math.abs(event.clientX - from)}px`;
    });
    const end = (event: PointerEvent): void => {
      const begun = from;
      from = null;
      chosen.hidden = true;
      if (begun === null || event.type !== "pointerup" || Math.abs(event.clientX - begun) < DRAWN || !this.axis) return;
      const [one, other] = [begun, event.clientX].map((x) => this.place(x)).sort((a, b) => a - b) as [number, number];
      this.actions.onPart(this.axis.time(one), this.axis.time(other));
    };
    for (const type of ["pointerup", "pointercancel"] as const) ruler.addEventListener(type, end);
    ruler.addEventListener("dblclick", () => this.actions.onFit("sight"));
  }
}

/** The lines behind all bars as one picture: at each mark, and a band where a pause was cut out. */
function lines({ marks, cuts }: Axis): string {
  const line = "var(--yna-trace-grid)";
  const stops = [
    ...marks.map(({ at }) => ({ at, text: `transparent ${percent(at)}, ${line} ${percent(at)} calc(${percent(at)} + 1px), transparent calc(${percent(at)} + 1px)` })),
    ...cuts.map(({ from, to }) => ({
      at: from,
      text: `transparent ${percent(from)}, var(--yna-trace-pause) ${percent(from)} ${percent(to)}, transparent ${percent(to)}`,
    })),
  ].sort((one, other) => one.at - other.at);
  return stops.length === 0 ? "none" : `linear-gradient(90deg, ${stops.map(({ text }) => text).join(", ")})`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(3)}%`;
}
