// What is left of something that was settled: one quiet line.

import { h, icon } from "./dom";

export function quietLine(text: string, agreed: boolean): HTMLElement {
  return h("p", { class: "yna-settled" }, icon(agreed ? "check" : "cross"), h("span", {}, text));
}

/** Put a line in the place of a card; it takes the keyboard over, so that keys still stop at the widget. */
export function settle(place: HTMLElement, line: HTMLElement): void {
  const held = place.contains(document.activeElement);
  line.tabIndex = -1;
  place.replaceChildren(line);
  if (held) line.focus({ preventScroll: true });
}
