// What fields with fields in them hold: objects, lists, and one of several forms.

import type { Key } from "./check";
import { Field, type Content } from "./field";
import { identity, type Json, type JsonObject } from "./json_value";
import { fitsPattern } from "./pattern";
import { allowed, count, isObject, list, members, texts, type Keywords, type Schema } from "./schemas";

/** A property under a name that the schema does not list. */
export interface Extra {
  name: string;
  /** Whether it was given a name: until then it is not part of the object. */
  named: boolean;
  field: Field;
}

/** More places with a schema of their own than these are not told apart. */
const MOST_FIXED = 200;

/** What the schema of an object says, in the order of its properties. */
interface ObjectRules {
  properties: Map<string, Schema>;
  required: Set<string>;
  patterns: [string, Schema][];
  others: Schema;
}

const rules = new WeakMap<Keywords, ObjectRules>();

function rulesOf(keywords: Keywords): ObjectRules {
  let known = rules.get(keywords);
  if (!known) {
    const required = new Set(texts(keywords.get("required")));
    const patterns = members(keywords.get("patternProperties"));
    const others = keywords.get("additionalProperties") ?? keywords.get("unevaluatedProperties");
    // What is false and not required is no property: the schema says so.
    const listed = members(keywords.get("properties")).filter(([name, schema]) => schema !== false || required.has(name));
    known = { properties: new Map(listed), required, patterns, others };
    for (const name of required) if (!known.properties.has(name)) known.properties.set(name, schemaFor(known, name));
    rules.set(keywords, known);
  }
  return known;
}

/** The schema of a property that is not listed. */
function schemaFor({ patterns, others }: ObjectRules, name: string): Schema {
  const fitting = patterns.filter(([pattern]) => fitsPattern(pattern, name));
  const [first] = fitting;
  if (first) return fitting.length === 1 ? first[1] : { allOf: fitting.map(([, schema]) => schema) };
  return isObject(others) ? others : true;
}

export class ObjectContent implements Content {
  readonly extras: Extra[] = [];
  /** The names that the schema lists, in its order. */
  readonly names: string[];
  private readonly rules: ObjectRules;
  private readonly made = new Map<string, Field>();
  /** The order in which the names came, if they were filled in. */
  private order: string[] = [];

  constructor(private readonly field: Field) {
    this.rules = rulesOf(field.shape.keywords);
    this.names = [...this.rules.properties.keys()];
  }

  /** Whether a person may add properties of other names. */
  get isOpen(): boolean {
    const { patterns, others } = this.rules;
    if (patterns.length > 0) return true;
    return others === undefined ? !this.field.shape.keywords.has("properties") : others !== false;
  }

  isRequired(name: string): boolean {
    return this.rules.required.has(name);
  }

  /** The field of a listed property. */
  property(name: string): Field {
    let field = this.made.get(name);
    if (!field) {
      const place = { parent: this.field, key: name, required: this.isRequired(name), element: false };
      field = new Field(this.field.form, this.rules.properties.get(name), place);
      this.made.set(name, field);
    }
    return field;
  }

  /** Whether there is something under a listed name. */
  isSet(name: string): boolean {
    return (this.made.get(name)?.state ?? "unset") !== "unset";
  }

  start(): void {
    for (const name of this.rules.required) if (this.field.form.mayBuild("field")) this.property(name).start();
  }

  read(): JsonObject {
    const all: JsonObject = new Map();
    for (const name of this.names) {
      const value = this.made.get(name)?.read();
      if (value !== undefined) all.set(name, value);
    }
    for (const { name, named, field } of this.extras) {
      if (named && !all.has(name)) all.set(name, field.read() ?? null);
    }
    if (this.order.length === 0) return all;
    const known = this.order.filter((name) => all.has(name));
    return new Map([...new Set([...known, ...all.keys()])].map((name) => [name, all.get(name) ?? null]));
  }

