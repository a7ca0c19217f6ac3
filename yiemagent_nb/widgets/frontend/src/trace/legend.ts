// What the colours and patterns of the bars mean, and what the rows that are shown add up to.

import { h, newId, setText } from "../dom";
import { seconds, shortNumber } from "../text";
import type { Sum } from "./filter";
import { money } from "./words";

const SIGNS: [name: string, words: string][] = [
  ["before", "before the request"],
  ["wait", "waiting (approval, hooks, a free place)"],
  ["first", "until the first token"],
  ["work yna-trace-of-model", "answer"],
  ["work yna-trace-of-tool", "tool"],
  ["work yna-trace-of-hand", "by hand"],
  ["tiny yna-trace-of-tool", "too short to draw"],
];

/** It is always there where there is room, else by its button. */
export function legend(): HTMLElement {
  const list = h(
    "ul",
    { class: "yna-trace-legend", id: newId(), label: "Colours and patterns of the bars" },
    ...SIGNS.map(([name, words]) =>
      h("li", {}, h("span", { class: `yna-trace-bar yna-trace-${name}`, "aria-hidden": "true" }), words),
    ),
  );
  const button = h("button", { class: "yna-ghost yna-trace-legend-button", "aria-expanded": "false", "aria-controls": list.id }, "Legend");
  button.addEventListener("click", () => {
    button.setAttribute("aria-expanded", String(list.classList.toggle("yna-open")));
  });
  return h("div", { class: "yna-trace-legend-place" }, button, list);
}

export class SumView {
  private readonly text = h("span");
  private readonly told = h("span", { class: "yna-hidden", role: "status" });
  readonly element = h(
    "div",
    { class: "yna-trace-sum", title: "Of the calls that are shown. Times are those of each call, one after the other; waiting for approvals, hooks and a free place is counted apart" },
    this.text,
    this.told,
  );

  /** `tell` has a screen reader say it: what changes by itself is not said. */
  show(sum: Sum, tell: boolean): void {
    const words = [count(sum.model, "model call"), count(sum.tools, "tool call")];
    if (sum.failed > 0) words.push(`${sum.failed.toLocaleString()} failed`);
    if (sum.input + sum.output > 0) words.push(`${shortNumber(sum.input)} → ${shortNumber(sum.output)} tokens`);
    if (sum.cost !== null) words.push(money(sum.cost));
    const times: [name: string, time: number][] = [
      ["model", sum.modelSeconds],
      ["tools", sum.toolSeconds],
      ["waiting", sum.waitedSeconds],
    ];
    for (const [name, time] of times) if (time >= 0.001) words.push(`${name} ${seconds(time)}`);
    setText(this.text, words.join(" · "));
    if (tell) setText(this.told, words.join(", "));
  }
}

function count(number: number, what: string): string {
  return `${number.toLocaleString()} ${what}${number === 1 ? "" : "s"}`;
}
