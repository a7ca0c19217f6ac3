// Code in colours: by a part of its own, and without colours until it is there.

import { loadedPart, whenPart } from "./parts";

const LONGEST = 40_000;

/** Put code into an element, in colours if the language is known. */
export function highlightInto(element: HTMLElement, code: string, language: string): void {
  element.textContent = code;
  if (code.length > LONGEST || language === "" || language === "text") return;
  const fill = (): void => {
    const coloured = loadedPart("highlight")?.highlight(code, language);
    if (coloured && element.textContent === code) element.replaceChildren(coloured);
  };
  if (loadedPart("highlight")) fill();
  else whenPart("highlight", element, fill);
}
