// Small pieces that several pages of the inspector have.

import { h, newId, setText } from "../dom";
import type { Refusal } from "../protocol";
import { visible } from "../text";
import type { Server } from "./forms";
import { refusalText } from "./inspected";

const STATES: Record<string, [word: string, kind: string]> = {
  new: ["Not connected", "idle"],
  connecting: ["Connecting…", "busy"],
  ready: ["Ready", "good"],
  backoff: ["Waiting to try again", "warn"],
  failed: ["Failed", "bad"],
  closed: ["Disconnected", "idle"],
};

/** A server's state: a word, and what its dot is like. */
export function stateOf({ state, enabled }: Server): [word: string, kind: string] {
  if (!enabled) return ["Switched off", "idle"];
  return STATES[state] ?? [visible(state), "idle"];
}

export function hintBadge(hint: string, words = hint): HTMLElement {
  return h("span", { class: `yna-badge yna-tool-hint${hint === "destructive" ? " yna-strong" : ""}` }, visible(words));
}

/** Hints in few words, for lists; what matters more comes first. */
const SHORT: Record<string, string> = {
  destructive: "destructive",
  "read-only by its own word": "read-only",
  "reaches things outside": "outside",
  "can be repeated": "repeatable",
};

export function shortHints(hints: string[]): HTMLElement[] {
  const rank = (hint: string): number => (Object.hasOwn(SHORT, hint) ? Object.keys(SHORT).indexOf(hint) : Infinity);
  return [...hints].sort((one, other) => rank(one) - rank(other)).map((hint) => hintBadge(hint, (Object.hasOwn(SHORT, hint) ? SHORT[hint] : undefined) ?? hint));
}

/** Buttons of which one is pressed. */
export class Segments {
  readonly element: HTMLElement;
  private readonly buttons = new Map<string, HTMLButtonElement>();

  constructor(label: string, names: [key: string, title: string][], onShow: (key: string) => void) {
    for (const [key, title] of names) {
      const press = (): void => {
        this.press(key);
        onShow(key);
      };
      this.buttons.set(key, h("button", { class: "yna-segment", "aria-pressed": "false", onclick: press }, title));
    }
    this.element = h("div", { class: "yna-segments", role: "group", label }, ...this.buttons.values());
  }

  press(key: string): void {
    for (const [name, button] of this.buttons) button.setAttribute("aria-pressed", String(name === key));
  }

  title(key: string, title: string): void {
    const button = this.buttons.get(key);
    if (button) setText(button, title);
  }
}

/** What could not be done; empty and hidden as long as all goes well. */
export class Complaint {
  readonly element = h("p", { class: "yna-problem yna-complaint", role: "alert", hidden: true });

  say(text: string): void {
    setText(this.element, text);
    this.element.hidden = text === "";
  }

  /** Say why something was refused; and nothing as long as it is asked for. */
  async of<Value>(asked: Promise<Value>): Promise<Value | null> {
    this.say("");
    try {
      return await asked;
    } catch (refusal) {
      this.say(refusalText(refusal as Refusal | Error) || "It was refused.");
      return null;
    }
  }
}

/** Bring what came into view; a person who asked for stillness sees it jump. */
export function bring(element: Element): void {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  requestAnimationFrame(() => element.scrollIntoView({ block: "nearest", behavior: still ? "auto" : "smooth" }));
}

/** A field with its name above it. */
export function labelled<Field extends HTMLElement>(label: string, input: Field, note = ""): HTMLElement {
  input.id ||= newId();
  const about = note ? h("p", { class: "yna-muted yna-field-note", id: newId() }, note) : null;
  if (about) input.setAttribute("aria-describedby", about.id);
  return h("div", { class: "yna-setting" }, h("label", { for: input.id }, label), input, about);
}

/** A field of text without what browsers add to one. */
export function textField(attributes: Record<string, string | boolean> = {}): HTMLInputElement {
  return h("input", { class: "yna-field", type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false", ...attributes });
}

export function searchField(label: string, onInput: (words: string[]) => void): HTMLInputElement {
  const input = textField({ type: "search", placeholder: label, label, class: "yna-field yna-find" });
  input.addEventListener("input", () => onInput(wordsOf(input.value)));
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || input.value === "") return;
    event.preventDefault();
    input.value = "";
    onInput([]);
  });
  return input;
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

/** A time of the day, such as 14:03:59. */
export function clock(milliseconds: number): string {
  return CLOCK.format(milliseconds);
}

/** Pairs of a name and a text. */
export function factList(facts: [label: string, text: string][]): HTMLElement {
  return h("dl", { class: "yna-fact-list" }, ...facts.flatMap(([label, text]) => [h("dt", {}, visible(label)), h("dd", {}, text)]));
}
