// What waits: messages that steer and messages that follow, each of which can be taken back.

import { h, icon, setText } from "./dom";
import type { Queue, Queued } from "./protocol";

export interface QueueActions {
  takeBack: (key: string) => Promise<void>;
  steerNow: (key: string) => Promise<void>;
  /** What had the keyboard is gone. */
  onFocusLost: () => void;
}

interface Row {
  text: string;
  element: HTMLElement;
  kind: HTMLElement;
  steer: HTMLElement | null;
  back: HTMLElement | null;
}

const HELD = "Waits: it goes on with your next message";

export class QueueView {
  readonly element = h("div", { class: "yna-queue", role: "list", label: "Messages that wait", hidden: true });
  private rows = new Map<string, Row>();
  /** Keys of messages that something was asked for: a second press asks nothing. */
  private readonly asked = new Set<string>();

  constructor(private readonly actions: QueueActions) {}

  show({ steering, follow_ups: followUps }: Queue, running: boolean): void {
    const held = [...this.rows.values()].find(({ element }) => element.contains(document.activeElement));
    const rows = new Map<string, Row>();
    const add = (message: Queued, at: number, follows: boolean): void => {
      const id = `${follows} ${message.key || at} ${message.text}`;
      const row = this.rows.get(id) ?? this.build(message, follows);
      rows.set(id, row);
      const now = follows ? "Waits until the agent has finished" : "Joins before the next request to the model";
      row.element.title = running ? now : HELD;
      setText(row.kind, running ? (follows ? "Queued" : "Steering") : "Waiting");
      if (row.steer) row.steer.hidden = !running;
    };
    steering.forEach((message, at) => add(message, at, false));
    followUps.forEach((message, at) => add(message, at, true));
    for (const [id, row] of this.rows) if (!rows.has(id)) row.element.remove();
    // Rows that stay are not moved: a button in one of them may have the focus.
    let place = this.element.firstElementChild;
    for (const { element } of rows.values()) {
      if (element === place) place = place.nextElementSibling;
      else this.element.insertBefore(element, place);
    }
    const before = this.rows;
    this.rows = rows;
    this.element.hidden = rows.size === 0;
    this.element.classList.toggle("yna-held", !running);
    if (held) this.keepFocus(held, [...rows.values()].filter((row) => row === held || ![...before.values()].includes(row)));
  }

  /** A message that steers now, or waits for the person, has the keyboard in its other button. */
  private keepFocus(held: Row, candidates: Row[]): void {
    const steered = held.steer?.hidden && held.steer === document.activeElement;
    if (held.element.isConnected && !steered) return;
    const next = candidates.find(({ text }) => text === held.text)?.back; // it moved under another key
    if (next) next.focus();
    else this.actions.onFocusLost();
  }

  private ask(key: string, work: (key: string) => Promise<void>): void {
    if (this.asked.has(key)) return;
    this.asked.add(key);
    void work(key).finally(() => this.asked.delete(key));
  }

  private build(message: Queued, follows: boolean): Row {
    const { key, text } = message;
    const short = text.slice(0, 60) || message.files[0] || "image";
    const kind = h("span", { class: "yna-queued-kind" });
    const steer =
      follows && key
        ? h(
            "button",
            {
              class: "yna-ghost",
              title: "Let it join before the next request to the model",
              label: `Steer now: ${short}`,
              onclick: () => this.ask(key, this.actions.steerNow),
            },
            "Steer now",
          )
        : null;
    const back = key
      ? h(
          "button",
          {
            class: "yna-ghost",
            title: "Back into the composer",
            label: `Take back: ${short}`,
            onclick: () => this.ask(key, this.actions.takeBack),
          },
          "Take back",
        )
      : null;
    const files = [...message.files, ...(message.images > 0 ? [images(message.images)] : [])];
    const element = h(
      "div",
      { class: "yna-queued", role: "listitem" },
      kind,
      h("span", { class: "yna-queued-text" }, text),
      files.length > 0 && h("span", { class: "yna-queued-files" }, icon("clip"), files.join(", ")),
      h("span", { class: "yna-queued-actions" }, steer, back),
    );
    return { text, element, kind, steer, back };
  }
}

function images(count: number): string {
  return count === 1 ? "1 image" : `${count} images`;
}
