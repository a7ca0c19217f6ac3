// Names that fit at the cursor, asked of who knows them: the kernel.

import { autocompletion, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import type { Extension } from "@codemirror/state";

import { codePoints } from "../text";
import { LANGUAGES, type CodeLanguage } from "./languages";
import { indexOf } from "./places";

/** What fits: each takes the place of what stands from `start` to the cursor. */
export interface Completions {
  items: readonly (string | Completion)[];
  /** In characters as Python counts them. */
  start: number;
}

/** Answers for a text and a cursor, in characters as Python counts them. */
export type Complete = (code: string, cursor: number) => Promise<Completions>;

const NAME = /[\p{L}\p{N}_]*$/u;
/** So many names may not be all: with each further letter they are asked for again. */
const MANY = 200;
const WHOLE_NAME = /^[\p{L}\p{N}_]*$/u;

/** Completion while one types names, and by Ctrl+Space. */
export function completion(language: CodeLanguage, complete: Complete | undefined): Extension {
  const { local } = LANGUAGES[language];
  const sources = [...(complete ? [remote(complete)] : []), ...(local ? [local] : [])];
  return sources.length > 0 ? autocompletion({ override: sources, icons: false, maxRenderedOptions: 60 }) : [];
}

function remote(complete: Complete) {
  return async (context: CompletionContext): Promise<CompletionResult | null> => {
    const line = context.state.doc.lineAt(context.pos);
    const before = line.text.slice(0, context.pos - line.from);
    const name = NAME.exec(before)?.[0] ?? "";
    const attribute = before[before.length - name.length - 1] === ".";
    if (!context.explicit && (/^\d/.test(name) || (!name && !attribute) || context.aborted)) return null;
    const code = context.state.doc.toString();
    const { items, start } = await complete(code, codePoints(code.slice(0, context.pos)));
    if (context.aborted) return null;
    const from = indexOf(code, start);
    const options = items.map((item) => (typeof item === "string" ? { label: item } : item));
    if (options.length === 0 || from > context.pos) return null;
    return options.length < MANY ? { from, options, validFor: WHOLE_NAME } : { from, options };
  };
}
