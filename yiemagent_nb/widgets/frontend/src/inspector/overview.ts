// What there is in all, as long as nothing of it was chosen; and how to begin where there is nothing.

import { copyButton, h, icon } from "../dom";
import { seconds, visible } from "../text";
import { fill } from "./filled";
import type { Server } from "./forms";
import { PYTHON, type Inspected, type Told } from "./inspected";
import type { GoTo, Page } from "./page";
import { stateOf } from "./small";

const EXAMPLE = `from yiemagent_nb import tool

@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

agent.set_tools([add])`;

export class Overview implements Page {
  readonly element = h("div", { class: "yna-page yna-overview" });
  readonly key = "";
  private readonly heading = h("h3", { class: "yna-page-title", tabindex: "-1" });
  private readonly body = h("div", { class: "yna-overview-body" });

  constructor(
    private readonly inspected: Inspected,
    private readonly go: GoTo,
  ) {
    this.element.append(h("div", { class: "yna-page-head" }, this.heading), this.body);
    this.update();
  }

  update(told?: Told): void {
    if ((told && !["all", "servers", "tools"].includes(told.kind)) || !this.inspected.known) return;
    const { servers, tools, problems } = this.inspected;
    const empty = servers.length === 0 && tools.length === 0;
    const offered = tools.filter(({ enabled }) => enabled).length;
    const own = tools.filter(({ source }) => source === PYTHON).length;
    const warned = tools.filter(({ warnings }) => warnings > 0).length;
    this.heading.textContent = empty ? "This agent has no tools yet" : tools.length === 1 ? "1 tool" : `${tools.length.toLocaleString()} tools`;
    fill(this.body, [servers, tools.length, offered, own, warned, problems], () =>
      empty
        ? this.beginning()
        : [
            h("p", { class: "yna-muted" }, summary(tools.length, offered, own, warned)),
            ...problems.map((problem) => h("p", { class: "yna-warnings" }, icon("alert"), h("span", {}, problem))),
            servers.length > 0 ? h("p", { class: "yna-section-title" }, "Servers") : null,
            servers.length > 0 ? h("ul", { class: "yna-server-list" }, ...servers.map((server) => this.serverElement(server))) : null,
            h("div", { class: "yna-buttons" }, this.addButton()),
          ],
    );
  }

  focus(): void {
    this.heading.focus({ preventScroll: true });
  }

  dispose(): void {}

  private serverElement(server: Server): HTMLElement {
    const [word, kind] = stateOf(server);
    const facts = [server.tools === 1 ? "1 tool" : `${server.tools} tools`, server.latency === null ? "" : seconds(server.latency)];
    return h(
      "li",
      {},
      h(
        "button",
        { class: "yna-server-card", onclick: () => this.go({ kind: "server", key: server.name }) },
        h("span", { class: "yna-server-card-line" }, h("span", { class: "yna-state-dot", "data-kind": kind }), h("b", {}, visible(server.name)), h("span", { class: "yna-state-word", "data-kind": kind }, word), h("span", { class: "yna-muted" }, facts.filter(Boolean).join(" · "))),
        h("code", { class: "yna-target" }, visible(server.target)),
        server.error ? h("span", { class: "yna-problem" }, visible(server.error.slice(0, 300))) : null,
      ),
    );
  }

  private beginning(): HTMLElement[] {
    const code = h("code");
    this.inspected.context.highlight(code, EXAMPLE, "python");
    return [
      h("p", { class: "yna-muted" }, "Give it functions of your own in a cell, or connect an MCP server: its tools stand here at once, to be looked at and called by hand."),
      h("div", { class: "yna-section" }, h("div", { class: "yna-section-bar" }, h("span", {}, "A function of your own"), copyButton(() => EXAMPLE)), h("pre", { tabindex: "0", role: "group", label: "A function of your own" }, code)),
      h("div", { class: "yna-buttons" }, this.addButton()),
    ];
  }

  private addButton(): HTMLElement {
    return h("button", { class: "yna-button", onclick: () => this.go({ kind: "add", key: "" }) }, "Add a server…");
  }
}

function summary(tools: number, offered: number, own: number, warned: number): string {
  const words = [
    offered === tools ? "All are offered to the model." : `${offered.toLocaleString()} of them are offered to the model.`,
    own > 0 ? `${own.toLocaleString()} ${own === 1 ? "is a function" : "are functions"} of your own.` : "",
    warned > 0 ? `${warned.toLocaleString()} ${warned === 1 ? "has" : "have"} warnings.` : "",
  ];
  return words.filter(Boolean).join(" ");
}
