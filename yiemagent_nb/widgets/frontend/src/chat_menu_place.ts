// Where the menu of the conversation hangs. What it holds is loaded when there is a conversation.

import type { ChatMenu, MenuActions } from "./chat_menu";
import { h, icon, newId } from "./dom";
import { loadPart, loadedPart } from "./parts";

export class ChatMenuPlace {
  readonly element: HTMLElement;
  private readonly button: HTMLButtonElement;
  private readonly word = h("span", { class: "yna-menu-word", role: "status" });
  private menu: ChatMenu | null = null;

  constructor(private readonly actions: MenuActions) {
    this.button = h(
      "button",
      {
        class: "yna-quiet yna-menu-button",
        label: "Conversation",
        title: "Search, copy or save the conversation",
        "aria-haspopup": "menu",
        "aria-expanded": "false",
        "aria-controls": newId(),
        onclick: () => (this.menu?.isOpen ? this.menu.close(true) : this.open(0)),
      },
      icon("more"),
    );
    this.element = h("div", { class: "yna-menu-place" }, this.word, this.button);
    this.element.addEventListener("keydown", (event) => {
      if (this.menu?.isOpen || (event.key !== "ArrowDown" && event.key !== "ArrowUp")) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      this.open(event.key === "ArrowDown" ? 0 : -1);
    });
  }

  private open(at: number): void {
    const part = loadedPart("menu");
    if (part) {
      this.menu ??= new part.ChatMenu(this.actions, this.element, this.button, this.word);
      return this.menu.open(at);
    }
    this.word.textContent = "Loading…";
    loadPart("menu").then(
      () => {
        this.word.textContent = "";
        this.open(at);
      },
      () => (this.word.textContent = "The menu could not be loaded. Try again."),
    );
  }
}
