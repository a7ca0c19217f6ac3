// A file in a person's message: a chip that opens to its text.

import type { TextFile } from "./attached_file";
import { copyButton, h, icon } from "./dom";
import { highlightInto } from "./highlight";
import { bytes } from "./text";

const LANGUAGES: Record<string, string> = {
  py: "python", js: "javascript", ts: "typescript", json: "json", ipynb: "json", sh: "bash", sql: "sql", r: "r",
  html: "xml", xml: "xml", css: "css", yaml: "yaml", yml: "yaml", cpp: "cpp", c: "cpp", h: "cpp", jl: "julia", diff: "diff",
};

export function fileElement({ name, text }: TextFile): HTMLElement {
  const size = bytes(new Blob([text]).size);
  const code = h("code");
  const title = h("span", { class: "yna-file-name", title: name }, name || "A file");
  const element = h(
    "details",
    { class: "yna-file" },
    h("summary", {}, icon("file"), title, h("span", { class: "yna-muted" }, size), icon("chevron")),
    h(
      "div",
      { class: "yna-file-text" },
      h("div", { class: "yna-section-bar" }, h("span", {}, `${lines(text)}`), copyButton(() => text)),
      h("pre", { tabindex: "0", label: `Text of ${name}` }, code),
    ),
  );
  const language = LANGUAGES[/\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? ""] ?? "";
  element.addEventListener("toggle", () => element.open && highlightInto(code, text, language), { once: true });
  return element;
}

function lines(text: string): string {
  const count = text === "" ? 0 : text.replace(/\n$/, "").split("\n").length;
  return count === 1 ? "1 line" : `${count.toLocaleString()} lines`;
}
