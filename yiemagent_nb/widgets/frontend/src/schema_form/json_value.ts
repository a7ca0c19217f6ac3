// JSON values that lose nothing: numbers keep their spelling, objects their order and every name.

import { findFault } from "../json_text";

export type Json = null | boolean | string | JsonNumber | Json[] | JsonObject;
export type JsonObject = Map<string, Json>;

/** A number as it is written in JSON. */
export class JsonNumber {
  constructor(readonly text: string) {}
}

/** Deeper texts are refused: neither Python nor a page reads them safely. */
const MOST_LEVELS = 200;
const TOKEN = /[{}[\],:]|"(?:[^"\\]|\\.)*"|[^\s{}[\],:"]+/g;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Read JSON; what is wrong with it comes in words, with its place. */
export function readExactJson(text: string, levels = MOST_LEVELS): { value: Json } | { problem: string } {
  if (isJson(text)) return build(text, levels);
  const fault = findFault(text, true);
  if (!fault) return { problem: "It is nested too deeply." };
  return { problem: fault.line > 1 ? `Line ${fault.line}: ${fault.problem}` : fault.problem };
}

/** The browser tells that fastest; what is wrong, and where, it tells less well. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Whether a text is a number as JSON has it. */
export function isNumber(text: string): boolean {
  return NUMBER.test(text);
}

/** Build the value of a text that is known to be JSON. */
function build(text: string, levels: number): { value: Json } | { problem: string } {
  const open: { items: Json[] | JsonObject; name: string | null }[] = [];
  let whole: Json = null;
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === "," || token === ":") continue;
    if (token === "}" || token === "]") {
      open.pop();
      continue;
    }
    const inner = open.at(-1);
    if (inner && inner.items instanceof Map && inner.name === null) {
      inner.name = JSON.parse(token) as string;
      if (inner.items.has(inner.name)) return { problem: `The name ${token} stands twice in one object.` };
      continue;
    }
    if (/^-?\d.*e/i.test(token) && !Number.isFinite(Number(token))) return { problem: `The number ${token} is too large.` };
    const value = token === "{" ? new Map<string, Json>() : token === "[" ? [] : scalar(token);
    if (!inner) whole = value;
    else if (inner.items instanceof Map) {
      inner.items.set(inner.name ?? "", value);
      inner.name = null;
    } else inner.items.push(value);
    if (value instanceof Map || Array.isArray(value)) open.push({ items: value, name: null });
    if (open.length > levels) return { problem: "It is nested too deeply." };
  }
  return { value: whole };
}

function scalar(token: string): Json {
  if (token.startsWith('"')) return JSON.parse(token) as string;
  if (token === "null") return null;
  return token === "true" || token === "false" ? token === "true" : new JsonNumber(token);
}

export type TypeName = "null" | "boolean" | "string" | "number" | "array" | "object";

/** The type of a value as JSON Schema names it. */
export function typeOf(value: Json): TypeName {
  if (value === null) return "null";
  if (value instanceof JsonNumber) return "number";
  if (value instanceof Map) return "object";
  return Array.isArray(value) ? "array" : typeof value === "string" ? "string" : "boolean";
}

/** Write JSON in lines; with `indent` null in one. */
export function writeJson(value: Json, indent: string | null = ""): string {
  if (value instanceof JsonNumber) return value.text;
  if (!(value instanceof Map) && !Array.isArray(value)) return JSON.stringify(value);
  const deeper = indent === null ? null : `${indent}  `;
  const items = Array.isArray(value)
    ? value.map((item) => writeJson(item, deeper))
    : Array.from(value, ([name, item]) => `${JSON.stringify(name)}: ${writeJson(item, deeper)}`);
  const [start, end] = Array.isArray(value) ? "[]" : "{}";
  if (items.length === 0) return `${start}${end}`;
  return indent === null ? `${start}${items.join(", ")}${end}` : `${start}\n${deeper}${items.join(`,\n${deeper}`)}\n${indent}${end}`;
}

/** What a page already parsed, as a value of ours; undefined where it is no JSON. */
export function fromPlain(plain: unknown, level = 0): Json | undefined {
  if (plain === null || typeof plain === "boolean" || typeof plain === "string") return plain;
  if (plain instanceof JsonNumber) return plain;
  if (typeof plain === "number") return Number.isFinite(plain) ? new JsonNumber(String(plain)) : undefined;
  if (typeof plain !== "object" || level > MOST_LEVELS) return undefined;
  if (Array.isArray(plain)) {
    const items = plain.map((item) => fromPlain(item, level + 1));
    return items.every((item) => item !== undefined) ? items : undefined;
  }
  const object: JsonObject = new Map();
  for (const [name, item] of plain instanceof Map ? plain : Object.entries(plain)) {
    const value = fromPlain(item, level + 1);
    if (value === undefined) return undefined;
    object.set(String(name), value);
  }
  return object;
}

/** A text that two values share if JSON Schema takes them for equal: 1 is 1.0, and the order of names is nothing. */
export function identity(value: Json): string {
  if (value instanceof JsonNumber) return normalNumber(value.text);
  if (Array.isArray(value)) return `[${value.map(identity).join()}]`;
  if (!(value instanceof Map)) return JSON.stringify(value);
  const items = Array.from(value, ([name, item]) => `${JSON.stringify(name)}:${identity(item)}`);
  return `{${items.sort().join()}}`;
}

/** A number without what its spelling adds: `-12e3` for -12000.0. */
export function normalNumber(text: string): string {
  const [, sign = "", whole = "", fraction = "", power = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  const short = digits.replace(/0+$/, "");
  if (short === "") return "0e0";
  return `${sign}${short}e${Number(power) - fraction.length + digits.length - short.length}`;
}
