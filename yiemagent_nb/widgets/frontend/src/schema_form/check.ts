// Whether a value fits a schema, and where it does not, in words.

import { codePoints } from "../text";
import { compareNumbers, isMultiple } from "./decimal";
import { formatNamed } from "./formats";
import { identity, JsonNumber, writeJson, type Json, type JsonObject } from "./json_value";
import { fitsPattern } from "./pattern";
import { allowed, count, follow, isObject, keyword, list, members, numeral, referenceOf, text, texts, typesOf, type Schema } from "./schemas";
import { isNull, isOfType } from "./shape";

export type Key = string | number;

export interface Found {
  keys: Key[];
  message: string;
}

const MOST_FOUND = 100;
/** A schema and a value together may be made to take for ever: after so many steps the rest counts as fitting. */
const MOST_STEPS = 40_000;
/** The same, to tell which of several forms a value has: that is asked often. */
const MOST_STEPS_OF_FORM = 4_000;

const TYPE_WORDS: Record<string, string> = {
  null: "null",
  boolean: "true or false",
  string: "a text",
  number: "a number",
  integer: "a whole number",
  array: "a list",
  object: "an object",
};

/** `chosen` are the forms that a person chose of unions, by the place of the value. */
export function check(root: Schema, schema: Schema, value: Json, chosen?: ReadonlyMap<string, ReadonlySet<Schema>>): Found[] {
  const checker = new Checker(root, MOST_STEPS, chosen);
  checker.visit(schema, value, []);
  return checker.found;
}

/** Whether a value fits, as far as that is told soon. */
export function seemsToFit(root: Schema, schema: Schema, value: Json): boolean {
  const checker = new Checker(root, MOST_STEPS_OF_FORM);
  checker.visit(schema, value, []);
  return checker.found.length === 0;
}

class Checker {
  found: Found[] = [];
  /** The references that were followed for the value at hand: one that comes again adds nothing. */
  private followed = new Set<Schema>();

  constructor(
    private readonly root: Schema,
    private steps = MOST_STEPS,
    private readonly chosen: ReadonlyMap<string, ReadonlySet<Schema>> = new Map<string, ReadonlySet<Schema>>(),
  ) {}

  visit(schema: Schema, value: Json, keys: Key[]): void {
    this.steps -= 1;
    if (this.steps < 0 || this.found.length >= MOST_FOUND) return;
    if (schema === false) this.tell(keys, "Nothing is allowed here.");
    if (!isObject(schema) || this.followed.has(schema)) return;
    this.followed.add(schema);
    this.composed(schema, value, keys);
    const before = this.found.length;
    this.simple(schema, value, keys);
    if (this.found.length === before) {
      if (value instanceof JsonNumber) this.number(schema, value.text, keys);
      else if (typeof value === "string") this.string(schema, value, keys);
      else if (Array.isArray(value)) this.list(schema, value, keys);
      else if (value instanceof Map) this.object(schema, value, keys);
    }
    this.followed.delete(schema);
  }

  /** What is wrong with a value on its own. */
  private alone(schema: Schema, value: Json, keys: Key[]): Found[] {
    const { found } = this;
    this.found = [];
    this.visit(schema, value, keys);
    const alone = this.found;
    this.found = found;
    return alone;
  }

  private fits(schema: Schema, value: Json): boolean {
    return this.alone(schema, value, []).length === 0;
  }

  /** Look at a value inside of the one at hand. */
  private inside(schema: Schema, value: Json, keys: Key[]): void {
    const { followed } = this;
    this.followed = new Set();
    this.visit(schema, value, keys);
    this.followed = followed;
  }

  private tell(keys: Key[], message: string): void {
    this.found.push({ keys, message });
  }

