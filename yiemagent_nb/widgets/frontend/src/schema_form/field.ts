// One place in a value, and what a person put there. What it holds is built when it is needed.

import type { Key } from "./check";
import { readExactJson, writeJson, type Json } from "./json_value";
import type { Schema } from "./schemas";
import type { Kind, Shape } from "./shape";

/** `json`: what was filled in does not fit the control, and stands as JSON until it is changed. */
export type State = "unset" | "null" | "value" | "json";

/** What a field holds in the state `value`. */
export interface Content {
  /** The value; undefined while there is none. */
  read(): Json | undefined;
  /** Take a value; returns false where it is none of this kind. */
  fill(value: Json): boolean;
  /** Set what stands there before a person did anything. */
  start(): void;
  /** The fields within. */
  inner(): Iterable<Field>;
  /** What keeps an entry from being a value. */
  fault(): string;
}

export interface Place {
  parent: Field | null;
  /** Its name or index in its parent; undefined where it stands for its parent, as a variant does. */
  key?: Key | undefined;
  required: boolean;
  /** A person added it, so it is never absent: an item, a value under a name of one's own, a variant. */
  element: boolean;
}

/** What fields need of the form that they are in. */
export interface FormModel {
  shape(schema: Schema): Shape;
  content(field: Field): Content;
  fits(schema: Schema, value: Json): boolean;
  /** Whether there is still room to build what nobody asked for. */
  mayBuild(what: "object" | "field"): boolean;
}

const COMPOSITE = new Set<Kind>(["object", "list", "union"]);
/** Below these levels a piece is put in as JSON. */
const MOST_LEVELS = 10;

export class Field {
  state: State = "unset";
  /** What stands in the field for JSON, in the state `json`. */
  entry = "";
  /** Whether a person changed it: only then an empty one is called wrong. */
  touched = false;
  readonly level: number;
  private known: Shape | null = null;
  private held: Content | null = null;

  constructor(
    readonly form: FormModel,
    readonly schema: Schema,
    readonly place: Place,
  ) {
    const { parent, key } = place;
    this.level = parent ? parent.level + (key === undefined ? 0.5 : 1) : 0;
  }

  get shape(): Shape {
    if (!this.known) {
      const shape = this.form.shape(this.schema);
      const deep = this.level >= MOST_LEVELS && COMPOSITE.has(shape.kind);
      this.known = deep ? { ...shape, kind: "json", nullable: false, hint: `${shape.hint || "value"}, as JSON` } : shape;
    }
    return this.known;
  }

  get content(): Content {
    this.held ??= this.form.content(this);
    return this.held;
  }

  get isComposite(): boolean {
    return COMPOSITE.has(this.shape.kind);
  }

  /** Whether it may go back to being absent. */
  get isOptional(): boolean {
    return !this.place.required && !this.place.element;
  }

  /** The names and indices that lead to it. */
  get keys(): Key[] {
    const { parent, key } = this.place;
    const above = parent?.keys ?? [];
    return key === undefined ? above : [...above, key];
  }

  read(): Json | undefined {
    switch (this.state) {
      case "unset":
        return undefined;
      case "null":
        return null;
      case "value":
        return this.content.read();
      case "json": {
        const read = readExactJson(this.entry);
        return "value" in read ? read.value : undefined;
      }
    }
  }

  /** Take a value as it is; what the control cannot show stays as JSON. */
  fill(value: Json): void {
    this.held = null;
    if (value === null && this.shape.nullable) this.state = "null";
    else if (this.content.fill(value)) this.state = "value";
    else {
      this.held = null;
      this.state = "json";
      this.entry = writeJson(value);
    }
  }

  /** Set what stands there before a person did anything: what is required and known, and nothing else. */
  start(): void {
    this.clear();
    const { required, element } = this.place;
    if (!required && !element) return;
    const { kind, fallback } = this.shape;
    if (fallback !== undefined) {
      this.fill(fallback);
      if (this.state !== "json") return;
      this.clear();
    }
    if (kind === "union" || (this.isComposite && !element && !this.mayBegin())) return;
    if (this.isComposite || kind === "fixed" || (element && kind === "string")) this.begin();
  }

  /** Give it a value to go on from, as a person asks for: of an object or a list, its default. */
  begin(): void {
    const { kind, fallback } = this.shape;
    if (fallback !== undefined && (kind === "object" || kind === "list")) {
      this.fill(fallback);
      if (this.state === "value") return;
    }
    this.held = null;
    this.state = "value";
    this.content.start();
  }

  clear(): void {
    this.held = null;
    this.state = "unset";
    this.entry = "";
  }

  setNull(): void {
    this.clear();
    this.state = "null";
  }

  /** What keeps entries from being values, all through. */
  *faults(): Generator<{ field: Field; message: string }> {
    const { element, key } = this.place;
    if (this.state === "unset" && element && key !== undefined) yield { field: this, message: "This has no value yet." };
    if (this.state === "json") {
      const read = readExactJson(this.entry);
      if ("problem" in read) yield { field: this, message: read.problem };
    }
    if (this.state !== "value") return;
    const message = this.content.fault();
    if (message) yield { field: this, message };
    for (const field of this.content.inner()) yield* field.faults();
  }

  /** Whether what is required within may be built without being asked for: not where it would never end. */
  private mayBegin(): boolean {
    if (!this.form.mayBuild("object")) return false;
    const { sources } = this.shape;
    for (let above = this.place.parent; above; above = above.place.parent) {
      for (const source of above.shape.sources) if (sources.has(source)) return false;
    }
    return true;
  }
}
