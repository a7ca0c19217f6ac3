// A difference as one reads it: what goes with a minus, what comes with a plus.

import { h } from "../dom";
import { alike, difference, type DifferenceLine } from "./difference";

/** Lines that are shown at first. */
const FIRST = 200;
const SIGNS = { same: " ", added: "+", removed: "−", gap: "" };

export function differenceView(before: string, after: string, same = "No difference."): HTMLElement {
  const lines = difference(before, after);
  if (lines.length === 0) return h("p", { class: "yna-muted" }, same);
  const view = h("div", { class: "yna-difference", role: "group", label: "Difference", tabindex: "0" });
  const show = (from: number, to: number): void => {
    for (let at = from; at < Math.min(to, lines.length); at += 1) view.append(lineView(lines, at));
  };
  show(0, FIRST);
  if (lines.length > FIRST) {
    const more = h("button", { class: "yna-ghost" }, `Show ${lines.length - FIRST} more lines`);
    more.addEventListener("click", () => {
      more.remove();
      show(FIRST, lines.length);
      view.focus();
    });
    view.append(more);
  }
  return view;
}

function lineView(lines: DifferenceLine[], at: number): HTMLElement {
  const kind = lines[at]?.kind ?? "gap";
  if (kind === "gap") return h("div", { class: "yna-difference-gap", "aria-hidden": "true" }, "⋯");
  const tag = kind === "added" ? "ins" : kind === "removed" ? "del" : "div";
  const line = h(tag, { class: `yna-difference-${kind}` }, h("span", { class: "yna-difference-sign" }, SIGNS[kind]));
  line.append(...words(lines, at));
  return line;
}

/** The text of a line; where one line took the place of another, with what differs in it. */
function words(lines: DifferenceLine[], at: number): (Node | string)[] {
  const { kind, text } = lines[at] ?? { kind: "same", text: "" };
  const other = kind === "removed" ? lines[at + 1] : lines[at - 1];
  const pair = kind === "removed" ? other?.kind === "added" : kind === "added" && other?.kind === "removed";
  if (!pair || !other || neighbours(lines, at) !== 2) return [text];
  const [before, behind] = alike(other.text, text);
  if (before + behind < 3) return [text];
  return [text.slice(0, before), h("mark", {}, text.slice(before, text.length - behind)), text.slice(text.length - behind)];
}

/** How many lines change together. */
function neighbours(lines: DifferenceLine[], at: number): number {
  const changes = (index: number): boolean => ["added", "removed"].includes(lines[index]?.kind ?? "same");
  let from = at;
  while (changes(from - 1)) from -= 1;
  let to = at;
  while (changes(to + 1)) to += 1;
  return to - from + 1;
}