  private composed(schema: object, value: Json, keys: Key[]): void {
    const reference = referenceOf(schema);
    if (reference !== null) this.visit(follow(this.root, reference), value, keys);
    for (const part of list(keyword(schema, "allOf"))) this.visit(part, value, keys);
    for (const name of ["anyOf", "oneOf"]) {
      const variants = list(keyword(schema, name));
      if (variants.length > 0) this.union(variants, name === "oneOf", value, keys);
    }
    if (keyword(schema, "not") !== undefined && this.fits(keyword(schema, "not"), value)) {
      this.tell(keys, "The schema excludes this value.");
    }
    const condition = keyword(schema, "if");
    if (condition !== undefined) this.visit(keyword(schema, this.fits(condition, value) ? "then" : "else"), value, keys);
  }

  private union(all: Schema[], onlyOne: boolean, value: Json, keys: Key[]): void {
    const chosen = this.chosen.size > 0 ? this.chosen.get(keyOf(keys)) : undefined;
    const variants = value === null ? all : all.filter((variant) => !isNull(this.root, variant));
    let fitting = 0;
    let best: Found[] | null = null;
    let told: Found[] | null = null;
    for (const variant of variants) {
      const wrong = this.alone(variant, value, keys);
      if (wrong.length === 0) fitting += 1;
      if (fitting > (onlyOne ? 1 : 0)) break;
      if (chosen?.has(variant)) told = wrong;
      const deeper = wrong.every((each) => each.keys.length > keys.length);
      if (!best || (deeper && wrong.length < best.length)) best = wrong;
    }
    if (fitting === 1 || (fitting > 0 && !onlyOne)) return;
    if (fitting > 1) this.tell(keys, "This fits more than one of the forms, and may only fit one.");
    else if (told ?? (variants.length === 1 && best)) this.found.push(...(told ?? best ?? []));
    else if (best?.length && best.every((each) => each.keys.length > keys.length)) this.found.push(...best);
    else this.tell(keys, "This fits none of the forms that are allowed here.");
  }

  private simple(schema: object, value: Json, keys: Key[]): void {
    const types = typesOf(schema);
    const nullable = value === null && keyword(schema, "nullable") === true;
    if (types && !nullable && !types.some((type) => isOfType(value, type))) {
      this.tell(keys, `${capital(types.map((type) => TYPE_WORDS[type] ?? type).join(" or "))} is expected.`);
      return;
    }
    const values = allowed(schema);
    if (!values) return;
    const id = identity(value);
    if (values.some((each) => identity(each) === id)) return;
    const some = values.slice(0, 5).map((each) => writeJson(each, null)).join(", ");
    this.tell(keys, values.length === 1 ? `Only ${some} is allowed.` : `One of these is expected: ${some}${values.length > 5 ? ", …" : ""}`);
  }

  private number(schema: object, value: string, keys: Key[]): void {
    const limit = (name: string, wrong: (order: number) => boolean, words: string): void => {
      const bound = numeral(keyword(schema, name));
      if (bound !== null && wrong(compareNumbers(value, bound))) this.tell(keys, `This must be ${words} ${bound}.`);
    };
    const strict = (name: string): boolean => keyword(schema, name) === true; // as draft 4 has it
    limit("minimum", (order) => order < (strict("exclusiveMinimum") ? 1 : 0), strict("exclusiveMinimum") ? "above" : "at least");
    limit("maximum", (order) => order > (strict("exclusiveMaximum") ? -1 : 0), strict("exclusiveMaximum") ? "below" : "at most");
    limit("exclusiveMinimum", (order) => order <= 0, "above");
    limit("exclusiveMaximum", (order) => order >= 0, "below");
    const multiple = numeral(keyword(schema, "multipleOf"));
    if (multiple !== null && !isMultiple(value, multiple)) this.tell(keys, `This must be a multiple of ${multiple}.`);
  }

  private string(schema: object, value: string, keys: Key[]): void {
    this.size(schema, ["minLength", "maxLength"], codePoints(value), "character", keys);
    const pattern = text(keyword(schema, "pattern"));
    if (pattern && fitsPattern(pattern, value) === false) this.tell(keys, `This does not match ${clip(pattern)}`);
    const format = formatNamed(text(keyword(schema, "format")));
    if (format && !format.fits(value)) {
      this.tell(keys, `This is no ${format.name}${format.example && `, such as ${format.example}`}.`);
    }
  }

