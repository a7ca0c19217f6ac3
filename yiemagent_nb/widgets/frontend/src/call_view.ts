// A tool call: one quiet row that opens to its arguments and its result, and asks for approval.

import { argumentsOf, oneLine, valueText } from "./arguments";
import { ArgumentsView } from "./arguments_view";
import { copyButton, h, icon, setText } from "./dom";
import type { ApprovalChoice, Content, ImageBlock } from "./protocol";
import type { Call, CallStatus, Store } from "./store";
import { seconds } from "./text";

export interface CallActions {
  approve(
    requestId: string,
    choice: ApprovalChoice,
    more: { reason?: string; arguments?: Record<string, unknown> },
  ): Promise<void>;
}

const VERBS: Record<CallStatus, string> = {
  writing: "Calling",
  waiting: "Wants to run",
  running: "Running",
  done: "Ran",
  failed: "Failed:",
  stopped: "Stopped:",
};

const ICONS: Partial<Record<CallStatus, string>> = {
  waiting: "hand",
  done: "check",
  failed: "alert",
  stopped: "pause",
};

const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const LONG_ARGUMENTS = 200;
const LONGEST_TOOLTIP = 1_000;
let ids = 0;

export class CallView {
  readonly element = h("div", { class: "yna-call" });
  private readonly mark = h("span", { class: "yna-call-mark" });
  private readonly verb = h("span", { class: "yna-call-verb" });
  private readonly name = h("span", { class: "yna-call-name" });
  private readonly summary = h("span", { class: "yna-call-summary" });
  private readonly time = h("span", { class: "yna-call-time" });
  private readonly row: HTMLButtonElement;
  private readonly body = h("div", { class: "yna-call-body", hidden: true });
  private readonly images = h("div", { class: "yna-call-images", hidden: true });
  private readonly progress = h("div", { class: "yna-call-progress", hidden: true });
  private readonly decision = h("p", { class: "yna-call-decision" });
  private args: ArgumentsView | null = null;
  private result: HTMLElement | null = null;
  private resultOf: Content[] | null = null;
  private summaryOf: unknown = undefined;
  private approval: HTMLElement | null = null;
  private approvalOf: string | null = null;
  private status: CallStatus | null = null;
  private shownContent: Content[] | null = null;
  private ticking: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly call: Call,
    private readonly store: Store,
    private readonly actions: CallActions,
  ) {
    ids += 1;
    this.body.id = `yna-call-${ids}`;
    this.row = h(
      "button",
      {
        class: "yna-call-row",
        "aria-expanded": "false",
        "aria-controls": this.body.id,
        onclick: () => this.toggle(),
      },
      this.mark,
      this.verb,
      this.name,
      this.summary,
      this.time,
      icon("chevron"),
    );
    this.element.append(this.row, this.progress, this.body, this.images);
    this.update();
  }

  dispose(): void {
    clearInterval(this.ticking);
  }

  update(): void {
    const { call } = this;
    if (this.status !== call.status) {
      this.status = call.status;
      this.element.dataset["status"] = call.status;
      const name = ICONS[call.status];
      this.mark.replaceChildren(name ? icon(name) : h("span", { class: "yna-spinner", "aria-hidden": "true" }));
    }
    setText(this.verb, call.note ? "Not run:" : VERBS[call.status]);
    setText(this.name, this.store.label(call.name));
    if (this.name.title !== call.name) this.name.title = call.name;
    this.showSummary();
    this.showTime();
    this.showProgress();
    if (call.content !== this.shownContent) {
      this.shownContent = call.content;
      this.showImages();
    }
    if (!this.body.hidden) this.fillBody();
    this.showApproval();
  }

  private toggle(): void {
    const open = this.body.hidden;
    this.body.hidden = !open;
    this.row.setAttribute("aria-expanded", String(open));
    if (open) this.fillBody();
  }

  private showTime(): void {
    const { call } = this;
    const long = call.status === "writing" && call.argsText.length > LONG_ARGUMENTS;
    if (long) setText(this.time, `${call.argsText.length.toLocaleString()} characters`);
    else if (call.status !== "running") setText(this.time, call.duration === null ? "" : seconds(call.duration));
    else if (this.ticking === undefined) setText(this.time, "");
    if (call.status === "running" && this.ticking === undefined) {
      this.ticking = setInterval(() => {
        const passed = (Date.now() - this.call.startedAt) / 1000;
        if (this.call.status === "running" && passed > 1) this.time.textContent = `${Math.round(passed)} s`;
      }, 1_000);
    } else if (call.status !== "running") {
      clearInterval(this.ticking);
      this.ticking = undefined;
    }
  }

  private showProgress(): void {
    const text = textOf(this.call.progress ?? []);
    this.progress.hidden = text === "" || this.call.status !== "running";
    if (!this.progress.hidden) this.progress.textContent = text.length > 400 ? `…${text.slice(-400)}` : text;
  }

  private showImages(): void {
    const images = (this.call.content ?? []).filter((block): block is ImageBlock => block.type === "image");
    this.images.hidden = images.length === 0;
    this.images.replaceChildren(...images.map((image) => imageElement(image, `Image from ${this.call.name}`)));
  }

  private showSummary(): void {
    const { call } = this;
    const shown = call.raw ?? call.args ?? call.argsText;
    if (this.summaryOf === shown) return;
    this.summaryOf = shown;
    const growing = call.status === "writing";
    const known = call.raw === null ? argumentsOf(call.args, call.argsText) : null;
    const { line, clipped } = oneLine(known, call.raw ?? call.argsText, growing);
    setText(this.summary, line);
    const all = known?.map(({ name, value }) => `${name}: ${valueText(value, growing)}`).join("\n") ?? call.argsText;
    this.summary.title = !clipped ? "" : all.length > LONGEST_TOOLTIP ? `${all.slice(0, LONGEST_TOOLTIP)}…` : all;
  }

  private fillBody(): void {
    const { call } = this;
    if (!this.args) {
      this.args = new ArgumentsView(call);
      this.body.append(this.args.element, this.decision);
    }
    this.args.update();
    setText(this.decision, call.note || decisionText(call));
    this.decision.hidden = this.decision.textContent === "";
    if (call.content === this.resultOf) return;
    this.resultOf = call.content;
    this.result?.remove();
    this.result = call.content ? resultElement(call.content, resultTitle(call)) : null;
    if (this.result) this.body.append(this.result);
  }

  private showApproval(): void {
    const request = this.call.approval;
    if (!request) {
      this.approval?.remove();
      this.approval = this.approvalOf = null;
      return;
    }
    if (this.approvalOf === request.request_id) return;
    this.approval?.remove();
    this.approvalOf = request.request_id;
    this.approval = approvalCard(this.call, this.store, this.actions);
    this.element.append(this.approval);
  }
}

