// Which part of the time the axis shows: what is in sight, one run, all, or a part that was zoomed to.

import type { Row, Rows } from "./rows";
import { Axis, type Interval } from "./scale";

export type Fit = "sight" | "run" | "all" | "part";

/** Milliseconds: less is not zoomed to. */
const SHORTEST = 0.2;
/** What goes on has so much room to grow, that the axis changes now and then, not all the time. */
const GROWTH = 1.08;

export class Range {
  fit: Fit = "sight";
  private part: Interval = [0, 0];
  private key = "";
  private axis = new Axis([]);

  constructor(private readonly rows: Rows) {}

  /** The axis of these runs; `all` are all that are listed, `seen` those in sight, `run` the chosen one. */
  axisOf(all: () => Iterable<Row>, seen: Iterable<Row>, run: Row | undefined, now: number): Axis {
    const chosen = this.fit === "sight" ? seen : this.fit === "run" ? (run ? [run] : []) : all();
    let intervals = this.intervals(chosen, now);
    const [from, to] = this.part;
    if (this.fit === "part") {
      intervals = intervals
        .filter((each) => each[1] >= from && each[0] <= to)
        .map((each) => [Math.max(from, each[0]), Math.min(to, each[1])]);
      if (intervals.length === 0) intervals = [[from, to]];
    }
    const key = intervals.join(" ");
    if (key !== this.key) {
      this.key = key;
      this.axis = new Axis(intervals);
    }
    return this.axis;
  }

  /** Show less (a factor below 1) or more around a place of the axis. */
  zoom(axis: Axis, all: Iterable<Row>, now: number, factor: number, centre = 0.5): void {
    const whole = new Axis(this.intervals(all, now));
    const [from, to, at] = [0, 1, centre].map((share) => whole.share(axis.time(share))) as [number, number, number];
    const [left, right] = [at - (at - from) * factor, at + (to - at) * factor];
    if (left <= 0 && right >= 1) this.fit = "all";
    else this.show(whole.time(Math.max(0, left)), whole.time(Math.min(1, right)));
  }

  /** Show a part, in milliseconds since 1970. */
  show(from: number, to: number): void {
    if (to - from < SHORTEST) return;
    this.fit = "part";
    this.part = [from, to];
  }

  private intervals(roots: Iterable<Row>, now: number): Interval[] {
    const intervals: Interval[] = [];
    for (const root of roots) {
      const elapsed = this.rows.elapsed(root, now);
      const room = root.duration === null ? GROWTH ** Math.ceil(Math.log(Math.max(0.2, elapsed)) / Math.log(GROWTH) + 0.3) : elapsed;
      intervals.push([root.started, root.started + room * 1000]);
    }
    return intervals;
  }
}
