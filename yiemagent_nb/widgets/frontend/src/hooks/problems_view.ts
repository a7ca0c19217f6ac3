// What is wrong with the code, and what went wrong in a run; each leads to its line.

import { h } from "../dom";
import { clock, type Failure, type Problem } from "./forms";

export interface ProblemActions {
  goTo(line: number, column: number | null): void;
  /** Whether the text in the editor is the one of a version. */
  holds(version: number | null): boolean;
  /** Look at a version, in which something failed. */
  look(version: number): void;
}

export class ProblemsView {
  readonly element = h("div", { class: "yna-hook-problems" });
  private readonly problems = h("ul", { label: "Problems of the code" });
  private readonly failures = h("ul", { label: "What failed in runs" });

  constructor(private readonly actions: ProblemActions) {
    this.element.append(this.problems, this.failures);
    this.show([], []);
  }

  show(problems: readonly Problem[], failures: readonly Failure[]): void {
    this.problems.replaceChildren(...problems.map((problem) => this.problem(problem)));
    this.failures.replaceChildren(...[...failures].sort((one, other) => other.time - one.time).map((failure) => this.failure(failure)));
    this.problems.hidden = problems.length === 0;
    this.failures.hidden = failures.length === 0;
    this.element.hidden = problems.length + failures.length === 0;
  }

  private problem({ line, column, message }: Problem): HTMLElement {
    const place = line === null ? null : this.link(`Line ${line}`, () => this.actions.goTo(line, column));
    return h("li", { class: "yna-hook-problem" }, place, place && ": ", message);
  }

  private failure({ version, line, message, hint, count, time, action }: Failure): HTMLElement {
    const where = [line === null ? "" : `line ${line}`, version === null ? "" : `version ${version}`].filter(Boolean).join(" of ");
    const what = where ? `In a run, ${where}` : "In a run";
    const place =
      line !== null && this.actions.holds(version)
        ? this.link(what, () => this.actions.goTo(line, null))
        : version !== null
          ? this.link(what, () => this.actions.look(version))
          : what;
    return h(
      "li",
      { class: "yna-hook-problem" },
      place,
      ": ",
      message,
      hint ? h("span", { class: "yna-muted" }, ` ${hint}`) : null,
      h("span", { class: "yna-muted" }, ` ${[action, count > 1 ? `${count} times, last` : "", clock(time)].filter(Boolean).join(" ")}`),
    );
  }

  private link(text: string, onclick: () => void): HTMLElement {
    return h("button", { class: "yna-line-link", onclick }, text);
  }
}
