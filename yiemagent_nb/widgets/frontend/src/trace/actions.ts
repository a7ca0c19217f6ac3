// What can be made of a row: code that does it again, and a test.

import { h, icon, newId } from "../dom";
import type { PanelContext } from "../panel";
import { longText } from "./long_text";
import type { Row } from "./rows";
import { problemText } from "./words";

interface Copied {
  text: string;
  name: string;
}

export class Actions {
  readonly element: HTMLElement;
  private readonly buttons = h("div", { class: "yna-trace-buttons" });
  private readonly place = h("div", { class: "yna-trace-made" });
  private readonly status = h("div", { class: "yna-trace-told", role: "status" });
  private readonly copies: readonly [HTMLElement, HTMLElement];
  private row: Row | null = null;

  constructor(private readonly context: PanelContext) {
    const button = (picture: string, name: string, act: () => void): HTMLElement =>
      h("button", { class: "yna-ghost", onclick: act }, icon(picture), name);
    this.copies = [
      button("copy", "Copy as Python", () => this.copy("python", "Python")),
      button("copy", "Copy as curl", () => this.copy("curl", "curl")),
    ];
    this.buttons.append(...this.copies, button("check", "Make a test of this", () => this.makeTest()));
    this.element = h("div", { class: "yna-trace-actions" }, this.buttons, this.place, this.status);
  }

  show(row: Row): void {
    if (this.row?.row === row.row) return;
    this.row = row;
    this.element.hidden = row.kind !== "model" && row.kind !== "run";
    this.copies[0].hidden = row.kind !== "model";
    this.offerCurl(false);
    this.place.replaceChildren();
    this.tell("");
  }

  /** Whether what is shown went over HTTP, so that curl can do it again. */
  offerCurl(offered: boolean): void {
    this.copies[1].hidden = !offered;
  }

  /** Forget what was told: something else is read. */
  hush(): void {
    this.tell("");
  }

  /** Close what is open; returns whether something was. */
  close(): boolean {
    if (this.place.childElementCount === 0) return false;
    this.place.replaceChildren();
    this.buttons.querySelector<HTMLElement>("button:last-child")?.focus();
    return true;
  }

  private tell(text: string, bad = false): void {
    this.status.textContent = text;
    this.status.classList.toggle("yna-problem", bad);
  }

  private ask(form: "python" | "curl" | "test", then: (copied: Copied, row: Row) => void): void {
    const { row } = this;
    if (!row) return;
    this.place.replaceChildren();
    this.tell("");
    this.context
      .ask<Copied>({ type: "copy_row", row: row.row, form })
      .then((copied) => {
        if (this.row?.row === row.row) then(copied, row);
      })
      .catch((error: unknown) => this.tell(problemText(error), true));
  }

  private copy(form: "python" | "curl", name: string): void {
    this.ask(form, ({ text }) => {
      const failed = (): void => {
        this.tell("The browser did not let it be copied. It stands here:", true);
        this.place.replaceChildren(this.code(text, name, form === "python" ? "python" : "bash"));
      };
      if (!navigator.clipboard) return failed();
      navigator.clipboard.writeText(text).then(() => this.tell(`Copied as ${name}.`), failed);
    });
  }

  private code(text: string, label: string, language: string): HTMLElement {
    return longText(text, label, (element, piece) => this.context.highlight(element, piece, language));
  }

  private makeTest(): void {
    this.ask("test", ({ text, name }, row) => {
      const id = newId();
      const path = h("input", { id, class: "yna-field", type: "text", spellcheck: "false", autocomplete: "off" });
      path.value = name;
      const write = h("button", { class: "yna-button yna-primary", type: "submit" }, "Write the test");
      const cancel = h("button", { class: "yna-button", onclick: () => this.close() }, "Cancel");
      const form = h(
        "form",
        { class: "yna-trace-test" },
        h("label", { for: id }, "Path of the file, below the notebook’s folder"),
        path,
        h("details", {}, h("summary", {}, icon("chevron"), "What is written"), this.code(text, "The test", "python")),
        h("div", { class: "yna-buttons" }, write, cancel),
      );
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        this.write(row, path.value.trim());
      });
      this.place.replaceChildren(form);
      path.focus();
      path.setSelectionRange(name.length, name.length);
    });
  }

  private write(row: Row, path: string): void {
    if (path === "") return this.tell("A path is needed, such as test_trace.py.", true);
    this.context
      .act<{ path: string }>({ type: "write_test", row: row.row, path })
      .then((written) => {
        if (this.row?.row !== row.row) return;
        this.close();
        this.tell(`Written to ${written.path}`);
      })
      .catch((error: unknown) => this.tell(problemText(error), true));
  }
}
