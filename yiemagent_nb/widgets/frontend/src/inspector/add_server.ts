// Adding a server: an address, a command line, or an entry of a configuration. A token that is typed here leaves
// its field at once, beside the message and not in it.

import { h, setBusy } from "../dom";
import type { Refusal } from "../protocol";
import { refusalText, type Inspected } from "./inspected";
import type { GoTo, Page } from "./page";
import { Complaint, labelled, textField } from "./small";

const EXAMPLES: [name: string, text: string][] = [
  ["Address", "https://"],
  ["Command", "npx -y @modelcontextprotocol/server-everything"],
  ["JSON", '{\n  "command": "python",\n  "args": ["server.py"],\n  "env": {}\n}'],
];

export class AddServerPage implements Page {
  readonly element: HTMLElement;
  readonly key = "";
  private readonly heading = h("h3", { class: "yna-page-title", tabindex: "-1" }, "Add a server");
  private readonly config = h("textarea", { class: "yna-field yna-code-field", rows: "3", spellcheck: "false", autocomplete: "off", autocapitalize: "off", placeholder: "https://host/mcp" });
  private readonly named = textField({ placeholder: "its own", maxlength: "100" });
  private readonly token = textField({ type: "password", placeholder: "kept in the kernel only", "data-1p-ignore": true, "data-lpignore": true, "data-bwignore": true });
  private readonly button = h("button", { class: "yna-button yna-primary", onclick: () => void this.submit() }, "Add");
  private readonly complaint = new Complaint();
  private busy = false;

  constructor(
    private readonly inspected: Inspected,
    private readonly go: GoTo,
  ) {
    const example = ([name, text]: [string, string]): HTMLElement =>
      h("button", { class: "yna-preset", onclick: () => this.start(text) }, name);
    this.element = h(
      "div",
      { class: "yna-page yna-add-server" },
      h("div", { class: "yna-page-head" }, this.heading),
      h("p", { class: "yna-muted" }, "Its tools join those of the agent as soon as it is connected. A command runs as a program on the kernel’s machine."),
      h("div", { class: "yna-presets", role: "group", label: "Start from" }, ...EXAMPLES.map(example)),
      labelled("Address, command line, or JSON of an MCP configuration", this.config),
      h("div", { class: "yna-add-fields" }, labelled("Name", this.named), labelled("Token", this.token, "For an address. It is sent as a bearer token, and stored nowhere.")),
      this.complaint.element,
      h("div", { class: "yna-buttons" }, this.button, h("button", { class: "yna-button", onclick: () => this.leave() }, "Cancel")),
    );
    // No form: browsers offer to keep what is typed into one.
    this.element.addEventListener("keydown", (event) => {
      const inField = event.target instanceof HTMLInputElement;
      if (event.key !== "Enter" || event.isComposing || !(inField || event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      void this.submit();
    });
  }

  update(): void {}

  focus(): void {
    this.config.focus();
  }

  dispose(): void {
    this.token.value = "";
  }

  private start(text: string): void {
    this.config.value = text;
    this.config.rows = Math.max(3, text.split("\n").length);
    this.complaint.say("");
    this.config.focus();
  }

  private leave(): void {
    this.token.value = "";
    this.go({ kind: "overview", key: "" });
  }

  private async submit(): Promise<void> {
    if (this.busy) return;
    const typed = this.token.value;
    this.token.value = "";
    const config = this.config.value.trim();
    if (!config || config === "https://") {
      this.complaint.say("Say where the server is: an address, or a command that starts it.");
      return this.config.focus();
    }
    const raw = typed.trim() ? new TextEncoder().encode(typed) : null;
    this.work(true);
    this.complaint.say("");
    try {
      const message = { type: "add_server", config, name: this.named.value.trim() };
      const added = await this.inspected.context.act<{ servers: string[]; notes: string[] }>(message, raw ? [raw.buffer] : []);
      const [first] = added.servers;
      if (first !== undefined && added.notes.length > 0) this.inspected.notes.set(first, added.notes);
      this.go(first === undefined ? { kind: "overview", key: "problems" } : { kind: "server", key: first });
    } catch (refusal) {
      this.complaint.say(refusalText(refusal as Refusal | Error));
      this.config.focus();
    } finally {
      raw?.fill(0);
      this.work(false);
    }
  }

  private work(busy: boolean): void {
    this.busy = busy;
    setBusy(this.button, busy);
    this.button.textContent = busy ? "Adding…" : "Add";
  }
}
