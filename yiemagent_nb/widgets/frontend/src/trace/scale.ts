// The time axis that all rows have in common, and what a row's bar on it is made of.

import type { Row, Rows } from "./rows";

/** A time in which something went on, in milliseconds since 1970. */
export type Interval = [from: number, to: number];

/** A piece of a bar, in shares of the axis. */
export interface Piece {
  part: "before" | "wait" | "first" | "work" | "tiny" | "earlier" | "later";
  from: number;
  to: number;
}

/** A call as a small bar in the row of its run or turn. */
export interface Small {
  kind: Row["kind"] | "before";
  failed: boolean;
  lane: number;
  from: number;
  to: number;
}

/** A mark of the ruler. */
export interface Mark {
  at: number;
  text: string;
  /** How far its text may reach. */
  end: number;
}

/** A pause that is longer than this share of what is shown is cut out, and drawn as wide as CUT. */
const LONG_PAUSE = 0.08;
const CUT = 0.03;
/** All cuts together. */
const MOST_CUTS = 0.3;
const MOST_MARKS = 4;
/** A part of a bar that is shorter, as a share of the axis, is not told apart; a whole bar is drawn as a sign. */
const LEAST = 0.006;
/** Of what goes on at once, so many lanes are shown in the row above it; the others share the last. */
export const MOST_LANES = 4;
/** Into so many columns the calls of a run are put: a run may have thousands. */
const COLUMNS = 150;
/** Milliseconds before which nothing is zoomed further. */
const SHORTEST = 0.05;

interface Stretch {
  from: number;
  to: number;
  /** Where it begins, as milliseconds of the axis. */
  at: number;
}

/** Milliseconds since 1970, laid out from 0 to 1: what happened, in order, without its long pauses. */
export class Axis {
  readonly stretches: readonly Stretch[];
  /** Milliseconds: of all stretches and the cuts between them. */
  private readonly length: number;
  private readonly cut: number;

  constructor(intervals: readonly Interval[]) {
    const joined = join(intervals, 0);
    const busy = joined.reduce((sum, [from, to]) => sum + to - from, 0);
    const kept = join(joined, LONG_PAUSE * Math.max(busy, SHORTEST));
    const long = kept.reduce((sum, [from, to]) => sum + to - from, 0) || SHORTEST;
    const cuts = kept.length - 1;
    this.cut = cuts > 0 ? long * Math.min(CUT, MOST_CUTS / cuts) : 0;
    let at = 0;
    this.stretches = kept.map(([from, to]) => {
      const stretch = { from, to, at };
      at += to - from + this.cut;
      return stretch;
    });
    this.length = Math.max(SHORTEST, at - this.cut) * 1.01;
  }

  /** Milliseconds that are shown, without what was cut out. */
  get shown(): number {
    return this.stretches.reduce((sum, { from, to }) => sum + to - from, 0);
  }

  get start(): number {
    return this.stretches[0]?.from ?? 0;
  }

  get end(): number {
    return this.stretches.at(-1)?.to ?? 0;
  }

  /** Where a moment stands: below 0 or above 1 where it is not shown. */
  share(time: number): number {
    const { stretches } = this;
    let low = 0;
    let high = stretches.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((stretches[middle] as Stretch).from <= time) low = middle;
      else high = middle - 1;
    }
    const stretch = stretches[low];
    if (!stretch) return 0;
    const last = low === stretches.length - 1;
    const within = last ? time - stretch.from : Math.min(time - stretch.from, stretch.to - stretch.from + this.cut);
    return (stretch.at + within) / this.length;
  }

  /** The moment that stands somewhere. */
  time(share: number): number {
    const at = share * this.length;
    const { stretches } = this;
    const stretch = stretches.findLast((each) => each.at <= at) ?? stretches[0];
    if (!stretch) return 0;
    return Math.min(stretch.from + at - stretch.at, stretch === stretches.at(-1) ? Infinity : stretch.to);
  }

  /** From and to of each pause that was cut out, and how long it was in milliseconds. */
  get cuts(): { from: number; to: number; pause: number }[] {
    return this.stretches.slice(1).map((next, at) => {
      const before = this.stretches[at] as Stretch;
      return {
        from: (before.at + before.to - before.from) / this.length,
        to: next.at / this.length,
        pause: next.from - before.to,
      };
    });
  }

  /** Marks at round times since the start of each stretch; where there are several, each tells when it was. */
  get marks(): Mark[] {
    const several = this.stretches.length > 1;
    const step = stepOf(this.length / 1000);
    const marks: Mark[] = [];
    for (const { from, to, at } of this.stretches) {
      const long = (to - from) / 1000;
      for (let number = 0; number * step <= long && number <= MOST_MARKS + 1; number += 1) {
        const place = (at + number * step * 1000) / this.length;
        const clock = several && number === 0;
        // A time of the day may stand over what is beside a short stretch; the others would seem to be of that.
        const end = clock ? 1 : (at + to - from) / this.length;
        marks.push({ at: place, end: several ? end : 1, text: clock ? clockText(from) : markText(number * step, step) });
      }
    }
    return marks;
  }
}

