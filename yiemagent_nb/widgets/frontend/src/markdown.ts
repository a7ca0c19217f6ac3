// Markdown of a model as nodes: marked, then the sanitiser, then what is ours put in its places.

import { Marked, type TokenizerAndRendererExtension, type Tokens } from "marked";

import { BlockSplitter, needsWhole } from "./blocks";
import { copyButton, h } from "./dom";
import { highlightInto } from "./highlight";
import { mathElement } from "./math";
import { sanitize } from "./sanitize";

// Code and formulas leave a place that is filled after sanitising. The name of a place cannot be
// guessed, so a model cannot write one.
const secret = crypto.getRandomValues(new Uint32Array(4)).join("-");
let places: (() => Node)[] = [];

function place(tag: "pre" | "code", make: () => Node): string {
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
      return place("code", () => mathElement(tex, display));
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
    code: ({ text, lang }) => place("pre", () => codeBlock(text, language(lang ?? ""), true).element),
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

function language(info: string): string {
  return /^[\w+#-]*/.exec(info.trim())?.[0]?.toLowerCase() ?? "";
}

/** Nodes for a piece of markdown. */
export function renderMarkdown(text: string): DocumentFragment {
  places = [];
  const fragment = sanitize(marked.parse(text) as string);
  const made = places;
  for (const element of fragment.querySelectorAll("pre, code")) {
    const content = element.textContent ?? "";
    if (!content.startsWith(`${secret}:`)) continue;
    const make = made[Number(content.slice(secret.length + 1))];
    if (make) element.replaceWith(make());
  }
  return fragment;
}

interface CodeBlock {
  element: HTMLElement;
  code: HTMLElement;
}

function codeBlock(text: string, name: string, colours: boolean): CodeBlock {
  const code = h("code");
  if (colours) highlightInto(code, text, name);
  else code.textContent = text;
  const bar = h(
    "div",
    { class: "yna-code-bar" },
    h("span", { class: "yna-code-language" }, name || "text"),
    copyButton(() => code.textContent ?? ""),
  );
  const pre = h("pre", { tabindex: "0", label: name ? `Code, ${name}` : "Code" }, code);
  return { element: h("div", { class: "yna-code" }, bar, pre), code };
}

/** Markdown that grows: finished blocks are rendered once, only the last one again. */
export class MarkdownView {
  readonly element = h("div", { class: "yna-markdown" });
  private splitter = new BlockSplitter();
  private text = "";
  private shown = 0;
  private open: HTMLElement | null = null;
  private fence: { code: HTMLElement; length: number } | null = null;
  /** Rendering that took long is not tried again at the next frame. */
  private notBefore = 0;

  /** Show text that begins with what was shown; returns whether all of it is shown. */
  update(text: string, done: boolean): boolean {
    const now = performance.now();
    if (!done && now < this.notBefore) return false;
    const fresh = this.shown === 0 || !text.startsWith(this.text);
    const added = text.slice(this.shown);
    this.text = text;
    this.shown = text.length;
    if (done && (fresh || needsWhole(text))) {
      this.element.replaceChildren(block(text));
      this.open = this.fence = null;
      return true;
    }
    for (const closed of this.splitter.push(added)) {
      this.settle();
      this.element.append(block(closed));
    }
    this.showOpen(done);
    this.notBefore = performance.now() + 3 * (performance.now() - now);
    return true;
  }

  /** The whole text. */
  get source(): string {
    return this.text;
  }

  private settle(): void {
    this.open?.remove();
    this.open = this.fence = null;
  }

  private showOpen(done: boolean): void {
    const fence = done ? null : this.splitter.openFence();
    if (fence && this.open && this.fence) {
      this.fence.code.append(fence.code.slice(this.fence.length));
      this.fence.length = fence.code.length;
      return;
    }
    this.settle();
    if (this.splitter.open.trim() === "") return;
    if (fence) {
      const { element, code } = codeBlock(fence.code, language(fence.language), false);
      this.fence = { code, length: fence.code.length };
      this.open = h("div", { class: "yna-block" }, element);
    } else {
      this.open = block(this.splitter.open);
    }
    this.element.append(this.open);
  }
}

function block(text: string): HTMLElement {
  const element = h("div", { class: "yna-block" });
  element.append(renderMarkdown(text));
  return element;
}
