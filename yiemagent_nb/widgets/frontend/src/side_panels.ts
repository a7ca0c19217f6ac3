// The panels beside the chat: a tab for each; one is open at a time, beside the chat or in its place.

import type { Connection, Reply } from "./connection";
import { h, icon, newId } from "./dom";
import { highlightInto } from "./highlight";
import { MarkdownView } from "./markdown";
import type { PanelContext, PanelEvent, PanelView, SidePanelName } from "./panel";
import { PartPlace } from "./part_place";
import { loadPart, type Parts } from "./parts";
import { resultElement, richElements } from "./result_view";
import type { Change, Store } from "./store";

const TITLES: Record<SidePanelName, [title: string, picture: string]> = {
  inspector: ["Tools", "tools"],
  hooks: ["Hooks", "hook"],
  trace: ["Trace", "trace"],
};

export class SidePanels {
  /** A button for each panel. */
  readonly tabs = h("div", { class: "yna-tabs" });
  readonly element = h("div", { class: "yna-side", hidden: true });
  private readonly places = new Map<SidePanelName, PartPlace<SidePanelName, PanelView>>();
  private readonly buttons = new Map<SidePanelName, HTMLButtonElement>();
  private readonly context: PanelContext;
  private shown: SidePanelName | null = null;

  /** `chat` stands beside them; without it one of them is always open. */
  constructor(
    names: SidePanelName[],
    private readonly store: Store,
    private readonly connection: Connection,
    private readonly root: HTMLElement,
    private readonly chat: HTMLElement | null,
    /** Names the widget in the memory of this browser's tab. */
    private readonly key: string,
  ) {
    this.context = makeContext(store, connection);
    for (const name of names) this.add(name);
    this.tabs.hidden = chat === null && names.length === 1;
    const opened = chat === null ? names[0] : names.find((name) => name === memory()?.getItem(key));
    if (opened) this.open(opened, false);
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.defaultPrevented || event.isComposing || !chat) return;
      event.preventDefault();
      this.close();
    });
  }

  take(change: Change): void {
    if (change.kind === "panel") this.places.get(change.panel)?.content?.receive(change.event);
    for (const [name, { content }] of this.places) {
      content?.take(change);
      if (content && change.kind === "reset") this.renew(name, content);
    }
  }

  dispose(): void {
    for (const { content } of this.places.values()) content?.dispose();
  }

  private add(name: SidePanelName): void {
    const [title, picture] = TITLES[name];
    const id = newId();
    const place = new PartPlace<SidePanelName, PanelView>(
      name,
      "This panel",
      (part) => {
        const view = makeView(part, this.context);
        this.connection.tell({ type: "open_panel", panel: name });
        return view;
      },
      { class: "yna-side-panel", id, role: "region", label: title, hidden: true },
    );
    const button = h(
      "button",
      { class: "yna-tab", "aria-expanded": "false", "aria-controls": id, onclick: () => this.toggle(name) },
      icon(picture),
      h("span", {}, title),
      this.chat && icon("cross"),
    );
    button.title = title;
    this.places.set(name, place);
    this.buttons.set(name, button);
    this.element.append(place.element);
    this.tabs.append(button);
  }

  private toggle(name: SidePanelName): void {
    if (this.shown === name && this.chat) this.close();
    else this.open(name, true);
  }

  private open(name: SidePanelName, focus: boolean): void {
    this.shown = name;
    this.show();
    const place = this.places.get(name);
    place?.open();
    if (focus) place?.focus();
  }

  private close(): void {
    const button = this.shown && this.buttons.get(this.shown);
    this.shown = null;
    this.show();
    button?.focus();
  }

  private show(): void {
    if (this.chat && this.shown) memory()?.setItem(this.key, this.shown);
    else memory()?.removeItem(this.key);
    this.element.hidden = this.shown === null;
    this.root.classList.toggle("yna-with-side", this.shown !== null);
    for (const [name, { element }] of this.places) element.hidden = name !== this.shown;
    for (const [name, button] of this.buttons) button.setAttribute("aria-expanded", String(name === this.shown));
  }

  /** After a snapshot: what it says of a panel; where it was made before the panel was opened, ask. */
  private renew(name: SidePanelName, view: PanelView): void {
    const state = this.store.panels[name];
    if (state) view.receive({ type: "state", state });
    else this.connection.tell({ type: "open_panel", panel: name });
  }
}

/** What this browser's tab remembers while the page is loaded anew; null where the host keeps nothing. */
function memory(): Storage | null {
  try {
    // It is given the name of a panel alone, nothing of what was said.
    return sessionStorage; // oxlint-disable-line no-restricted-globals
  } catch {
    return null;
  }
}

function makeView(part: Parts[SidePanelName], context: PanelContext): PanelView {
  if ("InspectorView" in part) return new part.InspectorView(context);
  if ("HooksView" in part) return new part.HooksView(context);
  return new part.TraceView(context);
}

function makeContext(store: Store, connection: Connection): PanelContext {
  const ask = async <Value>(message: Record<string, unknown>, buffers: ArrayBuffer[] = []): Promise<Value> => {
    if (connection.status === "disconnected") throw { code: "", message: "The kernel is gone.", hint: "Run the cell again." };
    const reply: Reply | null = await connection.request(message, buffers);
    return (reply?.type === "reply" ? reply.value : null) as Value;
  };
  return {
    store,
    connection,
    ask,
    act: (message, buffers) => ask({ ...message, session: store.session }, buffers),
    result: (call, label) =>
      h("div", {}, ...richElements(call, label, (key) => connection.audio(key)), resultElement(call)),
    markdown(text) {
      const view = new MarkdownView();
      view.update(text, true);
      return view.element;
    },
    highlight: highlightInto,
    code: () => loadPart("code"),
  };
}

/** Whether a panel stands beside the chat. */
export function isSidePanel(name: string): name is SidePanelName {
  return name in TITLES;
}

export type { PanelEvent };
