// One entry of the transcript: what a person said, what the agent answered, a note, an error.

import type { CallActions } from "./approval_card";
import { BranchPicker } from "./branch_picker";
import { CallGroups, type Item } from "./call_group";
import { CallView } from "./call_view";
import { growText, h, icon, setText } from "./dom";
import type { Block, Call, Entry } from "./entries";
import { growingImage } from "./images";
import { MarkdownView } from "./markdown";
import { AgainButton, copyAction, type MessageActions } from "./message_actions";
import type { ErrorText } from "./protocol";
import { QuestionView, type QuestionActions } from "./question_view";
import { RequestView } from "./request_view";
import { SaidView } from "./said_view";
import type { Store } from "./store";
import { seconds } from "./text";

export type Actions = CallActions & QuestionActions & MessageActions;

interface Part {
  element: HTMLElement;
  /** Show the block as it is now; returns whether all of it is shown. */
  update(block: Block, done: boolean): boolean;
  dispose?(): void;
}

export interface EntryView {
  readonly element: HTMLElement;
  /** Show the entry as it is now; returns whether all of it is shown. */
  update(): boolean;
  updateCall(call: Call): void;
  /** The element of one of its calls. */
  callElement?(call: Call): HTMLElement | undefined;
  /** Show what may be done with it while a run goes on, or none does. */
  refresh?(running: boolean): void;
  dispose(): void;
}

export function entryView(entry: Entry, store: Store, actions: Actions): EntryView {
  if (entry.role === "assistant") return new AnswerView(entry, store, actions);
  if (entry.role === "user") return new SaidView(entry, actions, store.running);
  if (entry.question) return new QuestionView(entry.question, actions);
  if (entry.request) return new RequestView(entry.request, entry.request.approval?.label || store.label(entry.request.name), actions);
  const element = entry.error
    ? h("div", { class: "yna-entry" }, errorCard(entry.error))
    : h("div", { class: "yna-entry yna-note" }, h("span", {}, entry.note));
  return { element, update: () => true, updateCall: () => {}, dispose: () => {} };
}

class AnswerView implements EntryView {
  readonly element = h("div", { class: "yna-entry yna-answer" }, h("span", { class: "yna-hidden" }, "The agent answered:"));
  private readonly parts: Part[] = [];
  /** Which blocks the parts were made of. */
  private readonly made: Pick<Block, "kind" | "call">[] = [];
  private readonly calls = new Map<Call, CallView>();
  private readonly groups: CallGroups;
  private readonly waiting = h(
    "div",
    { class: "yna-waiting", label: "The model is thinking" },
    h("span"),
    h("span"),
    h("span"),
  );
  private settled = false;
  private picker: BranchPicker | null = null;
  private again: AgainButton | null = null;
  private left: HTMLElement | null = null;
  private readonly footer = h("div", { class: "yna-footer", hidden: true });

  constructor(
    private readonly entry: Entry,
    private readonly store: Store,
    private readonly actions: Actions,
  ) {
    this.groups = new CallGroups(entry, store);
    this.update();
  }

  update(): boolean {
    const { entry } = this;
    if (this.settled) {
      this.refresh(this.store.running);
      return true;
    }
    let whole = true;
    let placed = entry.live;
    entry.blocks.forEach((block, at) => {
      let part = this.parts[at];
      const made = this.made[at];
      if (part && (made?.kind !== block.kind || made.call !== block.call)) {
        part.dispose?.(); // the whole answer is told in other blocks than its stream was
        part.element.remove();
        part = undefined;
      }
      if (!part) {
        part = this.make(block);
        this.parts[at] = part;
        this.made[at] = { kind: block.kind, call: block.call };
        placed = false;
      }
      const done = !entry.live || at < entry.blocks.length - 1;
      whole = part.update(block, done) && whole;
    });
    for (const part of this.parts.splice(entry.live ? this.parts.length : entry.blocks.length)) {
      part?.dispose?.();
      part?.element.remove();
    }
    if (!placed) this.place();
    const empty = entry.live && entry.blocks.length === 0;
    if (empty) this.element.append(this.waiting);
    else this.waiting.remove();
    this.element.classList.toggle("yna-live", entry.live);
    if (!entry.live) this.finish();
    return whole;
  }

  refresh(running: boolean): void {
    if (!this.settled) return;
    if (!running) this.offerAgain();
    if (!this.picker && this.entry.branch) {
      this.picker = new BranchPicker(this.entry, this.actions);
      this.footer.prepend(this.picker.element);
      this.footer.after(this.picker.problem.element);
    }
    this.picker?.refresh(running);
    this.again?.refresh(running);
    this.footer.hidden = this.footer.childElementCount === 0 || (this.footer.childElementCount === 1 && this.picker?.element.hidden === true);
  }

  updateCall(call: Call): void {
    this.calls.get(call)?.update();
    this.groups.update(call);
  }

  /** Put the parts in the order of their blocks, calls in groups. */
  private place(): void {
    const items: Item[] = [];
    this.entry.blocks.forEach(({ call, kind, text }, at) => {
      const element = this.parts[at]?.element;
      const view = (call && this.calls.get(call)) ?? null;
      if (element) items.push({ element, view, empty: kind !== "image" && text.trim() === "" });
    });
    this.groups.arrange(this.element, items);
  }

  callElement(call: Call): HTMLElement | undefined {
    return this.calls.get(call)?.element;
  }

  dispose(): void {
    this.groups.dispose();
    for (const part of this.parts) part?.dispose?.();
  }

  private make(block: Block): Part {
    if (block.kind === "reasoning") return new ReasoningPart();
    if (block.kind === "tool_call") return this.makeCall(block);
    if (block.kind === "image" && block.image) {
      return { element: h("div", {}, growingImage(block.image, "Image from the model")), update: () => true };
    }
    return new TextPart();
  }

