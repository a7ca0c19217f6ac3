// What a server and we said to each other, message by message; and of that what the server told by itself.

import { copyButton, h, icon, setText } from "../dom";
import { jsonTree, parseToShow } from "../json_tree";
import type { Refusal } from "../protocol";
import { bytes, seconds, visible } from "../text";
import { VirtualList } from "../virtual_list";
import type { Direction, LogEntry } from "./forms";
import { refusalText, type Inspected } from "./inspected";
import { clock, Complaint, searchField, Segments } from "./small";

const ROW = 26;

const DIRECTIONS: Record<Direction, [arrow: string, word: string]> = {
  out: ["→", "sent"],
  in: ["←", "received"],
  stderr: ["!", "standard error"],
  rubbish: ["?", "no message of the protocol"],
  state: ["•", "state"],
};
const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/** Which entries a person may look at: all, or what the server told by itself. */
export type LogKind = "all" | "told";

export class ProtocolLog {
  readonly element: HTMLElement;
  private readonly list: VirtualList;
  private readonly complaint = new Complaint();
  private readonly count = h("span", { class: "yna-muted yna-log-count", role: "status" });
  private readonly earlier = h("button", { class: "yna-ghost", hidden: true, onclick: () => void this.load(this.start) }, icon("up"), "Earlier");
  private readonly toEnd = h("button", { class: "yna-ghost yna-log-end", hidden: true, onclick: () => this.follow() }, icon("down"), "To the end");
  private readonly details = h("div", { class: "yna-log-details", hidden: true });
  private entries: LogEntry[] = [];
  private found: LogEntry[] = [];
  private start = 0;
  private words: string[] = [];
  private which = "all";
  private loading = false;

