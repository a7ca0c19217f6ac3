// A tool call: one quiet row that says what it does or did, opens to all of it, and asks for approval.

import { ApprovalView, type CallActions } from "./approval_card";
import { argumentsOf, LONGEST_READ, oneLine, valueText } from "./arguments";
import { CallBody } from "./call_body";
import { h, icon, newId, setText } from "./dom";
import type { Call } from "./entries";
import { errorWords } from "./error_words";
import { standingOf, standingWords, type Standing } from "./outcome";
import type { Content } from "./protocol";
import { releaseAudio, richElements, textOf } from "./result_view";
import type { Store } from "./store";
import { seconds, visible } from "./text";
import { phrase, type Phrase } from "./verbs";

const ICONS: Partial<Record<Standing, string>> = {
  queued: "clock",
  waiting: "hand",
  done: "check",
  failed: "alert",
  stopped: "pause",
  denied: "cross",
  unbegun: "pause",
};

const LONG_ARGUMENTS = 200;
const LONGEST_TOOLTIP = 1_000;
const LONGEST_LINE = 300;

export class CallView {
  readonly element = h("div", { class: "yna-call" });
  private readonly mark = h("span", { class: "yna-call-mark" });
  private readonly verb = h("span", { class: "yna-call-verb" });
  private readonly name = h("span", { class: "yna-call-name" });
  private readonly what = h("span", { class: "yna-call-what" }, this.verb, " ", this.name);
  private readonly source = h("span", { class: "yna-call-source" });
  private readonly summary = h("span", { class: "yna-call-summary" });
  private readonly time = h("span", { class: "yna-call-time" });
  private readonly row: HTMLButtonElement;
  private readonly problem = h("p", { class: "yna-call-problem", hidden: true });
  private readonly place = h("div", { class: "yna-call-body", hidden: true });
  private readonly rich = h("div", { class: "yna-call-rich", hidden: true });
  private body: CallBody | null = null;
  private progress: ProgressLine | null = null;
  private summaryOf: unknown = undefined;
  private approval: ApprovalView | null = null;
  private standing: Standing | null = null;
  /** Why it waits for others of its batch; empty where it does not. */
  private turn = "";
  private shownContent: Content[] | null = null;
  private ticking: ReturnType<typeof setInterval> | undefined;

  constructor(
    readonly call: Call,
    private readonly store: Store,
    private readonly actions: CallActions,
  ) {
    this.place.id = newId();
    this.row = h(
      "button",
      {
        class: "yna-call-row",
        "aria-expanded": "false",
        "aria-controls": this.place.id,
        onclick: () => this.toggle(),
      },
      this.mark,
      this.what,
      this.source,
      this.summary,
      this.time,
      icon("chevron"),
    );
    this.element.append(this.row, this.problem, this.place, this.rich);
    this.update();
  }

  /** Its tool's name for people. */
  get label(): string {
    return visible(this.store.label(this.call.name));
  }

  dispose(): void {
    clearInterval(this.ticking);
    releaseAudio(this.rich);
  }

  update(): void {
    const { call } = this;
    const standing = standingOf(call, this.turn !== "");
    const turned = this.standing !== standing;
    if (turned) {
      this.standing = standing;
      this.element.dataset["status"] = standing;
      this.mark.replaceChildren(markOf(standing));
    }
    const { verb, name } = this.phrase(standing);
    setText(this.verb, verb);
    setText(this.name, name);
    const known = visible(call.name);
    if (this.what.title !== known) this.what.title = known;
    const source = visible(this.store.source(call));
    setText(this.source, source);
    this.source.hidden = source === "";
    this.showSummary();
    this.showTime(standing);
    this.showProgress();
    const ended = call.content !== this.shownContent;
    this.shownContent = call.content;
    if (turned || ended) this.showProblem(standing);
    if (ended) this.showRich();
    this.body?.update();
    this.showApproval();
  }

  /** Have it wait for others of its batch, or not. */
  queue(turn: string): void {
    if (this.turn === turn) return;
    this.turn = turn;
    this.update();
  }

  private phrase(standing: Standing): Phrase {
    const { call, label } = this;
    return call.note ? { verb: "Not run:", name: label } : phrase(label, standing);
  }

