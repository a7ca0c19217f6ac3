// What the page knows of the agent's servers, its tools, and the calls that were made by hand.

import { newId } from "../dom";
import type { PanelContext, PanelEvent } from "../panel";
import type { ApprovalRequest, Question, Refusal } from "../protocol";
import { visible } from "../text";
import type { CallDetails, HandCall, InspectorState, LogEntry, Server, Tool } from "./forms";

/** What is told of Python's own functions, which have no server. */
export const PYTHON = "python";

/** What is told of the tools that an agent has by itself, such as the one that reads the resources of servers. */
const BUILT_IN = "yiemagent_nb";

/** What a source is called in the page. */
export function sourceName(source: string): string {
  return source === PYTHON ? "Python" : source === BUILT_IN ? "Built in" : visible(source);
}

/** A word on a source that has no page of its own. */
export function aboutSource(source: string): string {
  return source === BUILT_IN ? "Tools that the agent has by itself, to look at what its servers offer" : source === PYTHON ? "Functions of your own" : "";
}

export type Told =
  | { kind: "all" | "servers" | "tools" | "asked" }
  | { kind: "resource"; server: string; uri: string }
  | { kind: "listed"; server: string }
  | { kind: "call"; call: HandCall }
  | { kind: "log"; server: string; entries: LogEntry[] };

export class Inspected {
  servers: Server[] = [];
  tools: Tool[] = [];
  /** The newest is the last. */
  calls: HandCall[] = [];
  problems: string[] = [];
  /** What waits for a person and is of no call by hand. */
  approvals: ApprovalRequest[] = [];
  questions: Question[] = [];
  /** What of a server's configuration was not understood when it was added, by its name. */
  readonly notes = new Map<string, string[]>();
  /** Whether anything was told yet. */
  known = false;
  /** What was entered for a tool, by its name. */
  readonly drafts = new Map<string, string>();
  private readonly details = new Map<string, Promise<CallDetails>>();
  private readonly sought = new WeakMap<Tool, string>();

  constructor(readonly context: PanelContext) {}

  /** Take what Python tells; returns what that changed. */
  receive(event: PanelEvent): Told | null {
    switch (event.type) {
      case "state":
        this.takeState(event.state as InspectorState);
        return { kind: "all" };
      case "servers":
        this.servers = event.servers as Server[];
        this.problems = event.problems as string[];
        return { kind: "servers" };
      case "tools":
        this.tools = event.tools as Tool[];
        return { kind: "tools" };
      case "call":
        return { kind: "call", call: this.takeCall(event as unknown as HandCall & { type: string }) };
      case "log":
        return { kind: "log", server: String(event.server), entries: event.entries as LogEntry[] };
      case "asked":
        this.approvals = event.approvals as ApprovalRequest[];
        this.questions = event.questions as Question[];
        return { kind: "asked" };
      case "resource":
        return { kind: "resource", server: String(event.server), uri: String(event.uri) };
      case "listed":
        return { kind: "listed", server: String(event.server) };
      default:
        return null;
    }
  }

  tool(name: string): Tool | null {
    return this.tools.find((tool) => tool.name === name) ?? null;
  }

  server(name: string): Server | null {
    return this.servers.find((server) => server.name === name) ?? null;
  }

  call(id: string): HandCall | null {
    return this.calls.find(({ call }) => call === id) ?? null;
  }

  /** The calls of a tool, the newest first. */
  callsOf(name: string): HandCall[] {
    return this.calls.filter((call) => call.name === name).reverse();
  }

  /** Where tools come from: servers, Python's functions, and whatever else names itself. */
  get sources(): string[] {
    const others = new Set(this.tools.map(({ source }) => source));
    const servers = this.servers.map(({ name }) => name);
    for (const name of servers) others.delete(name);
    const broken = this.servers.filter(({ state, enabled, error }) => enabled && (state === "failed" || error !== "")).map(({ name }) => name);
    return [...new Set([...broken, ...[...others].sort(), ...servers])];
  }

  /** Whether a tool has all these words, which are in small letters. */
  matches(tool: Tool, words: string[]): boolean {
    let text = this.sought.get(tool);
    if (text === undefined) {
      text = [tool.name, tool.label, tool.summary, tool.source, ...tool.hints].join("\n").toLowerCase();
      this.sought.set(tool, text);
    }
    return words.every((word) => text.includes(word));
  }

  /** Call a tool by hand; returns the name of the call, and how Python answers. */
  start(name: string, argumentsText: string, hooks: boolean): { call: string; answer: Promise<unknown> } {
    const call = newId();
    const answer = this.context.act({ type: "call_tool", call, name, arguments_text: argumentsText, hooks });
    return { call, answer };
  }

  /** What a call gave; asked for once. */
  loadCall(id: string): Promise<CallDetails> {
    let loading = this.details.get(id);
    if (!loading) {
      loading = this.context.ask<CallDetails>({ type: "load_call", call: id });
      const forget = (): boolean => this.details.delete(id);
      loading.then(({ state }) => (state === "running" || state === "waiting") && forget(), forget);
      this.details.set(id, loading);
    }
    return loading;
  }

  /** The arguments of a call, whole: those of a list are cut. */
  async argumentsOf({ call, arguments_text: text, arguments_cut: cut }: HandCall): Promise<string> {
    return cut ? (await this.loadCall(call)).arguments_text : text;
  }

  private takeState(state: InspectorState): void {
    this.known = true;
    this.servers = state.servers;
    this.tools = state.tools;
    this.calls = state.calls;
    this.problems = state.problems;
    this.approvals = state.approvals;
    this.questions = state.questions;
  }

  private takeCall({ type: _type, ...told }: HandCall & { type: string }): HandCall {
    const at = this.calls.findIndex(({ call }) => call === told.call);
    if (at >= 0) this.calls[at] = told;
    else this.calls.push(told);
    return told;
  }
}

/** Why something was not done, in words. */
export function refusalText(refusal: Refusal | Error): string {
  return "hint" in refusal ? `${refusal.message} ${refusal.hint}`.trim() : refusal.message;
}