  constructor(
    private readonly inspected: Inspected,
    private readonly server: string,
    private readonly kind: LogKind,
  ) {
    this.list = new VirtualList({
      role: "listbox",
      label: kind === "all" ? "Messages" : "Notifications",
      rowHeight: ROW,
      class: "yna-log-list",
      onActivate: (index) => this.open(index),
      onFollow: (following) => (this.toEnd.hidden = following),
    });
    const segments = kind === "all" ? this.directions() : null;
    this.element = h(
      "div",
      { class: `yna-protocol-log yna-log-${kind}` },
      h("div", { class: "yna-log-bar" }, segments ?? this.levels(), searchField(kind === "all" ? "Search messages" : "Search notifications", (words) => this.find(words)), this.count, this.earlier, this.toEnd),
      this.complaint.element,
      this.list.element,
      this.details,
    );
    this.details.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      this.close();
    });
    this.list.following = true;
    void this.load(null);
  }

  /** More was said. */
  add(entries: LogEntry[]): void {
    const last = this.entries.at(-1)?.number ?? -1;
    const news = entries.filter(({ number }) => number > last);
    if (news.length === 0) return;
    if (last >= 0 && (news[0]?.number ?? 0) > last + 1) return void this.load(null); // some were lost on the way
    this.entries.push(...news);
    this.found.push(...news.filter((entry) => this.fits(entry)));
    this.show();
  }

  /** All may be another: a connection was lost, or the kernel went on without this page. */
  renew(): void {
    void this.load(null);
  }

  dispose(): void {
    this.list.dispose();
  }

  private directions(): HTMLElement {
    const names: [string, string][] = [["all", "All"], ["out", "→ Sent"], ["in", "← Received"], ["other", "Other"]];
    const segments = new Segments("Direction", names, (key) => this.pick(key));
    segments.press("all");
    return segments.element;
  }

  private levels(): HTMLElement {
    const select = h("select", { class: "yna-picker", label: "Level" }, h("option", { value: "all" }, "All levels"), ...LEVELS.map((level) => h("option", { value: level }, `${level} and above`)));
    select.addEventListener("change", () => this.pick(select.value));
    return select;
  }

  private pick(which: string): void {
    this.which = which;
    this.filter();
  }

  private find(words: string[]): void {
    this.words = words;
    this.filter();
  }

  private filter(): void {
    const active = this.found[this.list.active]?.number;
    this.found = this.entries.filter((entry) => this.fits(entry));
    this.show();
    this.list.active = active === undefined ? -1 : this.found.findIndex(({ number }) => number === active);
  }

  private fits(entry: LogEntry): boolean {
    if (this.kind === "told") {
      if (entry.direction !== "in" || !entry.method.startsWith("notifications/")) return false;
      if (this.which !== "all" && LEVELS.indexOf(entry.level) < LEVELS.indexOf(this.which)) return false;
    } else if (this.which === "other") {
      if (entry.direction === "in" || entry.direction === "out") return false;
    } else if (this.which !== "all" && entry.direction !== this.which) return false;
    if (this.words.length === 0) return true;
    const text = `${entry.method}\n${entry.id ?? ""}\n${entry.summary}\n${entry.level}`.toLowerCase();
    return this.words.every((word) => text.includes(word));
  }

  private show(): void {
    const { length } = this.found;
    this.list.setRows(
      length,
      (element, index) => this.render(element, index),
      (index) => String(this.found[index]?.number ?? index),
    );
    const all = this.kind === "told" ? this.entries.filter((entry) => entry.direction === "in" && entry.method.startsWith("notifications/")).length : this.entries.length;
    setText(this.count, length === all ? length.toLocaleString() : `${length.toLocaleString()} of ${all.toLocaleString()}`);
    this.earlier.hidden = this.start === 0;
  }

  private async load(before: number | null): Promise<void> {
    if (this.loading) return;
    this.loading = true;
    const asked = this.inspected.context.ask<{ entries: LogEntry[]; start: number }>({ type: "load_log", server: this.server, before });
    const loaded = await this.complaint.of(asked);
    this.loading = false;
    if (!loaded) return;
    if (before === null) this.entries = loaded.entries;
    else this.entries.unshift(...loaded.entries);
    this.start = loaded.start;
    if (before !== null) this.list.following = false;
    this.filter();
  }

  private follow(): void {
    this.list.following = true;
    this.list.focus();
  }

  private render(element: HTMLElement, index: number): void {
    const entry = this.found[index];
    if (!entry) return;
    const [arrow, word] = DIRECTIONS[entry.direction] ?? ["?", visible(entry.direction)];
    element.classList.add("yna-log-row");
    element.dataset.direction = entry.direction;
    element.dataset.level = entry.level;
    element.toggleAttribute("data-bad", entry.is_error);
    element.title = `${word}, ${clock(entry.time)}, ${bytes(entry.size)}`;
    const took = entry.seconds === null ? "" : seconds(entry.seconds);
    element.replaceChildren(
      h("span", { class: "yna-log-arrow", title: word }, h("span", { "aria-hidden": "true" }, arrow), h("span", { class: "yna-hidden" }, word)),
      h("span", { class: "yna-log-method" }, visible(this.kind === "told" ? entry.level || entry.method.replace("notifications/", "") : entry.method)),
      h("span", { class: "yna-log-id" }, entry.id === null || entry.id === "" ? "" : `#${visible(String(entry.id))}`),
      h("span", { class: "yna-log-summary" }, visible(entry.summary)),
      h("span", { class: "yna-log-took" }, entry.is_error && !took ? "error" : took),
      h("span", { class: "yna-log-size" }, bytes(entry.size)),
      h("time", { class: "yna-log-time" }, clock(entry.time)),
    );
  }

  private open(index: number): void {
    const entry = this.found[index];
    if (!entry) return;
    this.details.hidden = false;
    const body = h("div", { class: "yna-log-body" }, h("p", { class: "yna-muted" }, "Loading…"));
    const [, word] = DIRECTIONS[entry.direction] ?? ["", ""];
    const close = h("button", { class: "yna-quiet", label: "Close the message", title: "Close (Escape)", onclick: () => this.close() }, icon("cross"));
    const title = h("span", { class: "yna-log-title" }, `${word}, ${clock(entry.time)}, ${bytes(entry.size)}`);
    const bar = h("div", { class: "yna-log-details-bar" }, title, close);
    this.details.dataset.number = String(entry.number);
    this.details.replaceChildren(bar, body);
    this.list.following = false;
    // The list is lower now; it knows with the next frame.
    requestAnimationFrame(() => requestAnimationFrame(() => this.list.scrollTo(index)));
    this.inspected.context.ask<{ text: string }>({ type: "load_log_entry", server: this.server, number: entry.number }).then(
      ({ text }) => {
        if (this.details.dataset.number === String(entry.number)) this.showMessage(text, bar, body);
      },
      (refusal: Refusal) => body.replaceChildren(h("p", { class: "yna-problem" }, refusalText(refusal))),
    );
  }

  private showMessage(text: string, bar: HTMLElement, body: HTMLElement): void {
    const value = objectOf(text);
    const show = (as: string): void => {
      if (as === "tree" && value) return body.replaceChildren(jsonTree(value));
      const code = h("code");
      this.inspected.context.highlight(code, text, value ? "json" : "");
      body.replaceChildren(h("pre", { tabindex: "0", role: "group", label: "The message" }, code));
    };
    const segments = new Segments("Message as", [["tree", "Tree"], ["raw", "Raw"]], show);
    segments.press("tree");
    if (value) bar.children[0]?.after(segments.element);
    bar.lastElementChild?.before(copyButton(() => text));
    show(value ? "tree" : "raw");
  }

  private close(): void {
    this.details.hidden = true;
    this.details.replaceChildren();
    this.list.focus();
  }
}

function objectOf(text: string): object | null {
  try {
    const value = parseToShow(text);
    return typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}
