// Code in colours, for a few languages.

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

import { sanitizeSpans } from "./sanitize";

const LANGUAGES = { bash, cpp, css, diff, javascript, json, julia, python, r, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);
hljs.registerAliases(["ipython", "ipython3"], { languageName: "python" });
hljs.registerAliases(["shell", "console"], { languageName: "bash" });
hljs.configure({ classPrefix: "yna-hl-" });

const LONGEST = 40_000;

/** Put code into an element, in colours if the language is known. */
export function highlightInto(element: HTMLElement, code: string, language: string): void {
  if (code.length > LONGEST || !hljs.getLanguage(language)) {
    element.textContent = code;
    return;
  }
  const { value } = hljs.highlight(code, { language, ignoreIllegals: true });
  element.replaceChildren(sanitizeSpans(value));
}
