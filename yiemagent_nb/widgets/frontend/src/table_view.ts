// A table of a result: it scrolls inside its place, and shows its first rows until a person wants all.

import { copyButton, h } from "./dom";
import { numberColumns, type Table } from "./result_form";

const FIRST_ROWS = 8;
/** So few rows more are shown at once. */
const FEW_MORE = 4;
const ROWS_A_FRAME = 150;
const LONGEST_CELL = 300;

export function tableElement(table: Table, name: string): HTMLElement {
  const { caption, columns, rows } = table;
  const numbers = numberColumns(table);
  const title = caption || `${name}, ${rows.length.toLocaleString()} rows`;
  const cell = (tag: "th" | "td", text: string, at: number): HTMLElement =>
    h(tag, { ...(numbers[at] && { class: "yna-number" }), scope: tag === "th" && "col" }, clipped(text));
  const body = h("tbody");
  const add = (from: number, to: number): void =>
    body.append(...rows.slice(from, to).map((row) => h("tr", {}, ...row.map((text, at) => cell("td", text, at)))));
  const first = rows.length > FIRST_ROWS + FEW_MORE ? FIRST_ROWS : rows.length;
  add(0, first);
  const scroll = h(
    "div",
    { class: "yna-table-scroll", tabindex: "0", role: "group", label: title },
    h("table", {}, h("thead", {}, h("tr", {}, ...columns.map((text, at) => cell("th", text, at)))), body),
  );
  const bar = h(
    "div",
    { class: "yna-section-bar" },
    h("span", {}, title),
    copyButton(() => [columns, ...rows].map((row) => row.map(oneCell).join("\t")).join("\n"), "Copy table"),
  );
  const element = h("div", { class: "yna-table" }, bar, scroll);
  if (first < rows.length) {
    const more = h("button", { class: "yna-more" }, `Show all ${rows.length.toLocaleString()} rows here`);
    more.addEventListener("click", () => {
      more.remove();
      scroll.focus({ preventScroll: true });
      element.classList.add("yna-whole");
      const go = (from: number): void => {
        add(from, from + ROWS_A_FRAME);
        if (from + ROWS_A_FRAME < rows.length && scroll.isConnected) requestAnimationFrame(() => go(from + ROWS_A_FRAME));
      };
      go(first);
    });
    element.append(more);
  }
  return element;
}

function clipped(text: string): string {
  return text.length > LONGEST_CELL ? `${text.slice(0, LONGEST_CELL)}…` : text;
}

/** A cell as spreadsheets take it from a clipboard. */
function oneCell(text: string): string {
  return text.replace(/[\t\r\n]+/g, " ");
}
