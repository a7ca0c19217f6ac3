// What the transcript is made of: entries, their blocks, and the calls in them.

import type {
  ApprovalChoice,
  ApprovalRequest,
  AssistantBlock,
  AssistantMessage,
  Branch,
  Content,
  DeltaKind,
  ErrorText,
  ImageBlock,
  Progress,
  Question,
  QuestionAction,
  ResultDetails,
} from "./protocol";
import { codePoints } from "./text";

export interface Block {
  kind: DeltaKind | "image";
  text: string;
  /** The number of code points in `text`. */
  length: number;
  call: Call | null;
  seconds: number | null;
  startedAt: number;
  image?: ImageBlock;
}

export interface Entry {
  role: "user" | "assistant" | "custom" | "error" | "question" | "request";
  id: string | null;
  /** The place in the history; -1 for what is not in it. */
  index: number;
  live: boolean;
  blocks: Block[];
  message: AssistantMessage | null;
  error: ErrorText | null;
  note: string;
  /** Where the conversation branches at this message. */
  branch: Branch | null;
  question: Asked | null;
  /** What asks for approval and is no call of an answer. */
  request: Call | null;
  /** Seconds from the beginning of the run to the end of the answer, where they are known. */
  seconds: number | null;
}

/** A server's question, and what a person did with it so far. */
export interface Asked {
  question: Question;
  action: QuestionAction | null;
  /** What was entered, by the names of the fields; what is not here was not touched. */
  draft: Map<string, unknown>;
}

export type CallStatus = "writing" | "waiting" | "running" | "done" | "failed" | "stopped";

export interface Call {
  id: string;
  name: string;
  status: CallStatus;
  /** The arguments as they stream in. */
  argsText: string;
  args: Record<string, unknown> | null;
  /** The arguments where they are no JSON; such a call never runs. */
  raw: string | null;
  /** Why it did not run. */
  note: string;
  content: Content[] | null;
  details: ResultDetails | null;
  progress: Progress | null;
  duration: number | null;
  /** When it was seen to start, in milliseconds; 0 where it was not. */
  startedAt: number;
  approval: ApprovalRequest | null;
  decision: { choice: ApprovalChoice; reason: string } | null;
}

export function isOpen(call: Call): boolean {
  return call.status === "writing" || call.status === "running" || call.status === "waiting";
}

/** A call that begins; from now on its id means this one. */
export function begin(calls: Map<string, Call>, id: string, name: string): Call {
  const call: Call = {
    id,
    name,
    status: "writing",
    argsText: "",
    args: null,
    raw: null,
    note: "",
    content: null,
    details: null,
    progress: null,
    duration: null,
    startedAt: 0,
    approval: null,
    decision: null,
  };
  calls.set(id, call);
  return call;
}

/** How a call ended. */
export interface Ending {
  is_error: boolean;
  duration?: number | null;
  content?: Content[];
  details?: ResultDetails | null;
}

export function settle(call: Call, { is_error: isError, duration, content, details }: Ending): Call {
  if (!call.note) {
    call.status = isError ? "failed" : "done";
    call.duration = duration ?? call.duration;
  }
  call.content = content ?? [];
  call.details = details ?? null;
  call.progress = null;
  call.approval = null;
  return call;
}

export function newEntry(role: Entry["role"], id: string | null, index: number): Entry {
  return { role, id, index, live: false, blocks: [], message: null, error: null, note: "", branch: null, question: null, request: null, seconds: null };
}

export function newBlock(kind: Block["kind"], text: string): Block {
  return { kind, text, length: codePoints(text), call: null, seconds: null, startedAt: Date.now() };
}

export function contentBlock(content: Exclude<AssistantBlock, { type: "function" }>): Block {
  if (content.type === "image") return { ...newBlock("image", ""), image: content };
  const block = newBlock(content.type, content.text);
  if (content.type === "reasoning") block.seconds = content.seconds ?? null;
  return block;
}

/** Whether two entries of the history show the same; where it branches may differ. */
export function sameEntry(one: Entry, other: Entry): boolean {
  if (one.role !== other.role || [one, other].some(goesOn)) return false;
  return shown(one) === shown(other);
}

function goesOn(entry: Entry): boolean {
  return entry.live || entry.blocks.some(({ call }) => call && isOpen(call));
}

function shown({ blocks, message, error, note }: Entry): string {
  const parts = blocks.map(({ kind, text, image, call }) => {
    if (!call) return [kind, text, image];
    return [kind, call.id, call.name, call.status, call.args, call.raw, call.note, call.content, call.details];
  });
  return JSON.stringify([parts, message?.stop_reason, message?.error_message, message?.took, error, note]);
}
