// What the panel below the header holds: which backend and model answer, how the backend is, how it samples, and adding one.

import { AddBackend } from "./add_backend";
import { ChoiceList } from "./choice_list";
import type { Connection } from "./connection";
import { h, setBusy, setText } from "./dom";
import type { Refusal } from "./protocol";
import { SamplingView } from "./sampling_view";
import type { Store } from "./store";
import { modelName } from "./text";

const MANY = 8;

const STATES: Record<string, string> = {
  unknown: "Not asked yet.",
  checking: "Asking…",
  ok: "It is ready.",
  bad: "It cannot be used.",
};

export class BackendView {
  readonly element: HTMLElement;
  private readonly said = h("div", { class: "yna-health-said", role: "status" });
  private readonly check = h("button", { class: "yna-button", onclick: () => this.checkNow() }, "Check");
  private readonly health = h(
    "div",
    { class: "yna-health" },
    h("span", { class: "yna-dot", "aria-hidden": "true" }),
    this.said,
    this.check,
  );
  private readonly error = h("p", { class: "yna-setting-error", role: "alert", hidden: true });
  private readonly search = h("input", {
    class: "yna-field yna-model-search",
    type: "search",
    label: "Search models",
    placeholder: "Search models",
    autocomplete: "off",
    spellcheck: "false",
  });
  private readonly noModels = h("p", { class: "yna-muted" });
  private readonly useNamed = h("button", { class: "yna-button yna-use-model", hidden: true });
  private readonly adding: AddBackend;
  private readonly addButton = h(
    "button",
    { class: "yna-button yna-add-button", "aria-expanded": "false", onclick: () => this.openAdding() },
    "Add a backend…",
  );
  private readonly backends = new ChoiceList("Backend", (key) => this.ask({ type: "set_backend", key }), null, this.addButton);
  private readonly models = new ChoiceList(
    "Model",
    (model) => this.ask({ type: "set_model", model }),
    this.search,
    h("div", {}, this.noModels, this.useNamed),
  );
  private readonly lists = h("div", { class: "yna-panel-lists" }, this.backends.element, this.models.element);
  private readonly sampling: SamplingView;

  constructor(
    private readonly store: Store,
    private readonly connection: Connection,
  ) {
    this.sampling = new SamplingView((options) => connection.request({ type: "set_options", options }));
    this.adding = new AddBackend(
      (backend, key) => connection.request({ type: "add_backend", ...backend }, key ? [key] : []),
      (hadFocus) => {
        this.addButton.setAttribute("aria-expanded", "false");
        this.lists.hidden = this.sampling.element.hidden = false;
        if (hadFocus) this.addButton.focus();
      },
    );
    this.element = h(
      "div",
      { class: "yna-settings" },
      this.health,
      this.error,
      this.lists,
      this.adding.element,
      this.sampling.element,
    );
    this.search.addEventListener("input", () => this.showModels());
    this.useNamed.addEventListener("click", () => this.ask({ type: "set_model", model: this.search.value.trim() }));
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing || this.adding.element.hidden) return;
      event.preventDefault(); // it does not close the panel too
      this.adding.close();
    });
  }

  focus(): void {
    this.check.focus();
  }

  /** The panel opens. */
  open(): void {
    this.show();
    // What a person opens the panel for: how the backend is. Nothing was sent to a server elsewhere before.
    if (this.store.backend.health.state === "unknown") this.ask({ type: "check_backend" });
  }

  /** The panel closes. */
  close(): void {
    this.adding.close();
    this.search.value = "";
    this.error.hidden = true;
  }

  show(): void {
    const { choices, key, health, presets } = this.store.backend;
    this.health.dataset["health"] = health.state;
    setText(this.said, [health.message || STATES[health.state], health.hint].filter(Boolean).join(" "));
    setBusy(this.check, health.state === "checking");
    this.backends.show(choices, key);
    this.showModels();
    this.sampling.show(this.store.backend);
    this.adding.show(presets);
  }

  private showModels(): void {
    const { models, model, health } = this.store.backend;
    const all = model && !models.includes(model) ? [model, ...models] : models;
    const many = all.length > MANY;
    this.search.hidden = !many && models.length > 0;
    this.search.placeholder = many ? `Search ${all.length} models` : "Name of a model";
    const words = this.search.hidden ? [] : this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = all.filter((name) => words.every((word) => name.toLowerCase().includes(word)));
    const choices = found.map((name) => ({ key: name, label: modelName(name) }));
    this.models.show(choices, model);
    const named = this.search.hidden ? "" : this.search.value.trim();
    this.useNamed.hidden = named === "" || all.includes(named);
    setText(this.useNamed, `Use “${named}”`);
    const why =
      all.length > 0
        ? found.length === 0
          ? "No model is called so."
          : ""
        : health.state === "checking"
          ? "Asking for its models…"
          : health.state === "unknown" && !health.message
            ? "Not asked yet."
            : "No models are listed.";
    setText(this.noModels, why);
    this.noModels.hidden = why === "";
  }

  private checkNow(): void {
    if (this.store.backend.health.state !== "checking") this.ask({ type: "check_backend" });
  }

  private openAdding(): void {
    this.addButton.setAttribute("aria-expanded", "true");
    this.lists.hidden = this.sampling.element.hidden = true;
    this.adding.open();
  }

  private ask(message: Record<string, unknown>): void {
    this.error.hidden = true;
    this.connection.request(message).then(
      () => {
        if (message["type"] !== "set_model") return;
        this.search.value = "";
        this.showModels();
      },
      (refusal: Refusal) => {
        this.error.textContent = `${refusal.message} ${refusal.hint}`.trim();
        this.error.hidden = false;
      },
    );
  }
}
