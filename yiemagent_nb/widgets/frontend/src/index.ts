// The entry: one store and one connection a model, any number of views.

import { ChatView } from "./chat";
import { Connection } from "./connection";
import { h } from "./dom";
import { Header } from "./header";
import { holdStyles, needPart, setPartSource } from "./parts";
import type { ModelProxy } from "./protocol";
import { SidePanels, isSidePanel } from "./side_panels";
import { Store } from "./store";

interface Context {
  model: ModelProxy;
  el: HTMLElement;
}

export default () => {
  let store: Store;
  let connection: Connection;

  return {
    initialize({ model }: { model: ModelProxy }): void {
      store = new Store();
      connection = new Connection(model);
      connection.onEvents = (events) => store.apply(events);
      connection.onSnapshot = (snapshot) => {
        needPart("markdown"); // so that it is there before the first answer
        store.takeSnapshot(snapshot);
      };
      connection.isRunning = () => store.running;
      connection.onStatus = () => store.tell({ kind: "status" });
      store.onMismatch = () => connection.resync();
      setPartSource((name) => connection.part(name));
    },

    render({ model, el }: Context): () => void {
      // A click beside what takes the keyboard leaves it with the widget, not with the host's shortcuts.
      const root = h("div", { class: "yna", tabindex: "-1", "data-lm-suppress-shortcuts": "true" });
      root.style.setProperty("--yna-height", String(model.get("height")));
      const hiding = h("style");
      const partStyles = h("style");
      const release = holdStyles(partStyles);
      const lost = h("div", { class: "yna-lost", hidden: true });
      const header = model.get("_header") ? new Header(store, connection) : null;
      const names = model.get("_panel_names") as string[];
      const unknown = names.find((name) => name !== "chat" && !isSidePanel(name));
      if (unknown !== undefined) throw new Error(`This front end has no panel ${JSON.stringify(unknown)}.`);
      const detach = connection.attach(); // before a panel asks for its part: Python sends nothing to who did not say hello
      const chat = names.includes("chat") ? new ChatView(store, connection, root) : null;
      const side = new SidePanels(names.filter(isSidePanel), store, connection, root, chat?.element ?? null, `yna ${String(model.get("_transcript_name"))}`);
      if (header) root.append(header.element, header.panel);
      (header?.element ?? root).append(side.tabs);
      if (header && chat) header.element.append(chat.menu.element);
      root.append(lost, h("div", { class: "yna-body" }, chat?.element, side.element));

      const refresh = (): void => {
        root.classList.toggle("yna-unsynced", !connection.synced && store.total === 0);
        lost.hidden = connection.status !== "disconnected";
        lost.textContent = "Disconnected: the kernel was restarted or is gone. Run the cell again to go on.";
        // What was said stands below as an output of its own, for readers without a kernel.
        const name = String(model.get("_transcript_name"));
        if (connection.synced && /^[\w-]+$/.test(name)) {
          hiding.textContent = `.${name},.jp-OutputArea-child:has(.${name}){display:none!important}`;
        }
      };
      const unlisten = store.listen((change) => {
        header?.take(change);
        chat?.take(change);
        side.take(change);
        if (change.kind === "status" || change.kind === "reset") refresh();
      });
      // Keys belong to the widget: the host's shortcuts would act on the notebook.
      for (const name of ["keydown", "keyup", "keypress", "paste", "copy", "cut"]) {
        root.addEventListener(name, (event) => event.stopPropagation());
      }
      el.append(partStyles, hiding, root);
      refresh();
      return () => {
        unlisten();
        chat?.dispose();
        side.dispose();
        detach();
        release();
        for (const element of [partStyles, hiding, root]) element.remove();
      };
    },
  };
};
