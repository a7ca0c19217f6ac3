// How the model samples: a field for each parameter that the backend takes; an empty one leaves it to the server.

import { h, newId } from "./dom";
import type { Backend, Refusal } from "./protocol";

interface Parameter {
  label: string;
  title: string;
}

const PARAMETERS: Record<string, Parameter> = {
  temperature: { label: "Temperature", title: "0 for the likeliest words; higher for more variety" },
  top_p: { label: "Top p", title: "From 0 to 1: only the likeliest words that together have this share" },
  max_tokens: { label: "Max tokens", title: "How long an answer may be" },
  seed: { label: "Seed", title: "A whole number: the same seed may give the same answer again" },
};

export class SamplingView {
  readonly element: HTMLElement;
  private readonly fields = h("div", { class: "yna-sampling-fields" });
  private readonly note = h("p", { class: "yna-muted" });
  private readonly error = h("p", { class: "yna-setting-error", role: "alert", hidden: true });
  private readonly inputs = new Map<string, HTMLInputElement>();

  constructor(private readonly set: (options: Record<string, number | null>) => Promise<unknown>) {
    this.element = h(
      "div",
      { class: "yna-sampling", role: "group", label: "Sampling" },
      h("div", { class: "yna-panel-title", "aria-hidden": "true" }, "Sampling"),
      this.fields,
      this.note,
      this.error,
    );
  }

  show({ options, options_note: note }: Backend): void {
    const names = Object.keys(options);
    if (names.join() !== [...this.inputs.keys()].join()) this.build(names);
    for (const [name, input] of this.inputs) {
      const value = options[name];
      const text = value === null || value === undefined ? "" : String(value);
      if (input !== document.activeElement) input.value = text;
      input.dataset["kept"] = text;
    }
    this.note.textContent = note;
    this.note.hidden = note === "";
  }

  private build(names: string[]): void {
    this.inputs.clear();
    this.error.hidden = true;
    this.fields.replaceChildren(
      ...names.map((name) => {
        const { label, title } = PARAMETERS[name] ?? { label: name, title: "" };
        const id = newId();
        const input = h("input", {
          id,
          class: "yna-field",
          type: "text",
          inputmode: "decimal",
          autocomplete: "off",
          placeholder: "default",
          title,
        });
        input.addEventListener("change", () => this.take(name, label, input));
        this.inputs.set(name, input);
        return h("div", { class: "yna-setting" }, h("label", { for: id }, label), input);
      }),
    );
  }

  private take(name: string, label: string, input: HTMLInputElement): void {
    const text = input.value.trim().replace(",", ".");
    const value = text === "" ? null : Number(text);
    if (value !== null && !Number.isFinite(value)) return this.refuse(input, `${label}: ${input.value} is no number.`);
    this.error.hidden = true;
    input.removeAttribute("aria-invalid");
    this.set({ [name]: value }).catch((refusal: Refusal) => {
      this.refuse(input, `${refusal.message} ${refusal.hint}`.trim());
    });
  }

  private refuse(input: HTMLInputElement, text: string): void {
    const kept = input.dataset["kept"] ?? "";
    input.setAttribute("aria-invalid", "true");
    this.error.textContent = kept ? `${text} It stays ${kept}.` : text;
    this.error.hidden = false;
  }
}
