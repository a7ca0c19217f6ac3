// What a server asks: its words, a form, and what to do with it.

import { webAddress } from "./addresses";
import { h, icon } from "./dom";
import type { Asked } from "./entries";
import type { QuestionAction, Refusal } from "./protocol";
import { FieldView } from "./question_field";
import type { QuestionActions } from "./question_view";

const NOTE = "The words above are the server’s. Enter no passwords or keys: no server should ask for them.";

export class QuestionCard {
  readonly element: HTMLElement;
  private readonly problem = h("p", { class: "yna-problem", role: "alert", hidden: true });
  private readonly fields: FieldView[];
  private sending = false;

  constructor(
    private readonly asked: Asked,
    private readonly actions: QuestionActions,
  ) {
    const { question } = asked;
    this.fields = (question.fields ?? []).map((field) => new FieldView(field, asked.draft));
    this.element = h(
      "div",
      { class: "yna-question", role: "group", label: `Question from ${question.source}` },
      h("p", { class: "yna-question-title" }, icon("ask"), h("span", {}, h("b", {}, question.source), " asks")),
      question.message ? h("blockquote", { class: "yna-question-words" }, question.message) : null,
      ...this.fields.map((field) => field.element),
      question.fields === null ? addressElement(question.url) : null,
      this.problem,
      this.buttons(),
      h("p", { class: "yna-question-note" }, NOTE),
    );
    this.element.addEventListener("keydown", (event) => this.onKey(event));
  }

  focus(): void {
    this.element.querySelector<HTMLElement>("input, textarea, select, a, button")?.focus();
  }

  private buttons(): HTMLElement {
    const { fields, url } = this.asked.question;
    const href = webAddress(url)?.href;
    const button = (text: string, kind: string, action: () => void): HTMLElement =>
      h("button", { class: `yna-button ${kind}`, onclick: action }, text);
    return h(
      "div",
      { class: "yna-buttons" },
      href ? h("a", { class: "yna-button yna-primary", href, target: "_blank", rel: "noopener noreferrer" }, "Open") : null,
      fields ? button("Submit", "yna-primary", () => this.submit()) : null,
      url ? button("Done", "", () => this.send("accept", null)) : null,
      button("Decline", "", () => this.send("decline", null)),
      url ? null : button("Dismiss", "yna-bare", () => this.send("cancel", null)),
    );
  }

  private onKey(event: KeyboardEvent): void {
    if (event.key === "Escape") event.stopPropagation(); // it closes a list of choices, and stops no run
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    if (!(event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement)) return;
    event.preventDefault();
    this.submit();
  }

  private submit(): void {
    const content: Record<string, unknown> = Object.create(null);
    const wrong = this.fields.filter((field) => !field.readInto(content));
    if (wrong[0]) return wrong[0].focus();
    this.send("accept", content);
  }

  private send(action: QuestionAction, content: Record<string, unknown> | null): void {
    if (this.sending) return;
    this.sending = true; // the buttons stay enabled, since a disabled one would lose the keyboard
    this.complain("");
    this.actions.answer(this.asked.question.request_id, action, content).catch((refusal: Refusal) => {
      this.sending = false;
      this.complain(`${refusal.message} ${refusal.hint}`.trim());
    });
  }

  private complain(text: string): void {
    this.problem.textContent = text;
    this.problem.hidden = text === "";
  }
}

/** Where a person is to go, its host in bold: the name before an @ is none. */
function addressElement(url: string): HTMLElement {
  if (!url) {
    return h("p", {}, "This question is too large to be shown here. It can be answered in Python: see agent.questions.");
  }
  const address = webAddress(url);
  if (!address) {
    return h("div", {}, h("p", { class: "yna-url" }, url), h("p", { class: "yna-muted" }, "This is no address of the web, so it cannot be opened here."));
  }
  const { host, password, pathname, protocol, search, hash, username } = address;
  const user = username || password ? `${username}${password && `:${password}`}@` : "";
  return h("p", { class: "yna-url" }, `${protocol}//${user}`, h("b", {}, host), `${pathname}${search}${hash}`);
}
