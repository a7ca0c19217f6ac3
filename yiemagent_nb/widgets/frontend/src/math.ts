// Formulas: rendered by a part of its own, and shown as their source until it is there.

import { loadedPart, whenPart } from "./parts";

export function mathElement(tex: string, display: boolean): HTMLElement {
  const element = document.createElement("span");
  element.className = display ? "yna-math yna-math-display" : "yna-math";
  const fill = (): void => {
    const part = loadedPart("math");
    if (part) element.replaceChildren(part.render(tex, display));
  };
  element.textContent = tex;
  if (loadedPart("math")) fill();
  else whenPart("math", element, fill);
  return element;
}
