// What asks for a person's word before it runs: its arguments, and four answers.

import { h } from "./dom";
import type { Call } from "./entries";
import type { ApprovalChoice, Refusal } from "./protocol";

export interface CallActions {
  approve(
    requestId: string,
    choice: ApprovalChoice,
    more: { reason?: string; arguments?: Record<string, unknown> },
  ): Promise<void>;
  /** A recording in base64. */
  audio(key: string): Promise<string>;
}

/** What a person decided, in words. */
export function decisionText(call: Call): string {
  switch (call.decision?.choice) {
    case "allow_once":
      return "Allowed once.";
    case "allow_session":
      return "Allowed for this session.";
    case "allow_edited":
      return "Allowed with edited arguments.";
    case "deny":
      return call.decision.reason ? `Denied: ${call.decision.reason}` : "Denied.";
    default:
      return "";
  }
}

export function approvalCard(call: Call, label: string, title: string, actions: CallActions): HTMLElement {
  const request = call.approval;
  const editable = !request || request.args_text === null;
  const args = request?.args_text ?? JSON.stringify(request?.args ?? {}, null, 2);
  const problem = h("p", { class: "yna-problem", role: "alert", hidden: true });
  const shown = h("pre", { class: "yna-approval-args", tabindex: "0", label: "Arguments" }, args);
  const editor = h("textarea", { class: "yna-field yna-code-field", label: "Arguments as JSON", spellcheck: "false", hidden: true });
  const reason = h("input", { class: "yna-field", type: "text", placeholder: "Why not? (the model is told)", label: "Reason", hidden: true });
  const complain = (text: string): void => {
    problem.textContent = text;
    problem.hidden = text === "";
  };
  const answer = (choice: ApprovalChoice, more: { reason?: string; arguments?: Record<string, unknown> } = {}): void => {
    complain("");
    for (const button of card.querySelectorAll("button")) button.disabled = true;
    actions.approve(request?.request_id ?? "", choice, more).catch((refusal: Refusal) => {
      for (const button of card.querySelectorAll("button")) button.disabled = false;
      complain(`${refusal.message} ${refusal.hint}`.trim());
    });
  };
  const answerEdited = (): void => {
    let edited: unknown;
    try {
      edited = JSON.parse(editor.value);
    } catch (error) {
      return complain(`This is not JSON: ${(error as Error).message}`);
    }
    if (typeof edited !== "object" || edited === null || Array.isArray(edited)) {
      return complain("Arguments are a JSON object, such as {\"name\": \"value\"}.");
    }
    answer("allow_edited", { arguments: edited as Record<string, unknown> });
  };
  const first = h(
    "div",
    { class: "yna-buttons" },
    h("button", { class: "yna-button yna-primary", onclick: () => answer("allow_once") }, "Allow once"),
    h("button", { class: "yna-button", onclick: () => answer("allow_session") }, "Allow for this session"),
    editable ? h("button", { class: "yna-button", onclick: () => show("edit") }, "Edit…") : null,
    h("button", { class: "yna-button yna-danger", onclick: () => show("deny") }, "Deny…"),
  );
  const edit = h(
    "div",
    { class: "yna-buttons", hidden: true },
    h("button", { class: "yna-button yna-primary", onclick: answerEdited }, "Allow with these arguments"),
    h("button", { class: "yna-button", onclick: () => show("first") }, "Back"),
  );
  const deny = h(
    "div",
    { class: "yna-buttons", hidden: true },
    h("button", { class: "yna-button yna-danger", onclick: () => answer("deny", { reason: reason.value }) }, "Deny"),
    h("button", { class: "yna-button", onclick: () => show("first") }, "Back"),
  );
  const show = (step: "first" | "edit" | "deny"): void => {
    complain("");
    first.hidden = step !== "first";
    edit.hidden = editor.hidden = step !== "edit";
    deny.hidden = reason.hidden = step !== "deny";
    shown.hidden = step === "edit";
    if (step === "edit") {
      editor.value = args;
      editor.rows = Math.min(14, args.split("\n").length + 1);
      editor.focus();
    }
    if (step === "deny") reason.focus();
  };
  reason.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.isComposing) answer("deny", { reason: reason.value });
  });
  const card = h(
    "div",
    { class: "yna-approval", role: "group", label: `Approval for ${label}` },
    h("p", { class: "yna-approval-title" }, title),
    request?.description ? h("p", { class: "yna-muted" }, firstLine(request.description)) : null,
    shown,
    editable ? null : h("p", { class: "yna-muted" }, "Long texts are shortened here; the call has all of them."),
    editor,
    reason,
    problem,
    first,
    edit,
    deny,
  );
  return card;
}

function firstLine(text: string): string {
  return text.trim().split("\n", 1)[0] ?? "";
}
