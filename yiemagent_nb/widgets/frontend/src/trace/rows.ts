// The rows of a trace as a tree: what the page has of them, in the order in which they are shown.

export type Kind = "run" | "turn" | "model" | "tool" | "hand";

export interface Row {
  row: number;
  kind: Kind;
  parent: number | null;
  title: string;
  /** Milliseconds since 1970, by the kernel's clock. */
  started: number;
  /** Seconds from the start; null while it goes on. */
  waited: number | null;
  first: number | null;
  duration: number | null;
  state: "running" | "done" | "failed" | "aborted";
  tokens: { input: number; output: number; cached: number } | null;
  /** US dollars. */
  cost: number | null;
  summary: string;
  lane: number;
}

/** The kinds that are calls; runs and turns hold them. */
export const CALLS: readonly Kind[] = ["model", "tool", "hand"];

const NONE: readonly number[] = [];
/** Milliseconds by which the clocks of the kernel and the page may seem apart: events take a while. */
const SAME_TIME = 2_000;

export class Rows {
  private readonly byNumber = new Map<number, Row>();
  private readonly kids = new Map<number, number[]>();
  private readonly tops: number[] = [];
  /** Parents that are not here (yet). */
  private readonly absent = new Set<number>();
  private readonly texts = new Map<number, string>();
  private apart = Infinity;

  get size(): number {
    return this.byNumber.size;
  }

  get(row: number): Row | undefined {
    return this.byNumber.get(row);
  }

  /** The number of the first row that is here. */
  get oldest(): number {
    let oldest = Infinity;
    for (const row of this.byNumber.keys()) oldest = Math.min(oldest, row);
    return this.size === 0 ? 0 : oldest;
  }

  /** Whether what is here goes on with row `first` without a gap, and cannot have changed before it. */
  reaches(first: number): boolean {
    let newest = -1;
    for (const { row, state } of this.byNumber.values()) {
      if (row < first && state === "running") return false;
      newest = Math.max(newest, row);
    }
    return newest >= first - 1;
  }

  all(): Iterable<Row> {
    return this.byNumber.values();
  }

  /** Take new rows, and newer states of known ones; `live` ones have just happened. */
  add(rows: readonly Row[], live: boolean): void {
    for (const row of rows) {
      const known = this.byNumber.has(row.row);
      this.byNumber.set(row.row, row);
      this.texts.delete(row.row);
      if (known) continue;
      this.absent.delete(row.row);
      if (row.parent === null) insert(this.tops, row.row);
      else {
        const kids = this.kids.get(row.parent);
        if (kids) insert(kids, row.row);
        else this.kids.set(row.parent, [row.row]);
        if (!this.byNumber.has(row.parent)) this.absent.add(row.parent);
      }
    }
    if (live) this.compareClocks(rows);
  }

  clear(): void {
    for (const each of [this.byNumber, this.kids, this.absent, this.texts]) each.clear();
    this.tops.length = 0;
  }

  children(row: number): readonly number[] {
    return this.kids.get(row) ?? NONE;
  }

  /** The rows that stand at the left edge: those without a parent, or whose parent is not here. */
  get roots(): readonly number[] {
    if (this.absent.size === 0) return this.tops;
    const orphans = [...this.absent].flatMap((row) => this.children(row));
    return [...orphans, ...this.tops].sort((one, other) => one - other);
  }

  /** The run that a row is of, or what else it stands below. */
  rootOf(row: Row): Row {
    let at = row;
    for (;;) {
      const above = at.parent === null ? undefined : this.byNumber.get(at.parent);
      if (!above) return at;
      at = above;
    }
  }

  /** What is searched of a row. */
  textOf(row: Row): string {
    let text = this.texts.get(row.row);
    if (text === undefined) {
      text = `${row.title}\n${row.summary}`.toLowerCase();
      this.texts.set(row.row, text);
    }
    return text;
  }

  /** Seconds that a row has taken, until now where it goes on. */
  elapsed(row: Row, now: number): number {
    if (row.duration !== null) return row.duration;
    const apart = Math.abs(this.apart) < SAME_TIME || this.apart === Infinity ? 0 : this.apart;
    return Math.max(0, row.first ?? 0, row.waited ?? 0, (now - apart - row.started) / 1000);
  }

  private compareClocks(rows: readonly Row[]): void {
    const now = Date.now();
    for (const row of rows) {
      const latest = row.started + 1000 * Math.max(row.duration ?? 0, row.first ?? 0, row.waited ?? 0);
      if (Math.abs(now - latest) < Math.abs(this.apart)) this.apart = now - latest;
    }
  }
}

/** Put a number in its place; it mostly is the last or the first. */
function insert(numbers: number[], number: number): void {
  let at = numbers.length;
  if (at > 0 && number < (numbers[0] ?? 0)) at = 0;
  while (at > 0 && (numbers[at - 1] ?? 0) > number) at -= 1;
  if (at === numbers.length) numbers.push(number);
  else numbers.splice(at, 0, number);
}
