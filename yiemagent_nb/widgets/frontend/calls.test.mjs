// Tests of what needs no page in the cards of tools: their words, and the forms of their results.

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
  entryPoints: ["src/arguments.ts", "src/batch.ts", "src/outcome.ts", "src/verbs.ts", "src/result_form.ts", "src/error_words.ts", "src/text.ts"],
  outdir: folder,
  format: "esm",
  bundle: true,
  outExtension: { ".js": ".mjs" },
});
const load = (name) => import(pathToFileURL(join(folder, name)).href);
const { oneLine } = await load("arguments.mjs");
const { countCalls, namesOf, statusOf, titleOf } = await load("batch.mjs");
const { standingOf, standingWords, turnOf } = await load("outcome.mjs");
const { phrase } = await load("verbs.mjs");
const { numberColumns, resultForm } = await load("result_form.mjs");
const { errorWords } = await load("error_words.mjs");
const { visible } = await load("text.mjs");

const STATUSES = ["writing", "waiting", "running", "done", "failed", "stopped", "queued", "denied"];
const said = (label) => STATUSES.map((status) => Object.values(phrase(label, status)).join(" ").trim());

test("a call says what it does, did, wants to do and could not do", () => {
  assert.deepEqual(said("Read file"), [
    "Calling read file",
    "Wants to read file",
    "Reading file",
    "Read file",
    "Could not read file",
    "Stopped reading file",
    "Will read file",
    "Did not read file",
  ]);
  assert.deepEqual(said("Add").slice(2, 4), ["Adding", "Added"]);
  assert.deepEqual(said("get weather").slice(2, 4), ["Getting weather", "Got weather"]);
  assert.deepEqual(said("Run GitHub query").slice(2, 4), ["Running GitHub query", "Ran GitHub query"]);
  const verbs = ["plot", "write", "query", "try", "use", "play", "show", "submit", "apply", "view", "fix", "set"];
  assert.deepEqual(verbs.map((verb) => said(verb).slice(2, 4).join(" ")), [
    "Plotting Plotted",
    "Writing Wrote",
    "Querying Queried",
    "Trying Tried",
    "Using Used",
    "Playing Played",
    "Showing Showed",
    "Submitting Submitted",
    "Applying Applied",
    "Viewing Viewed",
    "Fixing Fixed",
    "Setting Set",
  ]);
});

test("a label that begins with no known verb is named as it is", () => {
  assert.deepEqual(said("Weather"), [
    "Calling weather",
    "Wants to run weather",
    "Running weather",
    "Ran weather",
    "Could not run weather",
    "Stopped running weather",
    "Will run weather",
    "Did not run weather",
  ]);
  for (const label of ["GitHub", "SQL shell", "Slow SQL", "読む"]) assert.equal(phrase(label, "running").name, label);
  assert.deepEqual(["read_file", "Reader", "constructor", "", "Add."].map((label) => phrase(label, "done")), [
    { verb: "Ran", name: "read_file" },
    { verb: "Ran", name: "reader" },
    { verb: "Ran", name: "constructor" },
    { verb: "Ran", name: "" },
    { verb: "Ran", name: "add." },
  ]);
});

test("nothing hides in a name", () => {
  assert.equal(visible("read\u202eelif\u200b"), "read\\u202eelif\\u200b");
  assert.equal(visible("a\u0000b\u2066c\ufeff\u{e0041}\u3164\ufe01"), "a\\u0000b\\u2066c\\ufeff\\u{e0041}\\u3164\\ufe01");
  assert.equal(visible("zwj\u200dhere \u{1F469}\u200dx"), "zwj\\u200dhere \u{1F469}\\u200dx");
});

test("a value turns nothing round on the line of arguments", () => {
  const { line } = oneLine([{ name: "to", value: "\u202eme" }, { name: "cc", value: "می\u200cخواهم" }], "", false);
  assert.equal(line, "to: \\u202eme, cc: می\u200cخواهم");
});

