// The languages of the editor: how each is read, indented and coloured.

import { jsonLanguage } from "@codemirror/lang-json";
import { localCompletionSource, pythonLanguage } from "@codemirror/lang-python";
import { indentUnit, syntaxHighlighting, type Language } from "@codemirror/language";
import type { CompletionSource } from "@codemirror/autocomplete";
import { EditorState, type Extension } from "@codemirror/state";
import { tagHighlighter, tags } from "@lezer/highlight";

export type CodeLanguage = "python" | "json";

interface Knowledge {
  language: Language;
  /** Columns that one level of indentation takes. */
  indent: number;
  /** Names that the text itself defines. */
  local: CompletionSource | null;
}

export const LANGUAGES: Record<CodeLanguage, Knowledge> = {
  python: { language: pythonLanguage, indent: 4, local: localCompletionSource },
  json: { language: jsonLanguage, indent: 2, local: null },
};

// The names of JupyterLab's colours: see code.css.
const colours = tagHighlighter([
  { tag: [tags.comment, tags.docComment], class: "yna-code-comment" },
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier, tags.self], class: "yna-code-keyword" },
  { tag: [tags.bool, tags.null, tags.atom], class: "yna-code-atom" },
  { tag: tags.number, class: "yna-code-number" },
  { tag: [tags.string, tags.docString, tags.special(tags.string)], class: "yna-code-string" },
  { tag: tags.escape, class: "yna-code-escape" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], class: "yna-code-def" },
  { tag: [tags.propertyName, tags.function(tags.propertyName)], class: "yna-code-property" },
  { tag: [tags.operator, tags.arithmeticOperator, tags.compareOperator], class: "yna-code-operator" },
  { tag: tags.meta, class: "yna-code-meta" },
  { tag: tags.standard(tags.variableName), class: "yna-code-builtin" },
  { tag: tags.invalid, class: "yna-code-invalid" },
]);

/** What makes an editor one of a language. */
export function languageSupport(name: CodeLanguage): Extension {
  const { language, indent } = LANGUAGES[name];
  return [language, indentUnit.of(" ".repeat(indent)), EditorState.tabSize.of(indent), syntaxHighlighting(colours)];
}
