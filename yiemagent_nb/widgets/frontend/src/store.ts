// What the page knows of the agent: the transcript, the calls, the queue.

import type {
  ApprovalChoice,
  ApprovalRequest,
  AssistantBlock,
  AssistantMessage,
  Backend,
  ChatSnapshot,
  Content,
  DeltaKind,
  ImageBlock,
  Message,
  PageEvent,
  Queue,
  Snapshot,
  Tools,
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
  role: "user" | "assistant" | "custom" | "error";
  id: string | null;
  /** The place in the history; -1 for what is not in it. */
  index: number;
  live: boolean;
  blocks: Block[];
  message: AssistantMessage | null;
  error: { code: string; message: string } | null;
  note: string;
  /** Seconds from the person's message to the end of the answer, where both were seen. */
  seconds: number | null;
}

export type CallStatus = "writing" | "waiting" | "running" | "done" | "failed" | "stopped";

export interface Call {
  id: string;
  name: string;
  status: CallStatus;
  /** The arguments as they stream in. */
  argsText: string;
  args: Record<string, unknown> | null;
  content: Content[] | null;
  progress: Content[] | null;
  duration: number | null;
  startedAt: number;
  approval: ApprovalRequest | null;
  decision: { choice: ApprovalChoice; reason: string } | null;
}

/** What the answers since the person spoke last took: tokens, and US dollars where known. */
export interface Spent {
  answers: number;
  input: number;
  output: number;
  cost: number | null;
}

export type Change =
  | { kind: "reset" }
  | { kind: "append"; entry: Entry }
  | { kind: "prepend"; entries: Entry[] }
  | { kind: "entry"; entry: Entry }
  | { kind: "call"; call: Call }
  | { kind: "run" }
  | { kind: "queue" }
  | { kind: "tools" }
  | { kind: "backend" }
  | { kind: "status" };

export class Store {
  entries: Entry[] = [];
  readonly calls = new Map<string, Call>();
  /** The index of the first message that is here. */
  start = 0;
  total = 0;
  running = false;
  queue: Queue = { steering: [], follow_ups: [] };
  tools: Tools = { tools: [], suggestions: [] };
  backend: Backend = { label: "", choices: [], key: "", note: "" };
  /** A draft of a view that is gone. */
  draft = "";
  /** Called when what is here cannot be what is there. */
  onMismatch: () => void = () => {};

  private readonly listeners = new Set<(change: Change) => void>();
  private live: Entry | null = null;
  private runStartedAt: number | null = null;

