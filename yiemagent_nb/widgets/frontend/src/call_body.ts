// An opened tool card: what was decided, the arguments, the result; or all of it as JSON.

import { ArgumentsView } from "./arguments_view";
import { h, setText } from "./dom";
import type { Call } from "./entries";
import type { Content } from "./protocol";
import { rawElement } from "./raw_view";
import { resultElement } from "./result_view";
import { visible } from "./text";

export class CallBody {
  private readonly name = h("span", { class: "yna-call-tool" });
  private readonly decision = h("p", { class: "yna-call-decision" });
  private readonly args: ArgumentsView;
  private readonly words: HTMLElement;
  private readonly switch = h("button", { class: "yna-ghost", "aria-pressed": "false", onclick: () => this.turn() }, "Raw");
  private result: HTMLElement | null = null;
  private resultOf: Content[] | null = null;
  private raw: HTMLElement | null = null;
  private rawOf: unknown[] = [];

  constructor(
    private readonly element: HTMLElement,
    private readonly call: Call,
    private readonly source: string,
  ) {
    this.args = new ArgumentsView(call);
    this.words = h("div", { class: "yna-call-words" }, this.decision, this.args.element);
    element.append(h("div", { class: "yna-call-bar" }, this.name, this.switch), this.words);
    this.update();
  }

  update(): void {
    const { call } = this;
    setText(this.name, visible(call.name) + (this.source ? ` from ${visible(this.source)}` : ""));
    if (this.raw) return this.showRaw();
    this.args.update();
    setText(this.decision, call.note); // what a person decided stands below, opened or not
    this.decision.hidden = this.decision.textContent === "";
    if (call.content === this.resultOf) return;
    this.resultOf = call.content;
    this.result?.remove();
    this.result = call.content ? resultElement(call) : null;
    if (this.result) this.words.append(this.result);
  }

  private turn(): void {
    const raw = this.raw === null;
    this.switch.setAttribute("aria-pressed", String(raw));
    this.words.hidden = raw;
    if (raw) return this.showRaw();
    this.raw?.remove();
    this.raw = null;
    this.rawOf = [];
    this.update();
  }

  private showRaw(): void {
    const { args, content, status } = this.call;
    const shown = [args, content, status];
    if (this.rawOf.length > 0 && shown.every((each, at) => each === this.rawOf[at])) return;
    this.rawOf = shown;
    const raw = rawElement(this.call);
    if (this.raw) this.raw.replaceWith(raw);
    else this.element.append(raw);
    this.raw = raw;
  }
}
