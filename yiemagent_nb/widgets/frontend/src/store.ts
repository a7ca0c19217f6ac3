// What the page knows of the agent: the transcript, the calls, the queue.

import { begin, contentBlock, isOpen, newBlock, newEntry, sameEntry, settle, type Call, type Entry } from "./entries";
import type { PanelEvent, SidePanelName } from "./panel";
import type {
  ApprovalRequest,
  AssistantMessage,
  Attachment,
  Backend,
  ChatSnapshot,
  ErrorText,
  Message,
  PageEvent,
  Question,
  Queue,
  SlashCommand,
  Snapshot,
  ToolInfo,
  Tools,
  Usage,
} from "./protocol";
import { codePoints } from "./text";

const NOT_RUN: Record<string, string> = {
  aborted: "The answer was stopped before this call could run.",
  error: "The answer broke off before this call could run.",
};

export type Change =
  | { kind: "reset" }
  | { kind: "append"; entry: Entry }
  | { kind: "prepend"; entries: Entry[] }
  | { kind: "entry"; entry: Entry }
  | { kind: "call"; call: Call }
  | { kind: "asked" }
  | { kind: "run" }
  | { kind: "queue" }
  | { kind: "tools" }
  | { kind: "backend" }
  | { kind: "usage" }
  | { kind: "notice"; text: string }
  | { kind: "panel"; panel: SidePanelName; event: PanelEvent }
  | { kind: "status" };

export class Store {
  entries: Entry[] = [];
  readonly calls = new Map<string, Call>();
  /** Questions, and requests for approval that are no calls, that wait for an answer. */
  asked = new Map<string, Entry>();
  /** The index of the first message that is here. */
  start = 0;
  total = 0;
  running = false;
  queue: Queue = { steering: [], follow_ups: [] };
  tools: Tools = { tools: [], suggestions: [] };
  usage: Usage = { context: null, window: null, spent: "" };
  commands: SlashCommand[] = [];
  backend: Backend = {
    label: "",
    choices: [],
    key: "",
    note: "",
    thinking: { level: "off", levels: [], note: "" },
    model: "",
    models: [],
    window: null,
    health: { state: "unknown", message: "", hint: "" },
    options: {},
    options_note: "",
    presets: [],
  };
  /** What messages that act must bring back. */
  session = "";
  /** The states of the panels beside the chat, as the newest snapshot had them. */
  panels: Partial<Record<SidePanelName, unknown>> = {};
  /** A draft of a view that is gone. */
  draft = "";
  /** The files of that draft. */
  attached: (Attachment | File)[] = [];
  /** Called when what is here cannot be what is there. */
  onMismatch: () => void = () => {};

  private readonly listeners = new Set<(change: Change) => void>();
  private toolsByName = new Map<string, ToolInfo>();
  private live: Entry | null = null;
  /** Entries of before the snapshot by their index: one that comes again stays the same, and so does its view. */
  private readonly former = new Map<number, Entry>();
  /** Whether a snapshot has come. */

