// JSON as a tree that folds. What is in a folded part is built when it is opened.

import { h, icon } from "./dom";

const MOST_ITEMS = 100;
const LONGEST_TEXT = 2_000;
const LONGEST_PREVIEW = 60;
/** A value of so few parts is shown open. */
const FEW = 30;
const OPEN_LEVELS = 3;

/** What JSON says, to show it: integers that a number here would round are a `bigint`, where the browser tells them. */
export function parseToShow(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "")
      ? BigInt(context?.source ?? 0)
      : value,
  );
}

export function jsonTree(value: object): HTMLElement {
  const tree = h("div", { class: "yna-json", tabindex: "0", role: "group", label: "JSON" });
  tree.append(children(value, countParts(value, FEW) <= FEW ? OPEN_LEVELS : 0));
  return tree;
}

function node(key: string, value: unknown, open: number): HTMLElement {
  const name = key ? [h("span", { class: "yna-json-key" }, clip(key, 200)), ": "] : [];
  if (typeof value !== "object" || value === null || Object.keys(value).length === 0) {
    return h("div", { class: "yna-json-leaf" }, ...name, leaf(value));
  }
  const summary = h("summary", {}, icon("chevron"), ...name, h("span", { class: "yna-json-hint" }, hint(value)));
  const element = h("details", { class: "yna-json-node" }, summary);
  const fill = (): void => {
    if (element.childElementCount === 1) element.append(children(value, open - 1));
  };
  if (open > 0) {
    element.open = true;
    fill();
  } else element.addEventListener("toggle", fill, { once: true });
  return element;
}

function children(value: object, open: number): HTMLElement {
  const items = Object.entries(value);
  const list = h("div", { class: "yna-json-items" });
  const add = (from: number): void => {
    list.append(...items.slice(from, from + MOST_ITEMS).map(([key, item]) => node(key, item, open)));
    const left = items.length - from - MOST_ITEMS;
    if (left <= 0) return;
    const more = h("button", { class: "yna-more" }, `Show ${Math.min(left, MOST_ITEMS)} more of ${left.toLocaleString()}`);
    more.addEventListener("click", () => {
      const before = list.childElementCount - 1;
      more.remove();
      add(from + MOST_ITEMS);
      list.children[before]?.querySelector<HTMLElement>("summary, button")?.focus();
    });
    list.append(more);
  };
  add(0);
  return list;
}

function leaf(value: unknown): HTMLElement {
  if (typeof value === "string") return h("span", { class: "yna-json-text" }, JSON.stringify(clip(value, LONGEST_TEXT)));
  return h("span", { class: "yna-json-value" }, typeof value === "bigint" ? String(value) : JSON.stringify(value));
}

/** What is in a folded part, in a few words. */
function hint(value: object): string {
  if (Array.isArray(value)) return `[${value.length.toLocaleString()} ${value.length === 1 ? "item" : "items"}]`;
  const names = Object.keys(value);
  const some = names.slice(0, 8).join(", ");
  return names.length > 8 || some.length > LONGEST_PREVIEW ? `{${some.slice(0, LONGEST_PREVIEW)}…}` : `{${some}}`;
}

function clip(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}… (${(text.length - most).toLocaleString()} more characters)` : text;
}

/** How many parts a value has, counted no further than just above `most`. */
function countParts(value: unknown, most: number): number {
  if (typeof value !== "object" || value === null) return 1;
  let count = 1;
  for (const item of Object.values(value)) {
    count += countParts(item, most - count);
    if (count > most) break;
  }
  return count;
}