function resultTitle(call: Call): string {
  if (call.note) return "What the model is told";
  return call.status === "failed" ? "Error" : "Result";
}

function resultElement(content: Content[], title: string): HTMLElement {
  const result = textOf(content);
  const leftOut = content.reduce((sum, block) => sum + (block.type === "text" ? (block.left_out ?? 0) : 0), 0);
  return h(
    "div",
    {},
    result || content.length === 0 ? section(title, result || "(nothing)", () => result) : null,
    leftOut ? h("p", { class: "yna-call-decision" }, `${leftOut.toLocaleString()} more characters are not shown.`) : null,
  );
}

function textOf(content: Content[]): string {
  return content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

function section(title: string, text: string, copied: () => string): HTMLElement {
  return h(
    "div",
    { class: "yna-section" },
    h("div", { class: "yna-section-bar" }, h("span", {}, title), copyButton(copied)),
    h("pre", { tabindex: "0", label: title }, text),
  );
}

export function imageElement(image: ImageBlock, name: string): HTMLElement {
  if (!IMAGE_TYPES.includes(image.mime_type)) {
    return h("span", { class: "yna-muted" }, `An image of type ${image.mime_type} cannot be shown here.`);
  }
  const element = h("img", { class: "yna-image", alt: name });
  element.src = `data:${image.mime_type};base64,${image.data}`;
  return element;
}

function decisionText(call: Call): string {
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

function approvalCard(call: Call, store: Store, actions: CallActions): HTMLElement {
  const request = call.approval;
  const args = JSON.stringify(request?.args ?? {}, null, 2);
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
    actions.approve(request?.request_id ?? "", choice, more).catch((refusal: { message: string; hint: string }) => {
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
    h("button", { class: "yna-button", onclick: () => show("edit") }, "Edit…"),
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
  const from = request && request.source !== "python" ? ` from ${request.source}` : "";
  const card = h(
    "div",
    { class: "yna-approval", role: "group", label: `Approval for ${call.name}` },
    h("p", { class: "yna-approval-title" }, `Allow ${store.label(call.name)}${from} to run?`),
    request?.description ? h("p", { class: "yna-muted" }, firstLine(request.description)) : null,
    shown,
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
