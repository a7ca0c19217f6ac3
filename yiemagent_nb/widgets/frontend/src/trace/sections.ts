// The sections of a request or a response: readable, or exactly as they are.

import { copyButton, h, icon } from "../dom";
import { jsonTree, parseToShow } from "../json_tree";
import type { PanelContext } from "../panel";
import { visible } from "../text";
import { longText } from "./long_text";
import { messageSections } from "./messages";

export interface Section {
  title: string;
  language: string;
  text: string;
  /** How many characters more there are than are here. */
  left_out: number;
}

interface Made {
  section: Section;
  raw: boolean;
  element: HTMLElement;
}

/** Longer sections are folded, and shown as plain text when they are opened. */
const FOLDED = 1_500;
const FOLDED_LINES = 30;
const LONGEST_RICH = 20_000;
/** So many sections are shown at first, the last ones: a conversation may have thousands of messages. */
const MOST = 150;

export class SectionsView {
  readonly element: HTMLElement;
  private readonly list = h("div", { class: "yna-trace-sections" });
  private readonly open = new Map<string, boolean>();
  private raw = false;
  private earlier = false;
  private made: Made[] = [];
  private shown: readonly Section[] = [];

  /** `nothing` is said where there is no section. */
  constructor(
    private readonly context: PanelContext,
    private readonly nothing: string,
  ) {
    const modes = [false, true].map((raw) => {
      const button = h("button", { class: "yna-trace-chip", "aria-pressed": String(!raw) }, raw ? "Raw" : "Readable");
      button.addEventListener("click", () => {
        this.raw = raw;
        for (const [at, each] of modes.entries()) each.setAttribute("aria-pressed", String((at === 1) === raw));
        this.draw();
      });
      return button;
    });
    const fold = (open: boolean): HTMLElement =>
      h("button", { class: "yna-ghost", onclick: () => this.setAll(open) }, open ? "Open all" : "Fold all");
    const bar = h(
      "div",
      { class: "yna-trace-modes" },
      h("span", { class: "yna-trace-chips", role: "group", label: "How it is shown" }, ...modes),
      h("span", { class: "yna-trace-folds" }, fold(true), fold(false)),
    );
    this.element = h("div", {}, bar, this.list);
  }

  show(sections: readonly Section[], other: boolean): void {
    if (sections === this.shown) return;
    if (other) {
      this.made = [];
      this.open.clear();
      this.earlier = false;
    }
    this.shown = sections;
    this.draw();
  }

  private setAll(open: boolean): void {
    for (const details of this.list.querySelectorAll("details")) details.open = open;
  }

  private draw(): void {
    const { raw } = this;
    const sections = raw ? this.shown : this.shown.flatMap((section) => messageSections(section) ?? [section]);
    const left = this.earlier ? 0 : sections.length - MOST;
    const made = sections.slice(Math.max(0, left)).map((section, at): Made => {
      const known = this.made[at];
      if (known?.raw === raw && same(known.section, section)) return known; // it keeps its place and its focus
      return { section, raw, element: this.section(section, `${at} ${section.title}`) };
    });
    this.made = made;
    const nothing = h("p", { class: "yna-trace-nothing" }, this.nothing);
    this.list.replaceChildren(...(made.length > 0 ? made.map(({ element }) => element) : [nothing]));
    if (left <= 0) return;
    const more = h("button", { class: "yna-more" }, `Show ${left.toLocaleString()} earlier ones`);
    more.addEventListener("click", () => {
      this.earlier = true;
      this.draw();
    });
    this.list.prepend(more);
  }

  private section(section: Section, key: string): HTMLElement {
    const { title, text, left_out: left } = section;
    const size = text.length + left;
    const summary = h(
      "summary",
      {},
      icon("chevron"),
      h("span", { class: "yna-trace-section-title" }, visible(title)),
      h("span", { class: "yna-trace-size" }, `${size.toLocaleString()} ${size === 1 ? "character" : "characters"}`),
    );
    const details = h("details", { class: "yna-trace-section" }, summary);
    const place = h("div", { class: "yna-trace-section-body" });
    details.append(place);
    const fill = (): void => {
      if (!details.open || place.childElementCount > 0) return;
      place.append(this.body(section));
      if (left > 0) place.append(h("p", { class: "yna-trace-nothing" }, `${left.toLocaleString()} more characters are not shown.`));
    };
    const short = text.length <= FOLDED && text.split("\n", FOLDED_LINES + 1).length <= FOLDED_LINES;
    details.open = this.open.get(key) ?? short;
    fill();
    details.addEventListener("toggle", () => {
      this.open.set(key, details.open);
      fill();
    });
    return h("div", { class: "yna-trace-section-place" }, details, copyButton(() => text));
  }

  private body({ title, language, text }: Section): HTMLElement {
    if (!this.raw && text.length <= LONGEST_RICH) {
      if (language === "markdown" && text !== "") return h("div", { class: "yna-trace-rich" }, this.context.markdown(text));
      if (language === "json") {
        const value = jsonOf(text);
        if (typeof value === "object" && value !== null && Object.keys(value).length > 0) return jsonTree(value);
      }
    }
    const colours = language === "markdown" ? "" : language;
    return longText(text, visible(title), (element, piece) => this.context.highlight(element, piece, colours));
  }
}

function same(one: Section, other: Section): boolean {
  return one.title === other.title && one.text === other.text && one.language === other.language && one.left_out === other.left_out;
}

/** What JSON text says; undefined where it is none. */
function jsonOf(text: string): unknown {
  try {
    return parseToShow(text);
  } catch {
    return undefined;
  }
}
