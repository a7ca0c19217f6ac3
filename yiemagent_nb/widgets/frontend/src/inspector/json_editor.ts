// A field for JSON: the editor of code, and a plain field until it is there, or where it cannot be loaded.

import type * as Code from "../code_part";
import { h } from "../dom";
import type { PanelContext } from "../panel";

export class JsonEditor {
  readonly element = h("div", { class: "yna-json-editor" });
  private readonly plain: HTMLTextAreaElement;
  private editor: Code.CodeEditor | null = null;
  private setting = false;
  private gone = false;

  constructor(
    context: PanelContext,
    private readonly label: string,
    private readonly onChange: (text: string) => void,
  ) {
    this.plain = h("textarea", { class: "yna-field yna-code-field", label, rows: "6", spellcheck: "false", autocomplete: "off", autocapitalize: "off" });
    this.plain.addEventListener("input", () => this.changed(this.plain.value));
    this.element.append(this.plain);
    context.code().then(
      (part) => this.improve(part),
      () => {}, // the plain field does it too
    );
  }

  get value(): string {
    return this.editor?.value ?? this.plain.value;
  }

  set value(text: string) {
    if (text === this.value) return;
    this.setting = true;
    if (this.editor) this.editor.value = text;
    else {
      this.plain.value = text;
      this.plain.rows = Math.min(16, Math.max(4, text.split("\n").length + 1));
    }
    this.setting = false;
  }

  focus(): void {
    (this.editor ?? this.plain).focus();
  }

  dispose(): void {
    this.gone = true;
    this.editor?.dispose();
  }

  private improve(part: typeof Code): void {
    if (this.gone || this.editor) return;
    if (document.activeElement === this.plain) {
      // Who writes is not interrupted.
      this.plain.addEventListener("blur", () => this.improve(part), { once: true });
      return;
    }
    this.editor = new part.CodeEditor({ language: "json", label: this.label, value: this.plain.value, maxLines: 18, onChange: (text) => this.changed(text) });
    this.element.replaceChildren(this.editor.element);
  }

  private changed(text: string): void {
    if (!this.setting) this.onChange(text);
  }
}
