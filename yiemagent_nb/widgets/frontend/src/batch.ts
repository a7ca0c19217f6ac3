// What a batch of calls does as a whole.

import type { Call, CallStatus } from "./entries";
import { isUnsettled, standingOf, type Standing } from "./outcome";

const MOST_NAMES = 6;

export interface CallCounts {
  all: number;
  open: number;
  writing: number;
  waiting: number;
  done: number;
  failed: number;
  denied: number;
  /** Stopped before they ran. */
  unbegun: number;
  /** What the longest took: when each began is known to no page that came later. */
  seconds: number | null;
}

/** How far the calls of a batch have come. */
export function countCalls(calls: Call[]): CallCounts {
  const standings = calls.map((call) => standingOf(call));
  const count = (standing: Standing): number => standings.filter((each) => each === standing).length;
  const ran = calls.filter(({ duration }, at) => duration !== null && standings[at] !== "denied" && standings[at] !== "unbegun");
  return {
    all: calls.length,
    open: standings.filter(isUnsettled).length,
    writing: count("writing"),
    waiting: count("waiting"),
    done: count("done"),
    failed: count("failed"),
    denied: count("denied"),
    unbegun: count("unbegun"),
    seconds: ran.length > 0 ? Math.max(...ran.map(({ duration }) => duration ?? 0)) : null,
  };
}

/** The status of a whole batch. */
export function statusOf({ all, open, waiting, done, failed, denied }: CallCounts): CallStatus | "denied" {
  if (open > 0) return waiting > 0 ? "waiting" : "running";
  if (failed > 0) return "failed";
  if (done + denied < all) return "stopped";
  return done > 0 ? "done" : "denied";
}

/** What a batch does or did, in words. */
export function titleOf({ all, open, writing, waiting, done, failed, denied, unbegun }: CallCounts): string {
  if (writing === all) return `Calling ${all} tools…`;
  if (waiting > 0) return `${waiting} of ${all} tools ${waiting === 1 ? "waits" : "wait"} for you`;
  if (open > 0) return `Running ${open} of ${all} tools…`;
  const stopped = all - done - failed - denied;
  const ran = all - denied - unbegun;
  const which = ran === all ? `${all}` : `${ran || "none"} of ${all}`;
  const rest = [failed > 0 ? `${failed} failed` : "", denied > 0 ? `${denied} denied` : "", stopped > 0 ? `${stopped} stopped` : ""].filter(Boolean).join(", ");
  return `Ran ${which} tools${rest && `, ${rest}`}`;
}

/** Names, each once with how often it comes. */
export function namesOf(labels: string[]): string {
  const counts = new Map<string, number>();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  const names = [...counts].map(([label, count]) => (count > 1 ? `${label} ×${count}` : label));
  const more = names.length - MOST_NAMES;
  return names.slice(0, MOST_NAMES).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
