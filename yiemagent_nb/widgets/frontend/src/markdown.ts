// Markdown of a model, as it grows. A part of its own makes the nodes; until it is there, text shows as it is written.

import { BlockSplitter, needsWhole } from "./blocks";
import { copyButton, growText, h } from "./dom";
import { highlightInto } from "./highlight";
import type * as MarkdownPart from "./markdown_part";
import { mathElement } from "./math";
import { loadedPart, whenPart } from "./parts";

function language(info: string): string {
  return /^[\w+#-]*/.exec(info.trim())?.[0]?.toLowerCase() ?? "";
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

type Render = typeof MarkdownPart.renderMarkdown;

const makers: MarkdownPart.Makers = {
  code: (text, info) => codeBlock(text, language(info), true).element,
  formula: mathElement,
};

/** Markdown that grows: finished blocks are rendered once, only the last one again. */
export class MarkdownView {
  readonly element = h("div", { class: "yna-markdown" });
  private splitter = new BlockSplitter();
  private text = "";
  private done = false;
  /** How much of the text went into blocks. */
  private shown = 0;
  private open: HTMLElement | null = null;
  private fence: { code: HTMLElement; length: number } | null = null;
  /** The text as it is written, while there is nothing that renders it. */
  private plain: HTMLElement | null = null;
  /** Rendering that took long is not tried again at the next frame. */
  private notBefore = 0;

  /** Show text that begins with what was shown; returns whether all of it is shown. */
  update(text: string, done: boolean): boolean {
    const now = performance.now();
    if (!done && now < this.notBefore) return false;
    const render = loadedPart("markdown")?.renderMarkdown;
    if (!text.startsWith(this.text) || (render && this.plain)) this.clear();
    this.text = text;
    this.done = done;
    if (!render) {
      this.showPlain();
      return true;
    }
    if (done && (this.shown === 0 || needsWhole(text))) {
      this.clear();
      this.element.append(block(text, render));
      this.shown = text.length;
      return true;
    }
    for (const closed of this.splitter.push(text.slice(this.shown))) {
      this.settle();
      this.element.append(block(closed, render));
    }
    this.shown = text.length;
    this.showOpen(done, render);
    this.notBefore = performance.now() + 3 * (performance.now() - now);
    return true;
  }

  /** The whole text. */
  get source(): string {
    return this.text;
  }

  private clear(): void {
    this.element.replaceChildren();
    this.splitter = new BlockSplitter();
    this.shown = 0;
    this.open = this.fence = this.plain = null;
  }

  private showPlain(): void {
    if (!this.plain) {
      this.plain = h("div", { class: "yna-plain" });
      this.element.append(this.plain);
      whenPart("markdown", this.element, () => this.update(this.text, this.done));
    }
    growText(this.plain, this.text);
  }

  private settle(): void {
    this.open?.remove();
    this.open = this.fence = null;
  }

  private showOpen(done: boolean, render: Render): void {
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
      this.open = block(this.splitter.open, render);
    }
    this.element.append(this.open);
  }
}

function block(text: string, render: Render): HTMLElement {
  const element = h("div", { class: "yna-block" });
  element.append(render(text, makers));
  return element;
}
