// The code of a hook as a notebook's cell, which installs it without this editor.

import type { HookName } from "./forms";

const FUNCTION = /^(?:async[ \t]+)?def[ \t]+([\p{L}_][\p{L}\p{N}_]*)/gmu;

/** A cell that defines the hook and gives it to the agent; several hooks are added to those that are there. */
export function asCell(code: string, hook: HookName, several: boolean): string {
  const names = [...code.matchAll(FUNCTION)].map(([, name]) => name ?? "");
  const bound = names.includes(hook) || new RegExp(`^${hook}[ \\t]*[=:]`, "m").test(code);
  const name = bound ? hook : (names.at(-1) ?? hook);
  const value = several ? `[*agent.hooks.${hook}, ${name}]` : name;
  return `${code.trimEnd()}\n\n\nagent.set_hooks(${hook}=${value})\n`;
}
