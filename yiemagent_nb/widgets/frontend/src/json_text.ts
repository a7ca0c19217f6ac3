// JSON that a person writes: what it says, or where it stops being JSON and why.

export interface JsonFault {
  problem: string;
  /** Where, in UTF-16 units from the start. */
  at: number;
  /** The same as a person counts: both from 1. */
  line: number;
  column: number;
}

const SPACE = /[ \t\r\n]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const WORD = /[\p{L}_$][\p{L}\p{N}_$]*/uy;
const PLAIN = /(?:[^"\\\p{Cc}]|[\u007f-\u009f])*/uy;
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;
const WORDS: Record<string, string> = { True: "true", False: "false", None: "null", undefined: "null", nil: "null" };

export function readJson(text: string): { value: unknown } | JsonFault {
  return findFault(text) ?? { value: JSON.parse(text) };
}

/** Where a text stops being JSON. With `exact` its integers may be of any size: for who keeps them as they are written. */
export function findFault(text: string, exact = false): JsonFault | null {
  try {
    new Scanner(text, exact).all();
    return null;
  } catch (error) {
    const fault = error instanceof Fault ? error : new Fault(0, "It is nested too deeply.");
    const before = text.slice(0, fault.at).split("\n");
    return { problem: fault.problem, at: fault.at, line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
  }
}

class Fault {
  constructor(
    readonly at: number,
    readonly problem: string,
  ) {}
}

/** Walks through a text and throws the first fault. Browsers tell faults too, but not all of them where. */
class Scanner {
  private at = 0;

  constructor(
    private readonly text: string,
    private readonly exact: boolean,
  ) {}

  all(): void {
    this.value();
    if (this.char() !== undefined) throw new Fault(this.at, "Nothing may follow here.");
  }

  /** The character here; undefined behind the end. */
  private char(): string | undefined {
    return this.text[this.at];
  }

  /** Go on behind what a pattern finds here; returns what it found. */
  private take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  private value(): void {
    this.take(SPACE);
    const start = this.at;
    const char = this.char();
    if (char === undefined) throw new Fault(start, "The text ends too early: a value is missing.");
    if (char === "{") this.items("}", () => this.member());
    else if (char === "[") this.items("]", () => this.value());
    else if (char === '"') this.string();
    else if (/[-\d]/.test(char)) this.number();
    else this.word();
    this.take(SPACE);
  }

  private items(end: "}" | "]", item: () => void): void {
    this.at += 1;
    this.take(SPACE);
    if (this.char() === end) {
      this.at += 1;
      return;
    }
    for (;;) {
      item();
      const { at } = this;
      const char = this.char();
      this.at += 1;
      if (char === end) return;
      if (char === undefined) throw new Fault(at, `The text ends too early: ${end} is missing.`);
      if (char !== ",") throw new Fault(at, `A comma or ${end} is expected here.`);
      this.take(SPACE);
      if (this.char() === end) throw new Fault(at, `This comma is one too many before ${end}.`);
    }
  }

  private member(): void {
    if (this.char() === undefined) throw new Fault(this.at, "The text ends too early: a name is missing.");
    if (this.char() !== '"') throw new Fault(this.at, "A name in double quotes is expected here.");
    this.string();
    this.take(SPACE);
    if (this.char() !== ":") throw new Fault(this.at, "A colon is expected behind the name.");
    this.at += 1;
    this.value();
  }

  private string(): void {
    const start = this.at;
    this.at += 1;
    for (;;) {
      this.take(PLAIN);
      const char = this.char();
      if (char === '"') break;
      if (char === undefined) throw new Fault(start, "This text has no closing quote.");
      if (char === "\n" || char === "\r") throw new Fault(start, "This text has no closing quote on its line; a line break is written \\n.");
      if (char === "\t") throw new Fault(this.at, "A tab in a text is written \\t.");
      if (char !== "\\") throw new Fault(this.at, "This invisible character has to be written as \\u and four digits.");
      if (!this.take(ESCAPE)) throw new Fault(this.at, "A backslash in a text is written \\\\.");
    }
    this.at += 1;
  }

  private number(): void {
    const start = this.at;
    const found = this.take(NUMBER);
    if (!found || /[\w.+]/.test(this.char() ?? "")) throw new Fault(start, "This is no number; texts stand in double quotes.");
    const [number, fraction, exponent] = found;
    if (!fraction && !exponent) {
      if (this.exact || Number.isSafeInteger(Number(number))) return;
      throw new Fault(start, "A page cannot hold this number exactly.");
    }
    if (!Number.isFinite(Number(number))) throw new Fault(start, "This number is too large.");
  }

  private word(): void {
    const start = this.at;
    const word = this.take(WORD)?.[0];
    if (word === "true" || word === "false" || word === "null") return;
    const meant = word === undefined ? undefined : Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
    if (meant) throw new Fault(start, `${word} is written ${meant} in JSON.`);
    throw new Fault(start, word || this.char() === "'" ? "A text stands in double quotes." : "A value is expected here.");
  }
}
