// All of one row: what was asked, what came, how it differs, what went over the network, and facts.

import { h, icon, newId, setText } from "../dom";
import type { PanelContext } from "../panel";
import { seconds, visible } from "../text";
import { Actions } from "./actions";
import { DifferenceView } from "./difference";
import { kindIcon } from "./line_view";
import type { Row, Rows } from "./rows";
import { asked } from "./scale";
import { SectionsView, type Section } from "./sections";
import { wireElement, type WireRequest } from "./wire";
import { KIND_NAMES, problemText, selected, stateName } from "./words";

interface RowDetails extends Row {
  request: Section[];
  response: Section[];
  facts: [label: string, text: string][];
  wire: WireRequest[];
  error: string | null;
}

const TABS = ["Request", "Response", "Difference", "Wire", "Facts"] as const;
type Tab = (typeof TABS)[number];

/** Milliseconds after which a row that still goes on is asked for again, and until one that was moved to is. */
const AGAIN = 700;
const SETTLED = 60;

const STARTED: Intl.DateTimeFormatOptions & { fractionalSecondDigits: 3 } = {
  year: "numeric",
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
};

export class DetailsView {
  readonly element: HTMLElement;
  private readonly picture = h("span", { class: "yna-trace-picture" });
  private readonly title = h("h3", { class: "yna-trace-heading" });
  private readonly state = h("span", { class: "yna-trace-standing" });
  private readonly error = h("p", { class: "yna-trace-error", hidden: true });
  private readonly tabs = h("div", { class: "yna-trace-tabs", role: "tablist", label: "Details" });
  private readonly buttons = new Map<Tab, HTMLButtonElement>();
  private readonly panel = h("div", { class: "yna-trace-panel", role: "tabpanel", id: newId(), tabindex: "0" });
  private readonly actions: Actions;
  private readonly request: SectionsView;
  private readonly response: SectionsView;
  private readonly difference: DifferenceView;
  private row: Row | null = null;
  private details: RowDetails | null = null;
  private tab: Tab = "Request";
  private timer: ReturnType<typeof setTimeout> | undefined;
  private drawn = "";
  private requestOf = -1;
  private responseOf = -1;