  private makeCall(block: Block): Part {
    const { call } = block;
    if (!call) return { element: h("div"), update: () => true };
    const view = new CallView(call, this.store, this.actions);
    this.calls.set(call, view);
    return {
      element: view.element,
      update: () => {
        if (!this.entry.live) view.update(); // what changes until then is told by the call
        return true;
      },
      dispose: () => view.dispose(),
    };
  }

  private finish(): void {
    this.settled = true;
    const { entry, store, actions } = this;
    const { message } = entry;
    const ending = endingText(entry);
    const stopped = message?.stop_reason === "aborted";
    if (entry.error || stopped) this.again = new AgainButton("Retry", actions, () => entry.index);
    if (entry.error) this.element.append(errorCard(entry.error, this.again));
    if (ending) {
      const words = h("p", { class: "yna-ending" }, ending);
      this.element.append(h("div", { class: "yna-ending-row" }, words, stopped ? this.again?.element : null));
    }
    const whole = message && message.stop_reason !== "tool_calls";
    if (whole && !this.again) this.again = new AgainButton("Regenerate", actions, () => store.firstAnswerTo(entry));
    if (whole) this.fillFooter(message.took?.line ?? "", message.took?.details ?? "");
    this.element.append(this.footer);
    if (this.again) this.element.append(this.again.problem.element);
    this.refresh(store.running);
  }

  /** A run that ended with the calls of this answer is had anew from here: nothing else tells of an answer. */
  private offerAgain(): void {
    const { entry, store, actions } = this;
    const open = store.endsWithCalls(entry);
    if (open && !this.left) {
      const broken = entry.blocks.some(({ call }) => call && call.status !== "done");
      this.again = new AgainButton(broken ? "Retry" : "Regenerate", actions, () => (broken ? entry.index : store.firstAnswerTo(entry)));
      this.left = h("div", { class: "yna-actions" }, this.again.element);
      this.footer.before(this.left, this.again.problem.element);
    }
    if (this.left) this.left.hidden = !open;
  }

  private fillFooter(took: string, details: string): void {
    const { entry, again } = this;
    const text = entry.blocks
      .filter((block) => block.kind === "text")
      .map((block) => block.text)
      .join("\n\n");
    const passed = entry.seconds === null || entry.error ? "" : seconds(entry.seconds);
    const line = [took, passed].filter(Boolean).join(" · ");
    const buttons = h("span", { class: "yna-actions" }, text ? copyAction("Copy answer", () => text) : null);
    if (again && !this.element.contains(again.element)) buttons.append(again.element);
    if (buttons.childElementCount > 0) this.footer.append(buttons);
    if (line) this.footer.append(factsElement(line, details));
  }
}

/** How an answer ended, where that is not as usual. */
function endingText({ error, message }: Entry): string {
  switch (message?.stop_reason) {
    case "aborted":
      return "Stopped.";
    case "length":
      return "Cut off: the answer reached its greatest length.";
    case "content_filter":
      return "Ended by a content filter.";
    default:
      return error ? "" : (message?.error_message ?? "");
  }
}

/** What an answer took, on one line that opens to all of it. */
function factsElement(line: string, details: string): HTMLElement {
  if (!details) return h("span", { class: "yna-facts" }, line);
  const summary = h("summary", { class: "yna-facts-line", title: details }, line);
  return h("details", { class: "yna-facts" }, summary, h("div", { class: "yna-facts-all" }, details));
}

class TextPart implements Part {
  private readonly view = new MarkdownView();
  readonly element = this.view.element;

  update(block: Block, done: boolean): boolean {
    return this.view.update(block.text, done);
  }
}

/** What the model thought: its text while it is folded, which search looks through, and as markdown while it is open. */
class ReasoningPart implements Part {
  private readonly name = h("span", { class: "yna-thought-name" });
  private readonly plain = h("div", { class: "yna-plain" });
  private readonly view = new MarkdownView();
  private readonly place = h("div", { class: "yna-thought-text" }, this.plain);
  readonly element = h("details", { class: "yna-thought" }, h("summary", {}, icon("thought"), this.name, icon("chevron")), this.place);
  private text = "";
  private done = false;

  constructor() {
    this.element.addEventListener("toggle", () => this.show());
  }

  update(block: Block, done: boolean): boolean {
    this.text = block.text;
    this.done = done;
    this.element.hidden = block.text === "";
    this.element.classList.toggle("yna-busy", !done);
    const time = block.seconds !== null && block.seconds >= 0.05 ? seconds(block.seconds) : "";
    const passed = block.seconds !== null && block.seconds >= 2 ? ` ${Math.round(block.seconds)} s` : "";
    setText(this.name, done ? (time ? `Thought for ${time}` : "Thought") : `Thinking…${passed}`);
    return this.show();
  }

  private show(): boolean {
    const { open } = this.element;
    const whole = !open || this.view.update(this.text, this.done);
    const shown = open || this.view.source === this.text ? this.view.element : this.plain;
    if (shown === this.plain) growText(this.plain, this.text);
    if (this.place.firstChild !== shown) this.place.replaceChildren(shown);
    return whole;
  }
}

function errorCard(error: ErrorText, again: AgainButton | null = null): HTMLElement {
  return h(
    "div",
    { class: "yna-error" },
    icon("alert"),
    h(
      "div",
      { class: "yna-error-body" },
      h("p", { class: "yna-error-text" }, error.message),
      error.hint ? h("p", { class: "yna-error-hint" }, error.hint) : null,
      h("div", { class: "yna-error-end" }, again?.element, error.code ? h("code", { class: "yna-error-code" }, error.code) : null),
    ),
  );
}
