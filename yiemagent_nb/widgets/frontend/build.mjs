// Builds ../static: the widget's script and style sheet, the parts of the script that are loaded on
// first need, and the licences of what is bundled in them. Pass another folder to build there.

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = resolve(process.argv[2] ?? join(here, "../static"));
const PARTS = ["markdown", "highlight", "math", "search", "settings", "questions", "editor", "files", "menu", "code", "inspector", "hooks", "trace"];

const common = {
  absWorkingDir: here,
  outdir: target,
  bundle: true,
  minify: true,
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
  target: ["es2022", "chrome111", "firefox121", "safari16.4"],
};
const script = { ...common, format: "esm", metafile: true };

function packagesOf({ metafile }) {
  const names = Object.keys(metafile.inputs).map((input) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1]);
  return [...new Set(names.filter(Boolean))];
}

const parts = await build({
  ...script,
  entryPoints: Object.fromEntries(PARTS.map((name) => [name, `src/${name}_part.ts`])),
  write: false,
});
if ("src/parts.ts" in parts.metafile.inputs) {
  throw new Error("A part holds a copy of parts.ts, which knows of no part: pass in what it needs of it.");
}
const texts = Object.fromEntries(parts.outputFiles.map(({ path, text }) => [basename(path), text]));
const hashes = PARTS.map((name) => {
  const style = texts[`${name}.css`]?.trim();
  const text = texts[`${name}.js`] + (style ? `export const style=${JSON.stringify(style)};\n` : "");
  writeFileSync(join(target, `${name}.js`), text);
  return [name, createHash("sha256").update(text).digest("hex").slice(0, 16)];
});
const main = await build({
  ...script,
  entryPoints: { widget: "src/index.ts" },
  define: { PART_HASHES: JSON.stringify(Object.fromEntries(hashes)) },
});
if (packagesOf(main).length > 0) {
  throw new Error(`widget.js is to hold our own code only, and holds ${packagesOf(main).join(", ")}: import it in a part.`);
}
await build({ ...common, entryPoints: { widget: "src/widget.css" } });

const licences = packagesOf(parts).sort().map((name) => {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).sort().find((entry) => /^licen[cs]e/i.test(entry));
  if (!file || !existsSync(join(folder, file))) throw new Error(`${name} has no licence file`);
  const text = readFileSync(join(folder, file), "utf8").replace(/\r\n/g, "\n").trim();
  return `${name} ${version} (${license})\n\n${text}\n`;
});
const rule = `\n${"-".repeat(78)}\n\n`;
writeFileSync(join(target, "LICENSES.txt"), `The scripts in this folder hold these packages.\n${rule}${licences.join(rule)}`);
