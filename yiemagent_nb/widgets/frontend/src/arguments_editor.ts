// An editor for the arguments of a call: JSON that is checked as one types. Tab indents; Esc, then Tab leaves.

import { h, newId, setText } from "./dom";
import { readJson, type JsonFault } from "./json_text";

const INDENT = "  ";
const SHORTCUT = /mac|iphone|ipad/i.test(navigator.platform) ? "⌘ Enter" : "Ctrl+Enter";
const KEYS = `${SHORTCUT} allows. Tab indents; Esc, then Tab leaves.`;
const LEAVING = "Tab now leaves the editor; Esc goes back.";
const MOST_ROWS = 16;

export interface EditorActions {
  /** Take what was written; it is a JSON object. */
  submit(value: Record<string, unknown>): void;
  /** Say what keeps it from being taken, and nothing where it says an empty text. */
  complain(text: string): void;
  back(): void;
  /** What stands in the editor changed. */
  change(text: string): void;
}

export class ArgumentsEditor {
  readonly element: HTMLElement;
  private readonly text: HTMLTextAreaElement;
  private readonly lines = h("div", { class: "yna-editor-lines", "aria-hidden": "true" });
  private readonly state = h("span", { class: "yna-editor-state", id: newId(), role: "status" });
  private readonly keys = h("span", { class: "yna-editor-keys", id: newId() }, KEYS);
  private count = 0;
  private leaving = false;
  private marked: Element | null = null;

  constructor(
    value: string,
    private readonly actions: EditorActions,
  ) {
    this.text = h("textarea", {
      class: "yna-editor-text",
      label: "Arguments as JSON",
      "aria-describedby": `${this.state.id} ${this.keys.id}`,
      spellcheck: "false",
      autocomplete: "off",
      autocapitalize: "off",
      wrap: "off",
    });
    this.element = h(
      "div",
      { class: "yna-editor" },
      h("div", { class: "yna-editor-pane" }, this.lines, this.text),
      h("p", { class: "yna-editor-foot" }, this.state, this.keys),
    );
    this.text.value = value;
    this.text.addEventListener("input", () => {
      this.actions.complain("");
      this.actions.change(this.text.value);
      this.show();
    });
    this.text.addEventListener("scroll", () => (this.lines.scrollTop = this.text.scrollTop), { passive: true });
    this.text.addEventListener("keydown", (event) => this.onKey(event));
    this.text.addEventListener("blur", () => this.leave(false));
    this.show();
  }

  focus(): void {
    this.text.focus();
    this.text.setSelectionRange(0, 0);
  }

  /** Say that the text as it stands was not taken, until it changes. */
  refuse(): void {
    setText(this.state, "Not accepted as it stands.");
    this.state.classList.add("yna-wrong");
  }

  submit(): void {
    const reading = readJson(this.text.value);
    if ("problem" in reading) {
      this.actions.complain(`This is not JSON: ${place(reading)}`);
      this.text.focus();
      this.text.setSelectionRange(reading.at, reading.at);
      return;
    }
    const { value } = reading;
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      this.actions.complain('Arguments are a JSON object, such as {"name": "value"}.');
      this.refuse();
      return this.text.focus();
    }
    this.actions.submit(value as Record<string, unknown>);
  }

  private show(): void {
    const count = this.text.value.split("\n").length;
    if (count !== this.count) {
      this.count = count;
      this.text.rows = Math.min(MOST_ROWS, Math.max(3, count));
      while (this.lines.childElementCount > count) this.lines.lastElementChild?.remove();
      for (let at = this.lines.childElementCount; at < count; at += 1) this.lines.append(h("div", {}, String(at + 1)));
    }
    const reading = readJson(this.text.value);
    const fault = "problem" in reading ? reading : null;
    this.marked?.classList.remove("yna-wrong");
    this.marked = fault ? (this.lines.children[fault.line - 1] ?? null) : null;
    this.marked?.classList.add("yna-wrong");
    this.state.classList.toggle("yna-wrong", fault !== null);
    setText(this.state, fault ? place(fault) : "Valid JSON.");
    if (fault) this.text.setAttribute("aria-invalid", "true");
    else this.text.removeAttribute("aria-invalid");
  }

  private onKey(event: KeyboardEvent): void {
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Escape") {
      event.stopPropagation(); // it stops no run
      if (this.leaving) this.actions.back();
      else this.leave(true);
      return;
    }
    if (event.key === "Tab" && !event.shiftKey && !event.ctrlKey && !event.altKey && !event.metaKey) {
      if (this.leaving) return;
      event.preventDefault();
      return this.indent();
    }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      return this.submit();
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.breakLine();
    }
    if (event.key === "}" || event.key === "]") this.outdent();
    if (!["Shift", "Tab"].includes(event.key)) this.leave(false);
  }

  private leave(leaving: boolean): void {
    if (this.leaving === leaving) return;
    this.leaving = leaving;
    this.keys.setAttribute("role", "status"); // what Tab does from now on is told
    setText(this.keys, leaving ? LEAVING : KEYS);
  }

  private indent(): void {
    const { selectionStart: start, selectionEnd: end, value } = this.text;
    const selected = value.slice(start, end);
    if (!selected.includes("\n")) return this.insert(INDENT, start, start);
    const from = value.lastIndexOf("\n", start - 1) + 1;
    this.insert(value.slice(from, end).replace(/^/gm, INDENT), from, end);
    this.text.setSelectionRange(from, this.text.selectionEnd);
  }

  /** A new line begins where the one before it does, and further in behind an opening bracket. */
  private breakLine(): void {
    const { selectionStart: start, selectionEnd: end, value } = this.text;
    const line = value.slice(value.lastIndexOf("\n", start - 1) + 1, start);
    const deeper = /[{[]\s*$/.test(line) ? INDENT : "";
    this.insert(`\n${/^[ \t]*/.exec(line)?.[0] ?? ""}${deeper}`, start, end);
  }

  /** A closing bracket that begins a line stands further out than what it closes. */
  private outdent(): void {
    const { selectionStart: start, selectionEnd: end, value } = this.text;
    const line = value.slice(value.lastIndexOf("\n", start - 1) + 1, start);
    if (start === end && line.endsWith(INDENT) && line.trim() === "") this.insert("", start - INDENT.length, start);
  }

  /** Put a text in the place of another, as typing does: it can be undone. */
  private insert(text: string, start: number, end: number): void {
    this.text.setSelectionRange(start, end);
    if (document.execCommand(text ? "insertText" : "delete", false, text)) return;
    this.text.setRangeText(text, start, end, "end");
    this.text.dispatchEvent(new Event("input"));
  }
}

function place({ line, column, problem }: JsonFault): string {
  return `Line ${line}, column ${column}: ${problem}`;
}
