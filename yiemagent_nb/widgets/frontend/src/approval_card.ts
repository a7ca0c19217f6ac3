// What asks for a person's word before it runs: what it is, its arguments, and four answers. Settled, it is one line.

import type { ArgumentsEditor } from "./arguments_editor";
import { ArgumentsView } from "./arguments_view";
import { h, icon, newId } from "./dom";
import type { Call } from "./entries";
import { UNBEGUN, standingOf } from "./outcome";
import { PartPlace } from "./part_place";
import type { ApprovalChoice, ApprovalRequest, Refusal } from "./protocol";
import { quietLine, settle } from "./settled";
import { hasInvisible, visibleJson } from "./visible";

export interface CallActions {
  approve(
    requestId: string,
    choice: ApprovalChoice,
    more: { reason?: string; arguments?: Record<string, unknown> },
  ): Promise<unknown>;
  /** A recording in base64. */
  audio(key: string): Promise<string>;
}

/** So long a card takes no click once it has come, or moved up: a second one on the same spot was not meant for it. */
const UNTOUCHED_MS = 500;

type Step = "answer" | "edit" | "deny";

/** What a person entered and did not send: it outlives the card, which may be built anew. */
interface Draft {
  step: Step;
  text: string | null;
  reason: string;
}

const drafts = new Map<string, Draft>();
const cards = new WeakMap<Element, ApprovalCard>();

/** What a person decided, in words. */
function decisionText(call: Call): string {
  switch (call.decision?.choice) {
    case "allow_once":
      return "Allowed once.";
    case "allow_session":
      return "Allowed for this session.";
    case "allow_edited":
      return "Allowed with edited arguments.";
    case "deny":
      if (standingOf(call) === "unbegun") return UNBEGUN;
      return call.decision.reason ? `Denied: ${call.decision.reason}` : "Denied.";
    default:
      return "";
  }
}

/** Asks for a call as long as it waits, and tells then what was decided. */
export class ApprovalView {
  readonly element = h("div", { class: "yna-asking" });
  private shown: string | null = null;

  /** `about` stands before what was decided; `purpose` ends the question, such as "to run". */
  constructor(
    private readonly call: Call,
    private readonly label: string,
    private readonly actions: CallActions,
    private readonly purpose = "",
    private readonly about = "",
  ) {
    this.update();
  }

  update(): void {
    const { approval: request, decision } = this.call;
    const shown = request?.request_id ?? decision?.choice ?? "";
    if (this.shown === shown) return;
    this.shown = shown;
    if (request) return this.element.replaceChildren(new ApprovalCard(this.call, request, this.label, this.purpose, this.actions).element);
    for (const other of this.element.closest(".yna")?.querySelectorAll(".yna-approval") ?? []) cards.get(other)?.hold();
    if (decision) return settle(this.element, quietLine(`${this.about}${decisionText(this.call)}`, decision.choice !== "deny"));
    this.element.replaceChildren(); // the run ended, and nobody decided
  }
}

class ApprovalCard {
  readonly element: HTMLElement;
  private readonly steps: Record<Step, HTMLElement>;
  private readonly draft: Draft;
  private readonly problem = h("p", { class: "yna-problem", role: "alert", hidden: true });
  private readonly place = h("div", { class: "yna-approval-place" });
  private readonly reason: HTMLInputElement;
  private readonly readable: HTMLElement;
  private readonly raw: HTMLElement;
  private readonly switch: HTMLButtonElement;
  private readonly editButton: HTMLButtonElement;
  private readonly denyButton: HTMLButtonElement;
  private readonly editor: PartPlace<"editor", ArgumentsEditor>;
  private readonly name: HTMLElement;
  private readonly answers: HTMLButtonElement[];
  private held: ReturnType<typeof setTimeout> | undefined;
  private sending = false;

