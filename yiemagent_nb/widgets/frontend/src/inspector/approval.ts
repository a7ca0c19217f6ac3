// A call by hand that waits for a person's word.

import { h, icon } from "../dom";
import { jsonTree } from "../json_tree";
import type { PanelContext } from "../panel";
import type { ApprovalChoice, ApprovalRequest } from "../protocol";
import { visible } from "../text";
import { Complaint, hintBadge, textField } from "./small";

/** So long it takes no click once it has come: a second one on the same spot was not meant for it. */
const UNTOUCHED_MS = 500;

/** `of` ends the question, such as " for a server". */
export function approvalElement(context: PanelContext, request: ApprovalRequest, of = ""): HTMLElement {
  const complaint = new Complaint();
  const reason = textField({ placeholder: "Why not? (optional)", label: "Reason for denying" });
  const send = (choice: ApprovalChoice): void => {
    const message = { type: "approve", request_id: request.request_id, choice, reason: choice === "deny" ? reason.value.trim() : "" };
    void complaint.of(context.ask(message));
  };
  const since = performance.now();
  const answer = (text: string, kind: string, choice: ApprovalChoice): HTMLElement =>
    h(
      "button",
      {
        class: `yna-button ${kind}`,
        onclick: (event) => {
          if (event.detail === 0 || performance.now() - since > UNTOUCHED_MS) send(choice);
        },
      },
      text,
    );
  const shown = request.args_text ?? JSON.stringify(request.args, null, 2);
  return h(
    "div",
    { class: "yna-hand-approval", role: "group", label: "The call waits for your word" },
    h("p", { class: "yna-hand-approval-title" }, icon("hand"), h("span", {}, "May ", h("b", {}, visible(request.label)), ` run${of}?`), ...request.hints.map((hint) => hintBadge(hint))),
    h(
      "details",
      { class: "yna-hand-approval-args" },
      h("summary", {}, icon("chevron"), "Arguments as they would be used"),
      request.args_text === null ? jsonTree(request.args) : h("pre", { tabindex: "0", role: "group", label: "Arguments" }, shown),
    ),
    h("div", { class: "yna-buttons" }, answer("Allow once", "yna-primary", "allow_once"), answer("Deny", "yna-danger", "deny"), reason),
    complaint.element,
  );
}
