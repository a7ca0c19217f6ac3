// One entry of the transcript: what a person said, what the agent answered, a note, an error.

import type { CallActions } from "./approval_card";
import { CallView } from "./call_view";
import { copyButton, h, icon } from "./dom";
import type { Block, Call, Entry } from "./entries";
import { MarkdownView } from "./markdown";
import type { ErrorText, Took } from "./protocol";
import { QuestionView, type QuestionActions } from "./question_view";
import { RequestView } from "./request_view";
import { imageElement } from "./result_view";
import type { Store } from "./store";
import { seconds } from "./text";

export type Actions = CallActions & QuestionActions;

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
  dispose(): void;
}

export function entryView(entry: Entry, store: Store, actions: Actions): EntryView {
  if (entry.role === "assistant") return new AnswerView(entry, store, actions);
  if (entry.question) return new QuestionView(entry.question, actions);
  if (entry.request) return new RequestView(entry.request, store.label(entry.request.name), actions);
  return plainView(entry);
}

function plainView(entry: Entry): EntryView {
  let element: HTMLElement;
  if (entry.role === "user") {
    const parts = entry.blocks.map((block) =>
      block.image ? imageElement(block.image, "Image you sent") : h("div", { class: "yna-said" }, block.text),
    );
    element = h("div", { class: "yna-entry yna-user" }, h("span", { class: "yna-hidden" }, "You said:"), ...parts);
  } else if (entry.error) {
    element = h("div", { class: "yna-entry" }, errorCard(entry.error));
  } else {
    element = h("div", { class: "yna-entry yna-note" }, entry.note);
  }
  return { element, update: () => true, updateCall: () => {}, dispose: () => {} };
}

class AnswerView implements EntryView {
  readonly element = h("div", { class: "yna-entry yna-answer" }, h("span", { class: "yna-hidden" }, "The agent answered:"));
  private readonly parts: Part[] = [];
  /** Which blocks the parts were made of. */
  private readonly made: Pick<Block, "kind" | "call">[] = [];
  private readonly calls = new Map<Call, CallView>();
  private readonly waiting = h(
    "div",
    { class: "yna-waiting", label: "The model is thinking" },
    h("span"),
    h("span"),
    h("span"),
  );
  private settled = false;

  constructor(
    private readonly entry: Entry,
    private readonly store: Store,
    private readonly actions: CallActions,
  ) {
    this.update();
  }

  update(): boolean {
    const { entry } = this;
    if (this.settled) return true;
    let whole = true;
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
        const next = this.parts.slice(at + 1).find(Boolean);
        this.element.insertBefore(part.element, next?.element ?? null);
      }
      const done = !entry.live || at < entry.blocks.length - 1;
      whole = part.update(block, done) && whole;
    });
    for (const part of this.parts.splice(entry.live ? this.parts.length : entry.blocks.length)) {
      part?.dispose?.();
      part?.element.remove();
    }
    const empty = entry.live && entry.blocks.length === 0;
    if (empty) this.element.append(this.waiting);
    else this.waiting.remove();
    this.element.classList.toggle("yna-live", entry.live);
    if (!entry.live) this.finish();
    return whole;
  }

  updateCall(call: Call): void {
    this.calls.get(call)?.update();
  }

  dispose(): void {
    for (const part of this.parts) part?.dispose?.();
  }

  private make(block: Block): Part {
    if (block.kind === "reasoning") return new ReasoningPart();
    if (block.kind === "tool_call") return this.makeCall(block);
    if (block.kind === "image" && block.image) {
      return { element: h("div", {}, imageElement(block.image, "Image from the model")), update: () => true };
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
        view.update();
        return true;
      },
      dispose: () => view.dispose(),
    };
  }

  private finish(): void {
    this.settled = true;
    const { entry } = this;
    const { message } = entry;
    if (entry.error) this.element.append(errorCard(entry.error));
    const word = { aborted: "Stopped.", length: "Cut off: the answer reached its greatest length.", content_filter: "Ended by a content filter." }[
      message?.stop_reason ?? ""
    ];
    const note = word ?? (entry.error ? null : message?.error_message);
    if (note) this.element.append(h("p", { class: "yna-ending" }, note));
    if (message && message.stop_reason !== "tool_calls") this.showFooter(message.took);
  }

  private showFooter(took: Took | null): void {
    const text = this.entry.blocks
      .filter((block) => block.kind === "text")
      .map((block) => block.text)
      .join("\n\n");
    const passed = this.entry.seconds === null ? "" : seconds(this.entry.seconds);
    const line = [took?.line, passed].filter(Boolean).join(" · ");
    if (!text && !line) return;
    const copy = text ? copyButton(() => text, "Copy answer") : null;
    this.element.append(h("div", { class: "yna-footer" }, line ? factsElement(line, took?.details ?? "") : null, copy));
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

class ReasoningPart implements Part {
  private readonly name = h("span", { class: "yna-thought-name" });
  private readonly text = h("div", { class: "yna-thought-text" });
  readonly element = h(
    "details",
    { class: "yna-thought" },
    h("summary", {}, icon("thought"), this.name, icon("chevron")),
    this.text,
  );
  private shown = 0;

  update(block: Block, done: boolean): boolean {
    this.element.hidden = block.text === "";
    this.element.classList.toggle("yna-busy", !done);
    const time = block.seconds !== null && block.seconds >= 0.05 ? seconds(block.seconds) : "";
    this.name.textContent = done ? (time ? `Thought for ${time}` : "Thought") : "Thinking…";
    if (block.text.length < this.shown) {
      this.text.textContent = "";
      this.shown = 0;
    }
    if (block.text.length > this.shown) {
      this.text.append(block.text.slice(this.shown));
      this.shown = block.text.length;
    }
    return true;
  }
}

function errorCard(error: ErrorText): HTMLElement {
  return h(
    "div",
    { class: "yna-error", role: "alert" },
    icon("alert"),
    h(
      "div",
      {},
      h("p", { class: "yna-error-text" }, error.message),
      error.hint ? h("p", { class: "yna-error-hint" }, error.hint) : null,
      error.code ? h("code", { class: "yna-error-code" }, error.code) : null,
    ),
  );
}
