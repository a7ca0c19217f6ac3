// Where search stands above the transcript. What searches is loaded when it is first opened.

import { PartPlace } from "./part_place";
import type { Search } from "./search";
import type { Change, Store } from "./store";
import type { TranscriptView } from "./transcript_view";

export class SearchPlace {
  private readonly place: PartPlace<"search", Search>;
  /** What had the keyboard before. */
  private before: Element | null = null;

  constructor(store: Store, transcript: TranscriptView) {
    this.place = new PartPlace(
      "search",
      "Search",
      (part) => new part.Search(store, transcript, () => this.close()),
      { class: "yna-search-place", role: "search", hidden: true },
    );
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation(); // it stops no run
      this.close();
    });
  }

  get element(): HTMLElement {
    return this.place.element;
  }

  open(): void {
    if (this.element.hidden) this.before = document.activeElement;
    this.element.hidden = false;
    this.place.open();
    this.place.focus();
  }

  take(change: Change): void {
    this.place.content?.take(change);
  }

  dispose(): void {
    this.place.content?.stop();
  }

  private close(): void {
    const held = this.element.contains(document.activeElement);
    this.element.hidden = true;
    this.place.content?.stop();
    if (held && this.before instanceof HTMLElement && this.before.isConnected) this.before.focus({ preventScroll: true });
  }
}
