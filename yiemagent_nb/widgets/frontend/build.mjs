// Builds ../static: widget.js, widget.css, math.js and the licences of what is bundled in them.
// Pass another folder to build there.

import { build } from "esbuild";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = resolve(process.argv[2] ?? join(here, "../static"));

const result = await build({
  absWorkingDir: here,
  entryPoints: { widget: "src/index.ts", math: "src/math_part.ts" },
  outdir: target,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  write: true,
  logLevel: "warning",
});
await build({
  absWorkingDir: here,
  entryPoints: { widget: "src/widget.css" },
  outdir: target,
  bundle: true,
  minify: true,
  target: ["chrome111", "firefox121", "safari16.4"],
  charset: "utf8",
  logLevel: "warning",
});

const packages = new Set();
for (const input of Object.keys(result.metafile.inputs)) {
  const match = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
  if (match) packages.add(match[1]);
}
const texts = [...packages].sort().map((name) => {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).sort().find((entry) => /^licen[cs]e/i.test(entry));
  if (!file || !existsSync(join(folder, file))) throw new Error(`${name} has no licence file`);
  const text = readFileSync(join(folder, file), "utf8").replace(/\r\n/g, "\n").trim();
  return `${name} ${version} (${license})\n\n${text}\n`;
});
const rule = `\n${"-".repeat(78)}\n\n`;
writeFileSync(join(target, "LICENSES.txt"), `The scripts in this folder hold these packages.\n${rule}${texts.join(rule)}`);
