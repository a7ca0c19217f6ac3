// What is said of a row in words.

import type { Attributes } from "../dom";
import { seconds, shortNumber } from "../text";
import type { Kind, Row } from "./rows";

export const KIND_NAMES: Record<Kind, string> = {
  run: "Run",
  turn: "Turn",
  model: "Model call",
  tool: "Tool call",
  hand: "Call by hand",
};

export function stateName(row: Row): string {
  if (row.state !== "running") return { done: "Done", failed: "Failed", aborted: "Stopped" }[row.state];
  return waits(row) ? "Waiting" : "Running";
}

/** Whether a call has not been let go on: it waits for an approval, or a free place. */
export function waits(row: Row): boolean {
  return row.state === "running" && row.waited === null && (row.kind === "tool" || row.kind === "hand");
}

/** An amount of money in US dollars. */
export function money(cost: number): string {
  if (cost === 0) return "$0";
  if (cost < 0.0001) return "< $0.0001";
  return `$${cost < 0.1 ? Number(cost.toFixed(4)) : cost.toFixed(2)}`;
}

export function tokensText({ input, output }: { input: number; output: number }): string {
  return `${shortNumber(input)} → ${shortNumber(output)}`;
}

/** When a row's parts were, for those who do not see its bar. */
export function timesText(row: Row, offset: number, before: number, elapsed: number): string {
  const parts: string[] = [];
  if (before > 0.0005) parts.push(`${seconds(before)} before the request (servers connect, hooks prepare it)`);
  if (row.parent !== null) parts.push(offset > 0.0005 ? `begins ${seconds(offset)} after the run` : "begins with the run");
  if (row.waited !== null && row.waited > 0) parts.push(`waits ${seconds(row.waited)}`);
  if (waits(row)) parts.push("waits");
  else if (row.kind === "model" && row.first !== null) parts.push(`first token after ${seconds(row.first)}`);
  parts.push(row.duration === null ? `has taken ${seconds(elapsed)} so far` : `takes ${seconds(elapsed)}`);
  return parts.join(", ");
}

/** An error of a request as one text. */
export function problemText(error: unknown): string {
  const { message, hint } = error as { message?: string; hint?: string };
  return [message ?? String(error), hint].filter(Boolean).join(" ");
}

/** What marks a tab or another part of a composite control. */
export function selected(on: boolean): Attributes {
  return { "aria-selected": String(on), tabindex: on ? "0" : "-1" };
}