  listen(listener: (change: Change) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  tell(change: Change): void {
    for (const listener of this.listeners) listener(change);
  }

  label(name: string): string {
    return this.toolsByName.get(name)?.label || name;
  }

  /** The server that a call goes to; empty for a function of the person's own. */
  source(call: Call): string {
    const source = call.details?.server ?? this.toolsByName.get(call.name)?.source ?? "";
    return source === "python" ? "" : source;
  }

  /**
   * The first answer to what a person said before this entry, from which their answer can be had anew;
   * null while earlier messages that may belong to it are not here.
   */
  firstAnswerTo(entry: Entry): number | null {
    let first: number | null = null;
    for (let at = this.entries.indexOf(entry); at >= 0; at -= 1) {
      const each = this.entries[at];
      if (each?.role === "user") return first;
      if (each?.role === "assistant" && each.index >= 0) first = each.index;
    }
    return this.start === 0 ? first : null;
  }

  /** Whether nothing answers what a person said behind this answer, which calls tools. */
  endsWithCalls(entry: Entry): boolean {
    if (entry.message?.stop_reason !== "tool_calls") return false;
    for (const { role } of this.entries.slice(this.entries.lastIndexOf(entry) + 1)) {
      if (role === "user") return true;
      if (role === "assistant" || role === "error") return false;
    }
    return true;
  }

  /** Whether something waits for a person. */
  get waits(): boolean {
    return this.waiting > 0;
  }

  /** How many approvals and questions wait for a person. */
  get waiting(): number {
    let count = this.asked.size;
    for (const call of this.calls.values()) if (call.approval) count += 1;
    return count;
  }

  /** How many of them are questions. */
  get questions(): number {
    return [...this.asked.values()].filter((entry) => entry.question).length;
  }

  private takeTools(tools: Tools): void {
    this.tools = { tools: tools.tools, suggestions: tools.suggestions };
    this.toolsByName = new Map(tools.tools.map((tool) => [tool.name, tool]));
  }

  takeSnapshot(snapshot: Snapshot): void {
    this.takeTools(snapshot.tools);
    this.backend = snapshot.backend;
    this.session = snapshot.session;
    this.panels = { inspector: snapshot.inspector, hooks: snapshot.hooks, trace: snapshot.trace };
    const chat = snapshot.chat;
    if (chat) this.takeChat(chat);
    this.tell({ kind: "reset" });
  }

  private takeChat(chat: ChatSnapshot): void {
    for (const entry of this.entries) if (entry.index >= 0) this.former.set(entry.index, entry);
    this.calls.clear();
    this.live = null;
    this.start = chat.start;
    this.total = chat.total;
    this.running = chat.running;
    this.queue = chat.queue;
    this.usage = chat.usage;
    this.commands = chat.commands;
    const read = this.read(chat.messages, chat.start, this.calls);
    const now = Date.now();
    for (const running of chat.calls) {
      const call = this.call(running.call_id, running.name);
      Object.assign(call, {
        status: "running",
        args: running.args,
        progress: running.content && { content: running.content, progress: running.progress },
        startedAt: now - running.elapsed * 1000,
      } satisfies Partial<Call>);
    }
    for (const ended of chat.ended) settle(this.call(ended.call_id, ""), ended);
    const known = this.asked;
    this.asked = new Map();
    const asked = chat.approvals.map((request) => this.askApproval(request, known)).filter((each) => each !== null);
    asked.push(...chat.questions.map((question) => this.askQuestion(question, known)));
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
    }
    if (!chat.running) this.stopCalls();
    this.entries = [...this.keepKnown(read), ...(this.live ? [this.live] : []), ...asked];
  }

  /** Entries, with those in place of them that were here before and are the same. */
  private keepKnown(entries: Entry[]): Entry[] {
    const kept = entries.map((entry) => {
      const known = this.former.get(entry.index);
      this.former.delete(entry.index);
      if (!known || !sameEntry(known, entry)) return entry;
      known.branch = entry.branch;
      for (const [at, { call }] of entry.blocks.entries()) {
        const before = known.blocks[at]?.call;
        if (call && before && this.calls.get(call.id) === call) this.calls.set(call.id, before);
      }
      return known;
    });
    if (this.start === 0) this.former.clear();
    return kept;
  }

  apply(events: PageEvent[]): void {
    for (const event of events) this.applyOne(event);
  }

  private applyOne(event: PageEvent): void {
    switch (event.type) {
      case "run_start":
        this.running = true;
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
        if (call.note) return; // it is only given its result
        call.status = "running";
        call.args = event.args;
        call.startedAt = Date.now();
        return this.tell({ kind: "call", call });
      }
      case "tool_update": {
        const call = this.calls.get(event.call_id);
        if (!call) return;
        call.progress = { content: event.content, progress: event.progress };
        return this.tell({ kind: "call", call });
      }
      case "tool_end": {
        return this.tell({ kind: "call", call: settle(this.call(event.call_id, ""), event) });
      }
      case "queue":
        this.queue = { steering: event.steering, follow_ups: event.follow_ups };
        return this.tell({ kind: "queue" });
      case "approval":
        return this.append(this.askApproval(event));
      case "approval_done":
        return this.endApproval(event);
      case "question":
        return this.append(this.askQuestion(event));
      case "question_done": {
        const entry = this.asked.get(event.request_id);
        if (!entry?.question) return;
        entry.question.action = event.action;
        return this.endAsked(event.request_id, entry);
      }
      case "tools":
        this.takeTools(event);
        return this.tell({ kind: "tools" });
      case "backend":
        this.backend = event;
        return this.tell({ kind: "backend" });
      case "usage":
        this.usage = event;
        return this.tell({ kind: "usage" });
      case "panel":
        return this.tell({ kind: "panel", panel: event.panel, event: event.event });
      case "notice":
        return this.tell({ kind: "notice", text: event.text });
      case "error":
        return this.addError(event);
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
      this.rename(call, event.call_id, event.name ?? "");
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
    this.tell({ kind: "entry", entry: streamed });
  }

  private addError(error: ErrorText): void {
    const last = this.entries.findLast((entry) => entry.role === "assistant" || entry.role === "error");
    if (last?.error?.message === error.message) return; // the answer tells it already
    const entry = newEntry("error", null, -1);
    entry.error = error;
    this.entries.push(entry);
    this.tell({ kind: "append", entry });
  }

