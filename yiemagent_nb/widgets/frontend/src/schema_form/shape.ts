// What a schema asks a person for: which kind of control, what it is called, what it may hold.

import { isWhole } from "./decimal";
import { formatNamed, type Format } from "./formats";
import { fromPlain, identity, JsonNumber, typeOf, writeJson, type Json } from "./json_value";
import { allowed, count, flatten, isObject, keyword, list, members, referenceOf, text, texts, typesOf, type Flat, type Keywords, type Schema } from "./schemas";

/** `json` is a field for JSON: for what has no type, or has one that no control fits. */
export type Kind = "string" | "number" | "choice" | "fixed" | "object" | "list" | "union" | "json";

export interface Choice {
  label: string;
  value: Json;
}

export interface Variant {
  label: string;
  schema: Schema;
  /** The same as it stands in the schema of the whole. */
  source?: Schema;
}

export interface Shape {
  kind: Kind;
  keywords: Keywords;
  /** Whether null is allowed beside what the kind holds. */
  nullable: boolean;
  title: string;
  description: string;
  /** What is to be put in, in a few words. */
  hint: string;
  /** What the tool takes where nothing is sent. */
  fallback: Json | undefined;
  example: Json | undefined;
  /** The schemas that this came from; one of them below it is recursive. */
  sources: Set<object>;
  /** Of a choice: what there is to choose from; of what is fixed, the one value. */
  choices: Choice[];
  /** Of a choice: whether it is between true and false. */
  flags: boolean;
  variants: Variant[];
  format: Format | undefined;
  whole: boolean;
}

const LONGEST_TITLE = 200;
const LONGEST_DESCRIPTION = 2_000;
const MOST_CHOICES = 500;
const MOST_VARIANTS = 100;
/** Unions of one form in one another that are followed. */
const MOST_DEPTH = 8;
const ONLY_CONDITIONS = new Set(["required", "not", "if", "then", "else", "minProperties", "maxProperties", "dependentRequired", "title", "description", "$comment"]);

const OBJECT_WORDS = ["properties", "patternProperties", "additionalProperties", "propertyNames", "required"];
const LIST_WORDS = ["items", "prefixItems", "uniqueItems", "minItems", "maxItems", "contains"];
const STRING_WORDS = ["pattern", "format", "minLength", "maxLength"];
const NUMBER_WORDS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

export function shapeOf(root: Schema, schema: Schema, depth = 0): Shape {
  return new Reader(root, flatten(root, schema), depth).shape();
}

class Reader {
  private readonly keywords: Keywords;
  private nullable = false;

  constructor(
    private readonly root: Schema,
    private readonly flat: Flat,
    private readonly depth: number,
  ) {
    this.keywords = flat.keywords;
  }

  shape(): Shape {
    const { keywords, flat } = this;
    if (flat.never) return this.make("json", "nothing is allowed here");
    if (flat.odd) return this.make("json", flat.odd);
    const values = allowed(keywords);
    if (values && values.length > 0) return this.choice(values);
    const unions = flat.unions.filter((variants) => !variants.every((variant) => this.isCondition(variant)));
    const [variants, ...others] = unions;
    if (variants) return this.union(variants, others);
    return this.plain();
  }

  private plain(): Shape {
    const { keywords } = this;
    const named = typesOf(keywords);
    if (keywords.get("nullable") === true && named) this.nullable = true;
    const types = (named ?? this.guessed()).filter((type) => type !== "null");
    if (named?.includes("null")) this.nullable = true;
    const [type] = types;
    if (types.length > 1) {
      const variants = types.map((each) => ({ label: each, schema: new Map([...keywords, ["type", each]]).set("title", "") }));
      return { ...this.make("union", types.join(" or ")), variants: this.labelled(variants) };
    }
    switch (type) {
      case "string":
        return this.make("string", this.stringHint());
      case "integer":
      case "number":
        return this.make("number", this.numberHint(type));
      case "boolean":
        return this.choice([true, false]);
      case "object":
        return this.make("object", "object");
      case "array":
        return this.make("list", this.listHint());
      default:
        if (named && type === undefined) return this.choice([null]);
        return this.make("json", type === undefined ? "any JSON" : `JSON, of the type ${clip(type, 40)}`);
    }
  }

  /** What the keywords are about, where no type is named. */
  private guessed(): string[] {
    const has = (words: string[]): boolean => words.some((word) => this.keywords.has(word));
    if (has(OBJECT_WORDS)) return ["object"];
    if (has(LIST_WORDS)) return ["array"];
    if (has(STRING_WORDS)) return ["string"];
    return has(NUMBER_WORDS) ? ["number"] : [];
  }

