// The header: which backend answers, a picker, and how things stand.

import type { Connection } from "./connection";
import { h, icon } from "./dom";
import type { Refusal } from "./protocol";
import type { Change, Store } from "./store";

export class Header {
  readonly element: HTMLElement;
  private readonly label = h("span", { class: "yna-backend" });
  private readonly picker = h("select", { class: "yna-picker", label: "Backend", hidden: true });
  private readonly note = h("span", { class: "yna-header-note", role: "status" });
  private readonly level = h("select", { class: "yna-picker", label: "Thinking level" });
  private readonly thinking = h(
    "span",
    { class: "yna-thinking" },
    icon("thought"),
    h("span", { class: "yna-thinking-name", "aria-hidden": "true" }, "Thinking"),
    this.level,
  );
  private readonly status = h("span", { class: "yna-status" });

  constructor(
    private readonly store: Store,
    private readonly connection: Connection,
  ) {
    this.element = h(
      "div",
      { class: "yna-header" },
      h("span", { class: "yna-dot", "aria-hidden": "true" }),
      this.label,
      this.picker,
      this.note,
      this.thinking,
      this.status,
    );
    this.picker.addEventListener("change", () => this.ask({ type: "set_backend", key: this.picker.value }));
    this.level.addEventListener("change", () => this.ask({ type: "set_thinking", level: this.level.value }));
    this.showBackend();
    this.showStatus();
  }

  take(change: Change): void {
    if (change.kind === "backend" || change.kind === "reset") this.showBackend();
    if (["status", "run", "reset", "call", "asked"].includes(change.kind)) this.showStatus();
  }

  private ask(message: Record<string, unknown>): void {
    this.note.textContent = "";
    this.connection.request(message).catch((refusal: Refusal) => {
      this.showBackend();
      this.note.textContent = this.note.title = `${refusal.message} ${refusal.hint}`.trim();
    });
  }

  private showThinking(): void {
    const { level, levels, note } = this.store.backend.thinking;
    this.thinking.hidden = levels.length === 0;
    if (this.level.options.length !== levels.length) {
      this.level.replaceChildren(...levels.map((each) => h("option", { value: each }, each)));
    }
    this.level.value = level;
    this.level.disabled = note !== "";
    this.level.setAttribute("aria-description", note);
    this.thinking.title = note || "How much the model thinks, from its next request on";
  }

  private showBackend(): void {
    this.showThinking();
    const { label, choices, key, note } = this.store.backend;
    this.label.textContent = label;
    this.label.hidden = choices.length > 1;
    this.picker.hidden = choices.length < 2;
    this.picker.replaceChildren(...choices.map((choice) => h("option", { value: choice.key }, choice.label)));
    this.picker.value = key;
    this.note.textContent = note;
    this.note.title = note;
  }

  private showStatus(): void {
    const { status } = this.connection;
    const [state, text] =
      status === "disconnected"
        ? ["lost", "Disconnected"]
        : status === "busy"
          ? ["busy", "Kernel busy"]
          : status === "connecting"
            ? ["busy", "Connecting…"]
            : this.store.waits
              ? ["asks", "Waits for you"]
              : this.store.running
                ? ["works", "Working…"]
                : ["ready", "Ready"];
    this.element.dataset["state"] = state;
    this.status.textContent = text ?? "";
    this.status.title =
      state === "lost"
        ? "The kernel was restarted or is gone. Run the cell again."
        : state === "busy"
          ? "The kernel runs something else and answers when it is free."
          : "";
  }
}
