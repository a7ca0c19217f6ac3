// Pages without a browser: connections and stores that Python talks to, to compare what they know with
// the agent's own history. Each line of the input is a command as JSON, answered by one line:
//
//   {"page": 1}                 a new page              {"sent": []}
//   {"page": 1, "batch": {…}}   a batch arrives         {"sent": what the page says to that}
//   {"page": 1, "dump": true}   what the page knows     {"seq": …, "synced": …, "status": …, "store": …}

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";

import { build } from "esbuild";

async function load() {
  const folder = mkdtempSync(join(tmpdir(), "widget-pages-"));
  try {
    await build({
      absWorkingDir: dirname(fileURLToPath(import.meta.url)),
      stdin: {
        contents: 'export * from "./src/connection"; export * from "./src/store"; export * from "./src/store_dump";',
        resolveDir: ".",
      },
      outfile: join(folder, "page.mjs"),
      format: "esm",
      bundle: true,
    });
    return await import(pathToFileURL(join(folder, "page.mjs")).href);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const { Connection, Store, dump } = await load();

// A page asks again after a while only: here, a while passes with each line.
let now = 1e12;
Date.now = () => now;

class Page {
  sent = [];

  constructor() {
    const handlers = {};
    this.model = {
      get: () => undefined,
      send: (message) => this.sent.push(message),
      on: (name, handler) => (handlers[name] = handler),
      off: () => {},
    };
    this.store = new Store();
    this.connection = new Connection(this.model);
    this.connection.onEvents = (events) => this.store.apply(events);
    this.connection.onSnapshot = (snapshot) => this.store.takeSnapshot(snapshot);
    this.store.onMismatch = () => this.connection.resync();
    this.receive = (batch) => handlers["msg:custom"](batch);
  }

  answer(command) {
    if (command.dump) {
      const { seq, synced, status } = this.connection;
      return { seq, synced, status, store: dump(this.store) };
    }
    if (command.batch) this.receive(command.batch);
    return { sent: this.sent.splice(0) };
  }
}

const pages = new Map();
for await (const line of createInterface({ input: process.stdin })) {
  now += 10_000;
  const command = JSON.parse(line);
  let page = pages.get(command.page);
  if (!page) pages.set(command.page, (page = new Page()));
  process.stdout.write(`${JSON.stringify(page.answer(command))}\n`);
  if (command.dump === "last") pages.delete(command.page);
}
