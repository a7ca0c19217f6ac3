// The keys of the editor. Tab indents, so that there must be a way out for those who have no mouse: Escape, then Tab.

import { acceptCompletion, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, historyKeymap, indentLess, indentMore } from "@codemirror/commands";
import { getIndentUnit } from "@codemirror/language";
import { lintKeymap } from "@codemirror/lint";
import { searchKeymap } from "@codemirror/search";
import { EditorSelection, type Extension } from "@codemirror/state";
import { EditorView, keymap, type Command, type KeyBinding } from "@codemirror/view";

/** Spaces up to the next level; what is selected is indented as a whole. */
const indentHere: Command = (view) => {
  const { state } = view;
  if (state.selection.ranges.some((range) => !range.empty)) return indentMore(view);
  const unit = getIndentUnit(state);
  view.dispatch(
    state.changeByRange(({ head }) => {
      const column = head - state.doc.lineAt(head).from;
      const insert = " ".repeat(unit - (column % unit));
      return { changes: { from: head, insert }, range: EditorSelection.cursor(head + insert.length) };
    }),
    { scrollIntoView: true, userEvent: "input.indent" },
  );
  return true;
};

/** `own` come first; `onLeaving` is told when Tab begins to leave the editor, and when it indents again. */
export function editorKeys(own: readonly KeyBinding[], editable: boolean, onLeaving: (leaving: boolean) => void): Extension {
  let leaving = false;
  const leave = (view: EditorView, now: boolean): void => {
    view.setTabFocusMode(now);
    if (leaving === now) return;
    leaving = now;
    onLeaving(now);
  };
  const escape: KeyBinding = {
    key: "Escape",
    run(view) {
      leave(view, !leaving);
      return true;
    },
  };
  const editing: readonly KeyBinding[] = [
    { key: "Tab", run: acceptCompletion },
    { key: "Tab", run: indentHere, shift: indentLess },
    ...closeBracketsKeymap,
    ...historyKeymap,
    ...lintKeymap,
  ];
  const last: readonly KeyBinding[] = editable ? [escape] : [];
  return [
    keymap.of([...own, ...(editable ? editing : []), ...searchKeymap, ...defaultKeymap, ...last]),
    EditorView.domEventHandlers({
      keydown(event, view) {
        if (leaving && !["Escape", "Tab", "Shift"].includes(event.key)) leave(view, false);
        return false;
      },
      blur(_event, view) {
        leave(view, false);
        return false;
      },
    }),
  ];
}
