// A tool call: one quiet row that opens to its arguments and its result, and asks for approval.

import { approvalCard, decisionText, type CallActions } from "./approval_card";
import { argumentsOf, oneLine, valueText } from "./arguments";
import { ArgumentsView } from "./arguments_view";
import { h, icon, newId, setText } from "./dom";
import type { Call, CallStatus } from "./entries";
import type { AudioPart, Content, ImageBlock, PicturePart } from "./protocol";
import { audioElement, imageElement, releaseAudio, resultElement, textOf } from "./result_view";
import type { Store } from "./store";
import { seconds } from "./text";

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

const LONG_ARGUMENTS = 200;
const LONGEST_TOOLTIP = 1_000;

export class CallView {
  readonly element = h("div", { class: "yna-call" });
  private readonly mark = h("span", { class: "yna-call-mark" });
  private readonly verb = h("span", { class: "yna-call-verb" });
  private readonly name = h("span", { class: "yna-call-name" });
  private readonly source = h("span", { class: "yna-call-source" });
  private readonly summary = h("span", { class: "yna-call-summary" });
  private readonly time = h("span", { class: "yna-call-time" });
  private readonly row: HTMLButtonElement;
  private readonly body = h("div", { class: "yna-call-body", hidden: true });
  private readonly media = h("div", { class: "yna-call-images", hidden: true });
  private readonly progressText = h("div");
  private readonly bar = h("progress", { class: "yna-progress", max: "1", label: "Progress" });
  private readonly progress = h("div", { class: "yna-call-progress", hidden: true }, this.progressText, this.bar);
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
    this.body.id = newId();
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
      this.source,
      this.summary,
      this.time,
      icon("chevron"),
    );
    this.element.append(this.row, this.progress, this.body, this.media);
    this.update();
  }

  dispose(): void {
    clearInterval(this.ticking);
    releaseAudio(this.media);
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
    const source = this.store.source(call);
    setText(this.source, source);
    this.source.hidden = source === "";
    this.showSummary();
    this.showTime();
    this.showProgress();
    if (call.content !== this.shownContent) {
      this.shownContent = call.content;
      this.showMedia();
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
    const { content, progress } = this.call.progress ?? { content: [], progress: null };
    const text = textOf(content);
    this.progress.hidden = (text === "" && progress === null) || this.call.status !== "running";
    if (this.progress.hidden) return;
    setText(this.progressText, text.length > 400 ? `…${text.slice(-400)}` : text);
    this.bar.hidden = progress === null;
    if (progress !== null) this.bar.value = progress;
  }

  private showMedia(): void {
    const { call } = this;
    const parts = call.details?.parts ?? [];
    const images = [
      ...(call.content ?? []).filter((block): block is ImageBlock => block.type === "image"),
      ...parts.filter((part): part is PicturePart => part.type === "picture"),
    ];
    const audios = parts.filter((part): part is AudioPart => part.type === "audio");
    releaseAudio(this.media);
    this.media.hidden = images.length + audios.length === 0;
    this.media.replaceChildren(
      ...images.map((image) => imageElement(image, `Image from ${call.name}`)),
      ...audios.map((audio) => audioElement(audio, this.actions.audio)),
    );
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
    this.result = call.content ? resultElement(call.content, call.details, resultTitle(call)) : null;
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
    const label = this.store.label(this.call.name);
    const from = request.source === "python" ? "" : ` from ${request.source}`;
    this.approval = approvalCard(this.call, label, `Allow ${label}${from} to run?`, this.actions);
    this.element.append(this.approval);
  }
}

function resultTitle(call: Call): string {
  if (call.note) return "What the model is told";
  return call.status === "failed" ? "Error" : "Result";
}
