// Tests of what needs no page: splitting markdown into blocks, partial JSON, lengths.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { build } from "esbuild";

import { testDrafts } from "./test_drafts.mjs";

const folder = mkdtempSync(join(tmpdir(), "widget-test-"));
after(() => rmSync(folder, { recursive: true }));
await build({
  absWorkingDir: dirname(fileURLToPath(import.meta.url)),
  entryPoints: ["src/arguments.ts", "src/blocks.ts", "src/drafts.ts", "src/json_text.ts", "src/spans.ts", "src/spoken.ts", "src/text.ts", "src/visible.ts"],
  outdir: folder,
  format: "esm",
  bundle: true,
  outExtension: { ".js": ".mjs" },
});
const load = (name) => import(pathToFileURL(join(folder, name)).href);
const { BlockSplitter, needsWhole } = await load("blocks.mjs");
const { argumentsOf, oneLine, readPartial, valueText } = await load("arguments.mjs");
const drafts = await load("drafts.mjs");
const { readSpans } = await load("spans.mjs");
const { spoken } = await load("spoken.mjs");
const { bytes, codePoints, modelName, seconds, shortNumber } = await load("text.mjs");
const { readJson } = await load("json_text.mjs");
const { hasInvisible, visibleJson } = await load("visible.mjs");

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

test("numbers of tokens are told in few characters", () => {
  const told = { 0: "0", 950: "950", 1_000: "1k", 12_345: "12.3k", 99_960: "100k", 131_072: "131k", 999_600: "1M", 1_048_576: "1M" };
  for (const [value, text] of Object.entries(told)) assert.equal(shortNumber(Number(value)), text);
});

test("of a model that is a file's path, the file is shown", () => {
  assert.equal(modelName("/models/qwen/Qwen3-8B.gguf"), "Qwen3-8B.gguf");
  assert.equal(modelName("C:\\models\\a.gguf"), "a.gguf");
  assert.equal(modelName("openai/gpt-oss-20b"), "openai/gpt-oss-20b");
});

function spans(markup) {
  const pieces = [];
  const understood = readSpans(markup, {
    open: (classes) => pieces.push(["open", classes]),
    close: () => pieces.push(["close"]),
    text: (text) => pieces.push(["text", text]),
  });
  return { understood, pieces };
}

test("the markup of the highlighter is read as spans with its classes and text", () => {
  assert.deepEqual(spans('<span class="yna-hl-title function_ language-xml">f</span>(&lt;&amp;&quot;&#x27;)'), {
    understood: true,
    pieces: [["open", "yna-hl-title"], ["text", "f"], ["close"], ["text", "("], ["text", "<"], ["text", "&"], ["text", '"'], ["text", "'"], ["text", ")"]],
  });
});

test("any other markup is refused", () => {
  const others = ["<b>", '<span onclick="x">', '<span class="a" id="b">', "<span>", "</span>", '<span class="yna-hl-a">', "&nbsp;", "a & b", "<", ">", "<!-- -->", '<SPAN class="yna-hl-a"></SPAN>'];
  for (const markup of others) assert.equal(spans(markup).understood, false, markup);
});

test("what a screen reader says has words where markdown has marks", () => {
  const said = {
    "## A **bold** `word`\n": "A bold word",
    "see [the page](https://example.org) and ![a map](x.png)": "see the page and Image: a map",
    "```python\na = 1\nb = 2\n```\n": "Code, python, 2 lines.",
    "~~~\none\n": "Code, 1 line.",
    "| a | b |\n|---|:-:|\n| 1 | 2 |": "a, b 1, 2",
    "- one\n- *two*, 3 * 4 * 5": "- one - two, 3 * 4 * 5",
    "snake_case and __init__": "snake_case and init",
  };
  for (const [text, words] of Object.entries(said)) assert.equal(spoken(text), words);
  assert.ok(spoken("word ".repeat(1_000)).length <= 1_001);
});

const FAULTS = [
  ["", 1, 1, "The text ends too early: a value is missing."],
  ['{"a": 1, ', 1, 10, "The text ends too early: a name is missing."],
  ['{\n  "a": 1,\n}', 2, 9, "This comma is one too many before }."],
  ['{"a": 1 "b": 2}', 1, 9, "A comma or } is expected here."],
  ["{a: 1}", 1, 2, "A name in double quotes is expected here."],
  ['{"a" 1}', 1, 6, "A colon is expected behind the name."],
  ['{"a": two}', 1, 7, "A text stands in double quotes."],
  ["{\"a\": 'b'}", 1, 7, "A text stands in double quotes."],
  ['{"a": True}', 1, 7, "True is written true in JSON."],
  ['{"a": constructor}', 1, 7, "A text stands in double quotes."],
  ['{"a": }', 1, 7, "A value is expected here."],
  ['["a", 1', 1, 8, "The text ends too early: ] is missing."],
  ["[01]", 1, 2, "This is no number; texts stand in double quotes."],
  ["[-]", 1, 2, "This is no number; texts stand in double quotes."],
  ["[9007199254740993]", 1, 2, "A page cannot hold this number exactly."],
  ["[1e999]", 1, 2, "This number is too large."],
  ['{"a": "b\n}', 1, 7, "This text has no closing quote on its line; a line break is written \\n."],
  ['["a', 1, 2, "This text has no closing quote."],
  ['["\t"]', 1, 3, "A tab in a text is written \\t."],
  ['["\u0001"]', 1, 3, "This invisible character has to be written as \\u and four digits."],
  ['["C:\\dir"]', 1, 5, "A backslash in a text is written \\\\."],
  ["{} {}", 1, 4, "Nothing may follow here."],
  ["[".repeat(200_000), 1, 1, "It is nested too deeply."],
];

test("what is no JSON is told with its place, in every browser alike", () => {
  for (const [text, line, column, problem] of FAULTS) {
    const fault = readJson(text);
    assert.deepEqual([fault.line, fault.column, fault.problem], [line, column, problem], text.slice(0, 80));
  }
});

test("all that is JSON is read", () => {
  const values = [{}, [], null, "a\"\\\n\u2028", -0.5e-7, [1, { "": [true, false, "\u{1f600}"] }], { __proto__: null, a: { b: [[]] } }];
  for (const value of values) {
    for (const indent of [0, 2]) assert.deepEqual(readJson(JSON.stringify(value, null, indent)).value, JSON.parse(JSON.stringify(value)));
  }
  assert.deepEqual(readJson(' \r\n[1, 2.0,\t"\\ud83d\\u00e9\\/"] ').value, [1, 2, "\ud83d\u00e9/"]);
});

test("invisible characters stand by their numbers, and say the same", () => {
  const text = JSON.stringify({ a: "safe\u202egnp\u200b\u{e0041}\u007f", emoji: "\u{1f469}\u200d\u{1f52c}" });
  assert.ok(hasInvisible(text));
  assert.ok(!hasInvisible(visibleJson(text).replace(/\\u[\da-f]{4}/g, "")));
  assert.deepEqual(JSON.parse(visibleJson(text)), JSON.parse(text));
  assert.ok(hasInvisible(JSON.stringify("\u001b[31m")));
  assert.ok(!hasInvisible(JSON.stringify({ emoji: "\u{1f469}\u200d\u{1f52c}", "two\nlines": "\t" })));
});
testDrafts(drafts);
