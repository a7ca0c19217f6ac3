// The part that colours code, of a few languages.

import "./styles/highlight.css";

import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import julia from "highlight.js/lib/languages/julia";
import python from "highlight.js/lib/languages/python";
import r from "highlight.js/lib/languages/r";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

import { readSpans } from "./spans";

const LANGUAGES = { bash, cpp, css, diff, javascript, json, julia, python, r, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);
hljs.registerAliases(["ipython", "ipython3"], { languageName: "python" });
hljs.registerAliases(["shell", "console"], { languageName: "bash" });
hljs.configure({ classPrefix: "yna-hl-" });

/** Code in coloured spans; null where the language is not known. */
export function highlight(code: string, language: string): Node | null {
  if (!hljs.getLanguage(language)) return null;
  const { value } = hljs.highlight(code, { language, ignoreIllegals: true });
  const fragment = document.createDocumentFragment();
  let place: Node = fragment;
  const understood = readSpans(value, {
    open(classes) {
      const span = document.createElement("span");
      span.className = classes;
      place = place.appendChild(span);
    },
    close() {
      place = place.parentNode ?? fragment;
    },
    text(text) {
      place.appendChild(document.createTextNode(text));
    },
  });
  return understood ? fragment : null;
}