  private union(all: Schema[], others: Schema[][]): Shape {
    const { keywords } = this;
    const variants = all.filter((variant) => !isNull(this.root, variant));
    const base: Keywords = new Map(keywords);
    const types = typesOf(base);
    const takesNull = variants.length < all.length && (types === null || types.includes("null"));
    if (takesNull || base.get("nullable") === true) this.nullable = true;
    const values = others.length > 0 ? null : this.named(variants);
    if (values) return this.choices(values);
    if (types && !takesNull) base.set("type", types.filter((type) => type !== "null" || !variants.length));
    for (const told of ["title", "description", "default", "examples"]) base.delete(told);
    const rest = others.map((variants) => ({ anyOf: variants }));
    const [only] = variants;
    if (variants.length === 1) {
      if (this.depth > MOST_DEPTH) return this.make("json", "any JSON");
      const inner = shapeOf(this.root, { allOf: [keywords, only, ...rest] }, this.depth + 1);
      return this.nullable ? withNull(inner) : inner;
    }
    if (variants.length === 0) return this.choice([null]);
    if (variants.length > MOST_VARIANTS) return this.make("json", `one of ${variants.length} forms, as JSON`);
    const made = variants.map((variant, at) => ({
      label: this.nameOf(variant, at),
      schema: base.size > 0 || rest.length > 0 ? { allOf: [variant, base, ...rest] } : variant,
      source: variant,
    }));
    return { ...this.make("union", ""), variants: this.labelled(made) };
  }

  /** Variants that are one value each, as `const` with a title: something to choose from. */
  private named(variants: Schema[]): Choice[] | null {
    const choices: Choice[] = [];
    for (const variant of variants) {
      const flat = flatten(this.root, variant);
      const values = flat.unions.length > 0 ? null : allowed(flat.keywords);
      const [value] = values ?? [];
      if (values?.length !== 1 || value === undefined) return null;
      choices.push({ label: text(flat.keywords.get("title")), value });
    }
    return choices.length > 0 ? choices : null;
  }

  private choice(values: Json[]): Shape {
    const types = typesOf(this.keywords);
    const fitting = types ? values.filter((value) => types.some((type) => isOfType(value, type))) : values;
    const names = texts(this.keywords.get("x-enumNames") ?? this.keywords.get("enumNames"));
    const labels = names.length === values.length ? names : [];
    return this.choices(fitting.map((value) => ({ label: labels[values.indexOf(value)] ?? "", value })));
  }

  private choices(choices: Choice[]): Shape {
    const { keywords } = this;
    const flags = keywords.get("type") !== undefined && choices.length === 2 && choices.every(({ value }) => typeof value === "boolean");
    const mixed = choices.some(({ value }) => typeof value !== "string");
    const all = this.nullable && choices.every(({ value }) => value !== null) ? [...choices, { label: "", value: null }] : choices;
    const named = all.map(({ label, value }) => {
      const plain = typeof value === "string" && !mixed && value.trim() !== "" ? value : writeJson(value, null);
      return { label: clip(label && label !== plain ? `${label} (${plain})` : plain, LONGEST_TITLE), value };
    });
    if (named.length > MOST_CHOICES) return { ...this.make("json", `one of ${named.length} values, as JSON`), nullable: false };
    const fixed = named.length === 1 && keywords.has("const");
    const kind = fixed ? "fixed" : "choice";
    return { ...this.make(kind, flags ? "boolean" : fixed ? "always the same" : ""), choices: named, flags, nullable: false };
  }

  private make(kind: Kind, hint: string): Shape {
    const { keywords } = this;
    const examples = keywords.get("examples");
    return {
      kind,
      keywords,
      nullable: this.nullable && kind !== "json",
      title: clip(text(keywords.get("title")), LONGEST_TITLE),
      description: clip(text(keywords.get("description")), LONGEST_DESCRIPTION),
      hint: keywords.get("deprecated") === true ? `${hint}${hint && ", "}deprecated` : hint,
      fallback: fromPlain(keywords.get("default")),
      example: fromPlain(Array.isArray(examples) ? examples[0] : keywords.get("example")),
      sources: this.flat.sources,
      choices: [],
      flags: false,
      variants: [],
      format: kind === "string" ? formatNamed(text(keywords.get("format"))) : undefined,
      whole: kind === "number" && (typesOf(keywords) ?? []).includes("integer"),
    };
  }

  /** Whether a variant of a union asks for nothing of its own, and only says what must be there. */
  private isCondition(variant: Schema): boolean {
    return isObject(variant) && members(variant).every(([name]) => ONLY_CONDITIONS.has(name));
  }

