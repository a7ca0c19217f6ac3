// What a hook would have done to the calls that were recorded.

import { h, icon, setText } from "../dom";
import { seconds, visible } from "../text";
import { differenceView } from "./difference_view";
import { counted, type Effect, type Problem, type Trial, type TriedCall } from "./forms";

/** Calls that are unfolded at first. */
const UNFOLDED = 3;
const WORDS: Record<Effect, string> = { changed: "Changed", blocked: "Blocked", failed: "Failed", unchanged: "Unchanged" };

export class TrialView {
  readonly element = h("section", { class: "yna-trial", label: "Trial", hidden: true });
  private readonly old = h("p", { class: "yna-muted", hidden: true }, "The code was changed since: this tells of the text before.");
  private code = "";

  constructor(private readonly goTo: (line: number) => void) {}

  /** What came of trying `code`. */
  show(trial: Trial, code: string): void {
    this.code = code;
    this.old.hidden = true;
    const parts: HTMLElement[] = [h("h4", {}, "What it would have changed"), this.old];
    if (trial.note) parts.push(h("p", { class: "yna-muted" }, trial.note));
    if (trial.printed) {
      const printed = h("pre", { class: "yna-hook-source", tabindex: "0", label: "What it printed" });
      setText(printed, trial.printed);
      parts.push(h("details", { class: "yna-fold", open: true }, fold("It printed"), printed));
    }
    const told = trial.calls.filter(({ effect }) => effect !== "unchanged");
    const rest = trial.calls.filter(({ effect }) => effect === "unchanged");
    parts.push(...told.map((call, at) => this.call(call, at < UNFOLDED)));
    if (rest.length > 0) {
      const list = h("ul", { class: "yna-trial-rest" });
      list.append(...rest.map((call) => h("li", {}, h("span", {}, visible(call.title)), " ", h("span", { class: "yna-muted" }, visible(call.detail)))));
      parts.push(h("details", { class: "yna-fold" }, fold(`${rest.length} unchanged`), list));
    }
    this.element.replaceChildren(...parts);
    this.element.hidden = trial.calls.length === 0 && !trial.printed && !trial.note;
  }

  /** Bring it into view, its beginning above all. */
  reveal(): void {
    this.element.scrollIntoView({ block: "nearest" });
    this.element.querySelector("h4")?.scrollIntoView({ block: "nearest" });
  }

  /** The text in the editor is another now. */
  outdate(code: string): void {
    this.old.hidden = this.element.hidden || code === this.code;
  }

  clear(): void {
    this.element.hidden = true;
    this.element.replaceChildren();
  }

  private call(call: TriedCall, open: boolean): HTMLElement {
    const { effect, line, message } = call;
    const body = h("div", { class: "yna-trial-body" });
    const view = h(
      "details",
      { class: "yna-fold yna-trial-call" },
      h(
        "summary",
        {},
        icon("chevron"),
        h("span", { class: `yna-effect yna-effect-${effect}` }, WORDS[effect]),
        h("span", { class: "yna-trial-title" }, visible(call.title)),
        h("span", { class: "yna-trial-detail" }, visible(call.detail)),
        h("span", { class: "yna-trial-time" }, seconds(call.seconds)),
      ),
      body,
    );
    const fill = (): void => {
      if (body.firstChild || !view.open) return;
      if (message) body.append(h("p", { class: effect === "failed" ? "yna-problem" : "" }, ...this.place(line), message));
      if (effect !== "failed" && (call.before || call.after)) body.append(differenceView(call.before, call.after));
    };
    view.addEventListener("toggle", fill);
    view.open = open;
    fill();
    return view;
  }

  private place(line: number | null): (HTMLElement | string)[] {
    if (line === null) return [];
    return [h("button", { class: "yna-line-link", onclick: () => this.goTo(line) }, `Line ${line}`), ": "];
  }
}

function fold(text: string): HTMLElement {
  return h("summary", {}, icon("chevron"), text);
}

/** Where calls failed while it was tried, each line once. */
export function failuresIn({ calls }: Trial): Problem[] {
  const lines = new Map<string, Problem>();
  for (const { effect, line, message } of calls) {
    if (effect === "failed" && line !== null) lines.set(`${line} ${message}`, { line, column: null, message });
  }
  return [...lines.values()];
}

/** What came of it, in a sentence. */
export function outcome({ calls }: Trial): string {
  if (calls.length === 0) return "There was nothing that it could be tried on.";
  const effects: Effect[] = ["changed", "blocked", "failed", "unchanged"];
  const counts = effects.map((effect) => [calls.filter((call) => call.effect === effect).length, WORDS[effect]] as const);
  const words = counts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word.toLowerCase()}`);
  return `Tried on ${counted(calls.length, "call")}: ${words.join(", ")}.`;
}
