// The calls that were made by hand, the newest first.

import { h } from "../dom";
import { seconds, visible } from "../text";
import { VirtualList } from "../virtual_list";
import { stateMark } from "./call_view";
import type { HandCall } from "./forms";
import type { Inspected } from "./inspected";
import type { GoTo, Place } from "./page";
import { clock } from "./small";

export class CallList {
  readonly element: HTMLElement;
  private readonly list: VirtualList;
  private readonly nothing = h("p", { class: "yna-muted yna-list-note" }, "Nothing was called by hand yet. Choose a tool, fill in its arguments, and call it.");
  private calls: HandCall[] = [];
  private shown = "";

  constructor(
    private readonly inspected: Inspected,
    private readonly go: GoTo,
  ) {
    this.list = new VirtualList({
      role: "listbox",
      label: "Calls by hand",
      rowHeight: 44,
      class: "yna-tool-list",
      onActivate: (index) => {
        const call = this.calls[index];
        if (call) this.go({ kind: "call", key: call.call });
      },
    });
    this.element = h("div", { class: "yna-list-pane", hidden: true }, this.nothing, this.list.element);
  }

  update(): void {
    const active = this.calls[this.list.active]?.call;
    this.calls = [...this.inspected.calls].reverse();
    this.nothing.hidden = this.calls.length > 0;
    this.list.element.hidden = this.calls.length === 0;
    this.list.setRows(
      this.calls.length,
      (element, index) => this.render(element, index),
      (index) => this.calls[index]?.call ?? "",
    );
    if (active !== undefined) this.list.active = this.calls.findIndex(({ call }) => call === active);
  }

  mark({ kind, key }: Place): void {
    this.shown = kind === "call" ? key : "";
    this.list.update();
  }

  focus(): void {
    if (this.list.active < 0 && this.calls.length > 0) this.list.move(0);
    this.list.focus();
  }

  dispose(): void {
    this.list.dispose();
  }

  private render(element: HTMLElement, index: number): void {
    const call = this.calls[index];
    if (!call) return;
    const label = this.inspected.tool(call.name)?.label ?? call.name;
    element.classList.add("yna-tool-row", "yna-hand-row");
    element.classList.toggle("yna-shown", call.call === this.shown);
    element.dataset.state = call.state;
    element.replaceChildren(
      h(
        "div",
        { class: "yna-tool-line" },
        h("span", { class: "yna-call-mark" }, stateMark(call.state), h("span", { class: "yna-hidden" }, call.state)),
        h("span", { class: "yna-tool-label" }, visible(label)),
        h("span", { class: "yna-muted yna-hand-time" }, call.duration === null ? clock(call.started) : seconds(call.duration)),
      ),
      h("div", { class: "yna-tool-line" }, h("code", { class: "yna-tool-summary" }, visible(call.summary || call.arguments_text))),
    );
  }
}