  fill(value: Json): boolean {
    if (!(value instanceof Map)) return false;
    this.order = [...value.keys()];
    for (const [name, item] of value) {
      if (this.rules.properties.has(name)) this.property(name).fill(item);
      else this.extras.push(this.makeExtra(name, item));
    }
    return true;
  }

  *inner(): Generator<Field> {
    yield* this.made.values();
    for (const { field } of this.extras) yield field;
  }

  fault(): string {
    const wrong = this.extras.find((extra) => this.nameFault(extra));
    return wrong ? `${wrong.named ? JSON.stringify(wrong.name) : "A property"}: ${this.nameFault(wrong)}` : "";
  }

  /** What is wrong with the name of an extra. */
  nameFault(extra: Extra): string {
    if (!extra.named) return "It has no name yet, and is not sent.";
    const twice = this.extras.some((other) => other.named && other !== extra && other.name === extra.name);
    return twice || this.rules.properties.has(extra.name) ? "This name is there already." : "";
  }

  addExtra(): Extra {
    const extra = this.makeExtra("", undefined);
    this.extras.push(extra);
    return extra;
  }

  removeExtra(extra: Extra): void {
    this.extras.splice(this.extras.indexOf(extra), 1);
  }

  /** Give an extra another name; what comes back is another one where its schema is. */
  rename(extra: Extra, name: string): Extra {
    if (schemaFor(this.rules, name) === extra.field.schema) {
      extra.name = name;
      extra.named = name !== "";
      extra.field.place.key = name;
      return extra;
    }
    const value = extra.field.read();
    const renamed = this.makeExtra(name, value);
    if (renamed.field.state === "json" && !extra.field.touched) renamed.field.start();
    renamed.named = name !== "";
    this.extras.splice(this.extras.indexOf(extra), 1, renamed);
    return renamed;
  }

  private makeExtra(name: string, value: Json | undefined): Extra {
    const place = { parent: this.field, key: name, required: false, element: true };
    const field = new Field(this.field.form, schemaFor(this.rules, name), place);
    if (value === undefined) field.start();
    else field.fill(value);
    return { name, named: name !== "" || value !== undefined, field };
  }
}

export class ListContent implements Content {
  readonly items: Field[] = [];
  /** How many stand at fixed places, each with a schema of its own. */
  readonly fixed: number;
  private readonly first: Schema[];
  private readonly rest: Schema;

  constructor(private readonly field: Field) {
    const { keywords } = field.shape;
    const items = keywords.get("items");
    this.first = list(keywords.get("prefixItems") ?? items).slice(0, MOST_FIXED);
    this.rest = Array.isArray(items) ? keywords.get("additionalItems") : items;
    this.fixed = this.first.length;
    const least = count(keywords.get("minItems")) ?? 0;
    for (const [at, schema] of this.first.entries()) this.items.push(this.makeItem(schema, at, at < least));
  }

  get mayAdd(): boolean {
    const most = count(this.field.shape.keywords.get("maxItems"));
    const open = this.rest !== false && (this.rest !== undefined || this.fixed === 0 || most === null || most > this.fixed);
    return open && (most === null || this.items.length < most);
  }

  start(): void {
    for (const item of this.items) item.start();
  }

  read(): Json[] {
    const values = this.items.map((item) => item.read());
    let length = values.length;
    while (length > 0 && length <= this.fixed && values[length - 1] === undefined) length -= 1;
    return values.slice(0, length).map((value) => value ?? null);
  }

  fill(value: Json): boolean {
    if (!Array.isArray(value)) return false;
    for (const [at, item] of value.entries()) {
      const field = this.items[at] ?? this.makeItem(at < this.fixed ? this.first[at] : this.rest, at, false);
      this.items[at] = field;
      field.fill(item);
    }
    return true;
  }

  inner(): Iterable<Field> {
    return this.items;
  }

  fault(): string {
    return "";
  }

  add(): Field {
    const item = this.makeItem(this.rest, this.items.length, false);
    item.start();
    this.items.push(item);
    return item;
  }

