// What a panel beside the chat is made of, and what it may use. Each is a part, loaded when it is opened.

import type * as Code from "./code_part";
import type { Connection } from "./connection";
import type { Call } from "./entries";
import type { Change, Store } from "./store";

export type SidePanelName = "inspector" | "hooks" | "trace";

/** What a panel tells its page; yiemagent_nb/widgets/panel_protocol.py lists the events of each. */
export interface PanelEvent {
  type: string;
  [field: string]: unknown;
}

export interface PanelContext {
  readonly store: Store;
  readonly connection: Connection;
  /** Ask for something; resolves with the value of its reply, and is rejected with a `Refusal`. */
  ask<Value = null>(message: Record<string, unknown>, buffers?: ArrayBuffer[]): Promise<Value>;
  /** The same for what runs code, or starts and ends things. */
  act<Value = null>(message: Record<string, unknown>, buffers?: ArrayBuffer[]): Promise<Value>;
  /** What a tool gave, as the chat shows it. */
  result(call: Call, label: string): HTMLElement;
  markdown(text: string): HTMLElement;
  highlight(element: HTMLElement, text: string, language: string): void;
  /** The editor of code; it is rejected where it cannot be loaded. */
  code(): Promise<typeof Code>;
}

export interface PanelView {
  readonly element: HTMLElement;
  /** Take the keyboard. */
  focus(): void;
  /** The first is `{type: "state", state}`; it comes again after a lost connection. */
  receive(event: PanelEvent): void;
  /** What changed of what every panel knows: the tools, the connection, the run. */
  take(change: Change): void;
  dispose(): void;
}
