// The transcript as plain JSON, so that it can be compared with the agent's own history.

import type { Block, Call, Entry } from "./entries";
import type { Branch, Content, ErrorText, Queue } from "./protocol";
import type { Store } from "./store";

export interface DumpedCall {
  id: string;
  name: string;
  status: Call["status"];
  args: Record<string, unknown> | null;
  /** The arguments where they are no JSON. */
  raw: string | null;
  /** Why it did not run. */
  note: string;
  /** The texts of its result; null while there is none. */
  result: string | null;
  /** Whether it waits for a person. */
  asks: boolean;
}

export type DumpedBlock =
  | { kind: "text" | "reasoning"; text: string }
  | { kind: "image"; mime_type: string; data: string }
  | { kind: "tool_call"; call: DumpedCall | null };

export interface DumpedEntry {
  role: Entry["role"];
  index: number;
  live: boolean;
  blocks: DumpedBlock[];
  /** How an answer ended; empty while it streams, and for what is no answer. */
  stop_reason: string;
  error: ErrorText | null;
  note: string;
  branch: Branch | null;
  question: { request_id: string; action: string | null } | null;
  request: DumpedCall | null;
}

export interface Dump {
  start: number;
  total: number;
  running: boolean;
  queue: Queue;
  entries: DumpedEntry[];
}

/** All that the transcript shows, without times. */
export function dump(store: Store): Dump {
  const { start, total, running, queue } = store;
  return { start, total, running, queue, entries: store.entries.map(entryDump) };
}

function entryDump(entry: Entry): DumpedEntry {
  const { role, index, live, message, error, note, branch, question, request } = entry;
  return {
    role,
    index,
    live,
    blocks: entry.blocks.filter(Boolean).map(blockDump), // a stream may begin a later block first
    stop_reason: message?.stop_reason ?? "",
    error,
    note,
    branch,
    question: question && { request_id: question.question.request_id, action: question.action },
    request: request && callDump(request),
  };
}

function blockDump(block: Block): DumpedBlock {
  if (block.kind === "tool_call") return { kind: "tool_call", call: block.call && callDump(block.call) };
  if (block.kind !== "image") return { kind: block.kind, text: block.text };
  return { kind: "image", mime_type: block.image?.mime_type ?? "", data: block.image?.data ?? "" };
}

function callDump(call: Call): DumpedCall {
  const { id, name, status, args, raw, note, content, approval } = call;
  return { id, name, status, args, raw, note, result: content && textOf(content), asks: approval !== null };
}

function textOf(content: Content[]): string {
  return content.map((block) => (block.type === "text" ? block.text : "")).join("");
}
