// What stands beside the list: a tool, a server, a call, or what there is in all.

import type { Told } from "./inspected";

export interface Page {
  readonly element: HTMLElement;
  /** Something changed; without `told`, anything. */
  update(told?: Told): void;
  /** The kernel became busy, or free. */
  connected?(): void;
  focus(): void;
  dispose(): void;
}

/** Where a person goes from the list, or from one page to another. */
export interface Place {
  kind: "overview" | "tool" | "server" | "call" | "add";
  key: string;
}

export type GoTo = (place: Place, then?: { fill: string; run: boolean }) => void;
