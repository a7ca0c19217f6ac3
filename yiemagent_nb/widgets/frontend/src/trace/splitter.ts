// The line between the list and the details, which a pointer or the arrow keys move.

import { h } from "../dom";

const LEAST = 15;
const MOST = 85;
const STEP = 5;
/** The shares that were chosen, beside each other and below each other, for each panel that is opened after. */
const chosen: { row?: number; column?: number } = {};

/** `body` stands around both; it has their share in percent as --yna-trace-share-row or -column. */
export function splitter(body: HTMLElement): HTMLElement {
  const element = h("div", { class: "yna-trace-splitter", role: "separator", label: "Room for the list", tabindex: "0" });
  const isColumn = (): boolean => getComputedStyle(body).flexDirection === "column";
  const set = (share: number): void => {
    const kept = Math.round(Math.max(LEAST, Math.min(MOST, share)));
    chosen[isColumn() ? "column" : "row"] = kept;
    apply();
    tell(kept);
  };
  const apply = (): void => {
    for (const way of ["row", "column"] as const) {
      if (chosen[way] !== undefined) body.style.setProperty(`--yna-trace-share-${way}`, `${chosen[way]}%`);
    }
  };
  const tell = (share: number): void => {
    element.setAttribute("aria-orientation", isColumn() ? "horizontal" : "vertical");
    element.setAttribute("aria-valuenow", String(share));
  };
  const now = (): number => {
    const { offsetHeight, offsetWidth } = body.firstElementChild as HTMLElement;
    return (isColumn() ? offsetHeight / body.offsetHeight : offsetWidth / body.offsetWidth) * 100;
  };
  apply();
  element.setAttribute("aria-valuenow", "50");
  element.addEventListener("focus", () => tell(Math.round(now())));
  element.addEventListener("pointerdown", (event) => {
    if (event.button === 0) element.setPointerCapture(event.pointerId);
  });
  element.addEventListener("pointermove", (event) => {
    if (!element.hasPointerCapture(event.pointerId)) return;
    const { left, top, width, height } = body.getBoundingClientRect();
    set(isColumn() ? ((event.clientY - top) / height) * 100 : ((event.clientX - left) / width) * 100);
  });
  element.addEventListener("keydown", (event) => {
    const [less, more] = isColumn() ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
    if (event.key !== less && event.key !== more) return;
    event.preventDefault();
    set(now() + (event.key === less ? -STEP : STEP));
  });
  return element;
}
