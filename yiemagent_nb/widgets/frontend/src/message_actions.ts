// What a person may do with a message: quiet buttons that say why when they cannot be used.

import { h, icon } from "./dom";
import type { Refusal } from "./protocol";

/** What changes the course of the conversation. The promises are rejected with a refusal. */
export interface MessageActions {
  /** Say something else in place of a person's message. */
  edit(index: number, text: string): Promise<unknown>;
  /** Another answer in place of the one at an index. */
  regenerate(index: number): Promise<unknown>;
  /** Show another branch; what was pressed keeps its place on the screen, and the keyboard. */
  switchBranch(index: number, position: number, pressed: HTMLElement): Promise<unknown>;
  /** A person works with an element: have it in view. */
  attend(element: HTMLElement): void;
}

export const BUSY = "The agent works: stop it first, or wait until it has finished.";

/** A button that stays in reach of the keyboard while it cannot be used, with the reason as its title. */
export class QuietButton {
  readonly element: HTMLButtonElement;
  private reason = "";
  private pending = false;

  constructor(
    private readonly name: string,
    private readonly title: string,
    picture: string,
    private readonly act: () => void,
  ) {
    this.element = h("button", { class: "yna-quiet", label: name, title, onclick: () => this.press() }, icon(picture));
  }

  /** Whether it can be used; a reason says why not. */
  block(reason: string): void {
    this.reason = reason;
    this.refresh();
  }

  /** Wait for something that it began. */
  wait(pending: boolean): void {
    this.pending = pending;
    this.element.classList.toggle("yna-busy", pending);
    this.refresh();
  }

  private press(): void {
    if (!this.pending && this.reason === "") this.act();
  }

  private refresh(): void {
    const blocked = this.reason !== "" || this.pending;
    if (blocked) this.element.setAttribute("aria-disabled", "true");
    else this.element.removeAttribute("aria-disabled");
    this.element.title = this.pending ? `${this.name}: waits for the kernel` : this.reason || this.title;
  }
}

/** A place under a message where a refusal stands. */
export class ProblemLine {
  readonly element = h("p", { class: "yna-problem", role: "alert", hidden: true });

  say(text: string): void {
    this.element.textContent = text;
    this.element.hidden = text === "";
  }

  /** Show why something was refused, where it is. */
  watch(asked: Promise<unknown>): Promise<boolean> {
    this.say("");
    return asked.then(
      () => true,
      (refusal: Refusal) => {
        this.say(`${refusal.message} ${refusal.hint}`.trim());
        return false;
      },
    );
  }
}

/** A button that copies a text, and shows that it did. */
export function copyAction(name: string, text: () => string): HTMLButtonElement {
  const title = `${name} to the clipboard`;
  const button = h("button", { class: "yna-quiet", label: name, title }, icon("copy"));
  const show = (picture: string, told: string): void => {
    button.replaceChildren(icon(picture));
    button.setAttribute("aria-label", told);
    button.title = told === name ? title : told;
  };
  const tell = (picture: string, told: string): void => {
    show(picture, told);
    setTimeout(() => show("copy", name), 2_000);
  };
  button.addEventListener("click", () => {
    const refused = (): void => tell("cross", "The browser refused to copy");
    if (!navigator.clipboard) return refused();
    navigator.clipboard.writeText(text()).then(() => tell("check", "Copied"), refused);
  });
  return button;
}

/** What asks for another answer: after a finished one, a failed one, or one that was stopped. */
export class AgainButton {
  readonly element: HTMLElement;
  readonly problem = new ProblemLine();
  private readonly button: QuietButton;

  constructor(
    name: "Regenerate" | "Retry",
    private readonly actions: MessageActions,
    private readonly index: () => number | null,
  ) {
    const title = name === "Retry" ? "Retry: keeps the work of tools so far" : "Regenerate: another answer, in a branch of its own";
    this.button = new QuietButton(name, title, "again", () => this.press());
    this.element = this.button.element;
    if (name === "Retry") {
      this.element.classList.add("yna-button");
      this.element.append(name);
    }
  }

  refresh(running: boolean): void {
    this.button.wait(false);
    this.button.block(running ? BUSY : "");
  }

  private press(): void {
    const index = this.index();
    if (index === null) return this.problem.say("Earlier messages still load. Try again in a moment.");
    this.button.wait(true);
    void this.problem.watch(this.actions.regenerate(index)).then((done) => done || this.button.wait(false));
  }
}
