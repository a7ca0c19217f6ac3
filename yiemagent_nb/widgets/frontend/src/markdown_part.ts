// The part that makes nodes of a model's markdown: marked, then the sanitiser, then what is ours put in its places.

import "./styles/markdown.css";

import { Marked, type TokenizerAndRendererExtension, type Tokens } from "marked";

import { sanitize } from "./sanitize";

/** Makes what stands in a text but is not of its markup. */
export interface Makers {
  code(text: string, language: string): Node;
  formula(tex: string, display: boolean): Node;
}

// Code and formulas leave a place that is filled after sanitising. The name of a place cannot be
// guessed, so a model cannot write one.
const secret = crypto.getRandomValues(new Uint32Array(4)).join("-");
let places: ((makers: Makers) => Node)[] = [];

function place(tag: "pre" | "code", make: (makers: Makers) => Node): string {
  places.push(make);
  return `<${tag}>${secret}:${places.length - 1}</${tag}>`;
}

const DISPLAY = /^(?:\$\$([\s\S]+?)\$\$|\\\[([\s\S]+?)\\\])/;
const INLINE = /^(?:\$(?![\s$])((?:\\.|[^\\$\n])+?)(?<!\s)\$(?!\d)|\\\(([\s\S]+?)\\\))/;

interface MathToken extends Tokens.Generic {
  tex: string;
  display: boolean;
}

function mathExtension(name: string, level: "block" | "inline", rule: RegExp): TokenizerAndRendererExtension {
  const begins = level === "block" ? /(?<=\n)(?:\$\$|\\\[)/ : /\$|\\[[(]/;
  return {
    name,
    level,
    start: (source: string) => {
      const at = source.search(begins);
      return at < 0 ? undefined : at;
    },
    tokenizer: (source: string) => {
      const match = rule.exec(source);
      const tex = match?.[1] ?? match?.[2];
      if (!match || !tex) return undefined;
      return { type: name, raw: match[0], tex: tex.trim(), display: rule === DISPLAY };
    },
    renderer: (token) => {
      const { tex, display } = token as MathToken;
      return place("code", (makers) => makers.formula(tex, display));
    },
  };
}

const marked = new Marked({
  gfm: true,
  async: false,
  extensions: [
    mathExtension("displayMath", "block", DISPLAY),
    mathExtension("displayMathInText", "inline", DISPLAY),
    mathExtension("math", "inline", INLINE),
  ],
  renderer: {
    code: ({ text, lang }) => place("pre", (makers) => makers.code(text, lang ?? "")),
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

/** Nodes for a piece of markdown. */
export function renderMarkdown(text: string, makers: Makers): DocumentFragment {
  places = [];
  const fragment = sanitize(marked.parse(text) as string);
  const made = places;
  for (const element of fragment.querySelectorAll("pre, code")) {
    const content = element.textContent ?? "";
    if (!content.startsWith(`${secret}:`)) continue;
    const make = made[Number(content.slice(secret.length + 1))];
    if (make) element.replaceWith(make(makers));
  }
  return fragment;
}