  private toggle(): void {
    const open = this.body === null;
    this.place.hidden = !open;
    this.row.setAttribute("aria-expanded", String(open));
    this.element.classList.toggle("yna-open", open);
    this.body = open ? new CallBody(this.place, this.call, this.store.source(this.call)) : null;
    if (!open) this.place.replaceChildren();
  }

  private showTime(standing: Standing): void {
    const { call } = this;
    const long = call.status === "writing" && call.argsText.length > LONG_ARGUMENTS;
    const runs = standing === "running";
    if (standing === "queued") setText(this.time, this.turn);
    else if (long) setText(this.time, `${call.argsText.length.toLocaleString()} characters`);
    else if (!runs) setText(this.time, standing === "denied" || standing === "unbegun" || call.duration === null ? "" : seconds(call.duration));
    else if (this.ticking === undefined) setText(this.time, "");
    if (runs && this.ticking === undefined) {
      this.ticking = setInterval(() => {
        const passed = (Date.now() - this.call.startedAt) / 1000;
        if (passed > 1) this.time.textContent = `${Math.round(passed)} s`;
      }, 1_000);
    } else if (!runs) {
      clearInterval(this.ticking);
      this.ticking = undefined;
    }
  }

  private showProgress(): void {
    const told = this.call.status === "running" ? this.call.progress : null;
    const text = textOf(told?.content ?? []);
    const share = told?.progress ?? null;
    if (text === "" && share === null) {
      this.progress?.element.remove();
      this.progress = null;
      return;
    }
    if (!this.progress) {
      this.progress = new ProgressLine();
      this.row.after(this.progress.element);
    }
    this.progress.show(text, share);
  }

  /** What went wrong, on one line; the opened card has all of it. */
  private showProblem(standing: Standing): void {
    const { call } = this;
    const failure = standing === "failed" ? textOf(call.content ?? []).slice(0, 4 * LONGEST_LINE) : "";
    const text = failure ? errorWords(failure).message : standingWords(call, standing);
    setText(this.problem, visible(text.replace(/\s+/g, " ").slice(0, LONGEST_LINE)));
    this.problem.hidden = this.problem.textContent === "";
  }

  private showRich(): void {
    releaseAudio(this.rich);
    this.rich.replaceChildren(...richElements(this.call, this.label, this.actions.audio));
    this.rich.hidden = this.rich.childElementCount === 0;
  }

  private showSummary(): void {
    const { call } = this;
    const shown = call.raw ?? call.args ?? call.argsText.slice(0, LONGEST_READ);
    if (this.summaryOf === shown) return;
    this.summaryOf = shown;
    const growing = call.status === "writing";
    const known = call.raw === null ? argumentsOf(call.args, call.argsText) : null;
    const { line, clipped } = oneLine(known, call.raw ?? call.argsText, growing);
    setText(this.summary, line);
    const all = known?.map(({ name, value }) => `${name}: ${valueText(value, growing)}`).join("\n") ?? call.argsText;
    this.summary.title = !clipped ? "" : all.length > LONGEST_TOOLTIP ? `${all.slice(0, LONGEST_TOOLTIP)}…` : all;
  }

  private showApproval(): void {
    const { call } = this;
    if (!this.approval && (call.approval || call.decision)) {
      const label = call.approval?.label || this.store.label(call.name);
      this.approval = new ApprovalView(call, label, this.actions, "to run");
      this.element.append(this.approval.element);
    }
    this.approval?.update();
  }
}

/** The sign of a status. */
export function markOf(standing: Standing): Element {
  const name = ICONS[standing];
  return name ? icon(name) : h("span", { class: "yna-spinner", "aria-hidden": "true" });
}

/** What a running call tells of itself. */
class ProgressLine {
  private readonly text = h("div");
  private readonly bar = h("progress", { class: "yna-progress", max: "1", label: "Progress" });
  readonly element = h("div", { class: "yna-call-progress" }, this.text, this.bar);

  show(text: string, share: number | null): void {
    setText(this.text, text.length > 400 ? `…${text.slice(-400)}` : text);
    this.bar.hidden = share === null;
    if (share !== null) this.bar.value = share;
  }
}
