// Adding a backend: an address, and where its key comes from. A key that is typed here leaves this field at once,
// beside the message and not in it.

import { h, newId, setBusy } from "./dom";
import type { Preset, Refusal } from "./protocol";

export interface NewBackend {
  base_url: string;
  model: string;
  key_env: string;
}

export class AddBackend {
  readonly element: HTMLElement;
  private readonly presets = h("div", { class: "yna-presets", role: "group", label: "Start from" });
  private readonly address = field("Base URL", { type: "url", placeholder: "http://host:port/v1", spellcheck: "false" });
  private readonly model = field("Model", { type: "text", placeholder: "the server's first", spellcheck: "false" });
  private readonly variable = field("Key from the environment", {
    type: "text",
    placeholder: "name of the variable",
    spellcheck: "false",
  });
  private readonly key = field("or a key", {
    type: "password",
    placeholder: "kept in the kernel only",
    "data-1p-ignore": true,
    "data-lpignore": "true",
    "data-bwignore": true,
  });
  private readonly error = h("p", { class: "yna-setting-error", role: "alert", hidden: true });
  private readonly button = h("button", { class: "yna-button yna-primary", onclick: () => this.submit() }, "Add");
  private shown = "";
  private busy = false;

  constructor(
    private readonly add: (backend: NewBackend, key: ArrayBuffer | null) => Promise<unknown>,
    /** Called when it closes, with whether it had the focus. */
    private readonly done: (hadFocus: boolean) => void,
  ) {
    this.element = h(
      "div",
      { class: "yna-add", role: "group", label: "Add a backend", hidden: true },
      this.presets,
      h("div", { class: "yna-add-fields" }, this.address.element, this.model.element, this.variable.element, this.key.element),
      this.error,
      h("div", { class: "yna-add-buttons" }, this.button, h("button", { class: "yna-button", onclick: () => this.close() }, "Cancel")),
    );
    // No form: browsers offer to keep what is typed into one.
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target instanceof HTMLInputElement && !event.isComposing) this.submit();
    });
  }

  show(presets: Preset[]): void {
    const names = presets.map((preset) => preset.key).join();
    if (names === this.shown) return;
    this.shown = names;
    this.presets.replaceChildren(
      ...presets.map((preset) => h("button", { class: "yna-preset", onclick: () => this.start(preset) }, preset.label)),
    );
  }

  open(): void {
    this.element.hidden = false;
    (this.presets.firstElementChild as HTMLElement | null)?.focus();
  }

  close(): void {
    if (this.element.hidden) return;
    const hadFocus = this.element.contains(document.activeElement);
    this.key.input.value = "";
    this.element.hidden = true;
    this.done(hadFocus);
  }

  private start(preset: Preset): void {
    this.address.input.value = preset.base_url;
    this.variable.input.value = preset.key_env;
    this.model.input.value = "";
    this.key.input.value = "";
    this.say("");
    (preset.key_env ? this.key : this.address).input.focus();
  }

  private submit(): void {
    if (this.busy) return;
    const typed = this.key.input.value;
    this.key.input.value = "";
    const base_url = this.address.input.value.trim();
    if (!base_url) return this.refuse("Give the server's address, such as http://localhost:8000/v1.");
    if (holdsLogin(base_url)) return this.refuse("The address holds a name or a password. Put a key into its own field.");
    const raw = typed.trim() ? new TextEncoder().encode(typed) : null;
    const backend = {
      base_url,
      model: this.model.input.value.trim(),
      key_env: raw ? "" : this.variable.input.value.trim(),
    };
    this.say("");
    this.work(true);
    this.add(backend, raw ? raw.buffer : null)
      .then(
        () => {
          this.address.input.value = this.model.input.value = this.variable.input.value = "";
          this.close();
        },
        (refusal: Refusal) => this.refuse(`${refusal.message} ${refusal.hint}`.trim()),
      )
      .finally(() => {
        raw?.fill(0);
        this.work(false);
      });
  }

  private work(busy: boolean): void {
    this.busy = busy;
    setBusy(this.button, busy);
    this.button.textContent = busy ? "Looking…" : "Add";
  }

  private refuse(text: string): void {
    this.say(text);
    this.address.input.focus();
  }

  private say(text: string): void {
    this.error.textContent = text;
    this.error.hidden = text === "";
  }
}

interface Field {
  element: HTMLElement;
  input: HTMLInputElement;
}

function field(label: string, attributes: Record<string, string | boolean>): Field {
  const id = newId();
  const input = h("input", { id, class: "yna-field", autocomplete: "off", autocapitalize: "off", ...attributes });
  return { input, element: h("div", { class: "yna-setting" }, h("label", { for: id }, label), input) };
}

function holdsLogin(address: string): boolean {
  try {
    const { username, password } = new URL(address);
    return Boolean(username || password);
  } catch {
    return address.includes("@");
  }
}
