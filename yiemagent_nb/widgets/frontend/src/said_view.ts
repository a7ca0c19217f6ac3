// What a person said: the text, what was attached, and a way to say it otherwise.

import { BranchPicker } from "./branch_picker";
import { h, newId } from "./dom";
import { readFile, type TextFile } from "./attached_file";
import { fileElement } from "./attached_file_view";
import type { Call, Entry } from "./entries";
import type { EntryView } from "./entry_view";
import { growingImage } from "./images";
import { BUSY, ProblemLine, QuietButton, copyAction, type MessageActions } from "./message_actions";
import type { ImageBlock } from "./protocol";

/** Of longer messages only the beginning shows until a person wants all; lines are counted as a narrow bubble breaks them. */
const MOST_LINES = 16;
const LINE_LENGTH = 75;

export class SaidView implements EntryView {
  readonly element = h("div", { class: "yna-entry yna-user" }, h("span", { class: "yna-hidden" }, "You said:"));
  private readonly said: HTMLElement[] = [];
  private readonly text: string;
  private picker: BranchPicker | null = null;
  private readonly edit = new QuietButton("Edit", "Edit and send again", "edit", () => this.open());
  private readonly bar: HTMLElement;
  private editor: Editor | null = null;

  constructor(
    private readonly entry: Entry,
    private readonly actions: MessageActions,
    private running: boolean,
  ) {
    const images: ImageBlock[] = [];
    const files: HTMLElement[] = [];
    const texts: string[] = [];
    for (const block of entry.blocks) {
      const file: TextFile | null = block.image ? null : readFile(block.text);
      if (block.image) images.push(block.image);
      else if (file) files.push(fileElement(file));
      else texts.push(block.text);
    }
    this.text = texts.join("\n\n");
    this.said = texts.filter((text) => text !== "").map((text) => saidElement(text));
    const several = images.length > 1;
    const grown = images.map((image, at) => growingImage(image, several ? `Image you sent, ${at + 1} of ${images.length}` : "Image you sent"));
    const attached = [...grown, ...files];
    this.bar = h(
      "div",
      { class: "yna-actions" },
      h(
        "span",
        { class: "yna-on-hover" },
        this.text ? copyAction("Copy message", () => this.text) : null,
        entry.index >= 0 ? this.edit.element : null,
      ),
    );
    this.element.append(
      ...(attached.length > 0 ? [h("div", { class: "yna-attached" }, ...attached)] : []),
      ...this.said,
      this.bar,
    );
    this.refresh(running);
  }

  /** A view that stays after the conversation took another course is not being sent any more. */
  update(): boolean {
    if (this.editor?.sent) this.close();
    this.refresh(this.running);
    return true;
  }

  refresh(running: boolean): void {
    this.running = running;
    if (!this.picker && this.entry.branch) {
      this.picker = new BranchPicker(this.entry, this.actions);
      this.bar.prepend(this.picker.element);
      this.bar.after(this.picker.problem.element);
    }
    this.picker?.refresh(running);
    this.edit.block(running ? BUSY : "");
    this.editor?.refresh(running);
  }

  updateCall(_call: Call): void {}

  dispose(): void {}

  private open(): void {
    if (this.editor) return;
    const send = (text: string): Promise<unknown> => this.actions.edit(this.entry.index, text);
    this.editor = new Editor(this.text, send, () => {
      this.close();
      this.edit.element.focus();
    });
    this.editor.refresh(this.running);
    this.show(false);
    this.bar.before(this.editor.element);
    this.editor.focus();
    this.actions.attend(this.editor.element);
  }

  private close(): void {
    this.editor?.element.remove();
    this.editor = null;
    this.show(true);
  }

  private show(shown: boolean): void {
    for (const element of [...this.said, this.bar]) element.hidden = !shown;
  }
}

function saidElement(text: string): HTMLElement {
  const lines = text.split("\n").reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / LINE_LENGTH)), 0);
  if (lines <= MOST_LINES) return h("div", { class: "yna-said" }, text);
  const id = newId();
  const words = h("div", { class: "yna-said-text yna-cut", id }, text);
  const button = h("button", { class: "yna-ghost", "aria-expanded": "false", "aria-controls": id }, "Show all");
  button.addEventListener("click", () => {
    const cut = words.classList.toggle("yna-cut");
    button.setAttribute("aria-expanded", String(!cut));
    button.textContent = cut ? "Show all" : "Show less";
    if (cut) {
      words.scrollTop = 0; // a search may have moved it
      button.scrollIntoView({ block: "nearest" });
    }
  });
  return h("div", { class: "yna-said" }, words, button);
}

/** Where an earlier message is written anew. */
class Editor {
  readonly element: HTMLElement;
  /** Whether it was taken. */
  sent = false;
  private readonly input = h("textarea", { class: "yna-edit-input", rows: "1", label: "Another text for this message" });
  private readonly hint = h("span", { class: "yna-edit-hint" });
  private readonly send = h("button", { class: "yna-button yna-primary", onclick: () => this.submit() }, "Send");
  private readonly problem = new ProblemLine();
  private pending = false;
  private running = false;

  constructor(
    text: string,
    private readonly ask: (text: string) => Promise<unknown>,
    private readonly cancel: () => void,
  ) {
    this.input.value = text;
    this.input.addEventListener("input", () => this.show());
    this.element = h(
      "div",
      { class: "yna-edit", role: "group", label: "Edit this message" },
      this.input,
      this.problem.element,
      h(
        "div",
        { class: "yna-edit-bar" },
        this.hint,
        h("button", { class: "yna-button", title: "Leave it as it is (Esc)", onclick: () => this.cancel() }, "Cancel"),
        this.send,
      ),
    );
    this.element.addEventListener("keydown", (event) => this.onKey(event));
  }

  focus(): void {
    this.show();
    this.input.focus();
    this.input.setSelectionRange(this.input.value.length, this.input.value.length);
  }

  refresh(running: boolean): void {
    this.running = running;
    this.show();
  }

  private onKey(event: KeyboardEvent): void {
    if (event.isComposing || event.keyCode === 229) return; // an input method has this key
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation(); // it stops no run
      if (!this.pending) this.cancel();
    } else if (event.key === "Enter" && !event.shiftKey && event.target === this.input) {
      event.preventDefault();
      this.submit();
    }
  }

  private submit(): void {
    const text = this.input.value;
    if (this.pending || this.running || text.trim() === "") return;
    this.pending = true;
    this.show();
    void this.problem.watch(this.ask(text)).then((done) => {
      this.sent = done;
      this.pending = done; // until the conversation that it began is here
      this.show();
    });
  }

  private show(): void {
    const empty = this.input.value.trim() === "";
    this.input.readOnly = this.pending;
    this.element.classList.toggle("yna-pending", this.pending);
    this.send.disabled = empty || this.pending || this.running;
    this.send.title = this.running && !this.pending ? BUSY : "Send (Enter)";
    this.hint.textContent = this.pending
      ? "Sending…"
      : this.running
        ? "Can be sent when the agent has finished."
        : "Starts a new branch; this one is kept.";
    if (CSS.supports("field-sizing", "content")) return;
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight, 320)}px`;
  }
}
