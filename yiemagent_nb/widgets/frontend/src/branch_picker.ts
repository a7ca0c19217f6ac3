// Which of several branches that begin at a message is shown: ‹ 2 / 3 ›.

import { h, setText } from "./dom";
import type { Entry } from "./entries";
import { BUSY, ProblemLine, QuietButton, type MessageActions } from "./message_actions";

export class BranchPicker {
  readonly element: HTMLElement;
  readonly problem = new ProblemLine();
  private readonly back: QuietButton;
  private readonly next: QuietButton;
  private readonly place = h("span", { class: "yna-branch-place", "aria-hidden": "true" });
  private readonly told = h("span", { class: "yna-hidden" });

  constructor(
    private readonly entry: Entry,
    private readonly actions: MessageActions,
  ) {
    this.back = new QuietButton("Previous branch", "Previous branch", "back", () => this.go(-1));
    this.next = new QuietButton("Next branch", "Next branch", "chevron", () => this.go(1));
    this.back.element.dataset["step"] = "back";
    this.next.element.dataset["step"] = "next";
    this.element = h(
      "span",
      { class: "yna-branches", role: "group", label: "Branches of this message" },
      this.back.element,
      this.place,
      this.told,
      this.next.element,
    );
  }

  /** Show where it stands. */
  refresh(running: boolean): void {
    const { position, count } = this.entry.branch ?? { position: 0, count: 1 };
    this.element.hidden = count < 2;
    setText(this.place, `${position + 1} / ${count}`);
    setText(this.told, `Branch ${position + 1} of ${count}`);
    for (const button of [this.back, this.next]) button.wait(false);
    this.back.block(running ? BUSY : position === 0 ? "This is the first branch." : "");
    this.next.block(running ? BUSY : position >= count - 1 ? "This is the newest branch." : "");  }

  private go(step: 1 | -1): void {
    const { entry } = this;
    if (!entry.branch) return;
    const button = step < 0 ? this.back : this.next;
    button.wait(true);
    const asked = this.actions.switchBranch(entry.index, entry.branch.position + step, button.element);
    void this.problem.watch(asked).then((done) => done || button.wait(false));
  }
}
