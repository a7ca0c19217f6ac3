// What may be done with the conversation as a whole: search it, copy it, keep it as a file.

import { h, icon } from "./dom";
import type { Reply } from "./connection";
import type { Refusal } from "./protocol";

type Format = "markdown" | "notebook";
type File = Extract<Reply, { type: "file" }>;

export interface MenuActions {
  search(): void;
  export(format: Format): Promise<Reply | null>;
}

const TOLD = 3_000;

export class ChatMenu {
  private readonly menu: HTMLElement;
  private readonly items: HTMLButtonElement[];
  /** Where the button was when the menu opened. */
  private place: DOMRect | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** It hangs at `button`, within `element`, and `word` says what came of it. */
  constructor(
    private readonly actions: MenuActions,
    private readonly element: HTMLElement,
    private readonly button: HTMLButtonElement,
    private readonly word: HTMLElement,
  ) {
    const mac = /Mac|iPhone|iPad/.test(navigator.userAgent);
    this.items = [
      this.item("search", "Search", mac ? "⌘F" : "Ctrl+F", () => actions.search()),
      this.item("copy", "Copy conversation", "", () => this.copy()),
      this.item("down", "Save as markdown", "", () => this.save("markdown")),
      this.item("down", "Save as notebook", "", () => this.save("notebook")),
    ];
    this.menu = h("div", { class: "yna-menu", id: button.getAttribute("aria-controls") ?? "", role: "menu", label: "Conversation", hidden: true }, ...this.items);
    if ("popover" in this.menu) this.menu.popover = "manual";
    element.append(this.menu);
    element.addEventListener("keydown", (event) => this.onKey(event));
    this.element.addEventListener("focusout", (event) => {
      if (this.isOpen && !this.element.contains(event.relatedTarget as Node | null)) this.close(false);
    });
  }

  private item(picture: string, name: string, keys: string, act: () => void): HTMLButtonElement {
    const pressed = (): void => {
      this.close(true);
      act();
    };
    const hint = keys ? h("kbd", { class: "yna-menu-keys", "aria-hidden": "true" }, keys) : null;
    return h("button", { class: "yna-menu-item", role: "menuitem", tabindex: "-1", onclick: pressed }, icon(picture), name, hint);
  }

  get isOpen(): boolean {
    return !this.menu.hidden;
  }

  open(at: number): void {
    this.menu.hidden = false;
    this.button.setAttribute("aria-expanded", "true");
    if (this.menu.popover) {
      this.menu.showPopover(); // above what would cut it off
      const place = this.button.getBoundingClientRect();
      this.place = place;
      const { width, height } = this.menu.getBoundingClientRect();
      const below = place.bottom + 4 + height <= window.innerHeight;
      this.menu.style.top = `${below ? place.bottom + 4 : Math.max(4, place.top - 4 - height)}px`;
      this.menu.style.left = `${Math.max(4, place.right - width)}px`;
      window.addEventListener("scroll", this.onScroll, { capture: true, passive: true });
    }
    this.items.at(at)?.focus({ preventScroll: true });
  }

  /** A menu beside a button that moved away would hang in the air; what scrolls elsewhere is no matter. */
  private readonly onScroll = (event: Event): void => {
    if (!(event.target instanceof Node) || !event.target.contains(this.button)) return;
    const { left, top } = this.button.getBoundingClientRect();
    if (left !== this.place?.left || top !== this.place.top) this.close(false);
  };

  close(focus: boolean): void {
    if (!this.isOpen) return;
    window.removeEventListener("scroll", this.onScroll, { capture: true });
    if (focus) this.button.focus({ preventScroll: true });
    if (this.menu.popover) this.menu.hidePopover();
    this.menu.hidden = true;
    this.button.setAttribute("aria-expanded", "false");
  }

  private onKey(event: KeyboardEvent): void {
    if (!this.isOpen) return;
    const count = this.items.length;
    const at = this.items.indexOf(document.activeElement as HTMLButtonElement);
    const letter = event.key.length === 1 && !event.ctrlKey && !event.metaKey ? event.key.toLowerCase() : "";
    let next = -1;
    if (event.key === "ArrowDown") next = (at + 1) % count;
    else if (event.key === "ArrowUp") next = (at - 1 + count) % count;
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = count - 1;
    else if (event.key === "Tab") return this.close(false);
    else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation(); // it stops no run
      return this.close(true);
    } else if (letter.trim()) {
      const order = [...this.items.keys()].map((step) => (at + 1 + step) % count);
      next = order.find((each) => this.items[each]?.textContent?.toLowerCase().startsWith(letter)) ?? -1;
    }
    if (next < 0) return;
    event.preventDefault();
    this.items[next]?.focus({ preventScroll: true });
  }

  private copy(): void {
    const text = this.fetch("markdown").then((file) => file.text);
    // Some browsers let a page write only at the press itself: give them the text as a promise.
    const written =
      typeof ClipboardItem === "function" && navigator.clipboard
        ? navigator.clipboard.write([
            new ClipboardItem({ "text/plain": text.then((known) => new Blob([known], { type: "text/plain" })) }),
          ])
        : Promise.reject(new Error("no clipboard"));
    const refused = "The browser refused to copy. Save it as markdown instead.";
    // A refusal of Python's is told rather than the clipboard's word for it.
    text.then(() => written.then(() => this.tell("Copied"), () => this.tell(refused)), (refusal: Refusal) => this.refuse(refusal));
    written.catch(() => {});
  }

  private save(format: Format): void {
    this.fetch(format).then(
      (file) => {
        const link = h("a", { download: file.name });
        link.href = URL.createObjectURL(new Blob([file.text], { type: file.mime_type }));
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
        this.tell(`Saved ${file.name}`);
      },
      (refusal: Refusal) => this.refuse(refusal),
    );
  }

  private async fetch(format: Format): Promise<File> {
    this.tell("One moment…");
    const reply = await this.actions.export(format);
    if (reply?.type === "file") return reply;
    throw { message: "The file was lost on its way.", hint: "Try again." };
  }

  private refuse(refusal: Refusal): void {
    this.tell(`${refusal.message} ${refusal.hint}`.trim());
  }

  private tell(text: string): void {
    this.word.textContent = text;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (this.word.textContent = ""), text.length > 40 ? 3 * TOLD : TOLD);
  }
}
