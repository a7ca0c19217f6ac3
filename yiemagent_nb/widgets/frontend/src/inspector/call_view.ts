// One call by hand: how far it is, what it waits for, what it gave.

import { copyButton, h, icon, setText } from "../dom";
import { begin, settle, type Call } from "../entries";
import { seconds, visible } from "../text";
import { approvalElement } from "./approval";
import { fill } from "./filled";
import type { CallDetails, CallState, HandCall } from "./forms";
import { refusalText, type Inspected } from "./inspected";
import { rawJson } from "./schema_view";
import { bring, Complaint, Segments } from "./small";

const WORDS: Record<CallState, string> = {
  running: "Running",
  waiting: "Waits for you",
  done: "Done",
  failed: "Failed",
  cancelled: "Cancelled",
};
/** Milliseconds between two looks at the clock. */
const TICK = 250;

export function isOpen({ state }: HandCall): boolean {
  return state === "running" || state === "waiting";
}

/** The mark of a state: a picture, or what turns while it goes on. */
export function stateMark(state: CallState): Element {
  if (state === "running") return h("span", { class: "yna-spinner", "aria-hidden": "true" });
  return icon({ waiting: "hand", done: "check", failed: "alert", cancelled: "stop" }[state]);
}

export class CallView {
  readonly element: HTMLElement;
  private readonly mark = h("span", { class: "yna-call-mark" });
  private readonly word = h("span", { class: "yna-hand-state", role: "status" });
  private readonly facts = h("span", { class: "yna-muted yna-hand-facts" });
  private readonly cancel = h("button", { class: "yna-button yna-cancel", onclick: () => this.stop() }, "Cancel");
  private readonly segments = new Segments("Result as", [["shown", "Result"], ["raw", "Raw"]], (key) => this.show(key));
  private readonly progress = h("div", { class: "yna-hand-progress" });
  private readonly approval = h("div");
  private readonly result = h("div", { class: "yna-hand-result" });
  private readonly complaint = new Complaint();
  private call: HandCall | null = null;
  private details: CallDetails | null = null;
  private shownAs = "shown";
  /** The call whose outcome a person waits for: it is brought into view. */
  private awaited: string | null = null;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly inspected: Inspected) {
    this.element = h(
      "div",
      { class: "yna-hand-call", hidden: true },
      h("div", { class: "yna-hand-bar" }, this.mark, this.word, this.facts, this.cancel, this.segments.element),
      this.progress,
      this.approval,
      this.complaint.element,
      this.result,
    );
  }

  /** Show a call, or none. */
  update(call: HandCall | null): void {
    const another = call?.call !== this.call?.call;
    this.call = call;
    this.element.hidden = call === null;
    if (another) {
      this.details = null;
      this.complaint.say("");
      this.show("shown");
    }
    if (!call) return this.tick(false);
    const open = isOpen(call);
    this.element.dataset.state = call.state;
    fill(this.mark, call.state, () => [stateMark(call.state)]);
    setText(this.word, WORDS[call.state]);
    this.showFacts();
    this.tick(open);
    const hadFocus = document.activeElement === this.cancel || this.approval.contains(document.activeElement);
    this.cancel.hidden = !open;
    this.segments.element.hidden = open;
    fill(this.progress, [open, call.progress, call.progress_text], () => (open ? progressElements(call) : []));
    fill(this.approval, call.approval?.request_id ?? null, () => (call.approval ? [approvalElement(this.inspected.context, call.approval)] : []));
    if (hadFocus && !this.element.contains(document.activeElement)) (open ? this.cancel : this.segments.element.querySelector("button"))?.focus();
    if (this.awaited === call.call && call.approval) bring(this.approval);
    if (open) fill(this.result, call.call, () => []);
    else this.load(call);
  }

  /** Bring a call into view that was begun just now, and what comes of it. */
  follow(call: string): void {
    this.awaited = call;
    bring(this.element);
  }

  dispose(): void {
    this.tick(false);
    releaseAudio(this.result);
  }

  private tick(going: boolean): void {
    if (!going) {
      clearInterval(this.timer);
      this.timer = undefined;
    } else this.timer ??= setInterval(() => (this.element.isConnected ? this.showFacts() : this.tick(false)), TICK);
  }

  private showFacts(): void {
    const { call } = this;
    if (!call) return;
    const open = isOpen(call);
    const took = open ? (Date.now() - call.started) / 1000 - call.waited : call.duration;
    // A clock that goes wrong by less than a second would otherwise run backwards.
    const time = took === null || call.state === "waiting" ? "" : open ? `${Math.max(0, took).toFixed(1)} s` : seconds(took);
    setText(this.facts, [time, waitedText(call), call.hooks ? "through the hooks" : "without hooks"].filter(Boolean).join(" · "));
  }

  private stop(): void {
    if (this.call) void this.complaint.of(this.inspected.context.ask({ type: "cancel_call", call: this.call.call }));
  }

  private load(call: HandCall): void {
    if (this.details?.call === call.call) return;
    this.inspected.loadCall(call.call).then(
      (details) => {
        if (this.call?.call !== call.call) return;
        this.details = details;
        this.showDetails();
        if (this.awaited === call.call) bring(this.element);
        this.awaited = null;
      },
      (refusal) => {
        if (this.call?.call === call.call) this.complaint.say(refusalText(refusal));
      },
    );
  }

  private show(key: string): void {
    this.shownAs = key;
    this.segments.press(key);
    if (this.details) this.showDetails();
  }

  private showDetails(): void {
    const { details } = this;
    if (!details) return;
    fill(this.result, [details.call, this.shownAs], () => {
      releaseAudio(this.result);
      if (this.shownAs === "raw") return [rawJson(this.inspected.context, "As it came back", details.raw)];
      const tool = this.inspected.tool(details.name);
      return [fitElement(details), this.inspected.context.result(asCall(details), visible(tool?.label ?? details.name))];
    });
  }
}

/** How long it stood before the tool ran, as for a person's word; nothing where that is next to nothing. */
export function waitedText({ waited }: HandCall): string {
  return waited < 0.5 ? "" : `waited ${seconds(waited)}`;
}

function progressElements({ progress, progress_text: text }: HandCall): (HTMLElement | null)[] {
  if (progress === null && !text) return [];
  const bar = h("progress", { class: "yna-progress", max: "1", label: "Progress" });
  if (progress !== null) bar.value = progress;
  return [text ? h("p", { class: "yna-hand-progress-text" }, text) : null, bar];
}

/** Whether a structured result is what the tool promised. */
function fitElement({ fits, problems }: CallDetails): HTMLElement | null {
  if (fits === null) return null;
  if (fits) return h("p", { class: "yna-fit yna-fits" }, icon("check"), "It fits the output schema.");
  return h(
    "div",
    { class: "yna-fit yna-misfits", role: "group", label: "Output schema" },
    h("p", {}, icon("alert"), "It does not fit the output schema:"),
    h("ul", {}, ...problems.map((problem) => h("li", {}, problem))),
    copyButton(() => problems.join("\n")),
  );
}

/** The call as the chat knows calls. */
function asCall(details: CallDetails): Call {
  const call = begin(new Map(), details.call, details.name);
  settle(call, { is_error: details.state === "failed", duration: details.duration, content: details.content, details: details.details });
  if (details.state === "cancelled") call.status = "stopped";
  return call;
}

/** Let go of what recordings under an element take. */
function releaseAudio(element: HTMLElement): void {
  for (const player of element.querySelectorAll("audio")) URL.revokeObjectURL(player.src);
}