test("names in any script, and emoji, stay as they are", () => {
  for (const name of ["read_file", "Dateien öffnen", "読む", "اقرأ", "\u{1F469}\u200d\u{1F4BB} \u2764\ufe0f", ""]) assert.equal(visible(name), name);
});

test("a frame's text is a table again", () => {
  const text = "DataFrame, 5,000 rows x 2 columns (the first 2 rows are shown)\n\n| a\\|b | n |\n| --- | --- |\n| x\\\\y | 1,200 |\n| | nan |";
  const { kind, table } = resultForm(text);
  assert.equal(kind, "table");
  assert.deepEqual(table, {
    caption: "DataFrame, 5,000 rows x 2 columns (the first 2 rows are shown)",
    columns: ["a|b", "n"],
    rows: [["x\\y", "1,200"], ["", "nan"]],
  });
  assert.deepEqual(numberColumns(table), [false, true]);
  assert.equal(resultForm("## **Tides**\n\n| a | b |\n|---|:-:|\n| 1 | 2 |").table.caption, "Tides");
});

test("objects without lists in them are a table, other JSON is a tree", () => {
  const { kind, table } = resultForm('[{"a": 1, "b": "x"}, {"b": null, "c": false}]');
  assert.equal(kind, "table");
  assert.deepEqual(table, { caption: "", columns: ["a", "b", "c"], rows: [["1", "x", ""], ["", "", "false"]] });
  for (const text of ['{"a": 1}', '[{"a": [1]}, {"a": 2}]', '[{"a": 1}]', JSON.stringify(Array(200).fill(1)), '[{"a": 1}, 2]']) assert.equal(resultForm(text).kind, "json", text);
  for (const text of ["{}", "[]", "[1, 2]", "42", '"a"', "null", "{oops", "[link](x) and more"]) assert.equal(resultForm(text).kind, "text", text);
});

test("of JSON that was cut, what is there is shown", () => {
  const { kind, table } = resultForm('[{"a": 1}, {"a": 2}, {"a": ', true);
  assert.equal(kind, "table");
  assert.deepEqual(table.rows.slice(0, 2), [["1"], ["2"]]);
});

test("a formula alone is a formula", () => {
  assert.deepEqual(resultForm("$\\displaystyle x^{2}$"), { kind: "formula", tex: "x^{2}" });
  assert.deepEqual(resultForm("$$x^{2}$$"), { kind: "formula", tex: "x^{2}" });
  for (const text of ["$5 and 6$", "costs $$5$$ today"]) assert.equal(resultForm(text).kind, "text", text);
});

test("only what is evidently markdown is shown as markdown", () => {
  for (const text of [
    "# Tides\n\nHigh at **six**.",
    "# Tides\n\n## Lisbon\n\nhigh",
    "## Result\n\n- a\n- b",
    "See [this](https://example.org)\n\n```python\nx = 1\n```\n",
    "# T\n\nSaid:\n\n| a | b |\n|---|---|\n| 1 | 2 |",
  ])
    assert.equal(resultForm(text).kind, "markdown", text);
  for (const text of [
    "plain words",
    "- one\n- two",
    "# a comment\nkey: value\n",
    "#!/bin/sh\n\n# one\n\n# two\n",
    "import os\n\n# one\n\n# two\n",
    "# config\n\nname: x\n",
    "a | b\n1 | 2",
    "**bold** alone",
  ])
    assert.equal(resultForm(text).kind, "text", text);
});

test("an error is a message, a hint and a code", () => {
  assert.deepEqual(errorWords('There is no tool named "a. b". Its nearest is "c". [TOOL_NOT_FOUND]'), {
    message: 'There is no tool named "a. b".',
    hint: 'Its nearest is "c".',
    code: "TOOL_NOT_FOUND",
  });
  assert.deepEqual(errorWords("just. words"), { message: "just. words", hint: "", code: "" });
});

