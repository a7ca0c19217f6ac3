// The part that renders formulas, as MathML: no fonts, no styles.

import "./styles/math.css";

import katex from "katex";

export function render(tex: string, display: boolean): Node {
  const element = document.createElement("span");
  katex.render(tex, element, {
    displayMode: display,
    output: "mathml",
    throwOnError: false,
    trust: false,
    strict: "ignore",
    maxExpand: 500,
    maxSize: 50,
  });
  return element;
}
