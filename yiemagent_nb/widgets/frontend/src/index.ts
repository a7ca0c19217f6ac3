// The entry: one store and one connection a model, any number of views.

import { ChatView } from "./chat";
import { Connection } from "./connection";
import { h } from "./dom";
import { Header } from "./header";
import { holdStyles, needPart, setPartSource } from "./parts";
import type { ModelProxy } from "./protocol";
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
      const panels = (model.get("_panel_names") as string[]).map((name) => {
        if (name === "chat") return new ChatView(store, connection, root);
        throw new Error(`This front end has no panel ${JSON.stringify(name)}.`);
      });
      if (header) root.append(header.element, header.panel);
      if (header && panels[0]) header.element.append(panels[0].menu.element);
      root.append(lost);
      for (const panel of panels) root.append(panel.element);

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
        for (const panel of panels) panel.take(change);
        if (change.kind === "status" || change.kind === "reset") refresh();
      });
      // Keys belong to the widget: the host's shortcuts would act on the notebook.
      for (const name of ["keydown", "keyup", "keypress", "paste", "copy", "cut"]) {
        root.addEventListener(name, (event) => event.stopPropagation());
      }
      el.append(partStyles, hiding, root);
      refresh();
      const detach = connection.attach();
      return () => {
        unlisten();
        for (const panel of panels) panel.dispose();
        detach();
        release();
        for (const element of [partStyles, hiding, root]) element.remove();
      };
    },
  };
};
