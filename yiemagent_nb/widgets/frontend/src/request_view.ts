// What asks for approval and is no call of an answer, such as a server that wants to use the model.

import { approvalCard, decisionText, type CallActions } from "./approval_card";
import { h, icon } from "./dom";
import type { Call } from "./entries";

export class RequestView {
  readonly element = h("div", { class: "yna-entry yna-asks" });

  private readonly what: string;

  constructor(
    private readonly call: Call,
    label: string,
    actions: CallActions,
  ) {
    this.what = `${label} for ${call.approval?.source ?? "a server"}`;
    const card = approvalCard(call, label, `Allow ${this.what}?`, actions);
    this.element.append(h("div", { class: "yna-call yna-request" }, card));
    this.update();
  }

  update(): boolean {
    const { approval, decision } = this.call;
    if (approval) return true;
    const text = `${this.what}: ${decisionText(this.call)}`;
    this.element.replaceChildren(quietLine(text, decision?.choice !== "deny"));
    return true;
  }

  updateCall(): void {}

  dispose(): void {}
}

/** What is left of something that was settled. */
export function quietLine(text: string, agreed: boolean): HTMLElement {
  return h("p", { class: "yna-settled" }, icon(agreed ? "check" : "cross"), text);
}
