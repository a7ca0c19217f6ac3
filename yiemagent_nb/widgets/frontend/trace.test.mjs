// Tests of the time axis of the trace: all rows have it in common, and long pauses are cut out of it.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { build } from "esbuild";

const folder = mkdtempSync(join(tmpdir(), "trace-test-"));
after(() => rmSync(folder, { recursive: true }));
await build({
  absWorkingDir: dirname(fileURLToPath(import.meta.url)),
  stdin: {
    contents: `export * from "./src/trace/range"; export * from "./src/trace/rows"; export * from "./src/trace/scale";`,
    resolveDir: ".",
  },
  outfile: join(folder, "trace.mjs"),
  format: "esm",
  bundle: true,
});
const { Axis, Range, Rows, asked, piecesOf, smallOf } = await import(pathToFileURL(join(folder, "trace.mjs")).href);

function row(number, kind, parent, started, duration, more = {}) {
  const rest = { title: kind, waited: 0, first: null, state: "done", tokens: null, cost: null, summary: "", lane: 0 };
  return { row: number, kind, parent, started, duration, ...rest, ...more };
}

test("a short call is short beside a long one, and calls at once stand beside each other", () => {
  const rows = new Rows();
  const [long, late, short] = [row(0, "hand", null, 0, 50), row(1, "hand", null, 25_000, 25), row(2, "hand", null, 50_100, 0.002)];
  rows.add([long, late, short], false);
  const axis = new Axis([long, late, short].map(({ started, duration }) => [started, started + duration * 1000]));
  assert.equal(axis.stretches.length, 1);
  const [whole] = piecesOf(long, rows, axis, long.duration);
  const [half] = piecesOf(late, rows, axis, late.duration);
  const [tiny] = piecesOf(short, rows, axis, short.duration);
  assert.ok(Math.abs((half.to - half.from) / (whole.to - whole.from) - 0.5) < 0.001);
  assert.equal(half.to, whole.to);
  assert.equal(tiny.part, "tiny");
  assert.ok(tiny.from > whole.to);
});

test("a long pause between runs is cut out and says how long it was; a moment is found again", () => {
  const axis = new Axis([[0, 1000], [600_000, 602_000], [602_050, 603_000]]);
  assert.equal(axis.stretches.length, 2);
  assert.equal(axis.cuts.length, 1);
  assert.equal(axis.cuts[0].pause, 599_000);
  assert.equal(axis.shown, 4000);
  for (const time of [0, 500, 600_000, 602_500]) assert.ok(Math.abs(axis.time(axis.share(time)) - time) < 0.01);
});

test("what was before the first request of a turn is a part of its bar and of the turn's", () => {
  const rows = new Rows();
  const turn = row(1, "turn", 0, 0, 10);
  const [first, second] = [row(2, "model", 1, 7800, 1), row(3, "model", 1, 9000, 1)];
  rows.add([row(0, "run", null, 0, 10), turn, first, second], false);
  const axis = new Axis([[0, 10_000]]);
  assert.deepEqual(piecesOf(first, rows, axis, 1).map(({ part }) => part), ["before", "first"]);
  assert.equal(asked(second, rows), second.started);
  assert.deepEqual(smallOf(turn, rows, axis, 0).map(({ kind }) => kind), ["before", "model", "model"]);
});

test("the axis is of what is in sight, one run, all, or a part, and zooms out to all again", () => {
  const rows = new Rows();
  const runs = [row(0, "run", null, 0, 1), row(1, "run", null, 100_000, 2)];
  rows.add(runs, false);
  const range = new Range(rows);
  const axis = (seen = runs) => range.axisOf(() => runs, seen, runs[1], 0);
  assert.equal(axis([runs[0]]).shown, 1000);
  range.fit = "run";
  assert.equal(axis().start, 100_000);
  assert.ok(piecesOf({ ...runs[0], kind: "tool" }, rows, axis(), 1)[0].part === "earlier");
  range.zoom(axis(), runs, 0, 0.5);
  assert.equal(range.fit, "part");
  assert.ok(axis().shown < 1100);
  for (let times = 0; times < 4; times += 1) range.zoom(axis(), runs, 0, 2);
  assert.equal(range.fit, "all");
  assert.equal(axis(), axis());
});
