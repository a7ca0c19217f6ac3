// The tool inspector: a list of what there is, and beside it a page of what was chosen.

import { h, icon } from "../dom";
import type { PanelContext, PanelEvent, PanelView } from "../panel";
import type { Change } from "../store";
import { AddServerPage } from "./add_server";
import { AskedView } from "./asked_view";
import { CallList } from "./call_list";
import { CallPage } from "./call_page";
import { fill } from "./filled";
import { Inspected } from "./inspected";
import { Overview } from "./overview";
import type { Page, Place } from "./page";
import { ServerPage } from "./server_page";
import { Segments } from "./small";
import { ToolList } from "./tool_list";
import { ToolPage } from "./tool_page";

export class InspectorView implements PanelView {
  readonly element: HTMLElement;
  private readonly inspected: Inspected;
  private readonly tools: ToolList;
  private readonly calls: CallList;
  private readonly asked: AskedView;
  private readonly segments: Segments;
  private readonly list: HTMLElement;
  /** What is wrong in all stands on the overview; here, that there is something. */
  private readonly troubles = h("button", { class: "yna-ghost yna-list-problems", hidden: true, onclick: () => this.go({ kind: "overview", key: "problems" }, true) }, icon("alert"));
  private readonly detail = h("div", { class: "yna-inspector-detail" });
  private readonly back: HTMLButtonElement;
  private place: Place = { kind: "overview", key: "" };
  private page: Page;

  constructor(context: PanelContext) {
    this.inspected = new Inspected(context);
    this.tools = new ToolList(this.inspected, (place) => this.choose(place));
    this.calls = new CallList(this.inspected, (place) => this.choose(place));
    this.asked = new AskedView(this.inspected, () => this.page.focus(), (source) => this.concerns(source));
    this.segments = new Segments("List", [["tools", "Tools"], ["calls", "Calls"]], (key) => this.showList(key));
    const add = h("button", { class: "yna-quiet yna-plus", label: "Add a server", title: "Add a server", onclick: () => this.go({ kind: "add", key: "" }, true) }, icon("cross"));
    this.list = h("div", { class: "yna-inspector-list" }, h("div", { class: "yna-list-bar" }, this.segments.element, this.troubles, add), this.tools.element, this.calls.element);
    this.back = h("button", { class: "yna-ghost yna-inspector-back", onclick: () => this.toList() }, icon("back"), "Back");
    this.element = h("div", { class: "yna-inspector", tabindex: "-1" }, h("div", { class: "yna-inspector-columns" }, this.list, this.detail));
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.page = new Overview(this.inspected, (place) => this.go(place, true));
    this.detail.append(this.back, this.asked.element, this.page.element);
    this.showList("tools");
  }

  focus(): void {
    if (this.list.offsetParent === null) this.page.focus();
    else this.currentList.focus();
  }

  receive(event: PanelEvent): void {
    const told = this.inspected.receive(event);
    if (!told) return;
    if (told.kind === "all" || told.kind === "asked") this.asked.update();
    if (told.kind === "all" || told.kind === "servers" || told.kind === "tools" || told.kind === "call") {
      if (told.kind !== "call") this.tools.update();
      if (told.kind === "all" || told.kind === "call") this.calls.update();
      const { length } = this.inspected.problems;
      this.troubles.hidden = length === 0;
      const words = length === 1 ? "1 problem" : `${length} problems`;
      this.troubles.title = words;
      fill(this.troubles, length, () => [icon("alert"), String(length), h("span", { class: "yna-hidden" }, words)]);
      this.segments.title("calls", this.inspected.calls.length > 0 ? `Calls ${this.inspected.calls.length}` : "Calls");
    }
    const gone = this.place.kind === "server" && (told.kind === "all" || told.kind === "servers") && !this.inspected.server(this.place.key);
    if (gone) {
      const focused = this.detail.contains(document.activeElement);
      this.go({ kind: "overview", key: "" }, focused);
    } else this.page.update(told);
  }

  take(change: Change): void {
    if (change.kind === "status") this.page.connected?.(); // all else that stands here comes by events of its own
  }

  dispose(): void {
    this.page.dispose();
    this.tools.dispose();
    this.calls.dispose();
  }

  private get currentList(): ToolList | CallList {
    return this.tools.element.hidden ? this.calls : this.tools;
  }

  private showList(key: string): void {
    this.segments.press(key);
    this.tools.element.hidden = key !== "tools";
    this.calls.element.hidden = key !== "calls";
    if (key === "calls") this.calls.update();
  }

  /** Something of the list was chosen: by a key, the page takes the keyboard. */
  private choose(place: Place): void {
    const byKey = this.list.contains(document.activeElement) && document.activeElement?.matches(":focus-visible") === true;
    this.go(place, byKey);
  }

  private go(place: Place, focus: boolean, then?: { fill: string; run: boolean }): void {
    if (place.kind !== this.place.kind || place.key !== this.place.key) {
      const page = this.make(place);
      this.page.dispose();
      this.page.element.replaceWith(page.element);
      this.page = page;
      this.place = place;
      this.detail.scrollTop = 0;
    }
    this.element.classList.toggle("yna-in-detail", place.kind !== "overview" || place.key !== "");
    this.tools.mark(place);
    this.calls.mark(place);
    if (this.list.offsetParent === null) this.page.focus();
    else if (focus) (this.detail.offsetParent === null ? this.currentList : this.page).focus();
    const call = then && this.inspected.call(then.fill);
    if (call && this.page instanceof ToolPage) void this.page.again(call, then.run);
  }

  /** Whether what is shown is of this source. */
  private concerns(source: string): boolean {
    const { kind, key } = this.place;
    const name = kind === "call" ? this.inspected.call(key)?.name : kind === "tool" ? key : undefined;
    return kind === "server" ? key === source : name !== undefined && this.inspected.tool(name)?.source === source;
  }

  private make({ kind, key }: Place): Page {
    switch (kind) {
      case "tool":
        return new ToolPage(this.inspected, key);
      case "server":
        return new ServerPage(this.inspected, key);
      case "call":
        return new CallPage(this.inspected, key, (place, then) => this.go(place, true, then));
      case "add":
        return new AddServerPage(this.inspected, (place) => this.go(place, true));
      case "overview":
        return new Overview(this.inspected, (place) => this.go(place, true));
    }
  }

  private toList(): void {
    this.element.classList.remove("yna-in-detail");
    this.currentList.focus();
  }

  /** Escape goes back to the list; there it is left to who holds the panel. */
  private onKey(event: KeyboardEvent): void {
    if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
    if (!this.detail.contains(event.target as Node)) return;
    event.preventDefault();
    this.toList();
  }
}