  listen(listener: (change: Change) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  tell(change: Change): void {
    for (const listener of this.listeners) listener(change);
  }

  label(name: string): string {
    return this.tools.tools.find((tool) => tool.name === name)?.label || name;
  }

  /** The tokens and the cost of all answers since the person spoke last, up to this one. */
  usageUpTo(entry: Entry): Spent | null {
    const spent: Spent = { answers: 0, input: 0, output: 0, cost: null };
    for (let at = this.entries.indexOf(entry); at >= 0; at -= 1) {
      const each = this.entries[at];
      if (!each || each.role === "user") break;
      const usage = each.message?.usage;
      if (!usage) continue;
      spent.answers += 1;
      spent.input += usage.input_tokens;
      spent.output += usage.output_tokens;
      if (usage.cost) spent.cost = (spent.cost ?? 0) + usage.cost.total;
    }
    return spent.answers > 0 ? spent : null;
  }

  takeSnapshot(snapshot: Snapshot): void {
    this.tools = snapshot.tools;
    this.backend = snapshot.backend;
    const chat = snapshot.chat;
    if (chat) this.takeChat(chat);
    this.tell({ kind: "reset" });
  }

  private takeChat(chat: ChatSnapshot): void {
    this.entries = [];
    this.calls.clear();
    this.live = null;
    this.start = chat.start;
    this.total = chat.total;
    this.running = chat.running;
    this.runStartedAt = null;
    this.queue = chat.queue;
    this.entries = this.read(chat.messages, chat.start, this.calls);
    const now = Date.now();
    for (const running of chat.calls) {
      const call = this.call(running.call_id, running.name);
      Object.assign(call, {
        status: "running",
        args: running.args,
        progress: running.content,
        startedAt: now - running.elapsed * 1000,
      } satisfies Partial<Call>);
    }
    for (const ended of chat.ended) this.endCall(ended.call_id, ended.is_error, ended.duration, ended.content);
    for (const request of chat.approvals) this.askApproval(request);
    if (chat.live) {
      const entry = newEntry("assistant", chat.live.id, -1);
      entry.live = true;
      for (const each of chat.live.blocks) {
        const block = newBlock(each.kind, each.text);
        block.startedAt = now - each.seconds * 1000;
        entry.blocks[each.block] = block;
        if (each.call_id) {
          block.call = begin(this.calls, each.call_id, each.name ?? "");
          block.call.argsText = each.text;
        }
      }
      this.live = entry;
      this.entries.push(entry);
    }
    if (!chat.running) this.stopCalls();
  }

  apply(events: PageEvent[]): void {
    for (const event of events) this.applyOne(event);
  }

  private applyOne(event: PageEvent): void {
    switch (event.type) {
      case "run_start":
        this.running = true;
        this.runStartedAt = Date.now();
        if (event.total !== this.total) return this.onMismatch();
        return this.tell({ kind: "run" });
      case "run_end":
        this.running = false;
        this.stopCalls();
        return this.tell({ kind: "run" });
      case "message":
        if (event.index !== this.total) return this.onMismatch();
        this.total += 1;
        return this.addMessage(event.message, event.index);
      case "message_start": {
        const entry = newEntry("assistant", event.id, -1);
        entry.live = true;
        this.live = entry;
        this.entries.push(entry);
        return this.tell({ kind: "append", entry });
      }
      case "delta":
        return this.addDelta(event);
      case "message_end":
        return this.endMessage(event.id, event.index, event.message);
      case "tool_start": {
        const call = this.call(event.call_id, event.name);
        call.status = "running";
        call.args = event.args;
        call.startedAt = Date.now();
        return this.tell({ kind: "call", call });
      }
      case "tool_update": {
        const call = this.calls.get(event.call_id);
        if (!call) return;
        call.progress = event.content;
        return this.tell({ kind: "call", call });
      }
      case "tool_end": {
        const call = this.endCall(event.call_id, event.is_error, event.duration, event.content);
        return this.tell({ kind: "call", call });
      }
      case "queue":
        this.queue = { steering: event.steering, follow_ups: event.follow_ups };
        return this.tell({ kind: "queue" });
      case "approval":
        return this.tell({ kind: "call", call: this.askApproval(event) });
      case "approval_done": {
        const call = this.calls.get(event.call_id);
        if (!call) return;
        call.approval = null;
        call.decision = { choice: event.choice, reason: event.reason };
        if (call.status === "waiting") call.status = "running";
        call.startedAt = Date.now();
        return this.tell({ kind: "call", call });
      }
      case "tools":
        this.tools = { tools: event.tools, suggestions: event.suggestions };
        return this.tell({ kind: "tools" });
      case "backend":
        this.backend = { label: event.label, choices: event.choices, key: event.key, note: event.note };
        return this.tell({ kind: "backend" });
      case "error":
        return this.addError(event.code, event.message);
      case "history":
        return this.addHistory(event.start, event.messages);
      case "alive":
        if (event.total !== this.total) this.onMismatch();
        return;
      default:
        return;
    }
  }

  private addMessage(message: Message, index: number): void {
    if (message.role === "toolResult" && !message.content) return; // the end of the call told it
    for (const entry of this.read([message], index, this.calls)) {
      this.entries.push(entry);
      this.tell({ kind: "append", entry });
    }
    if (message.role === "toolResult") {
      const call = this.calls.get(message.tool_call_id);
      if (call) this.tell({ kind: "call", call });
    }
  }

  private addDelta(event: Extract<PageEvent, { type: "delta" }>): void {
    if (!this.live) return this.onMismatch();
    let block = this.live.blocks[event.block];
    if (!block) {
      if (!event.kind) return this.onMismatch();
      block = newBlock(event.kind, "");
      this.live.blocks[event.block] = block;
    }
    if (event.offset !== block.length) {
      const last = event.offset + codePoints(event.text);
      if (last > block.length) this.onMismatch();
      return;
    }
    block.text += event.text;
    block.length += codePoints(event.text);
    block.seconds = (Date.now() - block.startedAt) / 1000;
    this.tell({ kind: "entry", entry: this.live });
    if (event.call_id) {
      const call = (block.call ??= begin(this.calls, event.call_id, event.name ?? ""));
      if (event.name) call.name = event.name;
      call.argsText = block.text;
      this.tell({ kind: "call", call });
    }
  }

  private endMessage(id: string, index: number, message: AssistantMessage): void {
    const streamed = this.live;
    this.live = null;
    if (!streamed || (streamed.id !== null && streamed.id !== id) || index !== this.total) return this.onMismatch();
    for (const [at, block] of message.content.entries()) {
      if (block.type !== "text" && block.type !== "reasoning") continue;
      if (block.length === undefined) continue;
      const known = streamed.blocks[at];
      if (known?.length !== block.length) return this.onMismatch();
      block.text = known.text;
      if (block.type === "reasoning") block.seconds ??= known.seconds;
    }
    this.total += 1;
    this.fill(streamed, message, index, this.calls);
    if (this.runStartedAt !== null) streamed.seconds = (Date.now() - this.runStartedAt) / 1000;
    this.tell({ kind: "entry", entry: streamed });
  }

  private addError(code: string, message: string): void {
    const error = { ...splitError(message), code };
    const last = this.entries.at(-1);
    if (last?.error?.message === error.message) return; // the answer tells it already
    const entry = newEntry("error", null, -1);
    entry.error = error;
    this.entries.push(entry);
    this.tell({ kind: "append", entry });
  }

  private addHistory(start: number, messages: Message[]): void {
    if (start + messages.length !== this.start || messages.length === 0) return;
    this.start = start;
    const entries = this.read(messages, start, new Map()); // ids of calls come again in other answers
    this.entries.unshift(...entries);
    this.tell({ kind: "prepend", entries });
  }

  /** Entries of messages; results of tools go to their calls. */
  private read(messages: Message[], start: number, calls: Map<string, Call>): Entry[] {
    const entries: Entry[] = [];
    for (const [offset, message] of messages.entries()) {
      const index = start + offset;
      if (message.role === "toolResult") {
        const call = calls.get(message.tool_call_id) ?? begin(calls, message.tool_call_id, message.tool_name);
        settle(call, message.is_error, message.duration ?? null, message.content ?? []);
      } else if (message.role === "assistant") {
        const entry = newEntry("assistant", null, index);
        this.fill(entry, message, index, calls);
        entries.push(entry);
      } else if (message.role === "user") {
        const entry = newEntry("user", null, index);
        entry.blocks = message.content.map(contentBlock);
        entries.push(entry);
      } else {
        const entry = newEntry("custom", null, index);
        entry.note = message.kind;
        entries.push(entry);
      }
    }
    return entries;
  }

  private fill(entry: Entry, message: AssistantMessage, index: number, calls: Map<string, Call>): void {
    const streamed = entry.blocks.map((block) => block.call);
    entry.live = false;
    entry.index = index;
    entry.message = message;
    entry.blocks = message.content.map((block) => {
      if (block.type !== "function") return contentBlock(block);
      const call = streamed.find((each) => each?.id === block.id) ?? begin(calls, block.id, block.name);
      call.name = block.name;
      call.args ??= block.arguments;
      if (block.raw_arguments !== null) call.argsText = block.raw_arguments;
      return { ...newBlock("tool_call", ""), call };
    });
    const failed = message.stop_reason === "error" && message.error_message;
    entry.error = failed ? splitError(message.error_message ?? "") : null;
  }

  private call(id: string, name: string): Call {
    return this.calls.get(id) ?? begin(this.calls, id, name);
  }

  private endCall(id: string, isError: boolean, duration: number | null, content: Content[]): Call {
    return settle(this.call(id, ""), isError, duration, content);
  }

  private askApproval(request: ApprovalRequest): Call {
    const call = this.call(request.call_id, request.name);
    call.status = "waiting";
    call.approval = request;
    call.args = request.args;
    return call;
  }

  private stopCalls(): void {
    for (const call of this.calls.values()) {
      if (call.status !== "writing" && call.status !== "running" && call.status !== "waiting") continue;
      call.status = "stopped";
      call.approval = null;
      this.tell({ kind: "call", call });
    }
  }
}

/** A call that begins; from now on its id means this one. */
function begin(calls: Map<string, Call>, id: string, name: string): Call {
  const call: Call = {
    id,
    name,
    status: "writing",
    argsText: "",
    args: null,
    content: null,
    progress: null,
    duration: null,
    startedAt: Date.now(),
    approval: null,
    decision: null,
  };
  calls.set(id, call);
  return call;
}

function settle(call: Call, isError: boolean, duration: number | null, content: Content[]): Call {
  call.status = isError ? "failed" : "done";
  call.duration = duration ?? call.duration;
  call.content = content;
  call.progress = null;
  call.approval = null;
  return call;
}

function newEntry(role: Entry["role"], id: string | null, index: number): Entry {
  return { role, id, index, live: false, blocks: [], message: null, error: null, note: "", seconds: null };
}

function newBlock(kind: Block["kind"], text: string): Block {
  return { kind, text, length: codePoints(text), call: null, seconds: null, startedAt: Date.now() };
}

function contentBlock(content: Exclude<AssistantBlock, { type: "function" }>): Block {
  if (content.type === "image") return { ...newBlock("image", ""), image: content };
  const block = newBlock(content.type, content.text);
  if (content.type === "reasoning") block.seconds = content.seconds ?? null;
  return block;
}

/** An error's text ends with its code in brackets. */
function splitError(text: string): { code: string; message: string } {
  const match = /^([\s\S]*?)\s*\[([A-Z_]+)\]$/.exec(text);
  return match ? { code: match[2] ?? "", message: match[1] ?? "" } : { code: "", message: text };
}
