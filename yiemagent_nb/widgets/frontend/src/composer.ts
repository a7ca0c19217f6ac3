// Where a person writes. Its nodes are apart from the transcript's, so rendering never touches them.

import type { Connection } from "./connection";
import { h, icon } from "./dom";
import type { Refusal } from "./protocol";
import type { Change, Store } from "./store";

const HISTORY = 50;

export class Composer {
  readonly element: HTMLElement;
  private readonly input = h("textarea", {
    class: "yna-input",
    rows: "1",
    label: "Message to the agent",
    spellcheck: "true",
  });
  private readonly waiting = h("div", { class: "yna-queue", hidden: true });
  private readonly problem = h("div", { class: "yna-problem", role: "alert", hidden: true });
  private readonly hint = h("span", { class: "yna-hint" });
  private readonly send: HTMLButtonElement;
  private readonly steer: HTMLButtonElement;
  private readonly queue: HTMLButtonElement;
  private readonly stop: HTMLButtonElement;
  private readonly said: string[] = [];
  private recalled = -1;
  private pending = false;

  constructor(
    private readonly store: Store,
    private readonly connection: Connection,
    private readonly onSent: () => void,
  ) {
    this.send = h(
      "button",
      { class: "yna-round yna-primary", title: "Send (Enter)", label: "Send", onclick: () => this.submit("send") },
      icon("send"),
    );
    this.steer = h(
      "button",
      {
        class: "yna-button",
        title: "Joins the conversation before the next request to the model (Enter)",
        onclick: () => this.submit("send"),
      },
      "Steer",
    );
    this.queue = h(
      "button",
      {
        class: "yna-button",
        title: "Waits until the agent has finished (Alt+Enter)",
        onclick: () => this.submit("follow_up"),
      },
      "Queue",
    );
    this.stop = h(
      "button",
      { class: "yna-round yna-stop", title: "Stop (Esc)", label: "Stop", onclick: () => this.halt() },
      icon("stop"),
    );
    this.element = h(
      "div",
      { class: "yna-composer" },
      this.waiting,
      this.problem,
      h(
        "div",
        { class: "yna-box" },
        this.input,
        h("div", { class: "yna-bar" }, this.hint, this.steer, this.queue, this.stop, this.send),
      ),
    );
    this.input.value = store.draft;
    this.input.addEventListener("input", () => {
      this.recalled = -1;
      this.complain("");
      this.refresh();
    });
    this.input.addEventListener("keydown", (event) => this.onKey(event));
    this.refresh();
    this.showQueue();
  }

  take(change: Change): void {
    if (change.kind === "run" || change.kind === "reset" || change.kind === "status") this.refresh();
    if (change.kind === "queue" || change.kind === "reset" || change.kind === "run") this.showQueue();
  }

  /** Put a text there for the person to send. */
  fill(text: string): void {
    this.input.value = text;
    this.input.focus();
    this.refresh();
  }

  halt(): void {
    if (this.store.running) this.connection.tell({ type: "stop" });
  }

  get draft(): string {
    return this.input.value;
  }

  private onKey(event: KeyboardEvent): void {
    if (event.isComposing || event.keyCode === 229) return; // an input method has this key
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit(event.altKey && this.store.running ? "follow_up" : "send");
    } else if (event.key === "ArrowUp" && (this.input.value === "" || this.recalled >= 0)) {
      this.recall(event, 1);
    } else if (event.key === "ArrowDown" && this.recalled >= 0) {
      this.recall(event, -1);
    }
  }

  private recall(event: KeyboardEvent, step: number): void {
    const texts = this.texts();
    const at = Math.min(this.recalled + step, texts.length - 1);
    if (at < -1 || texts.length === 0) return;
    event.preventDefault();
    this.recalled = at;
    this.input.value = at < 0 ? "" : (texts[at] ?? "");
    this.refresh();
  }

  /** What the person said, the newest first. */
  private texts(): string[] {
    const said = this.store.entries
      .filter((entry) => entry.role === "user")
      .map((entry) => entry.blocks.map((block) => block.text).join(""));
    return [...new Set([...this.said, ...said].reverse())].filter(Boolean).slice(0, HISTORY);
  }

  private submit(type: "send" | "follow_up"): void {
    const text = this.input.value;
    if (this.pending || text.trim() === "") return;
    if (this.connection.status === "disconnected") {
      this.complain("The kernel is gone. Run the cell again; your text stays here.");
      return;
    }
    this.pending = true;
    this.complain("");
    this.refresh();
    this.connection
      .request({ type, text })
      .then(
        () => {
          if (this.input.value === text) this.input.value = "";
          this.said.push(text);
          this.recalled = -1;
          this.onSent();
        },
        (refusal: Refusal) => this.complain(`${refusal.message} ${refusal.hint}`.trim()),
      )
      .finally(() => {
        this.pending = false;
        this.refresh();
      });
  }

  private complain(text: string): void {
    this.problem.textContent = text;
    this.problem.hidden = text === "";
  }

  private refresh(): void {
    const { running } = this.store;
    const empty = this.input.value.trim() === "";
    this.send.hidden = running;
    this.stop.hidden = this.steer.hidden = this.queue.hidden = !running;
    this.send.disabled = this.steer.disabled = this.queue.disabled = empty || this.pending;
    this.input.readOnly = this.pending;
    this.element.classList.toggle("yna-pending", this.pending);
    this.input.placeholder = running ? "Steer the agent, or queue what comes next" : "Ask anything";
    this.hint.textContent = this.pending
      ? this.connection.status === "busy"
        ? "Sent as soon as the kernel is free"
        : "Sending…"
      : running
        ? "Enter steers · Alt+Enter queues · Esc stops"
        : "Enter sends · Shift+Enter breaks the line";
    this.grow();
  }

  private grow(): void {
    if (CSS.supports("field-sizing", "content")) return;
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight, 220)}px`;
  }

  private showQueue(): void {
    const { queue, running } = this.store;
    const { steering, follow_ups } = queue;
    const item = (kind: string, title: string, text: string): HTMLElement =>
      h(
        "div",
        { class: "yna-queued", title },
        h("span", { class: "yna-queued-kind" }, running ? kind : "Waiting"),
        h("span", { class: "yna-queued-text" }, text),
      );
    const held = "The run before it was stopped; it goes on with your next message";
    this.waiting.replaceChildren(
      ...steering.map((text) => item("Steering", running ? "Joins before the next request to the model" : held, text)),
      ...follow_ups.map((text) => item("Queued", running ? "Waits until the agent has finished" : held, text)),
    );
    this.waiting.hidden = steering.length + follow_ups.length === 0;
  }
}
