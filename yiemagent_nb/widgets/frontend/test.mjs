// Tests of what needs no page: splitting markdown into blocks, partial JSON, lengths.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { build } from "esbuild";

const folder = mkdtempSync(join(tmpdir(), "widget-test-"));
after(() => rmSync(folder, { recursive: true }));
await build({
  absWorkingDir: dirname(fileURLToPath(import.meta.url)),
  entryPoints: ["src/arguments.ts", "src/blocks.ts", "src/text.ts"],
  outdir: folder,
  format: "esm",
  bundle: true,
  outExtension: { ".js": ".mjs" },
});
const load = (name) => import(pathToFileURL(join(folder, name)).href);
const { BlockSplitter, needsWhole } = await load("blocks.mjs");
const { argumentsOf, oneLine, readPartial, valueText } = await load("arguments.mjs");
const { bytes, codePoints, seconds } = await load("text.mjs");

function split(text, size = text.length) {
  const splitter = new BlockSplitter();
  const blocks = [];
  for (let at = 0; at < text.length; at += size) blocks.push(...splitter.push(text.slice(at, at + size)));
  return [...blocks, splitter.open];
}

const SAMPLES = [
  "one\n\ntwo\n\n\n\nthree",
  "```python\na = 1\n\nb = 2\n```\n\nafter",
  "~~~~\n```\n\n~~~\n\n~~~~\n\nafter",
  "- a\n\n  still a\n\n- b\n\nafter",
  "1. one\n\n   ```js\n   x\n\n   y\n   ```\n\nafter",
  "$$\nx\n\ny\n$$\n\nafter",
  "\\[ x \\]\n\nafter",
  "\n\n\nfirst after blank lines",
  "no fence: ``` inline\n\nafter",
];

test("blocks end at blank lines", () => {
  assert.deepEqual(split("one\n\ntwo\n\n\n\nthree"), ["one\n", "two\n", "three"]);
});

test("blank lines in fenced code and displayed mathematics end nothing", () => {
  assert.deepEqual(split(SAMPLES[1]), ["```python\na = 1\n\nb = 2\n```\n", "after"]);
  assert.deepEqual(split(SAMPLES[2]), ["~~~~\n```\n\n~~~\n\n~~~~\n", "after"]);
  assert.deepEqual(split(SAMPLES[5]), ["$$\nx\n\ny\n$$\n", "after"]);
});

test("an indented line belongs to the list before it", () => {
  assert.deepEqual(split(SAMPLES[3]), ["- a\n\n  still a\n", "- b\n", "after"]);
});

test("how the text arrives makes no difference", () => {
  for (const sample of SAMPLES) {
    const whole = split(sample);
    for (const size of [1, 2, 3, 7]) assert.deepEqual(split(sample, size), whole, JSON.stringify(sample));
  }
});

test("nothing is lost but blank lines between blocks", () => {
  for (const sample of SAMPLES) {
    assert.equal(split(sample, 3).join("").replaceAll(/\s/g, ""), sample.replaceAll(/\s/g, ""));
  }
});

test("an open fence is known with its language and code", () => {
  const splitter = new BlockSplitter();
  splitter.push("```python title\na = 1\n\nb");
  assert.deepEqual(splitter.openFence(), { language: "python title", code: "a = 1\n\nb" });
  splitter.push("\n```\n");
  assert.equal(splitter.openFence(), null);
});

test("texts whose blocks hang together are rendered whole", () => {
  assert.equal(needsWhole("a [link][1]\n\n[1]: https://example.org"), true);
  assert.equal(needsWhole("<details>\n\nhidden\n\n</details>"), true);
  assert.equal(needsWhole("plain\n\na < b"), false);
});

test("arguments are readable before they are whole", () => {
  const read = {
    '{"a": 1, "b": ["x, y", {"c': { a: 1, b: ["x, y", {}] },
    '{"a': {},
    '{"a"': {},
    '{"a":': {},
    '{"a": tru': {},
    '{"a": -': {},
    '{"a": 1.': { a: 1 },
    '{"a": 1.5e': { a: 1.5 },
    '{"a": 1, ': { a: 1 },
    '{"a": 1, "b": nul': { a: 1 },
    '{"quote": "\\"{': { quote: '"{' },
    '{"a": "x\\': { a: "x" },
    '{"a": "x\\\\': { a: "x\\" },
    '{"a": "x\\u00': { a: "x" },
    '{"a": "x\\\\u00': { a: "x\\u00" },
    '{"a": [[1, 2], [3': { a: [[1, 2], [3]] },
  };
  for (const [text, value] of Object.entries(read)) assert.deepEqual(readPartial(text), value, text);
  for (const text of ["", "{'a': 1}", '{"a": 1, oops', '{"a": 1} and', "just words", "]"]) assert.equal(readPartial(text), undefined, text);
});

test("arguments that grow only ever gain names, and end as they are", () => {
  const whole = { path: 'a "b" \\u00e9\n', n: -12.5e-3, deep: [{ x: [true, null, "é"] }, {}], last: "z" };
  const text = JSON.stringify(whole);
  let names = 0;
  for (let end = 1; end <= text.length; end += 1) {
    const known = argumentsOf(null, text.slice(0, end));
    assert.ok(known !== null && known.length >= names, text.slice(0, end));
    names = known.length;
  }
  assert.deepEqual(Object.fromEntries(argumentsOf(null, text).map(({ name, value }) => [name, value])), whole);
});

test("a line of arguments clips what is long and says so", () => {
  const long = "word ".repeat(40);
  const { line, clipped } = oneLine(argumentsOf(null, JSON.stringify({ a: 1, text: long })), "", false);
  assert.match(line, /^a: 1, text: word word .*…$/);
  assert.equal(clipped, true);
  assert.deepEqual(oneLine(argumentsOf({ b: "x\ny" }, ""), "", false), { line: "b: x y", clipped: false });
  assert.deepEqual(oneLine(null, "no  json", true), { line: "no json", clipped: false });
});

test("a text that would pass for another value is quoted, once it is whole", () => {
  assert.deepEqual(["7", "", "true", "-1e5", "7 apples"].map((text) => valueText(text, false)), ['"7"', '""', '"true"', '"-1e5"', "7 apples"]);
  assert.equal(valueText("7", true), "7");
});

test("lengths are those of Python", () => {
  assert.equal(codePoints("a\u{1F389}é"), 3);
  assert.equal(codePoints("\ud83d"), 1);
  assert.equal(codePoints(""), 0);
});

test("durations are told in words", () => {
  assert.deepEqual([0, 0.004, 0.25, 3.21, 42, 125].map(seconds), ["1 ms", "4 ms", "250 ms", "3.2 s", "42 s", "2 min 5 s"]);
});

test("sizes are told in words", () => {
  assert.deepEqual([0, 999, 48_211, 5_000_000].map(bytes), ["0 B", "999 B", "48.2 kB", "5.0 MB"]);
});
