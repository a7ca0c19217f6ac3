// The list of slash commands, while the first word of a text is written. The text field keeps the focus.

import { offered } from "./drafts";
import { h, newId } from "./dom";
import type { SlashCommand } from "./protocol";

export class CommandMenu {
  readonly element = h("div", { class: "yna-commands", role: "listbox", label: "Commands", id: newId(), hidden: true });
  private commands: SlashCommand[] = [];
  private at = 0;
  private dismissed = false;

  constructor(
    private readonly input: HTMLTextAreaElement,
    private readonly onTake: (command: SlashCommand) => void,
  ) {}

  /** The command that Enter would complete; null where the list is closed, or its name is already there. */
  get option(): SlashCommand | null {
    const option = this.commands[this.at];
    return option && this.input.value.trim() !== `/${option.name}` ? option : null;
  }

  update(known: SlashCommand[]): void {
    if (!this.input.value.startsWith("/")) this.dismissed = false;
    const before = this.commands[this.at]?.name;
    const { value, selectionStart } = this.input;
    const fit = this.dismissed || this.input.readOnly ? null : offered(value, selectionStart, known);
    const exact = fit?.find(({ name }) => value.trim() === `/${name}`);
    this.commands = fit ?? [];
    this.at = exact ? this.commands.indexOf(exact) : Math.max(0, this.commands.findIndex(({ name }) => name === before));
    this.draw();
  }

  /** Whether a key was the list's. */
  onKey(event: KeyboardEvent): boolean {
    if (this.commands.length === 0 || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return false;
    const option = this.option;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.at = (this.at + step + this.commands.length) % this.commands.length;
      this.draw();
    } else if (event.key === "Escape") {
      this.dismissed = true;
      this.commands = [];
      this.draw();
    } else if ((event.key === "Enter" || event.key === "Tab") && option) {
      this.onTake(option);
    } else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  private draw(): void {
    const open = this.commands.length > 0;
    this.element.hidden = !open;
    const options = this.commands.map((command, at) => this.row(command, at === this.at));
    this.element.replaceChildren(...options);
    // A text field of several lines is no combobox, except while it chooses from a list.
    const attributes: Record<string, string | undefined> = {
      role: "combobox",
      "aria-expanded": "true",
      "aria-autocomplete": "list",
      "aria-haspopup": "listbox",
      "aria-controls": this.element.id,
      "aria-activedescendant": options[this.at]?.id,
    };
    for (const [name, value] of Object.entries(attributes)) {
      if (open && value !== undefined) this.input.setAttribute(name, value);
      else this.input.removeAttribute(name);
    }
    const row = options[this.at];
    if (!row) return;
    // scrollIntoView would move the notebook as well.
    const { offsetTop: top, offsetHeight: height } = row;
    const { scrollTop, clientHeight } = this.element;
    this.element.scrollTop = Math.min(top, Math.max(scrollTop, top + height - clientHeight));
  }

  private row(command: SlashCommand, chosen: boolean): HTMLElement {
    const row = h(
      "div",
      { class: "yna-command", role: "option", id: newId(), "aria-selected": String(chosen), onclick: () => this.onTake(command) },
      h("span", { class: "yna-command-name" }, `/${command.name}`),
      command.takes && h("span", { class: "yna-command-takes" }, command.takes),
      h("span", { class: "yna-command-what" }, command.description),
    );
    row.addEventListener("mousedown", (event) => event.preventDefault()); // the focus stays in the text
    return row;
  }
}