const batch = (...calls) => countCalls(calls.map(([status, startedAt = 0, duration = null]) => ({ status, startedAt, duration })));

test("a batch says how far it has come", () => {
  const told = {
    "Calling 2 tools…": ["running", batch(["writing"], ["writing"])],
    "1 of 3 tools waits for you": ["waiting", batch(["waiting"], ["writing"], ["done"])],
    "Running 2 of 3 tools…": ["running", batch(["done"], ["running"], ["writing"])],
    "Ran 2 tools": ["done", batch(["done"], ["done"])],
    "Ran 3 tools, 1 failed, 1 stopped": ["failed", batch(["done"], ["failed"], ["stopped"])],
    "Ran 2 tools, 2 stopped": ["stopped", batch(["stopped"], ["stopped"])],
  };
  for (const [title, [status, counts]] of Object.entries(told)) assert.deepEqual([titleOf(counts), statusOf(counts)], [title, status]);
});

test("a batch took as long as its longest call, whether its calls were seen to start or not", () => {
  assert.equal(batch(["done", 1_000, 2], ["done", 1_500, 3], ["failed"]).seconds, 3);
  assert.equal(batch(["done", 1_000, 2], ["done", 0, 3]).seconds, 3);
  assert.equal(batch(["failed"]).seconds, null);
});

test("each name of a batch is told once", () => {
  assert.equal(namesOf(["Read", "Search", "Read"]), "Read ×2, Search");
  assert.equal(namesOf([..."abcdefgh"]), "a, b, c, d, e, f and 2 more");
});

const ended = (text, more = {}) => ({ status: "failed", content: [{ type: "text", text }], details: null, decision: null, ...more });

test("what a person denied or stopped is no failure", () => {
  const told = [
    [ended("The person denied this call: not mine"), "denied", "Denied: not mine"],
    [ended("The person denied this same call before, so it did not run and they were not asked again. The reason was: mine"), "denied", "Denied: mine"],
    [ended("The person denied this call."), "denied", "Denied."],
    [ended("The person denied this call: interrupted from the keyboard"), "unbegun", "Stopped before it ran."],
    [ended("add did not run, because the person aborted the run. [EXECUTION_ABORTED]"), "unbegun", "Stopped before it ran."],
    [ended("add was stopped before it finished, because the person aborted the run. [EXECUTION_ABORTED]"), "stopped", ""],
    [ended("", { status: "running", decision: { choice: "deny", reason: "no" } }), "denied", ""],
    [ended("", { decision: { choice: "deny", reason: "the run was aborted" } }), "unbegun", ""],
    [ended("It broke. [TOOL_FAILED]"), "failed", ""],
    [ended("The person denied this call", { details: { server: "evil" } }), "failed", ""],
  ];
  for (const [call, standing, words] of told) assert.deepEqual([standingOf(call), standingWords(call, standing)], [standing, words]);
  const counts = countCalls([{ status: "done" }, told[0][0], told[3][0]]);
  assert.equal(titleOf(counts), "Ran 1 of 3 tools, 1 denied, 1 stopped");
  assert.equal(statusOf(counts), "stopped");
  assert.deepEqual([titleOf, statusOf].map((told) => told(countCalls([ended("The person denied this call")]))), ["Ran none of 1 tools, 1 denied", "denied"]);
});

test("a call waits while another of its batch waits for a person", () => {
  const [asks, taken, whole] = ["waiting", "running", "writing"].map((status) => ({ status }));
  assert.equal(turnOf(asks, [asks, taken], false), "");
  assert.equal(turnOf(taken, [asks, taken], false), "Waits for the other approval");
  assert.equal(standingOf(taken, true), "queued");
  assert.equal(standingOf({ status: "done" }, true), "done");
  assert.equal(turnOf(whole, [taken, whole], false), "Waits for its turn");
  assert.equal(turnOf(whole, [taken, whole], true), "");
});
