// What a JSON Schema asks for, in words. Schemas come from servers: whatever is no schema says nothing.

import { visible } from "../text";

type Keywords = Record<string, unknown>;

/** A reference may lead to another one; a chain of so many leads nowhere. */
const LONGEST_CHAIN = 10;

/** What a schema says, with what it refers to within `root`. */
export function resolved(schema: unknown, root: unknown, left = LONGEST_CHAIN): Keywords {
  const { $ref, ...keywords } = keywordsOf(schema);
  if (typeof $ref !== "string") return keywords;
  const target = left > 0 && $ref.startsWith("#") ? pointed(root, $ref.slice(1)) : undefined;
  return target === undefined ? { ...keywords, $ref } : { ...resolved(target, root, left - 1), ...keywords };
}

function pointed(root: unknown, pointer: string): unknown {
  let at = root;
  for (const part of pointer.split("/").slice(1)) {
    const name = unescape(part);
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Keywords)[name];
  }
  return at;
}

function unescape(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return part;
  }
}

export interface Parameter {
  name: string;
  schema: unknown;
  required: boolean;
}

const WORDS: Record<string, string> = {
  string: "text",
  integer: "whole number",
  number: "number",
  boolean: "true or false",
  object: "object",
  array: "list",
  null: "null",
};
const PLURALS: Record<string, string> = { string: "texts", integer: "whole numbers", number: "numbers", boolean: "true or false", object: "objects", array: "lists" };
const MOST_CHOICES = 12;
const LONGEST_VALUE = 80;

export function keywordsOf(schema: unknown): Keywords {
  return typeof schema === "object" && schema !== null && !Array.isArray(schema) ? (schema as Keywords) : {};
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A JSON value in few characters. */
export function shortJson(value: unknown): string {
  const text = JSON.stringify(value) ?? "";
  return visible(text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text);
}

/** The alternatives of a schema that has several. */
export function alternatives(schema: unknown, root: unknown): unknown[] {
  const { anyOf, oneOf } = resolved(schema, root);
  return [...listOf(anyOf), ...listOf(oneOf)];
}

/** What kind of value fits. */
export function typeWords(schema: unknown, root: unknown, depth = 0): string {
  if (schema === false) return "nothing";
  const keywords = resolved(schema, root);
  if ("const" in keywords) return shortJson(keywords.const);
  const choices = listOf(keywords.enum);
  if (choices.length > 0) {
    const some = choices.slice(0, MOST_CHOICES).map(shortJson).join(" | ");
    return choices.length > MOST_CHOICES ? `${some} and ${choices.length - MOST_CHOICES} more` : some;
  }
  const types = [keywords.type].flat().filter((type): type is string => typeof type === "string");
  if (types.length > 0) return types.map((type) => oneType(type, keywords, root, depth)).join(" or ");
  const several = alternatives(schema, root);
  if (several.length > 0 && depth < 4) return [...new Set(several.map((each) => typeWords(each, root, depth + 1)))].join(" or ");
  if (typeof keywords.$ref === "string") return `as ${visible(keywords.$ref)}`;
  if (keywords.properties) return "object";
  if (keywords.items) return oneType("array", keywords, root, depth);
  return "any value";
}

function oneType(type: string, keywords: Keywords, root: unknown, depth: number): string {
  const word = Object.hasOwn(WORDS, type) ? (WORDS[type] ?? type) : visible(type);
  if (type === "string" && typeof keywords.format === "string") return `${word} (${visible(keywords.format)})`;
  if (type !== "array" || depth > 3 || keywords.items === undefined) return word;
  const item = resolved(keywords.items, root);
  const items = item.type;
  const plural = typeof items === "string" && !("enum" in item) && Object.hasOwn(PLURALS, items) ? PLURALS[items] : null;
  return plural && items !== "array" ? `list of ${plural}` : `list of (${typeWords(keywords.items, root, depth + 1)})`;
}

/** What else is asked of a value, each in a few words. */
export function limits(schema: unknown, root: unknown): string[] {
  const keywords = resolved(schema, root);
  const said: string[] = [];
  const range = (least: string, most: string, unit: string): void => {
    const [from, to] = [keywords[least], keywords[most]];
    if (typeof from === "number" && typeof to === "number") said.push(from === to ? `exactly ${from}${unit}` : `${from} to ${to}${unit}`);
    else if (typeof from === "number") said.push(`at least ${from}${unit}`);
    else if (typeof to === "number") said.push(`at most ${to}${unit}`);
  };
  range("minimum", "maximum", "");
  range("minLength", "maxLength", " characters");
  range("minItems", "maxItems", " items");
  if (typeof keywords.exclusiveMinimum === "number") said.push(`more than ${keywords.exclusiveMinimum}`);
  if (typeof keywords.exclusiveMaximum === "number") said.push(`less than ${keywords.exclusiveMaximum}`);
  if (typeof keywords.multipleOf === "number") said.push(`a multiple of ${keywords.multipleOf}`);
  if (typeof keywords.pattern === "string") said.push(`matches ${visible(keywords.pattern)}`);
  if (keywords.uniqueItems === true) said.push("each item once");
  if (keywords.additionalProperties === false && keywords.properties === undefined) said.push("without parameters");
  return said;
}

/** The parameters of an object; those of a list of objects, of its items. */
export function parametersOf(schema: unknown, root: unknown, depth = 0): Parameter[] {
  const keywords = resolved(schema, root);
  if (keywords.properties === undefined && keywords.items !== undefined && depth < LONGEST_CHAIN) return parametersOf(keywords.items, root, depth + 1);
  const required = new Set(listOf(keywords.required));
  return Object.entries(keywordsOf(keywords.properties)).map(([name, each]) => ({ name, schema: each, required: required.has(name) }));
}
