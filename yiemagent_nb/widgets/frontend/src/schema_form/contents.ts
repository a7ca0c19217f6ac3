// What fields without fields in them hold.

import type { Content, Field } from "./field";
import { isNumber, JsonNumber, readExactJson, writeJson, type Json } from "./json_value";
import { placeOf } from "./shape";

abstract class Single implements Content {
  abstract read(): Json | undefined;
  abstract fill(value: Json): boolean;

  start(): void {}

  inner(): Iterable<Field> {
    return [];
  }

  fault(): string {
    return "";
  }
}

/** A text as it is. */
export class TextContent extends Single {
  text = "";

  read(): Json {
    return this.text;
  }

  fill(value: Json): boolean {
    if (typeof value !== "string") return false;
    this.text = value;
    return true;
  }
}

/** A number as it is written. */
export class NumberContent extends Single {
  text = "";

  read(): Json | undefined {
    const text = this.text.trim();
    return isNumber(text) ? new JsonNumber(text) : undefined;
  }

  fill(value: Json): boolean {
    if (!(value instanceof JsonNumber)) return false;
    this.text = value.text;
    return true;
  }

  override fault(): string {
    if (this.read() !== undefined) return "";
    return /^[-+]?[\d.,]+$/.test(this.text.trim()) ? "A number is written such as 1200, -3 or 0.5." : "This is no number.";
  }
}

/** One of several values. */
export class ChoiceContent extends Single {
  private place = -1;
  private value: Json | undefined;

  constructor(private readonly field: Field) {
    super();
  }

  get at(): number {
    return this.place;
  }

  choose(at: number): void {
    this.place = at;
    this.value = this.field.shape.choices[at]?.value;
  }

  read(): Json | undefined {
    return this.value;
  }

  /** The value stays as it came: 1.0 is the choice 1, and stays 1.0. */
  fill(value: Json): boolean {
    this.place = placeOf(this.field.shape.choices, value);
    this.value = value;
    return this.place >= 0;
  }

  override start(): void {
    if (this.field.shape.choices.length === 1) this.choose(0);
  }

  override fault(): string {
    return this.place < 0 ? "Choose one." : "";
  }
}

/** JSON as a person writes it. */
export class JsonContent extends Single {
  text = "";

  read(): Json | undefined {
    const read = readExactJson(this.text);
    return "value" in read ? read.value : undefined;
  }

  fill(value: Json): boolean {
    this.text = writeJson(value);
    return true;
  }

  override fault(): string {
    const read = readExactJson(this.text);
    return "problem" in read ? read.problem : "";
  }
}
