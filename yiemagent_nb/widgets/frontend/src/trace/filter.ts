// Which rows of a trace are shown, and what they add up to.

import { CALLS, type Kind, type Row, type Rows } from "./rows";

export interface Filter {
  /** In small letters; empty for any. */
  text: string;
  /** Empty for all. */
  kinds: ReadonlySet<Kind>;
  failedOnly: boolean;
  /** Seconds; 0 for any. */
  slowerThan: number;
}

export interface Line {
  row: Row;
  /** From 1. */
  level: number;
  /** It is here for what stands below it, and does not match itself. */
  dim: boolean;
  /** Whether what is below it is shown; null where nothing is. */
  open: boolean | null;
}

export interface Sum {
  model: number;
  tools: number;
  failed: number;
  input: number;
  output: number;
  /** US dollars; null where none is known. */
  cost: number | null;
  /** Seconds that the calls took, one after the other: of the model, of tools, and until calls were let go on. */
  modelSeconds: number;
  toolSeconds: number;
  waitedSeconds: number;
}

export const NO_FILTER: Filter = { text: "", kinds: new Set(), failedOnly: false, slowerThan: 0 };

export function isOn(filter: Filter): boolean {
  return filter.text !== "" || filter.kinds.size > 0 || filter.failedOnly || filter.slowerThan > 0;
}

function matches(row: Row, filter: Filter, rows: Rows, now: number): boolean {
  if (filter.kinds.size > 0 && !filter.kinds.has(row.kind)) return false;
  if (filter.failedOnly && row.state !== "failed") return false;
  if (filter.slowerThan > 0 && rows.elapsed(row, now) < filter.slowerThan) return false;
  return filter.text === "" || rows.textOf(row).includes(filter.text);
}

/** The rows that match and those above them, in order, without what stands below folded ones. */
export function linesOf(rows: Rows, filter: Filter, folded: ReadonlySet<number>, now: number): { lines: Line[]; sum: Sum } {
  const lines: Line[] = [];
  const sum: Sum = { model: 0, tools: 0, failed: 0, input: 0, output: 0, cost: null, modelSeconds: 0, toolSeconds: 0, waitedSeconds: 0 };
  const on = isOn(filter);
  /** Add a row and what is below it; returns whether any of it matches. */
  const walk = (number: number, level: number, hidden: boolean): boolean => {
    const row = rows.get(number);
    if (!row) return false;
    const itself = !on || matches(row, filter, rows, now);
    const line: Line = { row, level, dim: !itself, open: null };
    const at = lines.length;
    if (!hidden) lines.push(line);
    const closed = folded.has(number);
    let any = false;
    for (const kid of rows.children(number)) any = walk(kid, level + 1, hidden || closed) || any;
    if (any) line.open = !closed;
    if (itself && CALLS.includes(row.kind)) add(sum, row, rows.elapsed(row, now));
    if (!itself && !any && !hidden) lines.length = at;
    return itself || any;
  };
  for (const root of rows.roots) walk(root, 1, false);
  return { lines, sum };
}

function add(sum: Sum, row: Row, seconds: number): void {
  if (row.kind === "model") sum.model += 1;
  else sum.tools += 1;
  if (row.state === "failed") sum.failed += 1;
  sum.input += row.tokens?.input ?? 0;
  sum.output += row.tokens?.output ?? 0;
  if (row.cost !== null) sum.cost = (sum.cost ?? 0) + row.cost;
  const waited = Math.min(seconds, row.waited ?? (row.state === "running" && row.kind !== "model" ? seconds : 0));
  sum.waitedSeconds += waited;
  if (row.kind === "model") sum.modelSeconds += seconds - waited;
  else sum.toolSeconds += seconds - waited;
}