  remove(item: Field): void {
    this.items.splice(this.items.indexOf(item), 1);
    this.count();
  }

  /** Whether an item may change places with the one before or after it. */
  mayMove(item: Field, by: -1 | 1): boolean {
    const to = this.items.indexOf(item) + by;
    return this.items.indexOf(item) >= this.fixed && to >= this.fixed && to < this.items.length;
  }

  move(item: Field, by: -1 | 1): void {
    if (!this.mayMove(item, by)) return;
    const at = this.items.indexOf(item);
    this.items.splice(at, 1);
    this.items.splice(at + by, 0, item);
    this.count();
  }

  private count(): void {
    for (const [at, item] of this.items.entries()) item.place.key = at;
  }

  private makeItem(schema: Schema, key: Key, required: boolean): Field {
    const fixed = typeof key === "number" && key < this.fixed;
    return new Field(this.field.form, schema ?? true, { parent: this.field, key, required, element: !fixed });
  }
}

export class UnionContent implements Content {
  at = -1;
  private readonly made = new Map<number, Field>();

  constructor(private readonly field: Field) {}

  get chosen(): Field | null {
    return this.at < 0 ? null : this.variant(this.at);
  }

  start(): void {}

  read(): Json | undefined {
    return this.chosen?.read();
  }

  /** Take a value in the first form that it fits, or else in one that can show it. */
  fill(value: Json): boolean {
    const { variants } = this.field.shape;
    const fits = variants.findIndex(({ schema }, at) => this.field.form.fits(schema, value) && this.shows(at, value));
    this.at = fits >= 0 ? fits : variants.findIndex((_, at) => this.shows(at, value));
    return this.at >= 0;
  }

  choose(at: number): void {
    this.at = at;
    if (at < 0 || this.variant(at).state !== "unset") return;
    const chosen = this.variant(at);
    chosen.start();
    if (chosen.state !== "value" || !(chosen.content instanceof ObjectContent)) return;
    for (const [name, value] of this.tagsOf(at)) if (!chosen.content.isSet(name)) chosen.content.property(name).fill(value);
  }

  /** What a form is told apart by: properties of one value that another form does not allow there. */
  private tagsOf(at: number): [string, Json][] {
    const properties = this.field.shape.variants.map(({ schema }) => members(this.field.form.shape(schema).keywords.get("properties")));
    const values = (schema: Schema): Json[] | null => allowed(this.field.form.shape(schema).keywords);
    const differs = (name: string, value: Json): boolean =>
      properties.some((others, other) => {
        const found = other === at ? undefined : others.find(([each]) => each === name);
        const theirs = found ? values(found[1]) : null;
        return theirs !== null && theirs.every((each) => identity(each) !== identity(value));
      });
    return (properties[at] ?? []).flatMap(([name, schema]): [string, Json][] => {
      const own = values(schema);
      const [value] = own ?? [];
      return own?.length === 1 && value !== undefined && differs(name, value) ? [[name, value]] : [];
    });
  }

  /** The schema of the form that is chosen, as the whole schema has it. */
  get source(): Schema {
    return this.field.shape.variants[this.at]?.source;
  }

  inner(): Iterable<Field> {
    const { chosen } = this;
    return chosen ? [chosen] : [];
  }

  fault(): string {
    if (!this.chosen) return "Choose one of the forms.";
    return this.chosen.state === "unset" ? "This has no value yet." : "";
  }

  private shows(at: number, value: Json): boolean {
    const field = this.variant(at);
    field.fill(value);
    if (field.state !== "json") return true;
    field.clear();
    return false;
  }

  private variant(at: number): Field {
    const known = this.made.get(at);
    if (known) return known;
    const schema = this.field.shape.variants[at]?.schema ?? true;
    const field = new Field(this.field.form, schema, { parent: this.field, required: false, element: true });
    this.made.set(at, field);
    return field;
  }
}
