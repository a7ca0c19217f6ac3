// An editor of code: CodeMirror, in the colours of the host, with only what is needed here.

import { closeBrackets } from "@codemirror/autocomplete";
import { history } from "@codemirror/commands";
import { bracketMatching, indentOnInput } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search } from "@codemirror/search";
import { Annotation, EditorState, Transaction } from "@codemirror/state";
import {
  EditorView,
  drawSelection,
  highlightActiveLine,
  highlightActiveLineGutter,
  lineNumbers,
  tooltips,
  type KeyBinding,
} from "@codemirror/view";

import { h, newId, setText } from "../dom";
import { completion, type Complete, type Completions } from "./completion";
import { editorKeys } from "./keys";
import { languageSupport, type CodeLanguage } from "./languages";
import { indexOf } from "./places";

export type { CodeLanguage, Complete, Completions };

export interface CodeEditorOptions {
  language: CodeLanguage;
  /** The editor's name for those who do not see it. */
  label: string;
  value?: string;
  /** Told each change that a person makes; not those made by setting `value`. */
  onChange?: (value: string) => void;
  /** Tells names that fit at the cursor, which is a number of characters as Python counts them. */
  complete?: Complete;
  readOnly?: boolean;
  /** The editor is as high as its text, within these numbers of lines. */
  minLines?: number;
  maxLines?: number;
  /** Further keys, as CodeMirror names them ("Mod-Enter": Ctrl, or ⌘ on a Mac). They go before its own. */
  keys?: Record<string, () => void>;
  /** Told when the editor was left. */
  onBlur?: () => void;
}

/** Something that is wrong at a place: `line` and `column` from 1, as Python counts characters. */
export interface CodeProblem {
  line: number | null;
  column?: number | null;
  message: string;
  severity?: "error" | "warning";
}

const KEYS = "Tab indents; Escape, then Tab leaves.";
const KEYS_COMPLETING = "Tab indents; Ctrl+Space completes; Escape, then Tab leaves.";
const LEAVING = "Tab now leaves the editor; Escape goes back.";
const WORDS = {
  next: "Next",
  previous: "Previous",
  all: "All",
  "match case": "Match case",
  regexp: "Regular expression",
  "by word": "Whole words",
  replace: "Replace",
  "replace all": "Replace all",
};
const fromOutside = Annotation.define<boolean>();

export class CodeEditor {
  readonly element: HTMLElement;
  private readonly view: EditorView;
  private readonly told: HTMLElement;
  /** Where lists of names stand: outside the widget, which would cut them off. */
  private readonly over = h("div", { class: "yna yna-over" });
  private readonly resized: ResizeObserver;

  constructor(options: CodeEditorOptions) {
    const { language, label, readOnly = false } = options;
    const keys = options.complete ? KEYS_COMPLETING : KEYS;
    this.told = h("span", { class: "yna-code-keys yna-hidden", id: newId(), "aria-live": "polite" }, readOnly ? "" : keys);
    const own: KeyBinding[] = Object.entries(options.keys ?? {}).map(([key, run]) => ({
      key,
      run() {
        run();
        return true;
      },
    }));
    const editing = [
      history(),
      indentOnInput(),
      closeBrackets(),
      completion(language, options.complete),
      highlightActiveLine(),
      highlightActiveLineGutter(),
    ];
    this.view = new EditorView({
      state: EditorState.create({
        doc: options.value ?? "",
        extensions: [
          EditorState.readOnly.of(readOnly),
          EditorState.allowMultipleSelections.of(true),
          EditorState.phrases.of(WORDS),
          languageSupport(language),
          lineNumbers(),
          lintGutter(),
          drawSelection(),
          EditorView.lineWrapping,
          bracketMatching(),
          highlightSelectionMatches({ minSelectionLength: 3 }),
          search({ top: true }),
          readOnly ? [] : editing,
          editorKeys(own, !readOnly, (leaving) => this.tellKeys(leaving ? LEAVING : keys, leaving)),
          tooltips({ parent: this.over }),
          EditorView.contentAttributes.of({
            "aria-label": label,
            "aria-describedby": this.told.id,
            tabindex: "0",
            ...(readOnly ? { inputmode: "none" } : {}),
          }),
          EditorView.updateListener.of((update) => {
            const theirs = update.transactions.some((each) => each.docChanged && !each.annotation(fromOutside));
            if (theirs) options.onChange?.(update.state.doc.toString());
            if (update.focusChanged && !update.view.hasFocus) options.onBlur?.();
          }),
        ],
      }),
    });
    this.element = h("div", { class: "yna-code-editor" }, this.view.dom, this.told);
    this.element.style.setProperty("--yna-code-least", String(options.minLines ?? 3));
    this.element.style.setProperty("--yna-code-most", String(options.maxLines ?? 24));
    // Where the host shows it in a shadow root, CodeMirror's style sheet must be there as well.
    this.resized = new ResizeObserver(() => {
      const root = this.element.getRootNode();
      if (!(root instanceof Document || root instanceof ShadowRoot)) return;
      this.view.setRoot(root);
      const place = root instanceof Document ? root.body : root;
      if (this.over.parentNode !== place) place.append(this.over);
    });
    this.resized.observe(this.element);
  }

  get value(): string {
    return this.view.state.doc.toString();
  }

  /** Another text; undo brings the one before it back. */
  set value(text: string) {
    const { doc } = this.view.state;
    if (text === doc.toString()) return;
    this.view.dispatch({
      changes: { from: 0, to: doc.length, insert: text },
      selection: { anchor: Math.min(this.view.state.selection.main.head, text.length) },
      annotations: [fromOutside.of(true), Transaction.userEvent.of("input.replace")],
    });
  }

  /** Mark these, and no others. What has no line is not marked: show it elsewhere. */
  setProblems(problems: readonly CodeProblem[]): void {
    const { doc } = this.view.state;
    const marks = problems.flatMap(({ line, column, message, severity = "error" as const }) => {
      if (line === null || line < 1) return [];
      const { from, to, text } = doc.line(Math.min(line, doc.lines));
      const start = column ? from + indexOf(text, column - 1) : from + (text.length - text.trimStart().length);
      const end = column ? (this.view.state.wordAt(start)?.to ?? start + 1) : to;
      return [{ from: Math.min(start, to), to: Math.min(Math.max(end, start), to), message, severity }];
    });
    this.view.dispatch(setDiagnostics(this.view.state, marks));
  }

  /** Go to a place and take the keyboard. */
  goTo(line: number, column = 1): void {
    const { doc } = this.view.state;
    const { from, text } = doc.line(Math.min(Math.max(line, 1), doc.lines));
    this.view.dispatch({
      selection: { anchor: from + indexOf(text, column - 1) },
      effects: EditorView.scrollIntoView(from, { y: "center" }),
    });
    this.view.focus();
  }

  focus(): void {
    this.view.focus();
  }

  get hasFocus(): boolean {
    return this.view.hasFocus;
  }

  dispose(): void {
    this.resized.disconnect();
    this.view.destroy();
    this.over.remove();
  }

  private tellKeys(text: string, leaving: boolean): void {
    setText(this.told, text);
    this.told.classList.toggle("yna-hidden", !leaving);
  }
}
