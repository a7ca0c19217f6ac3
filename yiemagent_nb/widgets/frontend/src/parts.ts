// Parts of the front end that are loaded on first need, once a page: Python sends the text of each.
//
// A part comes as a module of a Blob, as this script itself does: where a host forbids that, no
// widget of this kind runs at all. Should a part be missing all the same, what is only made nicer by
// it shows as plain text, and what is made by it says so: see part_place.ts.
//
// Parts hold copies of the modules that they import, so none of them may import this one.

import type * as Code from "./code_part";
import type * as Editor from "./editor_part";
import type * as Files from "./files_part";
import type * as Highlight from "./highlight_part";
import type * as Hooks from "./hooks_part";
import type * as Inspector from "./inspector_part";
import type * as Markdown from "./markdown_part";
import type * as Maths from "./math_part";
import type * as Menu from "./menu_part";
import type * as Questions from "./questions_part";
import type * as Search from "./search_part";
import type * as Settings from "./settings_part";
import type * as Trace from "./trace_part";

export interface Parts {
  markdown: typeof Markdown;
  highlight: typeof Highlight;
  math: typeof Maths;
  search: typeof Search;
  settings: typeof Settings;
  questions: typeof Questions;
  editor: typeof Editor;
  files: typeof Files;
  menu: typeof Menu;
  code: typeof Code;
  inspector: typeof Inspector;
  hooks: typeof Hooks;
  trace: typeof Trace;
}

export type PartName = keyof Parts;

/** Which text belongs to each name; the build puts it in. Kernels of other versions may share the page. */
declare const PART_HASHES: Record<PartName, string>;

/** Milliseconds to wait for a part that another widget asked for: its kernel may be busy, or gone. */
const OTHERS = 2_000;
/** Milliseconds from a failure to the next attempt, at first. */
const RETRY = 1_000;
/** Milliseconds at a time for what waited for a part. */
const BUDGET = 10;

interface Waiting {
  element: Element;
  fill: () => void;
}

// Each widget runs this script anew; the modules are shared by all widgets of the page.
const shared: Map<string, Promise<unknown>> = ((globalThis as Record<symbol, unknown>)[
  Symbol.for("yiemagent_nb.parts")
] ??= new Map()) as Map<string, Promise<unknown>>;

const loaded: Partial<Parts> = {};
const waiting = new Map<PartName, Waiting[]>();
const loading = new Map<PartName, Promise<unknown>>();
const styles: string[] = [];
/** The style elements of the views that are shown, with the styles of all parts that are there. */
const sheets = new Set<HTMLStyleElement>();
const failures = new Map<PartName, { count: number; at: number }>();
let source: (name: PartName) => Promise<string>;

/** Say where the text of parts comes from. */
export function setPartSource(from: (name: PartName) => Promise<string>): void {
  source = from;
}

/** A part, if it is there. */
export function loadedPart<Name extends PartName>(name: Name): Parts[Name] | null {
  return loaded[name] ?? null;
}

/** Have the styles of parts in an element of a view; returns what ends that. */
export function holdStyles(sheet: HTMLStyleElement): () => void {
  sheet.append(...styles);
  sheets.add(sheet);
  return () => sheets.delete(sheet);
}

/** Ask for a part now; the promise is rejected where it cannot be loaded. */
export function loadPart<Name extends PartName>(name: Name): Promise<Parts[Name]> {
  const known = loaded[name];
  if (known) return Promise.resolve(known);
  let asked = loading.get(name) as Promise<Parts[Name]> | undefined;
  if (!asked) {
    asked = obtain(name).finally(() => loading.delete(name));
    loading.set(name, asked);
  }
  return asked;
}

/** Ask for a part that is not there. After a failure the next need asks again, not at once. */
export function needPart(name: PartName): void {
  const failed = failures.get(name);
  if (failed && Date.now() - failed.at < RETRY * 2 ** failed.count) return;
  loadPart(name).catch(() => {}); // what failed is told below
}

/** Call `fill` when a part is there, which is asked for; the newest that wait are filled first. */
export function whenPart(name: PartName, element: Element, fill: () => void): void {
  const line = waiting.get(name);
  if (line) line.push({ element, fill });
  else waiting.set(name, [{ element, fill }]);
  needPart(name);
}

/** Fill what waited, a few at a time, so that the page stays responsive. */
function catchUp(name: PartName): void {
  const line = waiting.get(name) ?? [];
  const end = performance.now() + BUDGET;
  while (line.length > 0 && performance.now() < end) {
    try {
      line.pop()?.fill();
    } catch (error) {
      console.error(error); // the others are filled all the same
    }
  }
  if (line.length > 0) setTimeout(() => catchUp(name));
  else waiting.delete(name);
}

async function obtain<Name extends PartName>(name: Name): Promise<Parts[Name]> {
  try {
    const part = await share(name);
    failures.delete(name);
    take(name, part as Parts[Name]);
    return part as Parts[Name];
  } catch (error) {
    console.warn(`The part ${name} of the widget could not be loaded.`, error);
    failures.set(name, { count: Math.min((failures.get(name)?.count ?? -1) + 1, 8), at: Date.now() });
    const left = waiting.get(name)?.filter(({ element }) => element.isConnected) ?? [];
    waiting.set(name, left);
    throw error;
  }
}

function take<Name extends PartName>(name: Name, part: Parts[Name]): void {
  Object.assign(loaded, { [name]: part });
  const { style } = part as { style?: string };
  if (style) {
    styles.push(style);
    for (const sheet of sheets) sheet.append(style);
  }
  catchUp(name);
}

/** The part that another widget of the page has, or else its own. */
async function share(name: PartName): Promise<unknown> {
  const key = `${name} ${PART_HASHES[name]}`;
  const other = shared.get(key);
  if (other) {
    const patience = new Promise<null>((resolve) => setTimeout(() => resolve(null), OTHERS));
    const module = await Promise.race([other.catch(() => null), patience]);
    if (module) return module;
  }
  const own = source(name).then(importText);
  shared.set(key, own);
  own.catch(() => {
    if (shared.get(key) === own) shared.delete(key);
  });
  return own;
}

async function importText(text: string): Promise<unknown> {
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  try {
    return await import(url);
  } finally {
    URL.revokeObjectURL(url);
  }
}
