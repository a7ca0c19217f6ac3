// The header: which backend answers, a picker, and how things stand.

import type { Connection } from "./connection";
import { h } from "./dom";
import type { Refusal } from "./protocol";
import type { Change, Store } from "./store";

export class Header {
  readonly element: HTMLElement;
  private readonly label = h("span", { class: "yna-backend" });
  private readonly picker = h("select", { class: "yna-picker", label: "Backend", hidden: true });
  private readonly note = h("span", { class: "yna-header-note" });
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
      this.status,
    );
    this.picker.addEventListener("change", () => {
      this.note.textContent = "";
      connection.request({ type: "set_backend", key: this.picker.value }).catch((refusal: Refusal) => {
        this.showBackend();
        this.note.textContent = `${refusal.message} ${refusal.hint}`.trim();
      });
    });
    this.showBackend();
    this.showStatus();
  }

  take(change: Change): void {
    if (change.kind === "backend" || change.kind === "reset") this.showBackend();
    if (change.kind === "status" || change.kind === "run" || change.kind === "reset" || change.kind === "call") {
      this.showStatus();
    }
  }

  private showBackend(): void {
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
    const asks = [...this.store.calls.values()].some((call) => call.approval);
    const [state, text] =
      status === "disconnected"
        ? ["lost", "Disconnected"]
        : status === "busy"
          ? ["busy", "Kernel busy"]
          : status === "connecting"
            ? ["busy", "Connecting…"]
            : asks
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
