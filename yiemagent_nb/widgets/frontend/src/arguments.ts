// The arguments of a call, readable while they grow.

import { visible } from "./text";

export interface Argument {
  name: string;
  value: unknown;
}

/** How much of arguments that grow is read at each frame. */
export const LONGEST_READ = 20_000;

/** What may stand unfinished at the end of an object, and of a list, and is left out. */
const UNFINISHED: Record<string, RegExp> = {
  "}": /^\s*,?\s*(?:"(?:[^"\\]|\\[^])*(?:\\|"\s*(?::\s*[-\w.+]*\s*)?)?)?$/,
  "]": /^\s*,?\s*[-\w.+]*\s*$/,
};

/**
 * What a JSON text says as far as it goes: unfinished strings, lists and objects end where the text
 * does, unfinished names and words are left out. `undefined` where it is no JSON.
 */
export function readPartial(json: string): unknown {
  let closers = "";
  let inString = false;
  let cut = { at: 0, closers: "" }; // what stands before this is whole
  for (let at = 0; at < json.length; at += 1) {
    const char = json[at];
    if (inString) {
      if (char === "\\") at += 1;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === "{" || char === "[") {
      closers = (char === "{" ? "}" : "]") + closers;
      cut = { at: at + 1, closers };
    } else if (char === "}" || char === "]") closers = closers.slice(1);
    else if (char === ",") cut = { at, closers };
  }
  const whole = inString ? `${json.replace(/\\(?:u[\da-f]{0,3})?$/i, dropEscape)}"` : json.replace(/(\d)[.eE+-]+\s*$/, "$1");
  const value = parse(whole + closers);
  if (value !== undefined || !UNFINISHED[cut.closers[0] ?? ""]?.test(json.slice(cut.at))) return value;
  return parse(json.slice(0, cut.at) + cut.closers);
}

/** An escape that is not whole goes; one whose backslash is itself escaped is none. */
function dropEscape(escape: string, at: number, text: string): string {
  let before = at;
  while (text[before - 1] === "\\") before -= 1;
  return (at - before) % 2 === 0 ? "" : escape;
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Arguments by name: those that are known, else what can be read of their text; null where that is no object. */
export function argumentsOf(known: Record<string, unknown> | null, text: string): Argument[] | null {
  const value = known ?? readPartial(text.slice(0, LONGEST_READ));
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  return Object.entries(value).map(([name, each]) => ({ name, value: each }));
}

/** A value as a person reads it; strings stand as they are unless they would pass for something else. */
export function valueText(value: unknown, growing: boolean, indent?: number): string {
  if (typeof value !== "string") return JSON.stringify(value, null, indent);
  const ambiguous = !growing && /^(?:true|false|null|-?\d[\d.eE+-]*|)$/.test(value);
  return ambiguous ? JSON.stringify(value) : value;
}

/** All arguments on one line, the long ones clipped; `clipped` says whether something is missing. */
export function oneLine(known: Argument[] | null, text: string, growing: boolean): { line: string; clipped: boolean } {
  if (known === null) return clip(text.slice(0, 1_000), 200);
  let clipped = false;
  const parts = known.map(({ name, value }) => {
    const short = clip(valueText(value, growing).slice(0, 1_000), 60);
    clipped ||= short.clipped;
    return `${name}: ${short.line}`;
  });
  const all = clip(parts.join(", "), 200);
  return { line: all.line, clipped: clipped || all.clipped };
}

/** What turns the direction of all that follows on the line. */
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;

function clip(text: string, most: number): { line: string; clipped: boolean } {
  const line = text.replace(/\s+/g, " ").replace(TURNS, visible).trim();
  return line.length > most ? { line: `${line.slice(0, most - 1)}…`, clipped: true } : { line, clipped: false };
}
