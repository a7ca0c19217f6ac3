// What stood in editors whose kernel is gone: it stays in the page's memory, as text, for the next widget of its notebook.

import type { Connection } from "../connection";
import type { HookName } from "./forms";

export interface KeptText {
  text: string;
  /** Whether it was applied before. */
  applied: boolean;
  connection: Connection;
}

// Each widget loads this script anew: what one keeps, another finds.
const NAME = Symbol.for("yiemagent_nb.hooks");
const page = globalThis as { [NAME]?: Map<string, KeptText> };
const texts = (page[NAME] ??= new Map());

/** Where an editor stands: its notebook, as far as the host tells, and its hook. */
function keyOf(element: Element, hook: HookName): string {
  const notebook = element.closest(".jp-NotebookPanel")?.id ?? window.location.pathname;
  return `${notebook} ${hook}`;
}

/** Keep what stands in an editor; `null` where nothing of it is a person's own. */
export function keep(element: Element, hook: HookName, kept: KeptText | null, connection: Connection): void {
  const key = keyOf(element, hook);
  if (kept) texts.set(key, kept);
  else if (texts.get(key)?.connection === connection) texts.delete(key);
}

/** What stood in an editor of this place whose kernel is gone. */
export function lostText(element: Element, hook: HookName, connection: Connection): KeptText | null {
  const kept = texts.get(keyOf(element, hook));
  return kept && kept.connection !== connection && kept.connection.status === "disconnected" ? kept : null;
}

/** A person has it, or does not want it. */
export function forget(element: Element, hook: HookName): void {
  texts.delete(keyOf(element, hook));
}
