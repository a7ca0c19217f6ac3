// Tells a screen reader what a sighted person sees happen: blocks when they are finished, each once.

import { BlockSplitter } from "./blocks";
import { h } from "./dom";
import type { Block, Call, Entry } from "./entries";
import { standingOf } from "./outcome";
import { spoken } from "./spoken";
import type { Change, Store } from "./store";

const KEPT = 30;
/** Of several views of one agent, the one that speaks. */
const speakers = new WeakMap<Store, Announcer>();

interface Told {
  splitter: BlockSplitter;
  /** How much of the text is known. */
  length: number;
  over: boolean;
}

export class Announcer {
  readonly element = h("div", { class: "yna-hidden", role: "status", "aria-live": "polite", "aria-atomic": "false" });
  private entry: Entry | null = null;
  private told: Told[] = [];
  private readonly asking = new Set<string>();
  private readonly failed = new WeakSet<Call>();

  constructor(private readonly store: Store) {
    this.skip();
  }

  take(change: Change): void {
    const speaker = speakers.get(this.store) ?? this;
    speakers.set(this.store, speaker);
    if (speaker !== this) return this.skip();
    switch (change.kind) {
      case "reset":
        return this.skip();
      case "run":
        return this.say(this.store.running ? "The agent works." : "The agent has finished.");
      case "append":
      case "entry":
        return this.takeEntry(change.entry);
      case "call":
        return this.takeCall(change.call);
      default:
        return;
    }
  }

  dispose(): void {
    if (speakers.get(this.store) === this) speakers.delete(this.store);
  }

  /** What is there already is not told: it was told, or it is history. */
  private skip(): void {
    const live = this.store.entries.findLast((entry) => entry.live);
    this.entry = live ?? null;
    this.told = [];
    live?.blocks.forEach((block, at) => this.read(block, at, false));
  }

  private takeEntry(entry: Entry): void {
    const { question, request, error } = entry;
    if (question) {
      const { source, message } = question.question;
      if (question.action === null) this.ask(question.question.request_id, `${source} asks: ${spoken(message)}`);
    } else if (request) {
      this.askApproval(request);
    } else if (entry.role === "assistant") {
      this.takeAnswer(entry);
    } else if (error) {
      this.say(`Error: ${error.message} ${error.hint}`);
    }
  }

  private takeAnswer(entry: Entry): void {
    if (this.entry !== entry) {
      if (!entry.live && entry.message === null) return;
      this.entry = entry;
      this.told = [];
    }
    entry.blocks.forEach((block, at) => {
      for (const text of this.read(block, at, !entry.live || at < entry.blocks.length - 1)) this.say(spoken(text));
    });
    if (entry.live) return;
    if (entry.error) this.say(`The answer failed: ${entry.error.message} ${entry.error.hint}`);
    else if (entry.message?.stop_reason === "aborted") this.say("Stopped.");
    this.entry = null;
  }

  /** The pieces of a block that are finished, and were not told yet. */
  private read(block: Block, at: number, over: boolean): string[] {
    if (block.kind !== "text") return [];
    const told = (this.told[at] ??= { splitter: new BlockSplitter(), length: 0, over: false });
    if (told.over) return [];
    const finished = told.splitter.push(block.text.slice(told.length));
    told.length = block.text.length;
    told.over = over;
    if (over) finished.push(told.splitter.open);
    return finished;
  }

  private takeCall(call: Call): void {
    if (call.approval) this.askApproval(call);
    else if (standingOf(call) === "failed" && !this.failed.has(call)) {
      this.failed.add(call);
      this.say(`${this.store.label(call.name)} failed.`);
    }
  }

  private askApproval(call: Call): void {
    if (call.approval) this.ask(call.approval.request_id, `Approval needed: ${this.store.label(call.name)}.`);
  }

  private ask(requestId: string, text: string): void {
    if (this.asking.has(requestId)) return;
    this.asking.add(requestId);
    this.say(text);
  }

  private say(text: string): void {
    if (text.trim() === "") return;
    this.element.append(h("p", {}, text));
    while (this.element.childElementCount > KEPT) this.element.firstElementChild?.remove();
  }
}