  constructor(
    private readonly context: PanelContext,
    private readonly rows: Rows,
    close: () => void,
  ) {
    this.actions = new Actions(context);
    this.request = new SectionsView(context, "Nothing was asked here.");
    this.response = new SectionsView(context, "Nothing has come yet.");
    this.difference = new DifferenceView(context, rows);
    for (const tab of TABS) {
      const button = h(
        "button",
        { class: "yna-trace-tab", role: "tab", id: newId(), "aria-controls": this.panel.id, onclick: () => this.choose(tab) },
        tab,
      );
      this.buttons.set(tab, button);
      this.tabs.append(button);
    }
    this.tabs.addEventListener("keydown", (event) => this.onTabKey(event));
    this.element = h(
      "section",
      { class: "yna-trace-details", label: "Details of the chosen row", hidden: true },
      h(
        "div",
        { class: "yna-trace-details-head" },
        this.picture,
        this.title,
        this.state,
        h("button", { class: "yna-quiet", label: "Close the details", title: "Close the details (Esc)", onclick: close }, icon("cross")),
      ),
      this.actions.element,
      this.error,
      this.tabs,
      this.panel,
    );
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
      event.preventDefault();
      if (!this.actions.close()) close();
    });
  }

  /** The row that is shown. */
  get current(): Row | null {
    return this.row;
  }

  /** Show a row, or a newer state of it; null to show none. */
  show(row: Row | null): void {
    const before = this.row;
    if (row === before) return;
    this.row = row;
    this.element.hidden = row === null;
    if (!row) {
      clearTimeout(this.timer);
      this.details = null;
      return;
    }
    const other = before?.row !== row.row;
    if (other) {
      this.details = null;
      this.panel.scrollTop = 0;
    }
    this.actions.show(row);
    this.drawHead(row);
    this.draw();
    this.load(other ? SETTLED : row.state === "running" ? AGAIN : 0);
  }

  dispose(): void {
    clearTimeout(this.timer);
  }

  private load(after: number): void {
    if (after === AGAIN && this.timer !== undefined) return; // it is asked for already
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      const { row } = this;
      if (!row) return;
      this.context
        .ask<RowDetails>({ type: "load_row", row: row.row })
        .then((details) => {
          if (this.row?.row !== row.row) return;
          this.details = details;
          this.actions.offerCurl(row.kind === "model" && details.wire.length > 0);
          this.draw();
        })
        .catch((error: unknown) => {
          if (this.row?.row !== row.row || this.details) return;
          this.drawn = "";
          this.panel.replaceChildren(h("p", { class: "yna-problem" }, problemText(error)));
        });
    }, after);
  }

  private drawHead(row: Row): void {
    this.picture.replaceChildren(kindIcon(row.kind));
    setText(this.title, visible(row.title.slice(0, 300)));
    this.title.title = KIND_NAMES[row.kind];
    this.state.dataset["state"] = row.state;
    setText(this.state, row.duration === null ? stateName(row) : `${stateName(row)}, ${seconds(row.duration)}`);
  }

  /** The tabs that a row has: runs and turns are not asked for, and only requests to a model differ. */
  private get available(): Tab[] {
    const { row, details } = this;
    const holds = row?.kind === "run" || row?.kind === "turn";
    return TABS.filter((tab) => {
      if (tab === "Difference") return row?.kind === "model";
      if (tab === "Wire") return row?.kind === "model" || (details?.wire.length ?? 0) > 0;
      if (tab === "Request" && holds) return (details?.request.length ?? 0) > 0;
      if (tab === "Response" && holds) return (details?.response.length ?? 0) > 0;
      return true;
    });
  }

  private get shownTab(): Tab {
    const { available } = this;
    return available.includes(this.tab) ? this.tab : (available[0] ?? "Facts");
  }

  private choose(tab: Tab): void {
    this.tab = tab;
    this.actions.hush();
    this.panel.scrollTop = 0;
    this.draw();
  }

  private onTabKey(event: KeyboardEvent): void {
    const { available } = this;
    const at = available.indexOf(this.shownTab);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const tab = available.at(to % available.length) ?? "Facts";
    this.choose(tab);
    this.buttons.get(tab)?.focus();
  }

  private draw(): void {
    const { details, row } = this;
    if (!row) return;
    const { available, shownTab } = this;
    for (const [tab, button] of this.buttons) {
      button.hidden = !available.includes(tab);
      for (const [name, value] of Object.entries(selected(tab === shownTab))) button.setAttribute(name, String(value));
      if (tab === shownTab) this.panel.setAttribute("aria-labelledby", button.id);
    }
    this.error.hidden = !details?.error;
    setText(this.error, details?.error ?? "");
    if (!details) {
      this.drawn = "";
      this.panel.replaceChildren(h("p", { class: "yna-trace-nothing" }, "Loading…"));
      return;
    }
    const key = `${row.row} ${shownTab}`;
    const element = this.content(shownTab, row, details);
    // What is shown keeps its place and its focus where only more of it came.
    if (this.drawn !== key || this.panel.firstElementChild !== element) this.panel.replaceChildren(element);
    this.drawn = key;
  }

  private content(tab: Tab, row: Row, details: RowDetails): HTMLElement {
    if (tab === "Request") {
      this.request.show(details.request, this.requestOf !== row.row);
      this.requestOf = row.row;
      return this.request.element;
    }
    if (tab === "Response") {
      this.response.show(details.response, this.responseOf !== row.row);
      this.responseOf = row.row;
      return this.response.element;
    }
    if (tab === "Difference") {
      this.difference.show(row);
      return this.difference.element;
    }
    if (tab === "Wire") return wireElement(this.context, details.wire);
    const before = (row.started - asked(row, this.rows)) / 1000;
    const facts: [string, string][] = [["Started", new Date(row.started).toLocaleString(undefined, STARTED)]];
    if (before > 0.0005) facts.push(["Before the request", `${seconds(before)}: servers connect, hooks prepare it`]);
    return h(
      "dl",
      { class: "yna-trace-facts" },
      ...[...facts, ...details.facts].flatMap(([label, text]) => [h("dt", {}, visible(label)), h("dd", {}, visible(text))]),
    );
  }
}
