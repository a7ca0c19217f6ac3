// The tools by their source, as a tree of two levels; and the calls that were made by hand.

import { h, icon } from "../dom";
import { visible } from "../text";
import { VirtualList } from "../virtual_list";
import type { Server, Tool } from "./forms";
import { aboutSource, sourceName, type Inspected } from "./inspected";
import type { GoTo, Place } from "./page";
import { searchField, shortHints, stateOf } from "./small";

const ROW = 44;

type Row = { kind: "source"; source: string; server: Server | null; count: number; of: number; open: boolean } | { kind: "tool"; tool: Tool; at: number; of: number };

export class ToolList {
  readonly element: HTMLElement;
  readonly search: HTMLInputElement;
  private readonly list: VirtualList;
  private readonly nothing = h("p", { class: "yna-muted yna-list-note", role: "status", hidden: true });
  private readonly closed = new Set<string>();
  private rows: Row[] = [];
  private words: string[] = [];
  private shown: Place = { kind: "overview", key: "" };

  constructor(
    private readonly inspected: Inspected,
    private readonly go: GoTo,
  ) {
    this.search = searchField("Search tools", (words) => this.find(words));
    this.search.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown" && event.key !== "Enter") return;
      event.preventDefault();
      this.list.focus();
      const first = this.rows.findIndex(({ kind }) => kind === "tool");
      if (first >= 0) this.list.move(first);
    });
    this.list = new VirtualList({
      role: "tree",
      label: "Tools by source",
      rowHeight: ROW,
      class: "yna-tool-list",
      onActivate: (index, event) => this.activate(index, event),
      onKey: (event, index) => this.onKey(event, index),
    });
    this.element = h("div", { class: "yna-list-pane" }, this.search, this.nothing, this.list.element);
  }

  /** What is there, or how it is, has changed. */
  update(): void {
    const before = this.rows[this.list.active];
    const active = before && keyOf(before);
    this.rows = this.makeRows();
    this.list.setRows(
      this.rows.length,
      (element, index) => this.render(element, index),
      (index) => {
        const row = this.rows[index];
        return row ? keyOf(row) : String(index);
      },
    );
    if (active !== undefined) this.list.active = this.rows.findIndex((row) => keyOf(row) === active);
    const found = this.rows.some(({ kind }) => kind === "tool");
    this.nothing.hidden = found || this.words.length === 0;
    this.nothing.textContent = this.nothing.hidden ? "" : "No tool has all these words.";
  }

  /** Mark what is shown beside the list. */
  mark(place: Place): void {
    this.shown = place;
    this.list.update();
  }

  focus(): void {
    const at = this.rows.findIndex((row) => this.isShown(row));
    if (this.list.active < 0 && this.rows.length > 0) this.list.move(Math.max(0, at));
    this.list.focus();
  }

  dispose(): void {
    this.list.dispose();
  }

  private find(words: string[]): void {
    this.words = words;
    this.update();
    this.list.element.scrollTop = 0;
  }

  private makeRows(): Row[] {
    const bySource = new Map<string, Tool[]>(this.inspected.sources.map((source) => [source, []]));
    const of = new Map<string, number>();
    for (const tool of this.inspected.tools) {
      of.set(tool.source, (of.get(tool.source) ?? 0) + 1);
      if (this.words.length === 0 || this.inspected.matches(tool, this.words)) bySource.get(tool.source)?.push(tool);
    }
    const rows: Row[] = [];
    for (const [source, tools] of bySource) {
      if (this.words.length > 0 && tools.length === 0) continue;
      const open = this.words.length > 0 || !this.closed.has(source);
      rows.push({ kind: "source", source, server: this.inspected.server(source), count: tools.length, of: of.get(source) ?? 0, open });
      if (open) rows.push(...tools.map((tool, at): Row => ({ kind: "tool", tool, at: at + 1, of: tools.length })));
    }
    return rows;
  }

  private render(element: HTMLElement, index: number): void {
    const row = this.rows[index];
    if (!row) return;
    element.classList.toggle("yna-source-row", row.kind === "source");
    element.classList.toggle("yna-tool-row", row.kind === "tool");
    element.classList.toggle("yna-shown", this.isShown(row));
    element.setAttribute("aria-level", row.kind === "source" ? "1" : "2");
    if (row.kind === "source") {
      element.setAttribute("aria-expanded", String(row.open));
      element.removeAttribute("data-off");
      element.replaceChildren(...this.sourceElements(row));
    } else {
      element.removeAttribute("aria-expanded");
      element.toggleAttribute("data-off", !row.tool.enabled);
      element.setAttribute("aria-setsize", String(row.of));
      element.setAttribute("aria-posinset", String(row.at));
      element.replaceChildren(...toolElements(row.tool));
    }
  }

  private sourceElements({ source, server, count, of }: Extract<Row, { kind: "source" }>): HTMLElement[] {
    const [word, kind] = server ? stateOf(server) : ["", ""];
    const name = server === null ? sourceName(source) : visible(source);
    return [
      h("span", { class: "yna-source-fold", "aria-hidden": "true" }, icon("chevron")),
      h("span", { class: "yna-source-name", title: (server === null && aboutSource(source)) || name }, name),
      ...(server ? [h("span", { class: "yna-state-dot", "data-kind": kind }), h("span", { class: kind === "good" ? "yna-hidden" : "yna-state-word", "data-kind": kind }, word)] : []),
      h("span", { class: "yna-count" }, count === of ? String(of) : `${count} of ${of}`, h("span", { class: "yna-hidden" }, of === 1 ? " tool" : " tools")),
    ];
  }

  private isShown(row: Row): boolean {
    const { kind, key } = this.shown;
    return row.kind === "tool" ? kind === "tool" && row.tool.name === key : kind === "server" && row.source === key;
  }

  private activate(index: number, event: Event): void {
    const row = this.rows[index];
    if (!row) return;
    const onFold = event.target instanceof Element && event.target.closest(".yna-source-fold") !== null;
    if (row.kind === "tool") this.go({ kind: "tool", key: row.tool.name });
    else if (onFold || row.server === null) this.fold(row.source, row.open);
    else this.go({ kind: "server", key: row.source });
  }

  private fold(source: string, close: boolean): void {
    if (this.words.length > 0) return; // what was found stands open
    if (close) this.closed.add(source);
    else this.closed.delete(source);
    this.update();
  }

  private onKey({ key }: KeyboardEvent, index: number): boolean {
    const row = this.rows[index];
    if (!row || (key !== "ArrowLeft" && key !== "ArrowRight")) return false;
    if (row.kind === "source") {
      if (row.open === (key === "ArrowLeft")) this.fold(row.source, row.open);
      else if (row.open) this.list.move(index + 1);
    } else if (key === "ArrowLeft") this.list.move(this.rows.findIndex((each) => each.kind === "source" && each.source === row.tool.source));
    return true;
  }
}

function keyOf(row: Row): string {
  return row.kind === "source" ? `source ${row.source}` : `tool ${row.tool.name}`;
}

function toolElements(tool: Tool): HTMLElement[] {
  const label = visible(tool.label || tool.name);
  const warned = tool.warnings === 1 ? "1 warning" : `${tool.warnings} warnings`;
  return [
    h(
      "div",
      { class: "yna-tool-line" },
      h("span", { class: "yna-tool-label", title: visible(tool.name) }, label),
      tool.warnings > 0 ? h("span", { class: "yna-warned", title: warned }, icon("alert"), h("span", { class: "yna-hidden" }, warned)) : null,
      tool.enabled ? null : h("span", { class: "yna-badge yna-off" }, "off"),
    ),
    h("div", { class: "yna-tool-line" }, h("span", { class: "yna-tool-summary" }, visible(tool.summary)), ...shortHints(tool.hints)),
  ];
}