  /** What a variant is called: its title, what it refers to, the constant that tells it apart, or its type. */
  private nameOf(variant: Schema, at: number): string {
    const { keywords } = flatten(this.root, variant);
    const title = text(keyword(variant, "title")) || text(keywords.get("title"));
    if (title) return title;
    for (const [, property] of members(keywords.get("properties"))) {
      const value = fromPlain(keyword(property, "const"));
      if (typeof value === "string") return value;
    }
    const reference = referenceOf(variant)?.split("/").at(-1);
    if (reference && reference !== "#") return reference;
    const types = typesOf(keywords)?.join(" or ");
    const format = text(keywords.get("format"));
    if (types === "array") {
      const item = typesOf(keyword(flatten(this.root, keywords.get("items")).keywords, "type") ? flatten(this.root, keywords.get("items")).keywords : {})?.join(" or ");
      return item ? `list of ${item}` : "list";
    }
    const values = allowed(keywords);
    if (values) return values.slice(0, 3).map((value) => writeJson(value, null)).join(", ") + (values.length > 3 ? "…" : "");
    return types ? `${types}${format && ` (${format})`}` : `form ${at + 1}`;
  }

  /** Names that a list of them tells apart. */
  private labelled(variants: Variant[]): Variant[] {
    const seen = new Map<string, number>();
    return variants.map(({ label, ...variant }) => {
      const name = clip(label, 80);
      const times = (seen.get(name) ?? 0) + 1;
      seen.set(name, times);
      return { label: times > 1 ? `${name} (${times})` : name, ...variant };
    });
  }

  private stringHint(): string {
    const { keywords } = this;
    const format = text(keywords.get("format"));
    const pattern = text(keywords.get("pattern"));
    const encoding = text(keywords.get("contentEncoding"));
    const kind = formatNamed(format)?.name ?? clip(format || encoding, 40);
    const length = between(count(keywords.get("minLength")), count(keywords.get("maxLength")), "character");
    return ["string", kind, length, pattern && `matches ${clip(pattern, 60)}`].filter(Boolean).join(", ");
  }

  private numberHint(type: string): string {
    const number = (name: string): string => written(this.keywords.get(name));
    const [least, above, most, below] = ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"].map(number);
    const range = least && most && !above && !below ? `${least} to ${most}` : "";
    const limits = range ? [range] : [least && `at least ${least}`, above && `above ${above}`, most && `at most ${most}`, below && `below ${below}`];
    const multiple = number("multipleOf");
    return [type, ...limits, multiple && multiple !== "1" && `a multiple of ${multiple}`].filter(Boolean).join(", ");
  }

  private listHint(): string {
    const { keywords } = this;
    const length = between(count(keywords.get("minItems")), count(keywords.get("maxItems")), "item");
    return ["list", length, keywords.get("uniqueItems") === true && "each once"].filter(Boolean).join(", ");
  }
}

/** Whether a schema takes null and nothing else. */
export function isNull(root: Schema, schema: Schema): boolean {
  const { keywords, unions } = flatten(root, schema);
  const values = allowed(keywords);
  if (unions.length > 0) return false;
  return values ? values.length === 1 && values[0] === null : typesOf(keywords)?.join() === "null";
}

/** The same, and null beside it. */
function withNull(shape: Shape): Shape {
  if (shape.kind === "json") return shape;
  if (shape.kind !== "choice" && shape.kind !== "fixed") return { ...shape, nullable: true };
  if (shape.choices.some(({ value }) => value === null)) return shape;
  return { ...shape, kind: "choice", choices: [...shape.choices, { label: "null", value: null }] };
}

/** Whether a value is of a type of JSON Schema. */
export function isOfType(value: Json, type: string): boolean {
  if (type === "integer") return value instanceof JsonNumber && isWhole(value.text);
  return typeOf(value) === type;
}

/** Where a value stands among the choices; -1 where it does not. */
export function placeOf(choices: Choice[], value: Json): number {
  const id = identity(value);
  return choices.findIndex((choice) => identity(choice.value) === id);
}

function written(value: unknown): string {
  const known = fromPlain(value);
  return known === undefined || typeof known === "boolean" || list(value).length > 0 ? "" : clip(writeJson(known, null), 40);
}

function between(least: number | null, most: number | null, what: string): string {
  const from = least ?? 0;
  const words = (number: number): string => `${number} ${what}${number === 1 ? "" : "s"}`;
  if (most === null) return from > 0 ? `at least ${words(from)}` : "";
  if (from === 0) return `at most ${words(most)}`;
  return from === most ? words(most) : `${from} to ${words(most)}`;
}

function clip(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
