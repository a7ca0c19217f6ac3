// The chat panel: the transcript, what is shown while it is empty, and the composer.

import { Announcer } from "./announcer";
import { ChatMenuPlace } from "./chat_menu_place";
import { Composer } from "./composer";
import type { Connection, Reply } from "./connection";
import { h } from "./dom";
import type { Actions } from "./entry_view";
import { needPart } from "./parts";
import { SearchPlace } from "./search_place";
import type { Change, Store } from "./store";
import { TranscriptView } from "./transcript_view";
import { WaitsView } from "./waits_view";

export class ChatView {
  readonly element: HTMLElement;
  private readonly empty = h("div", { class: "yna-empty", hidden: true });
  private readonly announcer: Announcer;
  private readonly transcript: TranscriptView;
  private readonly search: SearchPlace;
  readonly menu: ChatMenuPlace;
  private readonly composer: Composer;
  private readonly waits: WaitsView;

  constructor(
    private readonly store: Store,
    private readonly connection: Connection,
    root: HTMLElement,
  ) {
    const actions: Actions = {
      approve: (requestId, choice, more) =>
        connection.request({ type: "approve", request_id: requestId, choice, ...more }),
      audio: (key) => connection.audio(key),
      answer: (requestId, action, content) =>
        connection.request({ type: "answer", request_id: requestId, action, content }),
      edit: (index, text) => this.change({ type: "edit", index, text }),
      regenerate: (index) => this.change({ type: "regenerate", index }),
      attend: (element) => this.transcript.attend(element),
      switchBranch: (index, position, pressed) => {
        this.transcript.keepInPlace(index, pressed);
        const asked = this.ask({ type: "switch_branch", index, position });
        return asked.catch((refusal: unknown) => {
          this.transcript.letGo();
          throw refusal;
        });
      },
    };
    this.transcript = new TranscriptView(store, actions, (before) => connection.tell({ type: "earlier", before }), this.empty);
    this.transcript.onFocusLost = () => this.composer.element.querySelector("textarea")?.focus({ preventScroll: true });
    this.search = new SearchPlace(store, this.transcript);
    this.menu = new ChatMenuPlace({ search: () => this.search.open(), export: (format) => this.ask({ type: "export", format }) });
    this.transcript.element.append(this.menu.element, this.search.element);
    this.announcer = new Announcer(store);
    this.composer = new Composer(store, connection, root, () => this.transcript.toEnd());
    this.waits = new WaitsView(store, this.transcript.element, () => this.transcript.toEnd());
    this.element = h(
      "div",
      { class: "yna-chat", role: "region", label: "Chat with the agent" },
      this.transcript.element,
      this.announcer.element,
      this.waits.element,
      this.composer.element,
    );
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    root.addEventListener("keydown", (event) => {
      if (event.target === root) this.onKey(event);
    });
    this.showEmpty();
  }

  take(change: Change): void {
    this.transcript.take(change);
    this.composer.take(change);
    this.search.take(change);
    this.waits.take(change);
    if (change.kind !== "entry" && change.kind !== "call") this.showEmpty();
    this.announcer.take(change);
    // The page has it before it is asked for: a conversation is searched also when the kernel is busy or gone.
    if ((change.kind === "run" || change.kind === "reset") && !this.store.running && this.store.total > 0) {
      needPart("search");
      needPart("menu");
    }
  }

  dispose(): void {
    this.composer.dispose();
    this.transcript.dispose();
    this.search.dispose();
    this.announcer.dispose();
  }

  private onKey(event: KeyboardEvent): void {
    if (event.key === "Escape" && !event.isComposing && this.composer.working) {
      event.preventDefault();
      this.composer.halt();
    } else if (event.key.toLowerCase() === "f" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
      event.preventDefault();
      this.search.open();
    }
  }

  /** Ask for something; without a kernel that would wait forever. */
  private ask(message: Record<string, unknown>): Promise<Reply | null> {
    if (this.connection.status !== "disconnected") return this.connection.request(message);
    return Promise.reject({ message: "The kernel is gone.", hint: "Run the cell again." });
  }

  /** What begins another branch goes on at its end. */
  private async change(message: Record<string, unknown>): Promise<void> {
    await this.ask(message);
    this.transcript.toEnd();
  }

  private showEmpty(): void {
    this.empty.hidden = this.store.entries.length > 0 || this.store.total > 0;
    this.menu.element.hidden = !this.empty.hidden;
    if (this.empty.hidden) return;
    const { tools, suggestions } = this.store.tools;
    const names = tools.map((tool) => tool.label || tool.name);
    const listed = names.length > 6 ? `${names.slice(0, 6).join(", ")} and ${names.length - 6} more` : names.join(", ");
    const title = "Put this into the composer";
    const chips = suggestions.map((text) =>
      h("button", { class: "yna-suggestion", title, onclick: () => this.composer.fill(text) }, text),
    );
    this.empty.replaceChildren(
      h("p", { class: "yna-empty-title" }, "What shall we do?"),
      h("p", { class: "yna-muted", hidden: names.length === 0 }, `Tools at hand: ${listed}`),
      h("div", { class: "yna-suggestions" }, ...chips),
    );
  }
}
