// A call of the history: what it was called with, what it gave, and how to do it again.

import { h, icon, setText } from "../dom";
import { jsonTree, parseToShow } from "../json_tree";
import { visible } from "../text";
import { CallView } from "./call_view";
import { fill } from "./filled";
import type { Inspected, Told } from "./inspected";
import type { GoTo, Page } from "./page";
import { rawJson } from "./schema_view";
import { clock, Segments } from "./small";

export class CallPage implements Page {
  readonly element: HTMLElement;
  private readonly heading = h("h3", { class: "yna-page-title", tabindex: "-1" });
  private readonly when = h("span", { class: "yna-muted" });
  private readonly sent = h("div", { class: "yna-section" });
  private readonly view: CallView;
  private readonly segments = new Segments("Arguments as", [["shown", "Tree"], ["raw", "Raw"]], (key) => this.show(key));
  private shownAs = "shown";

  constructor(
    private readonly inspected: Inspected,
    readonly key: string,
    private readonly go: GoTo,
  ) {
    this.view = new CallView(inspected);
    this.segments.press("shown");
    this.element = h(
      "div",
      { class: "yna-page" },
      h("div", { class: "yna-page-head" }, this.heading, this.when),
      h(
        "div",
        { class: "yna-buttons" },
        h("button", { class: "yna-button", onclick: () => this.again(true) }, icon("again"), "Call again"),
        h("button", { class: "yna-button", onclick: () => this.again(false) }, "Fill in the form"),
      ),
      h("div", { class: "yna-section-head" }, h("p", { class: "yna-section-title" }, "Arguments"), this.segments.element),
      this.sent,
      h("p", { class: "yna-section-title" }, "What came of it"),
      this.view.element,
    );
    this.update();
  }

  update(told?: Told): void {
    if (told?.kind === "call" && told.call.call !== this.key) return;
    const call = this.inspected.call(this.key);
    this.view.update(call);
    if (!call) return;
    setText(this.heading, visible(this.inspected.tool(call.name)?.label ?? call.name));
    setText(this.when, clock(call.started));
    this.show(this.shownAs);
  }

  focus(): void {
    this.heading.focus({ preventScroll: true });
  }

  dispose(): void {
    this.view.dispose();
  }

  private show(key: string): void {
    this.shownAs = key;
    const text = this.inspected.call(this.key)?.arguments_text ?? "";
    fill(this.sent, [key, text], () => {
      const value = key === "raw" ? null : objectOf(text);
      return [value ? jsonTree(value) : rawJson(this.inspected.context, "As they were sent", text)];
    });
  }

  private again(run: boolean): void {
    const call = this.inspected.call(this.key);
    if (call) this.go({ kind: "tool", key: call.name }, { fill: call.call, run });
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