/** Those that meet, or have no more than `pause` between them, as one. */
function join(intervals: readonly Interval[], pause: number): Interval[] {
  const joined: Interval[] = [];
  for (const [from, to] of [...intervals].sort(([one], [other]) => one - other)) {
    const last = joined.at(-1);
    if (last && from - last[1] <= pause) last[1] = Math.max(last[1], to);
    else joined.push([from, to]);
  }
  return joined;
}

/** A round number of seconds. */
export function stepOf(length: number): number {
  const least = length / MOST_MARKS;
  const power = 10 ** Math.floor(Math.log10(least));
  const factor = [1, 2, 5, 10].find((each) => each * power >= least * 0.999) ?? 10;
  return factor * power;
}

/** When the turn of a model's call began, if the call is its first; else when the call did. */
export function asked(row: Row, rows: Rows): number {
  const turn = row.kind === "model" && row.parent !== null ? rows.get(row.parent) : undefined;
  return turn && rows.children(turn.row)[0] === row.row ? Math.min(turn.started, row.started) : row.started;
}

export function piecesOf(row: Row, rows: Rows, axis: Axis, elapsed: number): Piece[] {
  const waited = row.waited ?? (row.duration === null && row.state === "running" ? elapsed : 0);
  const first = row.kind === "model" ? (row.first ?? elapsed) : waited;
  const ends = [Math.min(waited, elapsed), Math.min(Math.max(first, waited), elapsed), elapsed];
  const pieces: Piece[] = [];
  const begun = asked(row, rows);
  const end = axis.share(row.started + elapsed * 1000);
  const outside = outsideOf(axis.share(begun), end);
  if (outside) return [outside];
  const add = (part: Piece["part"], from: number, to: number): void => {
    const piece = { part, from: Math.max(0, from), to: Math.min(1, to) };
    if (piece.to >= piece.from) pieces.push(piece);
  };
  const started = axis.share(row.started);
  if (started - axis.share(begun) >= LEAST) add("before", axis.share(begun), started);
  if (end - started < LEAST) {
    add("tiny", Math.min(1, started), Math.min(1, started));
    return pieces;
  }
  let from = 0;
  for (const [at, part] of (["wait", "first", "work"] as const).entries()) {
    const to = ends[at] ?? elapsed;
    const [left, right] = [axis.share(row.started + from * 1000), axis.share(row.started + to * 1000)];
    if (part !== "work" && right - left < LEAST) continue; // it would look longer than it was
    if (to > from) add(part, left, right);
    from = Math.max(from, to);
  }
  return pieces;
}

/** A run or a turn from its start to its end. */
export function spanOf(row: Row, axis: Axis, elapsed: number): Piece {
  const [from, to] = [axis.share(row.started), axis.share(row.started + elapsed * 1000)];
  return outsideOf(from, to) ?? { part: "work", from: Math.max(0, from), to: Math.min(1, to) };
}

function outsideOf(from: number, to: number): Piece | null {
  if (to < 0) return { part: "earlier", from: 0, to: 0 };
  return from > 1 ? { part: "later", from: 1, to: 1 } : null;
}

/** The calls below a row, and what was before them; calls that stand in the same column and lane are one. */
export function smallOf(row: Row, rows: Rows, axis: Axis, now: number): Small[] {
  const found = new Map<string, Small>();
  const add = (kind: Small["kind"], failed: boolean, lane: number, started: number, ended: number): void => {
    const [from, to] = [Math.max(0, axis.share(started)), Math.min(1, axis.share(ended))];
    if (to < from) return;
    const key = `${kind} ${lane} ${Math.floor(from * COLUMNS)}`;
    const known = found.get(key);
    if (known) {
      known.to = Math.max(known.to, to);
      known.failed ||= failed;
    } else found.set(key, { kind, failed, lane, from, to });
  };
  const walk = (below: Row): void => {
    if (below.kind === "run" || below.kind === "turn") {
      const kids = rows.children(below.row).map((kid) => rows.get(kid));
      const ended = below.started + rows.elapsed(below, now) * 1000;
      const first = kids[0]?.started ?? ended;
      if (below.kind === "turn" && axis.share(first) - axis.share(below.started) >= LEAST) {
        add("before", false, 0, below.started, first);
      }
      for (const kid of kids) if (kid) walk(kid);
    } else {
      const ended = below.started + rows.elapsed(below, now) * 1000;
      add(below.kind, below.state === "failed", Math.min(below.lane, MOST_LANES - 1), below.started, ended);
    }
  };
  walk(row);
  return [...found.values()];
}

/** A moment of the axis in words: in one unit for all its marks. */
export function markText(seconds: number, step: number): string {
  if (seconds === 0) return "0";
  if (step < 1 && seconds < 1) return `${Number((seconds * 1000).toPrecision(6))} ms`;
  if (seconds < 120) return `${Number(seconds.toPrecision(6))} s`;
  return `${Math.floor(seconds / 60)} min${seconds % 60 ? ` ${Math.round(seconds % 60)} s` : ""}`;
}

/** A time of the day. */
export function clockText(time: number): string {
  const date = new Date(time);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}
