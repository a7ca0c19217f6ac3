// The form as data: a schema and a value become a tree of fields, and back.

import { check, keyOf, pathOf, seemsToFit, type Key } from "./check";
import { ListContent, ObjectContent, UnionContent } from "./composites";
import { ChoiceContent, JsonContent, NumberContent, TextContent } from "./contents";
import { Field, type Content, type FormModel } from "./field";
import { readExactJson, writeJson, type Json } from "./json_value";
import { isObject, type Schema } from "./schemas";
import { shapeOf, type Shape } from "./shape";

/** What nobody asked for is built up to so many objects and lists, and fields in them: a schema may ask for any number. */
const MOST_OBJECTS = 20;
const MOST_FIELDS = 20_000;
/** A schema is nested deeper than its values are. */
const MOST_SCHEMA_LEVELS = 1_000;

export interface Problem {
  /** Where, as a person writes it: `address.lines[0]`; empty for the whole. */
  path: string;
  message: string;
}

export interface FoundProblem extends Problem {
  keys: Key[];
}

export class Model implements FormModel {
  readonly root: Field;
  readonly schema: Schema;
  private readonly shapes = new WeakMap<object, Shape>();
  private objects = 0;
  private fields = 0;

  /** `schema` is what a page parsed, or a JSON text, whose numbers then are kept as they are written. */
  constructor(schema: Schema) {
    this.schema = typeof schema === "string" ? parsed(schema) : schema;
    this.root = new Field(this, this.schema ?? true, { parent: null, required: true, element: false });
    this.root.start();
  }

  /** The value as JSON; empty while there is none. */
  get text(): string {
    const value = this.root.read();
    return value === undefined ? "" : writeJson(value);
  }

  /** Take a value; what no control can show stays as JSON. */
  fill(value: Json): void {
    this.root.fill(value);
  }

  problems(): FoundProblem[] {
    const value = this.root.read();
    const found = Array.from(this.root.faults(), ({ field, message }) => ({ keys: field.keys, message }));
    const told = new Set(found.map(({ keys }) => keyOf(keys)));
    const missing = { keys: [], message: "This is required." };
    for (const each of value === undefined ? [missing] : check(this.schema, this.schema, value, this.chosen())) {
      if (!told.has(keyOf(each.keys))) found.push(each);
    }
    return found.map(({ keys, message }) => ({ keys, message, path: pathOf(keys) }));
  }

  /** The forms that were chosen of unions, by the keys of their values. */
  private chosen(): Map<string, Set<Schema>> {
    const chosen = new Map<string, Set<Schema>>();
    const visit = (field: Field): void => {
      if (field.state !== "value" || !field.isComposite) return;
      const { content } = field;
      if (content instanceof UnionContent && content.source !== undefined) {
        const key = keyOf(field.keys);
        chosen.set(key, (chosen.get(key) ?? new Set()).add(content.source));
      }
      for (const inner of content.inner()) visit(inner);
    };
    visit(this.root);
    return chosen;
  }

  shape(schema: Schema): Shape {
    if (!isObject(schema)) return shapeOf(this.schema, schema);
    let shape = this.shapes.get(schema);
    if (!shape) {
      shape = shapeOf(this.schema, schema);
      this.shapes.set(schema, shape);
    }
    return shape;
  }

  content(field: Field): Content {
    switch (field.shape.kind) {
      case "string":
        return new TextContent();
      case "number":
        return new NumberContent();
      case "choice":
      case "fixed":
        return new ChoiceContent(field);
      case "object":
        return new ObjectContent(field);
      case "list":
        return new ListContent(field);
      case "union":
        return new UnionContent(field);
      case "json":
        return new JsonContent();
    }
  }

  fits(schema: Schema, value: Json): boolean {
    return seemsToFit(this.schema, schema, value);
  }

  mayBuild(what: "object" | "field"): boolean {
    if (what === "field") return (this.fields += 1) <= MOST_FIELDS;
    return (this.objects += 1) <= MOST_OBJECTS;
  }
}

function parsed(text: string): Schema {
  const read = readExactJson(text, MOST_SCHEMA_LEVELS);
  return "value" in read ? read.value : text;
}
