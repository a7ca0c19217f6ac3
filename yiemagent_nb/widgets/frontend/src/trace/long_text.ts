// A long text in a place of its own, a piece at a time: a page takes long to lay out a megabyte.

import { h } from "../dom";

const PIECE = 20_000;

/** `show` puts a piece into an element, in colours if it likes. */
export function longText(text: string, label: string, show: (element: HTMLElement, piece: string) => void): HTMLElement {
  const element = h("div", { class: "yna-trace-text", tabindex: "0", role: "group", label });
  const add = (from: number): void => {
    const to = cut(text, from + PIECE);
    const piece = h("pre");
    show(piece, text.slice(from, to));
    element.append(piece);
    const left = text.length - to;
    if (left <= 0) return;
    const more = h("button", { class: "yna-more" }, `Show more of ${left.toLocaleString()} characters`);
    more.addEventListener("click", () => {
      more.remove();
      element.focus({ preventScroll: true });
      add(to);
    });
    element.append(more);
  };
  add(0);
  return element;
}

/** Where to cut near a place: behind a line where one ends near, and never inside a character. */
function cut(text: string, near: number): number {
  if (near >= text.length) return text.length;
  const line = text.lastIndexOf("\n", near);
  if (line > near - PIECE / 4) return line + 1;
  const unit = text.charCodeAt(near - 1);
  return unit >= 0xd800 && unit < 0xdc00 ? near - 1 : near;
}
