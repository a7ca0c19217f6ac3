// A JSON Schema as it comes from whoever wrote the tool: read with care, references followed when they are needed.

import { fromPlain, identity, JsonNumber, type Json } from "./json_value";

/** What a page parsed, or a value of `json_value`: nothing about it is certain. */
export type Schema = unknown;

/** The keywords of a schema together with those of its references and of allOf. */
export type Keywords = Map<string, unknown>;

export interface Flat {
  keywords: Keywords;
  /** The lists of anyOf and oneOf; a value fits one of each. */
  unions: Schema[][];
  /** What was put together; a schema that is in it again below is recursive. */
  sources: Set<object>;
  /** A reference that leads nowhere, or a schema that is none. */
  odd: string;
  /** Nothing fits. */
  never: boolean;
}

const MOST_SOURCES = 200;

/** A keyword's value; the names of `Object.prototype` are none. */
export function keyword(schema: Schema, name: string): unknown {
  if (schema instanceof Map) return schema.get(name);
  return isObject(schema) && Object.hasOwn(schema, name) ? (schema as Record<string, unknown>)[name] : undefined;
}

export function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof JsonNumber);
}

/** The names of an object with what stands there. */
export function members(value: unknown): [string, unknown][] {
  if (value instanceof Map) return [...(value as Map<string, unknown>)];
  return isObject(value) ? Object.entries(value) : [];
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function texts(value: unknown): string[] {
  return list(value).filter((item) => typeof item === "string");
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A number of a schema as it is written. */
export function numeral(value: unknown): string | null {
  const number = typeof value === "number" || value instanceof JsonNumber ? fromPlain(value) : undefined;
  return number instanceof JsonNumber ? number.text : null;
}

export function count(value: unknown): number | null {
  const number = Number(numeral(value) ?? Number.NaN);
  return Number.isFinite(number) ? number : null;
}

/** The types that a schema names; "integer" is none of its own beside "number". */
export function typesOf(schema: Schema): string[] | null {
  const type = keyword(schema, "type");
  const types = typeof type === "string" ? [type] : texts(type);
  if (types.length === 0) return null;
  return types.includes("number") ? types.filter((name) => name !== "integer") : types;
}

/** What a reference leads to, all along a chain of them; undefined where that is nowhere. */
export function follow(root: Schema, reference: string): Schema {
  const id = keyword(root, "$id");
  const local = typeof id === "string" && id !== "" && reference.startsWith(`${id}#`) ? reference.slice(id.length) : reference;
  if (local === "#" || reference === id) return root;
  if (local.startsWith("#/")) return walk(root, local.slice(2).split("/"));
  const named = [...members(keyword(root, "$defs")), ...members(keyword(root, "definitions"))].map(([, schema]) => schema);
  return [root, ...named].find((schema) => {
    const anchors = [keyword(schema, "$anchor"), keyword(schema, "$dynamicAnchor")];
    return keyword(schema, "$id") === reference || anchors.some((anchor) => anchor !== undefined && `#${text(anchor)}` === local);
  });
}

function walk(root: Schema, steps: string[]): Schema {
  let at: unknown = root;
  for (const step of steps) {
    const name = decode(step).replaceAll("~1", "/").replaceAll("~0", "~");
    at = Array.isArray(at) ? at[Number(name)] : keyword(at, name);
  }
  return at;
}

function decode(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step; // a percent sign that encodes nothing
  }
}

export function referenceOf(schema: Schema): string | null {
  const reference = keyword(schema, "$ref") ?? keyword(schema, "$dynamicRef") ?? keyword(schema, "$recursiveRef");
  return typeof reference === "string" ? reference : null;
}

/** Put a schema, what it refers to and what its allOf holds together. */
export function flatten(root: Schema, schema: Schema): Flat {
  const flat: Flat = { keywords: new Map(), unions: [], sources: new Set(), odd: "", never: false };
  gather(root, schema, flat);
  if (typesOf(flat.keywords)?.length === 0) flat.never = true;
  return flat;
}

function gather(root: Schema, schema: Schema, flat: Flat): void {
  if (schema === true) return;
  if (schema === false) flat.never = true;
  else if (!isObject(schema)) flat.odd ||= "This part of the schema is no schema.";
  else if (!flat.sources.has(schema) && flat.sources.size < MOST_SOURCES) {
    flat.sources.add(schema);
    for (const [name, value] of members(schema)) add(flat, name, value);
    const reference = referenceOf(schema);
    if (reference !== null) {
      const target = follow(root, reference);
      if (target === undefined) flat.odd ||= "The schema refers to something that it does not hold.";
      else gather(root, target, flat);
    }
    for (const part of list(keyword(schema, "allOf"))) gather(root, part, flat);
  }
}

const APART = new Set(["$ref", "$dynamicRef", "$recursiveRef", "allOf", "$defs", "definitions", "$id", "$schema", "$anchor"]);
const LARGER = new Set(["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"]);
const SMALLER = new Set(["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"]);

function add(flat: Flat, name: string, value: unknown): void {
  const { keywords } = flat;
  const known = keywords.get(name);
  if (APART.has(name)) return;
  if (name === "anyOf" || name === "oneOf") {
    if (list(value).length > 0) flat.unions.push(list(value));
  } else if (known === undefined) keywords.set(name, value);
  else if (name === "properties" || name === "patternProperties") keywords.set(name, joined(known, value));
  else if (name === "required") keywords.set(name, [...new Set([...texts(known), ...texts(value)])]);
  else if (name === "type") meet(flat, typesOf(new Map([["type", known]])), typesOf(new Map([["type", value]])));
  else if (name === "enum") keywords.set(name, common(list(known), list(value)));
  else if (name === "items" || name === "additionalProperties") keywords.set(name, both(known, value));
  else if (LARGER.has(name) || SMALLER.has(name)) {
    const [one, other] = [count(known), count(value)];
    if (one === null || (other !== null && (LARGER.has(name) ? other > one : other < one))) keywords.set(name, value);
  }
}

/** The types that two lists share. */
function meet(flat: Flat, known: string[] | null, more: string[] | null): void {
  if (!known || !more) return;
  const shared = known.flatMap((type) => {
    if (more.includes(type)) return [type];
    if (type === "number" && more.includes("integer")) return ["integer"];
    return type === "integer" && more.includes("number") ? [type] : [];
  });
  if (shared.length === 0) flat.never = true;
  else flat.keywords.set("type", shared);
}

function common(known: unknown[], more: unknown[]): unknown[] {
  const ids = new Set(more.map(idOf));
  return known.filter((item) => ids.has(idOf(item)));
}

function idOf(plain: unknown): string | undefined {
  const value = fromPlain(plain);
  return value === undefined ? undefined : identity(value);
}

function both(known: Schema, more: Schema): Schema {
  if (known === false || more === false) return false;
  if (known === true) return more;
  return more === true ? known : { allOf: [known, more] };
}

function joined(known: unknown, more: unknown): Map<string, unknown> {
  const all = new Map(members(known));
  for (const [name, schema] of members(more)) all.set(name, all.has(name) ? both(all.get(name), schema) : schema);
  return all;
}

/** The values that an enum or a const allows; null where there is neither. */
export function allowed(schema: Schema): Json[] | null {
  const constant = keyword(schema, "const");
  const only = constant === undefined ? keyword(schema, "enum") : [constant];
  return Array.isArray(only) ? only.map((item) => fromPlain(item)).filter((item) => item !== undefined) : null;
}