  private list(schema: object, value: Json[], keys: Key[]): void {
    this.size(schema, ["minItems", "maxItems"], value.length, "item", keys);
    const items = keyword(schema, "items");
    const first = list(keyword(schema, "prefixItems") ?? items);
    const rest = Array.isArray(items) ? keyword(schema, "additionalItems") : items;
    for (const [at, item] of value.entries()) {
      const own = at < first.length ? first[at] : rest;
      if (own === false) this.tell([...keys, at], "There is one item too many.");
      else if (own !== undefined) this.inside(own, item, [...keys, at]);
    }
    if (keyword(schema, "uniqueItems") === true) this.unique(value, keys);
    const wanted = keyword(schema, "contains");
    if (wanted === undefined) return;
    const many = value.filter((item) => this.fits(wanted, item)).length;
    const least = count(keyword(schema, "minContains")) ?? 1;
    if (many < least) this.tell(keys, "An item that the schema asks for is missing.");
    if (many > (count(keyword(schema, "maxContains")) ?? many)) this.tell(keys, "There are too many items of one kind.");
  }

  private unique(value: Json[], keys: Key[]): void {
    const seen = new Set<string>();
    for (const [at, item] of value.entries()) {
      const id = identity(item);
      if (seen.has(id)) this.tell([...keys, at], "This is in the list already.");
      seen.add(id);
    }
  }

  private object(schema: object, value: JsonObject, keys: Key[]): void {
    this.size(schema, ["minProperties", "maxProperties"], value.size, "property", keys);
    for (const name of texts(keyword(schema, "required"))) {
      if (!value.has(name)) this.tell([...keys, name], "This is required.");
    }
    const properties = keyword(schema, "properties");
    const patterns = members(keyword(schema, "patternProperties"));
    const others = keyword(schema, "additionalProperties");
    const names = keyword(schema, "propertyNames");
    for (const [name, item] of value) {
      const own = keyword(properties, name);
      if (own !== undefined) this.inside(own, item, [...keys, name]);
      let known = own !== undefined;
      for (const [pattern, each] of patterns) {
        const fits = fitsPattern(pattern, name);
        if (fits) this.inside(each, item, [...keys, name]);
        known ||= fits !== false;
      }
      if (!known && others === false) this.tell([...keys, name], "The tool knows no property of this name.");
      else if (!known && others !== undefined) this.inside(others, item, [...keys, name]);
      if (names !== undefined && !this.fits(names, name)) this.tell([...keys, name], "This name is not allowed.");
    }
    this.dependent(schema, value, keys);
  }

  private dependent(schema: object, value: JsonObject, keys: Key[]): void {
    for (const [name, needed] of members(keyword(schema, "dependentRequired"))) {
      for (const other of value.has(name) ? texts(needed) : []) {
        if (!value.has(other)) this.tell([...keys, other], `This is required where there is ${clip(name)}.`);
      }
    }
    for (const [name, more] of members(keyword(schema, "dependentSchemas"))) {
      if (value.has(name)) this.visit(more, value, keys);
    }
  }

  private size(schema: object, [least, most]: [string, string], size: number, what: string, keys: Key[]): void {
    const [from, to] = [count(keyword(schema, least)), count(keyword(schema, most))];
    const words = (number: number): string => `${number} ${number === 1 ? what : what === "property" ? "properties" : `${what}s`}`;
    if (from !== null && size < from) this.tell(keys, `At least ${words(from)} expected; there ${size === 1 ? "is" : "are"} ${size}.`);
    if (to !== null && size > to) this.tell(keys, `At most ${words(to)} expected; there are ${size}.`);
  }
}

function clip(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Keys as one text. */
export function keyOf(keys: Key[]): string {
  return JSON.stringify(keys);
}

/** A value's path as a person writes it: `address.lines[0]`. */
export function pathOf(keys: Key[]): string {
  return keys
    .map((key) => {
      if (typeof key === "number") return `[${key}]`;
      return /^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
    })
    .join("")
    .replace(/^\./, "");
}
