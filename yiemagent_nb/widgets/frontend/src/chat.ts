// The chat panel: the transcript, what is shown while it is empty, and the composer.

import { Composer } from "./composer";
import type { Connection } from "./connection";
import { h } from "./dom";
import type { Actions } from "./entry_view";
import type { Change, Store } from "./store";
import { TranscriptView } from "./transcript_view";

export class ChatView {
  readonly element: HTMLElement;
  private readonly empty = h("div", { class: "yna-empty", hidden: true });
  private readonly announcer = h("div", { class: "yna-hidden", role: "status", "aria-live": "polite" });
  private readonly transcript: TranscriptView;
  private readonly composer: Composer;

  constructor(
    private readonly store: Store,
    connection: Connection,
  ) {
    const actions: Actions = {
      approve: (requestId, choice, more) =>
        connection.request({ type: "approve", request_id: requestId, choice, ...more }),
      audio: (key) => connection.audio(key),
      answer: (requestId, action, content) =>
        connection.request({ type: "answer", request_id: requestId, action, content }),
    };
    this.transcript = new TranscriptView(store, actions, (before) => connection.tell({ type: "earlier", before }), this.empty);
    this.composer = new Composer(store, connection, () => this.transcript.toEnd());
    this.element = h(
      "div",
      { class: "yna-chat", role: "region", label: "Chat with the agent" },
      this.transcript.element,
      this.announcer,
      this.composer.element,
    );
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !event.isComposing && store.running) {
        event.preventDefault();
        this.composer.halt();
      }
    });
    this.showEmpty();
  }

  take(change: Change): void {
    this.transcript.take(change);
    this.composer.take(change);
    if (change.kind !== "entry" && change.kind !== "call") this.showEmpty();
    this.announce(change);
  }

  dispose(): void {
    this.store.draft = this.composer.draft;
    this.transcript.dispose();
  }

  private showEmpty(): void {
    this.empty.hidden = this.store.entries.length > 0 || this.store.total > 0;
    if (this.empty.hidden) return;
    const { tools, suggestions } = this.store.tools;
    const names = tools.map((tool) => tool.label || tool.name);
    const listed = names.length > 6 ? `${names.slice(0, 6).join(", ")} and ${names.length - 6} more` : names.join(", ");
    const title = "Put this into the composer";
    const chips = suggestions.map((text) =>
      h("button", { class: "yna-suggestion", title, onclick: () => this.composer.fill(text) }, text),
    );
    this.empty.replaceChildren(
      h("p", { class: "yna-empty-title" }, "What shall we do?"),
      h("p", { class: "yna-muted", hidden: names.length === 0 }, `Tools at hand: ${listed}`),
      h("div", { class: "yna-suggestions" }, ...chips),
    );
  }

  /** Tell a screen reader what a sighted person sees happen; not each word as it streams. */
  private announce(change: Change): void {
    if (change.kind === "run") {
      if (this.store.running) return this.say("The agent works.");
      const last = this.store.entries.findLast((entry) => entry.role === "assistant");
      const text = last?.blocks.filter((block) => block.kind === "text").map((block) => block.text).join(" ") ?? "";
      return this.say(text ? `The agent answered: ${text.slice(0, 500)}` : "The agent has finished.");
    }
    if (change.kind === "append") {
      const { question, request } = change.entry;
      if (question) this.say(`${question.question.source} asks: ${question.question.message.slice(0, 500)}`);
      else if (request) this.say(`Approval needed: ${this.store.label(request.name)}.`);
    }
    if (change.kind === "call") {
      const { call } = change;
      if (call.approval) this.say(`Approval needed: ${this.store.label(call.name)}.`);
      else if (call.status === "failed") this.say(`${this.store.label(call.name)} failed.`);
    }
  }

  private say(text: string): void {
    if (this.announcer.textContent !== text) this.announcer.textContent = text;
  }
}
