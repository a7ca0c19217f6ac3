// What asks for approval and is no call of an answer, such as a server that wants to use the model.

import { ApprovalView, type CallActions } from "./approval_card";
import { h } from "./dom";
import type { Call } from "./entries";

export class RequestView {
  readonly element = h("div", { class: "yna-entry yna-asks" });
  private readonly asking: ApprovalView;
  private readonly frame: HTMLElement;

  constructor(
    private readonly call: Call,
    label: string,
    actions: CallActions,
  ) {
    this.asking = new ApprovalView(call, label, actions, "", call.approval?.by_hand ? `You called ${label} by hand: ` : `${label} for ${call.approval?.source ?? "a server"}: `);
    this.frame = h("div", {}, this.asking.element);
    this.element.append(this.frame);
    this.update();
  }

  update(): boolean {
    this.frame.className = this.call.approval ? "yna-call yna-request" : "";
    this.asking.update();
    return true;
  }

  updateCall(): void {}

  dispose(): void {}
}