  constructor(
    call: Call,
    private readonly request: ApprovalRequest,
    private readonly label: string,
    purpose: string,
    private readonly actions: CallActions,
  ) {
    this.draft = drafts.get(request.request_id) ?? { step: "answer", text: null, reason: "" };
    const json = request.args_text ?? JSON.stringify(request.args, null, 2);
    const readable = new ArgumentsView({ ...call, args: request.args_text === null ? request.args : null, raw: request.args_text });
    readable.update();
    this.readable = readable.element;
    this.raw = h("pre", { class: "yna-approval-args", role: "group", tabindex: "0", label: "Raw arguments" }, visibleJson(json));
    this.switch = h("button", { class: "yna-ghost", "aria-pressed": "false", onclick: () => this.showRaw(Boolean(this.raw.hidden)) }, "Raw JSON");
    this.name = h("code", { class: "yna-approval-name", title: "The tool’s name" }, request.name);
    this.editButton = this.answer("Edit…", "", () => this.go("edit"));
    this.denyButton = this.answer("Deny…", "yna-danger", () => this.go("deny"));
    const once = this.answer("Allow once", "yna-primary", () => this.send("allow_once"));
    const session = this.answer("Allow for this session", "", () => this.send("allow_session"));
    this.answers = [once, session, this.editButton, this.denyButton];
    this.reason = h("input", { class: "yna-field", type: "text", placeholder: "Why not? The model is told.", label: "Reason", autocomplete: "off", maxlength: "10000" });
    this.reason.value = this.draft.reason;
    this.steps = {
      answer: row(
        once,
        session,
        request.args_text === null ? this.editButton : null,
        this.denyButton,
      ),
      edit: row(
        button("Allow with these arguments", "yna-primary", () => this.editor.content?.submit()),
        button("Back", "yna-bare", () => this.back()),
      ),
      deny: h(
        "div",
        { class: "yna-denying" },
        this.reason,
        row(
          button("Deny", "yna-danger", () => this.deny()),
          button("Back", "yna-bare", () => this.back()),
        ),
      ),
    };
    const title = newId();
    const invisible = hasInvisible(json);
    this.element = h(
      "div",
      { class: "yna-approval", role: "group", tabindex: "-1", "aria-labelledby": title },
      h("div", { class: "yna-approval-head" }, titleOf(request, label, purpose, title), this.switch),
      h("div", { class: "yna-approval-facts" }, this.name, ...facts(request)),
      request.description ? h("p", { class: "yna-approval-about" }, request.description) : null,
      this.place,
      note(request, invisible),
      this.steps.answer,
      this.steps.edit,
      this.steps.deny,
      this.problem,
    );
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.reason.addEventListener("input", () => this.keep({ reason: this.reason.value }));
    this.place.append(this.readable, this.raw);
    this.editor = new PartPlace("editor", "The editor", (part) => this.makeEditor(part.ArgumentsEditor));
    this.place.after(this.editor.element);
    this.showRaw(invisible);
    this.show();
    cards.set(this.element, this);
    this.hold();
  }

  /** Take no click for a moment; a key is pressed where the focus is, which does not move by itself. */
  hold(): void {
    clearTimeout(this.held);
    for (const each of this.answers) each.setAttribute("aria-disabled", "true");
    this.held = setTimeout(() => {
      this.held = undefined;
      for (const each of this.answers) each.removeAttribute("aria-disabled");
    }, UNTOUCHED_MS);
  }

  private answer(text: string, kind: string, action: () => void): HTMLButtonElement {
    return button(text, kind, (event) => (this.held === undefined || event.detail === 0) && action());
  }

  private showRaw(raw: boolean): void {
    this.raw.hidden = !raw;
    this.readable.hidden = raw;
    this.name.hidden = !raw && resembles(this.label, this.request.name);
    this.switch.setAttribute("aria-pressed", String(raw));
  }

  private keep(change: Partial<Draft>): void {
    Object.assign(this.draft, change);
    drafts.set(this.request.request_id, this.draft);
  }

  private go(step: Step): void {
    this.complain("");
    this.keep({ step });
    this.show();
    if (step === "edit") this.editor.focus();
    if (step === "deny") this.reason.focus();
  }

  private back(): void {
    const opener = this.draft.step === "edit" ? this.editButton : this.denyButton;
    this.go("answer");
    opener.focus();
  }

