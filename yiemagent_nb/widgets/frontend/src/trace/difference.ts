// How a request differs from the one before it, or from another.

import { h, icon } from "../dom";
import type { PanelContext } from "../panel";
import { visible } from "../text";
import type { Row, Rows } from "./rows";
import { problemText } from "./words";

interface DifferenceLine {
  kind: "same" | "added" | "removed";
  text: string;
}

interface Difference {
  against: number | null;
  sections: { title: string; lines: DifferenceLine[] }[];
  /** In words. */
  unchanged: string;
}

/** Of lines that are the same, so many are shown beside those that are not. */
const AROUND = 3;
const MOST_LINES = 400;
const MOST_CHOICES = 200;
const SIGNS = { same: " ", added: "+", removed: "−" } as const;
const NAMES = { same: "", added: "Added: ", removed: "Removed: " } as const;

export class DifferenceView {
  readonly element: HTMLElement;
  private readonly choice = h("select", { class: "yna-field yna-trace-choice", label: "Compare with" });
  private readonly place = h("div", { class: "yna-trace-difference" });
  private readonly status = h("span", { class: "yna-trace-counts", role: "status" });
  private row: Row | null = null;
  private asked = "";

  constructor(
    private readonly context: PanelContext,
    private readonly rows: Rows,
  ) {
    this.choice.addEventListener("change", () => this.load());
    this.element = h("div", {}, h("div", { class: "yna-trace-modes" }, this.choice, this.status), this.place);
  }

  show(row: Row): void {
    if (this.row?.row === row.row) return;
    this.row = row;
    const others: Row[] = [];
    for (const each of this.rows.all()) if (each.kind === "model" && each.row !== row.row) others.push(each);
    others.sort((one, other) => other.row - one.row);
    // Those around it are the likeliest.
    const near = Math.max(0, others.findIndex((each) => each.row < row.row) - MOST_CHOICES / 2);
    const options = others.slice(near, near + MOST_CHOICES).map((each) => {
      const time = new Date(each.started).toLocaleTimeString();
      return h("option", { value: String(each.row) }, `${visible(each.title.slice(0, 60))}, ${time} (row ${each.row})`);
    });
    this.choice.replaceChildren(h("option", { value: "" }, "With the request before it"), ...options);
    this.load();
  }

  private load(): void {
    const { row } = this;
    if (!row) return;
    const key = `${row.row} ${this.choice.value}`;
    this.asked = key;
    const against = this.choice.value === "" ? null : Number(this.choice.value);
    this.place.replaceChildren(h("p", { class: "yna-trace-nothing" }, "Comparing…"));
    this.context
      .ask<Difference>({ type: "load_difference", row: row.row, against })
      .then((difference) => {
        if (this.asked === key) this.draw(difference);
      })
      .catch((error: unknown) => {
        if (this.asked !== key) return;
        this.status.textContent = "";
        this.place.replaceChildren(h("p", { class: "yna-problem" }, problemText(error)));
      });
  }

  private draw({ sections, unchanged, against }: Difference): void {
    const count = (kind: DifferenceLine["kind"]): number =>
      sections.reduce((sum, { lines }) => sum + lines.filter((line) => line.kind === kind).length, 0);
    this.status.replaceChildren(
      h("span", { class: "yna-trace-added" }, `+${count("added").toLocaleString()}`),
      " ",
      h("span", { class: "yna-trace-removed" }, `−${count("removed").toLocaleString()}`),
      h("span", { class: "yna-hidden" }, " lines"),
    );
    this.status.hidden = against === null;
    this.place.replaceChildren(
      ...sections.map(({ title, lines }) =>
        h("section", { class: "yna-trace-changed" }, h("h4", {}, visible(title)), linesElement(lines, title)),
      ),
      h("p", { class: "yna-trace-nothing" }, unchanged),
    );
  }
}

function linesElement(lines: readonly DifferenceLine[], title: string): HTMLElement {
  const element = h("div", { class: "yna-trace-lines", tabindex: "0", role: "group", label: `Lines of ${visible(title)}` });
  const near = lines.map(() => false);
  for (const [at, line] of lines.entries()) {
    if (line.kind !== "same") near.fill(true, Math.max(0, at - AROUND), at + AROUND + 1);
  }
  let shown = 0;
  const add = (from: number): void => {
    let at = from;
    const end = shown + MOST_LINES;
    while (at < lines.length && shown < end) {
      if (near[at]) {
        element.append(lineElement(lines[at] as DifferenceLine));
        at += 1;
      } else {
        const start = at;
        while (at < lines.length && !near[at]) at += 1;
        element.append(fold(lines.slice(start, at)));
      }
      shown += 1;
    }
    if (at >= lines.length) return;
    const more = h("button", { class: "yna-more" }, `Show more of ${(lines.length - at).toLocaleString()} lines`);
    more.addEventListener("click", () => {
      more.remove();
      element.focus({ preventScroll: true });
      add(at);
    });
    element.append(more);
  };
  add(0);
  return element;
}

function lineElement({ kind, text }: DifferenceLine): HTMLElement {
  return h(
    "div",
    { class: `yna-trace-diff yna-trace-${kind}` },
    h("span", { class: "yna-trace-diff-sign", "aria-hidden": "true" }, SIGNS[kind]),
    NAMES[kind] ? h("span", { class: "yna-hidden" }, NAMES[kind]) : null,
    h("span", { class: "yna-trace-diff-text" }, text),
  );
}

/** Lines that are the same, until a person wants to see them. */
function fold(lines: DifferenceLine[]): HTMLElement {
  if (lines.length === 1 && lines[0]) return lineElement(lines[0]);
  const name = `${lines.length.toLocaleString()} lines that are the same`;
  const button = h("button", { class: "yna-trace-same-lines" }, icon("more"), name);
  button.addEventListener("click", () => {
    const most = lines.slice(0, MOST_LINES).map(lineElement);
    const rest = lines.length > MOST_LINES ? [fold(lines.slice(MOST_LINES))] : [];
    button.closest<HTMLElement>(".yna-trace-lines")?.focus({ preventScroll: true });
    button.replaceWith(...most, ...rest);
  });
  return button;
}
