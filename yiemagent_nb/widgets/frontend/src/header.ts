// The header: which backend and model answer, how much it thinks, how full its context is, and how things stand.

import type { BackendView } from "./backend_view";
import type { Connection } from "./connection";
import { h, icon, newId, setText } from "./dom";
import { PartPlace } from "./part_place";
import type { Refusal } from "./protocol";
import type { Change, Store } from "./store";
import { modelName } from "./text";
import { UsageMeter } from "./usage_meter";

export class Header {
  readonly element: HTMLElement;
  /** What the header opens; it stands below it. */
  readonly panel: HTMLElement;
  private readonly label = h("span", { class: "yna-backend" });
  private readonly model = h("span", { class: "yna-model" });
  private readonly button = h(
    "button",
    { class: "yna-backend-button", "aria-expanded": "false", onclick: () => this.toggle() },
    this.label,
    this.model,
    icon("chevron"),
  );
  private readonly note = h("span", { class: "yna-header-note", role: "status" });
  private readonly level = h("select", { class: "yna-picker", label: "Thinking level" });
  private readonly thinking = h(
    "span",
    { class: "yna-thinking" },
    icon("thought"),
    h("span", { class: "yna-thinking-name", "aria-hidden": "true" }, "Thinking"),
    this.level,
  );
  private readonly meter = new UsageMeter();
  private readonly status = h("span", { class: "yna-status" });
  private readonly dot = h("span", { class: "yna-dot", "aria-hidden": "true" });
  private readonly settings: PartPlace<"settings", BackendView>;
  private refusal = "";

  constructor(
    private readonly store: Store,
    private readonly connection: Connection,
  ) {
    const id = newId();
    this.settings = new PartPlace(
      "settings",
      "This panel",
      (part) => {
        const view = new part.BackendView(store, connection);
        if (this.isOpen) view.open();
        return view;
      },
      { class: "yna-backend-panel", id, role: "region", label: "Backend and model", hidden: true },
    );
    this.panel = this.settings.element;
    this.button.setAttribute("aria-controls", id);
    this.element = h(
      "div",
      { class: "yna-header" },
      this.dot,
      this.button,
      this.note,
      this.thinking,
      this.meter.element,
      this.status,
    );
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.panel.addEventListener("keydown", (event) => this.onKey(event));
    this.level.addEventListener("change", () => this.setLevel());
    this.showBackend();
    this.showStatus();
    this.showUsage();
  }

  take(change: Change): void {
    if (change.kind === "backend" || change.kind === "reset") this.showBackend();
    if (["usage", "backend", "reset"].includes(change.kind)) this.showUsage();
    if (["status", "run", "reset", "call", "asked"].includes(change.kind)) this.showStatus();
  }

  private get isOpen(): boolean {
    return !this.panel.hidden;
  }

  private toggle(): void {
    if (this.isOpen) return this.close();
    this.button.setAttribute("aria-expanded", "true");
    this.panel.hidden = false;
    if (this.settings.content) this.settings.content.open();
    else this.settings.open();
  }

  private close(): void {
    this.settings.content?.close();
    this.panel.hidden = true;
    this.button.setAttribute("aria-expanded", "false");
    this.button.focus();
  }

  private onKey(event: KeyboardEvent): void {
    if (event.key !== "Escape" || !this.isOpen || event.defaultPrevented || event.isComposing) return;
    event.preventDefault();
    event.stopPropagation();
    this.close();
  }

  private setLevel(): void {
    this.refusal = "";
    this.connection.request({ type: "set_thinking", level: this.level.value }).catch((refusal: Refusal) => {
      this.refusal = `${refusal.message} ${refusal.hint}`.trim();
      this.showBackend();
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
    const { label, model, note, health } = this.store.backend;
    setText(this.label, label);
    const name = modelName(model);
    setText(this.model, name && !label.toLowerCase().includes(name.toLowerCase()) ? name : "");
    this.button.title = [label, model].filter(Boolean).join(": ") + "\nBackend, model and sampling";
    const bad = health.state === "bad" ? `${health.message} ${health.hint}`.trim() : "";
    const said = this.refusal || bad || note;
    setText(this.note, said);
    this.note.title = said;
    this.element.dataset["health"] = health.state;
    if (this.isOpen) this.settings.content?.show();
  }

  private showUsage(): void {
    const { usage, backend } = this.store;
    this.meter.show({ ...usage, window: usage.window ?? backend.window });
  }

  private showStatus(): void {
    const { status } = this.connection;
    const { waiting } = this.store;
    const [state, text] =
      status === "disconnected"
        ? ["lost", "Disconnected"]
        : status === "busy"
          ? ["busy", "Kernel busy"]
          : status === "connecting"
            ? ["busy", "Connecting…"]
            : waiting > 0
              ? ["asks", waiting === 1 ? "1 waits for you" : `${waiting} wait for you`]
              : this.store.running
                ? ["works", "Working…"]
                : ["ready", "Ready"];
    this.element.dataset["state"] = state;
    setText(this.status, text ?? "");
    this.dot.title = text ?? "";
    this.status.title =
      state === "lost"
        ? "The kernel was restarted or is gone. Run the cell again."
        : state === "busy"
          ? "The kernel runs something else and answers when it is free."
          : "";
  }
}