  private show(): void {
    const { step } = this.draft;
    for (const [name, element] of Object.entries(this.steps)) element.hidden = name !== step;
    this.switch.hidden = step === "edit";
    this.place.hidden = step === "edit";
    if (step === "edit") this.editor.open();
    this.editor.element.hidden = step !== "edit";
  }

  private makeEditor(editor: typeof ArgumentsEditor): ArgumentsEditor {
    return new editor(this.draft.text ?? visibleJson(JSON.stringify(this.request.args, null, 2)), {
      submit: (edited) => this.send("allow_edited", { arguments: edited }),
      complain: (text) => this.complain(text),
      back: () => this.back(),
      change: (text) => this.keep({ text }),
    });
  }

  private onKey(event: KeyboardEvent): void {
    if (event.key === "Escape") {
      event.stopPropagation(); // it stops no run
      if (this.draft.step !== "answer" && !event.isComposing) this.back();
    }
    if (event.key === "Enter" && event.target === this.reason && !event.isComposing && event.keyCode !== 229) {
      event.preventDefault();
      this.deny();
    }
  }

  private deny(): void {
    this.send("deny", { reason: this.reason.value.trim() });
  }

  private send(choice: ApprovalChoice, more: { reason?: string; arguments?: Record<string, unknown> } = {}): void {
    if (this.sending) return;
    this.sending = true; // the buttons stay enabled, since a disabled one would lose the keyboard
    this.element.setAttribute("aria-busy", "true");
    this.complain("");
    const { request_id: id } = this.request;
    this.actions.approve(id, choice, more).then(
      () => drafts.delete(id),
      (refusal: Refusal) => {
        this.sending = false;
        this.element.removeAttribute("aria-busy");
        this.complain(`${refusal.message} ${refusal.hint}`.trim());
        if (choice === "allow_edited") this.editor.content?.refuse();
      },
    );
  }

  private complain(text: string): void {
    this.problem.textContent = text;
    this.problem.hidden = text === "";
  }
}

function button(text: string, kind: string, action: (event: MouseEvent) => void): HTMLButtonElement {
  return h("button", { class: `yna-button ${kind}`, onclick: action }, text);
}

function row(...buttons: (HTMLElement | null)[]): HTMLElement {
  return h("div", { class: "yna-buttons" }, ...buttons);
}

/** Who wants what. A request that is no call names the server it comes from. */
function titleOf(request: ApprovalRequest, label: string, purpose: string, id: string): HTMLElement {
  const byHand = !purpose && request.by_hand === true;
  const from = byHand ? " to run" : purpose ? ` ${purpose}` : " for ";
  const source = purpose || byHand ? null : h("b", {}, request.source);
  const text = h("span", {}, "Allow ", h("b", { title: request.name }, label), from, source, byHand ? "? You called this by hand." : "?");
  return h("p", { class: "yna-approval-title", id }, icon("hand"), text);
}

/** Whether a label is a name's own words; where it is not, both are shown. */
function resembles(label: string, name: string): boolean {
  const words = (text: string): string => text.toLowerCase().replace(/[\s_.-]/g, "");
  return words(label) === words(name);
}

function facts(request: ApprovalRequest): (HTMLElement | null)[] {
  const server = request.source === "python" ? null : h("span", { class: "yna-badge yna-server", title: "Where it comes from" }, request.source);
  const hints = request.hints.map((hint) =>
    h("span", { class: `yna-badge${hint === "destructive" ? " yna-strong" : ""}`, title: "What its source says of it" }, hint),
  );
  return [server, ...hints];
}

function note(request: ApprovalRequest, invisible: boolean): HTMLElement | null {
  const texts = [
    request.args_text === null ? "" : "These arguments are too large to be edited here; long texts are shortened.",
    invisible ? "The arguments hold invisible characters: as raw JSON, they stand there by their numbers." : "",
  ];
  const text = texts.filter(Boolean).join(" ");
  return text ? h("p", { class: `yna-approval-note${invisible ? " yna-strong" : ""}` }, text) : null;
}
