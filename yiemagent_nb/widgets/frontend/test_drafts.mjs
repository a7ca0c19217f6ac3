// Tests of what a draft is: commands, files, limits, history, and what Enter will do.

import assert from "node:assert/strict";
import { test } from "node:test";

export function testDrafts({ History, encode, joined, offered, readCommand, takeApart, tooMuch, whatEnterDoes }) {
  const commands = ["plot", "help", "tools"].map((name) => ({ name, description: `Does ${name}.`, takes: "" }));

  test("a text that begins with a known command is that command and its words", () => {
    assert.deepEqual(readCommand("/plot  a b\nc ", commands), { command: commands[0], words: "a b\nc" });
    assert.deepEqual(readCommand(" /help", commands), { command: commands[1], words: "" });
    for (const text of ["/plots", "/Plot", "/tmp/plot", "see /plot", "/", ""]) assert.equal(readCommand(text, commands), null, text);
  });

  test("commands are offered while the first word is written", () => {
    const names = (text, caret = text.length) => offered(text, caret, commands)?.map(({ name }) => name) ?? null;
    assert.deepEqual(names("/"), ["plot", "help", "tools"]);
    assert.deepEqual(names("/L"), ["plot", "help", "tools"]);
    assert.deepEqual(names("/p"), ["plot", "help"]);
    for (const text of ["", "a /", "/x", "/tmp/", "/plot ", " /"]) assert.equal(names(text), null, text);
    assert.equal(names("/plot", 2), null);
  });

  test("a message comes apart into what a person put together", () => {
    const text = { type: "text", text: "Look:\n" };
    const file = { type: "text", text: '<file name="a&lt;&quot;&#x27;&amp;lt;.csv">\nx\n\n</file>\né\n</file>' };
    const image = { type: "image", data: "AAAA", mime_type: "image/jpeg" };
    const { text: words, files } = takeApart([text, file, image]);
    assert.equal(words, "Look:\n");
    assert.deepEqual(files, [
      { name: `a<"'&lt;.csv`, mime_type: "text/plain", data: encode("x\n\n</file>\né") },
      { name: "image.jpg", mime_type: "image/jpeg", data: "AAAA" },
    ]);
    assert.equal(Buffer.from(encode("é".repeat(50_000)), "base64").toString(), "é".repeat(50_000));
    assert.deepEqual(takeApart([{ type: "text", text: 'say <file name="a">\nb\n</file>' }]).files, []);
  });

  test("what stands in the composer is not lost where something comes back", () => {
    assert.equal(joined("back", "draft"), "back\n\ndraft");
    assert.equal(joined("", "draft"), "draft");
    assert.equal(joined("back", " "), "back");
  });

  test("what is too much for one message is told with what to do", () => {
    const files = (count, size) => Array.from({ length: count }, () => ({ data: "x".repeat(size) }));
    assert.equal(tooMuch("a", files(20, 400_000)), "");
    assert.match(tooMuch("a", files(21, 1)), /At most 20 files/);
    assert.match(tooMuch("a", files(2, 4_000_001)), /too large for one message/);
    assert.match(tooMuch("é".repeat(900_000), files(1, 7_900_000)), /too large for one message/);
    assert.match(tooMuch("x".repeat(1_000_001), []), /longer than 1,000,000 characters/);
  });

  test("the history goes back and forth, and the draft comes back at its end", () => {
    const history = new History();
    const said = ["new", "old"];
    assert.equal(history.move(-1, said, "draft"), null);
    assert.equal(history.move(1, said, "draft"), "new");
    assert.equal(history.move(1, said, "new"), "old");
    assert.equal(history.move(1, said, "old"), null);
    assert.equal(history.move(-1, said, "old"), "new");
    assert.equal(history.move(-1, said, "new"), "draft");
    assert.equal(history.recalled, false);
  });

  test("a draft whose place a text of the history took is handed out", () => {
    const history = new History();
    history.move(1, ["old"], "draft");
    assert.equal(history.leave(), "draft");
    assert.equal(history.leave(), "");
    assert.equal(history.recalled, false);
  });

  test("what Enter will do is said at every moment", () => {
    const idle = { status: "ready", running: false, stopping: false, pending: false, reading: [], command: null, option: null, waits: false };
    const told = (now) => whatEnterDoes({ ...idle, ...now });
    assert.match(told({}), /^Enter sends/);
    assert.match(told({ waits: true }), /what waits goes on/);
    assert.equal(told({ reading: ["a.png"] }), "Enter sends when a.png is read");
    assert.equal(told({ reading: ["a.png", "b"], running: true }), "Enter steers when 2 files are read · Alt+Enter queues · Esc stops");
    assert.equal(told({ status: "busy" }), "Enter sends when the kernel is free");
    assert.equal(told({ status: "busy", pending: true }), "Sent as soon as the kernel is free");
    assert.equal(told({ pending: true, reading: ["a"] }), "Sent when a is read");
    assert.equal(told({ running: true }), "Enter steers · Alt+Enter queues · Esc stops");
    assert.equal(told({ command: commands[0], running: true }), "Enter runs /plot: Does plot.");
    assert.match(told({ option: commands[0] }), /^Enter completes \/plot/);
    assert.equal(told({ running: true, stopping: true }), "Stopping…");
    assert.match(told({ status: "disconnected", pending: true }), /run the cell again/);
  });
}
