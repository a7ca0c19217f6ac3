// What the text of a result is: a table, JSON, a formula, markdown, or plain text, which is the default.

import { readPartial } from "./arguments";
import { parseToShow } from "./json_tree";

export interface Table {
  caption: string;
  columns: string[];
  rows: string[][];
}

export type ResultForm =
  | { kind: "table"; table: Table }
  | { kind: "json"; value: object }
  | { kind: "formula"; tex: string }
  | { kind: "markdown" }
  | { kind: "text" };

const MOST_COLUMNS = 40;
/** A list of numbers or texts that is no longer stands as it is. */
const SHORT_LIST = 200;
const TEXT: ResultForm = { kind: "text" };

/** The form of a result's text. `cut` says that its end is missing. */
export function resultForm(text: string, cut = false): ResultForm {
  const trimmed = text.trim();
  if (/^[[{]/.test(trimmed)) return jsonForm(trimmed, cut);
  const tex = /^\$(?:\\displaystyle\s+([^$]+)|\$([^$]+)\$)\$$/.exec(trimmed)?.slice(1).find(Boolean);
  if (tex && !cut) return { kind: "formula", tex: tex.trim() };
  const table = markdownTable(trimmed);
  if (table) return { kind: "table", table };
  return isMarkdown(text) ? { kind: "markdown" } : TEXT;
}

function jsonForm(text: string, cut: boolean): ResultForm {
  let value: unknown;
  try {
    value = cut ? readPartial(text) : parseToShow(text);
  } catch {
    return TEXT;
  }
  if (typeof value !== "object" || value === null || Object.keys(value).length === 0) return TEXT;
  if (text.length <= SHORT_LIST && Array.isArray(value) && value.every((item) => typeof item !== "object")) return TEXT;
  const table = objectsTable(value);
  return table ? { kind: "table", table } : { kind: "json", value };
}

/** Two or more objects without lists or objects in them, as one table. */
export function objectsTable(value: unknown): Table | null {
  if (!Array.isArray(value) || value.length < 2) return null;
  const columns = new Map<string, number>();
  for (const item of value as unknown[]) {
    if (typeof item !== "object" || item === null || Array.isArray(item)) return null;
    for (const [name, cell] of Object.entries(item)) {
      if (typeof cell === "object" && cell !== null) return null;
      if (!columns.has(name)) columns.set(name, columns.size);
    }
    if (columns.size > MOST_COLUMNS) return null;
  }
  if (columns.size === 0) return null;
  const rows = (value as Record<string, unknown>[]).map((item) => {
    const row = new Array<string>(columns.size).fill("");
    for (const [name, cell] of Object.entries(item)) row[columns.get(name) ?? 0] = cell === null ? "" : String(cell);
    return row;
  });
  return { caption: "", columns: [...columns.keys()], rows };
}

/** A text that is one markdown table, with at most one line above it. */
export function markdownTable(text: string): Table | null {
  const lines = text.split("\n");
  const captioned = !lines[0]?.startsWith("|");
  if (captioned && (lines[1]?.trim() !== "" || (lines[0]?.length ?? 0) > 300)) return null;
  const [head, rule, ...body] = lines.slice(captioned ? 2 : 0);
  if (!head?.startsWith("|") || !rule || !/^\|(?:\s*:?-+:?\s*\|)+\s*$/.test(rule)) return null;
  const columns = cells(head);
  if (columns.length !== cells(rule).length) return null;
  const rows: string[][] = [];
  for (const line of body) {
    if (!line.startsWith("|")) return null;
    const row = cells(line);
    rows.push(columns.map((_, at) => row[at] ?? ""));
  }
  const caption = captioned ? (lines[0] ?? "").replace(/^#+ |\*\*/g, "").trim() : "";
  return { caption, columns, rows };
}

function cells(line: string): string[] {
  const found: string[] = [];
  let cell = "";
  const inner = line.trim().replace(/^\|/, "");
  for (let at = 0; at < inner.length; at += 1) {
    const char = inner[at] ?? "";
    if (char === "|") {
      found.push(cell.trim());
      cell = "";
    } else if (char === "\\" && /[\\|]/.test(inner[at + 1] ?? "")) {
      cell += inner[at + 1] ?? "";
      at += 1;
    } else cell += char;
  }
  if (cell.trim()) found.push(cell.trim());
  return found;
}

/** Which columns hold numbers alone. */
export function numberColumns({ columns, rows }: Table): boolean[] {
  return columns.map((_, at) => {
    const filled = rows.map((row) => row[at] ?? "").filter((cell) => !/^(?:|nan|none|null|<NA>|-?inf)$/i.test(cell));
    return filled.length > 0 && filled.every((cell) => /^[-+−]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?\s?%?$/i.test(cell));
  });
}

const LIKE_CODE = /^(?:#!|<[!?a-z]|import\s|from\s+\S+\s+import|def\s|class\s|package\s|using\s|"""|'''|\/[/*]|@|\w+\s*=)/i;
const STRONG = [
  /(?:^\n*|\n\n)#{1,6} \S[^\n]*(?:\n\n|$)/,
  /^\|.+\|[ \t]*\n\|(?:\s*:?-+:?\s*\|)+[ \t]*$/m,
  /^(`{3,}|~{3,})[^\n`]*\n[^]*?^\1[ \t]*$/m,
  /^\$\$[^$]+\$\$$/m,
];
const WEAK = [/(?:^|\n\n)(?:[-*] |1[.)] )\S[^\n]*\n(?:[-*] |2[.)] )/, /\*\*[^*\s][^*\n]*\*\*/, /\[[^\]\n]+\]\(https?:[^)\s]+\)/];

/** Whether a text is evidently markdown: at least two signs of it, one of them hard to take for anything else. */
export function isMarkdown(text: string): boolean {
  if (LIKE_CODE.test(text.trimStart())) return false;
  const strong = STRONG.filter((sign) => sign.test(text)).length;
  if (strong === 0) return false;
  return strong > 1 || WEAK.some((sign) => sign.test(text)) || (text.match(/^#{1,6} \S/gm) ?? []).length > 1;
}
