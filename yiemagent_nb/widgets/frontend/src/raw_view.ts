// A call and its result as the JSON that went over.

import { copyButton, h } from "./dom";
import type { Call } from "./entries";

const LONGEST = 100_000;
/** Of longer texts without a space, such as images, only the beginning is shown; what is copied has all. */
const LONGEST_WORD = 2_000;

export function rawElement(call: Call): HTMLElement {
  const text = JSON.stringify(rawCall(call), shortened, 2);
  const left = text.length - LONGEST;
  return h(
    "div",
    { class: "yna-section yna-raw-view" },
    h("div", { class: "yna-section-bar" }, h("span", {}, "As it went over"), copyButton(() => JSON.stringify(rawCall(call), null, 2), "Copy JSON")),
    h("pre", { tabindex: "0", label: "The call and its result as JSON" }, left > 0 ? text.slice(0, LONGEST) : text),
    left > 0 ? h("p", { class: "yna-call-decision" }, `${left.toLocaleString()} more characters; “Copy JSON” has all of them.`) : null,
  );
}

function rawCall(call: Call): object {
  const { id, name, details, duration } = call;
  const sent = { id, name, arguments: call.raw ?? call.args ?? call.argsText };
  if (!call.content) return { call: sent, result: null };
  const result = { is_error: call.status === "failed", content: call.content, duration };
  return { call: sent, result: details ? { ...result, details } : result };
}

function shortened(_: string, value: unknown): unknown {
  if (typeof value !== "string" || value.length <= LONGEST_WORD || /\s/.test(value.slice(0, LONGEST_WORD))) return value;
  return `${value.slice(0, 80)}… (${(value.length - 80).toLocaleString()} more characters)`;
}
