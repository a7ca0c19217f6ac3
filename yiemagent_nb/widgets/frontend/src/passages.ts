// Where a text stands in the transcript: as ranges of what is shown, and in calls also in what is folded away.

import type { Call } from "./entries";
import type { Content, ResultPart } from "./protocol";

/** Hits that stand together: in an answer's own words, or in one of its calls. */
export interface Passage {
  element: HTMLElement;
  call: Call | null;
  count: number;
}

/** Blocks end a phrase: no match goes from one into the next. */
const BLOCK = "p, li, pre, h1, h2, h3, h4, h5, h6, th, td, dt, dd, blockquote, summary, button, div";
/** What is on the screen and is not part of the conversation. */
const BESIDE =
  ".yna-hidden, .yna-group-row, .yna-actions, .yna-footer, .yna-code-bar, .yna-section-bar, .yna-edit, .yna-approval, " +
  ".yna-call-verb, .yna-call-summary, .yna-call-time, .yna-branches, style, textarea, select, [aria-hidden=true]";
const BREAK = "\u0000";

/** What finds a text, in any case, over any white space. */
export function matcher(query: string): RegExp | null {
  const words = query.trim().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  return new RegExp(words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("[^\\S\\0]+"), "giu");
}

/** The hits in an entry, in their order. */
export function passages(element: HTMLElement, calls: Map<Element, Call>, label: (name: string) => string, pattern: RegExp): Passage[] {
  const found: Passage[] = [];
  const texts = new Texts();
  const flush = (): void => {
    const count = texts.find(pattern).length;
    if (count > 0) found.push({ element, call: null, count });
    texts.clear();
  };
  walk(element, texts, (each) => {
    const call = calls.get(each);
    if (!call) return false;
    flush();
    const count = callTexts(call, label(call.name)).reduce((sum, text) => sum + matches(text, pattern), 0);
    if (count > 0) found.push({ element: each, call, count });
    return true;
  });
  flush();
  return found;
}

/** The ranges of a text in an element; `skip` names parts of it that are passages of their own. */
export function ranges(element: HTMLElement, pattern: RegExp, skip: (element: Element) => boolean = () => false): StaticRange[] {
  const texts = new Texts();
  walk(element, texts, skip);
  return texts.find(pattern);
}

function matches(text: string, pattern: RegExp): number {
  return [...text.matchAll(pattern)].length;
}

class Texts {
  private nodes: { node: Text; start: number }[] = [];
  private parts: string[] = [];
  private length = 0;
  private block: Element | null = null;

  add(node: Text): void {
    const block = node.parentElement?.closest(BLOCK) ?? null;
    if (block !== this.block) this.push(BREAK);
    this.block = block;
    this.nodes.push({ node, start: this.length });
    this.push(node.data);
  }

  clear(): void {
    this.nodes = [];
    this.parts = [];
    this.length = 0;
    this.block = null;
  }

  find(pattern: RegExp): StaticRange[] {
    const found: StaticRange[] = [];
    let at = 0;
    for (const match of this.parts.join("").matchAll(pattern)) {
      const start = match.index;
      const end = start + match[0].length;
      while (this.endOf(at) <= start) at += 1;
      let last = at;
      while (this.endOf(last) < end) last += 1;
      const [from, to] = [this.nodes[at], this.nodes[last]];
      if (!from || !to) continue;
      found.push(
        new StaticRange({
          startContainer: from.node,
          startOffset: start - from.start,
          endContainer: to.node,
          endOffset: end - to.start,
        }),
      );
    }
    return found;
  }

  private endOf(at: number): number {
    const each = this.nodes[at];
    return each ? each.start + each.node.length : Infinity;
  }

  private push(text: string): void {
    this.parts.push(text);
    this.length += text.length;
  }
}

/** Give the texts of an element in their order; elements for which `skip` is true are left out. */
function walk(root: HTMLElement, texts: Texts, skip: (element: HTMLElement) => boolean): void {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT, (node) => {
    if (node instanceof Text) return NodeFilter.FILTER_ACCEPT;
    if (!(node instanceof HTMLElement) || node.matches(BESIDE) || skip(node)) return NodeFilter.FILTER_REJECT;
    return NodeFilter.FILTER_SKIP;
  });
  while (walker.nextNode()) texts.add(walker.currentNode as Text);
}

/** All that a call tells when it is open. */
function callTexts(call: Call, label: string): string[] {
  const texts = call.name === label ? [label] : [label, call.name];
  if (call.raw !== null || call.args === null) texts.push(call.raw ?? call.argsText);
  else for (const [name, value] of Object.entries(call.args)) texts.push(name, ...valueTexts(value));
  texts.push(call.note, ...(call.content ?? []).map(contentText), ...(call.details?.parts ?? []).flatMap(partTexts));
  return texts;
}

function valueTexts(value: unknown): string[] {
  return [typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "")];
}

function contentText(block: Content): string {
  return block.type === "text" ? block.text : "";
}

function partTexts(part: ResultPart): string[] {
  switch (part.type) {
    case "words":
      return [part.text];
    case "structure":
      return [part.title, part.text];
    case "resource":
      return [part.uri, part.text ?? ""];
    case "link":
      return [part.name, part.description, part.uri];
    default:
      return [];
  }
}
