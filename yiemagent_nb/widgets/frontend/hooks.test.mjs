// Tests of what the panel of hooks does without a page: drafts in several views, differences, cells, places in a text.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { build } from "esbuild";

const folder = mkdtempSync(join(tmpdir(), "hooks-test-"));
after(() => rmSync(folder, { recursive: true }));
await build({
  absWorkingDir: dirname(fileURLToPath(import.meta.url)),
  stdin: {
    contents: `
      export * from "./src/code/places";
      export * from "./src/hooks/cell";
      export * from "./src/hooks/difference";
      export * from "./src/hooks/draft";
      export * from "./src/hooks/forms";`,
    resolveDir: ".",
  },
  outfile: join(folder, "hooks.mjs"),
  format: "esm",
  bundle: true,
});
const { Draft, alike, asCell, difference, indexOf, isDraft, startingText } = await import(
  pathToFileURL(join(folder, "hooks.mjs")).href
);

/** Give a draft to the kernel, which tells all views of it. */
function keep(draft, views) {
  const text = draft.due;
  assert.notEqual(text, null);
  draft.send(text);
  const taken = views.map((view) => view.take(text, false));
  draft.settle(text, true);
  return taken;
}

test("a draft is kept once, and another view that only looks shows it", () => {
  const [one, other] = [new Draft("a"), new Draft("a")];
  assert.equal(one.due, null);
  one.text = "ab";
  assert.deepEqual(keep(one, [one, other]), ["known", "adopted"]);
  assert.equal(other.text, "ab");
  assert.equal(one.due, null);
  assert.equal(other.due, null);
});

test("what is typed on meanwhile stays, and the echo of what was sent is no other's draft", () => {
  const draft = new Draft("a");
  draft.text = "ab";
  draft.send("ab");
  draft.text = "abc";
  assert.equal(draft.due, "abc");
  draft.send("abc");
  draft.text = "abcd";
  assert.equal(draft.take("ab", true), "known");
  draft.settle("ab", true);
  assert.equal(draft.take("abc", true), "known");
  draft.settle("abc", true);
  assert.equal(draft.text, "abcd");
  assert.equal(draft.due, "abcd");
});

test("another view's draft does not overwrite what is typed: a person chooses", () => {
  for (const mine of [true, false]) {
    const draft = new Draft("a");
    draft.text = "mine";
    assert.equal(draft.take("theirs", true), "conflict");
    assert.equal(draft.text, "mine");
    assert.equal(draft.due, null);
    draft.choose(mine);
    assert.equal(draft.text, mine ? "mine" : "theirs");
    assert.equal(draft.due, mine ? "mine" : null);
  }
});

test("a view that has the keyboard is not changed under a person's hands", () => {
  const draft = new Draft("a");
  assert.equal(draft.take("theirs", true), "conflict");
  assert.equal(draft.text, "a");
});

test("what could not be kept is due again, and so is all in a new kernel", () => {
  const draft = new Draft("a");
  draft.text = "ab";
  draft.send("ab");
  assert.equal(draft.due, null);
  draft.settle("ab", false);
  assert.equal(draft.due, "ab");
  draft.send("ab");
  draft.settle("ab", true);
  draft.rebase("template");
  assert.equal(draft.text, "ab");
  assert.equal(draft.due, "ab");
});

test("a difference gives both texts back, and leaves out what is far from a change", () => {
  const words = ["a", "b", "c", "d", "", "e"];
  let seed = 7;
  const random = (most) => (seed = (seed * 1103515245 + 12345) % 2147483648) % most;
  for (let round = 0; round < 300; round += 1) {
    const text = () => Array.from({ length: random(12) + 1 }, () => words[random(words.length)]).join("\n");
    const [before, now] = [text(), text()];
    const lines = difference(before, now);
    if (before === now) assert.deepEqual(lines, []);
    else if (!lines.some(({ kind }) => kind === "gap")) {
      const side = (left) => lines.filter(({ kind }) => kind !== left).map(({ text }) => text).join("\n");
      assert.equal(side("added"), before);
      assert.equal(side("removed"), now);
    }
  }
  const long = Array.from({ length: 50 }, (_, at) => `line ${at}`);
  const lines = difference(long.join("\n"), long.with(25, "other").join("\n"));
  assert.deepEqual(lines.map(({ kind }) => kind), ["gap", "same", "same", "removed", "added", "same", "same", "gap"]);
  assert.deepEqual(alike("limit: 500,", "limit: 50,"), [9, 1]);
});

test("a difference of two long texts takes no time", () => {
  const text = (seed) => Array.from({ length: 20_000 }, (_, at) => (at * seed) % 977).join("\n");
  const start = performance.now();
  assert.ok(difference(text(3), text(5)).length >= 20_000);
  assert.ok(performance.now() - start < 500);
});

test("the text to begin with is what is installed from here, and only another one is a draft", () => {
  const hook = { template: "def hook(): ...\n", installed: [{ source: "theirs", version: null }, { source: "ours\n", version: 2 }] };
  assert.equal(startingText(hook), "ours\n");
  assert.equal(startingText({ ...hook, installed: [] }), "def hook(): ...\n");
  for (const [text, drafted] of [["ours", false], ["def hook(): ...", false], ["theirs", false], ["new", true]]) {
    assert.equal(isDraft(hook, text), drafted);
  }
});

test("as a cell, a hook is installed by its function's name", () => {
  const code = "import re\n\ndef helper(): pass\n\nasync def größe(context):\n    def inner(): pass\n";
  assert.equal(asCell(code, "prepare_context", false), `${code.trimEnd()}\n\n\nagent.set_hooks(prepare_context=größe)\n`);
  assert.match(asCell(code, "before_tool_call", true), /set_hooks\(before_tool_call=\[\*agent\.hooks\.before_tool_call, größe\]\)/);
  assert.match(asCell("def after_tool_call(c): ...\ndef x(): ...", "after_tool_call", false), /after_tool_call=after_tool_call\)/);
});

test("places count characters as Python does", () => {
  assert.deepEqual([0, 1, 2, 3, 9].map((at) => indexOf("a😀b", at)), [0, 1, 3, 4, 4]);
});
