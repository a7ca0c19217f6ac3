// How a call stands: what a person denied or stopped is no failure, and what waits for its turn does not run.

import type { Call, CallStatus } from "./entries";
import { errorWords } from "./error_words";

/** `queued` is whole and waits for others of its batch; `denied` and `unbegun` never ran. */
export type Standing = CallStatus | "queued" | "denied" | "unbegun";

export const UNBEGUN = "Stopped before it ran.";

/** What the results of calls that were denied begin with. */
const DENIED = /^The person denied this (?:same )?call\b/;
const REASON = /^The person denied this call: ([^]*)$|The reason was: ([^]*)$/;

/** The reasons of denials that nobody decided: the run ended. */
const ENDED = new Set([
  "the run was aborted",
  "the run is over",
  "the call is over",
  "interrupted from the keyboard",
  "the stream was closed",
  "its event loop was closed",
]);

const OPEN: Standing[] = ["writing", "waiting", "running", "queued"];

/** How a call stands; `queued` says whether it waits for others. */
export function standingOf(call: Call, queued = false): Standing {
  if (call.decision?.choice === "deny") return ENDED.has(call.decision.reason) ? "unbegun" : "denied";
  if (queued && (call.status === "writing" || call.status === "running")) return "queued";
  if (call.status !== "failed" || call.details) return call.status; // a server's words prove nothing
  const text = failureOf(call);
  if (DENIED.test(text)) return ENDED.has(reasonIn(text)) ? "unbegun" : "denied";
  const { code, message } = errorWords(text);
  if (code !== "EXECUTION_ABORTED") return "failed";
  return message.includes("did not run") ? "unbegun" : "stopped";
}

export function isUnsettled(standing: Standing): boolean {
  return OPEN.includes(standing);
}

/** What is told of a call that never ran, in one line; empty where that stands elsewhere. */
export function standingWords(call: Call, standing: Standing): string {
  if (call.decision?.choice === "deny") return "";
  if (standing === "unbegun") return UNBEGUN;
  if (standing !== "denied") return "";
  const reason = reasonIn(failureOf(call));
  return reason ? `Denied: ${reason}` : "Denied.";
}

/** Why a call of a batch waits for its turn; empty where it does not. */
export function turnOf(call: Call, batch: Call[], live: boolean): string {
  const others = batch.filter((each) => each !== call);
  const waiting = others.filter(({ status }) => status === "waiting").length;
  if (waiting > 0) return waiting === 1 ? "Waits for the other approval" : "Waits for the other approvals";
  const runs = others.some((each) => standingOf(each) === "running");
  return !live && call.status === "writing" && runs ? "Waits for its turn" : "";
}

function reasonIn(text: string): string {
  const [, now = "", before = ""] = REASON.exec(text) ?? [];
  return now || before;
}

function failureOf({ content }: Call): string {
  return (content ?? []).flatMap((block) => (block.type === "text" ? [block.text] : [])).join("");
}
