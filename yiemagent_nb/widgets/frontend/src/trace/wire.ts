// What went over the network for a row: each HTTP request and its answer, as they were.

import { copyButton, h, icon } from "../dom";
import type { PanelContext } from "../panel";
import { seconds, visible } from "../text";
import { longText } from "./long_text";

export interface WireRequest {
  method: string;
  url: string;
  /** Null while there is no answer. */
  status: number | null;
  headers: [name: string, value: string][];
  body: string;
  answer_headers: [name: string, value: string][];
  answer: string;
  seconds: number | null;
  left_out: number;
  /** What went wrong; empty where nothing did. */
  error: string;
}

export function wireElement(context: PanelContext, requests: readonly WireRequest[]): HTMLElement {
  if (requests.length === 0) {
    return h("p", { class: "yna-trace-nothing" }, "Nothing went over HTTP here: the model or the tool runs in the kernel.");
  }
  return h("div", { class: "yna-trace-sections" }, ...requests.map((each, at) => requestElement(context, each, at === 0 || requests.length < 3)));
}

function requestElement(context: PanelContext, request: WireRequest, open: boolean): HTMLElement {
  const { method, url, status, left_out: left } = request;
  const bad = status !== null && status >= 400;
  const took = request.seconds === null ? "" : seconds(request.seconds);
  const summary = h(
    "summary",
    {},
    icon("chevron"),
    h("span", { class: "yna-trace-method" }, method),
    h("span", { class: "yna-trace-url", title: visible(url) }, visible(url)),
    h("span", { class: bad ? "yna-trace-status yna-trace-bad-status" : "yna-trace-status" }, status === null ? "no answer" : String(status)),
    h("span", { class: "yna-trace-size" }, took),
  );
  const details = h("details", { class: "yna-trace-section" }, summary);
  const fill = (): void => {
    if (!details.open || details.childElementCount > 1) return;
    details.append(
      h(
        "div",
        { class: "yna-trace-section-body" },
        request.error ? h("p", { class: "yna-problem" }, request.error) : null,
        ...headersElements("Headers", request.headers),
        textElement(context, "Body", request.body),
        ...headersElements("Headers of the answer", request.answer_headers),
        textElement(context, "Answer", request.answer),
        left > 0 ? h("p", { class: "yna-trace-nothing" }, `${left.toLocaleString()} more bytes are not shown.`) : null,
      ),
    );
  };
  details.addEventListener("toggle", fill);
  details.open = open;
  fill();
  return details;
}

function headersElements(title: string, headers: WireRequest["headers"]): HTMLElement[] {
  if (headers.length === 0) return [];
  const pairs = headers.flatMap(([name, value]) => [h("dt", {}, visible(name)), h("dd", {}, visible(value))]);
  return [h("h4", {}, title), h("dl", { class: "yna-trace-facts" }, ...pairs)];
}

function textElement(context: PanelContext, title: string, text: string): HTMLElement {
  if (text === "") return h("h4", {}, title, h("span", { class: "yna-trace-size" }, " none"));
  const language = /^\s*[[{]/.test(text) ? "json" : "";
  return h(
    "div",
    {},
    h("div", { class: "yna-trace-section-end" }, h("h4", {}, title), copyButton(() => text, "Copy")),
    longText(text, title, (element, piece) => context.highlight(element, piece, language)),
  );
}