  private addHistory(start: number, messages: Message[]): void {
    if (start + messages.length !== this.start || messages.length === 0) return;
    this.start = start;
    const calls = new Map<string, Call>(); // ids of calls come again in other answers
    const read = this.read(messages, start, calls);
    for (const call of calls.values()) if (isOpen(call)) call.status = "stopped";
    const entries = this.keepKnown(read);
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
        settle(call, message);
      } else if (message.role === "assistant") {
        const entry = newEntry("assistant", null, index);
        this.fill(entry, message, index, calls);
        entries.push(entry);
      } else if (message.role === "user") {
        const entry = newEntry("user", null, index);
        entry.blocks = message.content.map(contentBlock);
        entry.branch = message.branch ?? null;
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
    const why = NOT_RUN[message.stop_reason];
    entry.live = false;
    entry.index = index;
    entry.message = message;
    entry.blocks = message.content.map((block, at) => {
      if (block.type !== "function") return contentBlock(block);
      const known = streamed.find((each) => each?.id === block.id) ?? streamed[at];
      const call = known ?? begin(calls, block.id, block.name);
      this.rename(call, block.id, block.name, calls);
      if (block.raw_arguments === null) call.args ??= block.arguments;
      else if (why) call.argsText = block.raw_arguments;
      else call.raw = block.raw_arguments;
      if (why && isOpen(call)) {
        call.status = "stopped";
        call.note = why;
      }
      return { ...newBlock("tool_call", ""), call };
    });
    entry.error = message.error;
    entry.seconds = message.seconds ?? null;
    entry.branch = message.branch ?? null;
  }

  /** A server may tell a call's id, and the rest of its name, after its first piece. */
  private rename(call: Call, id: string, name: string, calls = this.calls): void {
    if (name) call.name = name;
    if (call.id === id) return;
    if (calls.get(call.id) === call) calls.delete(call.id);
    call.id = id;
    calls.set(id, call);
  }

  private call(id: string, name: string): Call {
    return this.calls.get(id) ?? begin(this.calls, id, name);
  }

  /** The call that asks; what is no call that is open here gets an entry of its own, which is returned. */
  private askApproval(request: ApprovalRequest, known = this.asked): Entry | null {
    const call = this.calls.get(request.call_id);
    if (call && isOpen(call) && call.name === request.name) {
      call.status = "waiting";
      call.approval = request;
      if (request.args_text === null) call.args = request.args;
      this.tell({ kind: "call", call });
      return null;
    }
    const entry = known.get(request.request_id) ?? newEntry("request", null, -1);
    entry.request ??= { ...begin(new Map(), request.call_id, request.name), status: "waiting", approval: request };
    this.asked.set(request.request_id, entry);
    return entry;
  }

  private endApproval(event: Extract<PageEvent, { type: "approval_done" }>): void {
    const entry = this.asked.get(event.request_id);
    const call = entry?.request ?? this.calls.get(event.call_id);
    if (call?.approval?.request_id !== event.request_id) return;
    call.approval = null;
    call.decision = { choice: event.choice, reason: event.reason };
    if (entry) return this.endAsked(event.request_id, entry);
    if (call.status === "waiting") call.status = "running";
    this.startBatch(call);
    this.tell({ kind: "call", call });
  }

  /** The calls of a batch run from when the last of them was answered for. */
  private startBatch(call: Call): void {
    const entry = this.entries.findLast(({ blocks }) => blocks.some((block) => block?.call === call));
    const batch = entry?.blocks.flatMap((block) => block.call ?? []) ?? [call];
    if (batch.some(({ status }) => status === "waiting")) return;
    for (const each of batch) if (each.status === "running") each.startedAt = Date.now();
  }

  private askQuestion(question: Question, known = this.asked): Entry {
    const entry = known.get(question.request_id) ?? newEntry("question", null, -1);
    entry.question ??= { question, action: null, draft: new Map() };
    this.asked.set(question.request_id, entry);
    return entry;
  }

  private endAsked(requestId: string, entry: Entry): void {
    this.asked.delete(requestId);
    this.tell({ kind: "entry", entry });
    this.tell({ kind: "asked" });
  }

  private append(entry: Entry | null): void {
    if (!entry) return;
    this.entries.push(entry);
    this.tell({ kind: "append", entry });
    this.tell({ kind: "asked" });
  }

  private stopCalls(): void {
    for (const call of this.calls.values()) {
      if (!isOpen(call)) continue;
      call.status = "stopped";
      call.approval = null;
      this.tell({ kind: "call", call });
    }
  }
}
