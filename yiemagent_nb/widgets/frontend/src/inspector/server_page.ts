// A server: how it is, what it says of itself, what was said, and what it has beside tools.

import { copyButton, h, icon, setBusy, setText } from "../dom";
import { seconds, visible } from "../text";
import { fill } from "./filled";
import type { Server, ServerAction } from "./forms";
import type { Inspected, Told } from "./inspected";
import type { Page } from "./page";
import { PromptsView } from "./prompts_view";
import { ProtocolLog, type LogKind } from "./protocol_log";
import { ResourcesView } from "./resources_view";
import { Complaint, factList, stateOf } from "./small";
import { Tabs, type Tab } from "./tabs";

const ACTIONS: Record<Exclude<ServerAction, "remove">, string> = {
  connect: "Connect",
  refresh: "Refresh tools",
  check: "Check",
  reconnect: "Reconnect",
  disconnect: "Disconnect",
};

/** What makes sense in a state. */
function offered({ state }: Server): ServerAction[] {
  if (state === "ready") return ["refresh", "check", "reconnect", "disconnect", "remove"];
  if (state === "connecting" || state === "backoff") return ["reconnect", "disconnect", "remove"];
  return ["connect", "remove"];
}

export class ServerPage implements Page {
  readonly element: HTMLElement;
  private readonly heading = h("h3", { class: "yna-page-title", tabindex: "-1" });
  private readonly dot = h("span", { class: "yna-state-dot" });
  private readonly state = h("span", { class: "yna-page-state", role: "status" });
  private readonly target = h("div", { class: "yna-page-badges" });
  private readonly buttons = new Map<ServerAction, HTMLButtonElement>();
  private readonly bar: HTMLElement;
  private readonly confirm = h("div", { class: "yna-confirm", role: "group", label: "Remove this server?", hidden: true });
  private readonly troubles = h("div", { class: "yna-warnings", role: "group", label: "Problems", hidden: true });
  private readonly complaint = new Complaint();
  private readonly tabs: Tabs;
  private readonly about = h("div", { class: "yna-about" });
  private readonly logs = new Map<LogKind, ProtocolLog>();
  private resources: ResourcesView | null = null;
  private prompts: PromptsView | null = null;

  constructor(
    private readonly inspected: Inspected,
    readonly key: string,
  ) {
    this.tabs = new Tabs("About this server", (tab) => this.element?.classList.toggle("yna-tall", tab === "log" || tab === "notifications"));
    for (const [action, title] of Object.entries(ACTIONS) as [ServerAction, string][]) {
      this.buttons.set(action, h("button", { class: "yna-button", onclick: () => void this.act(action) }, title));
    }
    this.buttons.set("remove", h("button", { class: "yna-button yna-danger", onclick: () => this.ask() }, "Remove…"));
    this.bar = h("div", { class: "yna-buttons yna-server-actions" }, ...this.buttons.values());
    this.confirm.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      this.keep();
    });
    this.element = h(
      "div",
      { class: "yna-page yna-server-page" },
      h("div", { class: "yna-page-head" }, this.heading, h("span", { class: "yna-page-standing" }, this.dot, this.state)),
      this.target,
      this.bar,
      this.confirm,
      this.complaint.element,
      this.troubles,
      this.tabs.list,
      this.tabs.panels,
    );
    this.update();
  }

  update(told?: Told): void {
    if (told?.kind === "log") {
      if (told.server === this.key) for (const log of this.logs.values()) log.add(told.entries);
      return;
    }
    if (told?.kind === "all") for (const log of this.logs.values()) log.renew();
    if (told?.kind === "resource" && told.server === this.key) this.resources?.changed(told.uri);
    if (told?.kind === "listed" && told.server === this.key) {
      this.resources?.renew();
      this.prompts?.renew();
    }
    if (told && told.kind !== "all" && told.kind !== "servers") return;
    const server = this.inspected.server(this.key);
    if (!server) return;
    const [word, kind] = stateOf(server);
    setText(this.heading, visible(server.name));
    this.dot.dataset.kind = kind;
    setText(this.state, server.latency === null || kind !== "good" ? word : `${word}, answers in ${seconds(server.latency)}`);
    fill(this.target, [server.name, server.title, server.kind, server.target], () => [
      h("span", { class: "yna-badge" }, visible(server.kind)),
      server.title && server.title !== server.name ? h("span", {}, visible(server.title)) : null,
      h("code", { class: "yna-target" }, visible(server.target)),
    ]);
    this.showButtons(server);
    const troubles = [...(server.error ? [server.error] : []), ...server.problems, ...(this.inspected.notes.get(this.key) ?? [])];
    this.troubles.hidden = troubles.length === 0;
    fill(this.troubles, troubles, () => troubles.map((text) => h("p", {}, icon("alert"), h("span", { class: "yna-plain" }, text))));
    this.showTabs(server);
    fill(this.about, { ...server, latency: null }, () => aboutElements(server));
  }

  focus(): void {
    this.heading.focus({ preventScroll: true });
  }

  dispose(): void {
    for (const log of this.logs.values()) log.dispose();
  }

  private showButtons(server: Server): void {
    const shown = offered(server);
    const focused = document.activeElement;
    for (const [action, button] of this.buttons) {
      button.hidden = !shown.includes(action);
      button.classList.toggle("yna-primary", action === "connect" && shown.includes("connect"));
      if (button.hidden && button === focused) this.buttons.get(shown[0] ?? "remove")?.focus();
    }
  }

  private showTabs(server: Server): void {
    const has = (capability: string): boolean => server.capabilities.some((each) => each.split(/[ .:(]/, 1)[0] === capability);
    const tabs: Tab[] = [
      { key: "about", title: "About", build: () => this.about },
      { key: "log", title: "Messages", build: () => this.log("all") },
      { key: "notifications", title: "Notifications", build: () => this.log("told") },
    ];
    if (has("resources") || this.resources) tabs.push({ key: "resources", title: "Resources", build: () => (this.resources ??= new ResourcesView(this.inspected, this.key)).element });
    if (has("prompts") || this.prompts) tabs.push({ key: "prompts", title: "Prompts", build: () => (this.prompts ??= new PromptsView(this.inspected, this.key)).element });
    this.tabs.set(tabs);
  }

  private log(kind: LogKind): HTMLElement {
    const log = new ProtocolLog(this.inspected, this.key, kind);
    this.logs.set(kind, log);
    return log.element;
  }

  private async act(action: ServerAction): Promise<void> {
    const button = this.buttons.get(action);
    if (!button || button.getAttribute("aria-disabled")) return;
    setBusy(button, true);
    await this.complaint.of(this.inspected.context.act({ type: "act_on_server", server: this.key, action }));
    setBusy(button, false);
  }

  /** Removing takes tools away from the model, so it is asked once more. */
  private ask(): void {
    const server = this.inspected.server(this.key);
    const tools = server?.tools ?? 0;
    const remove = h("button", { class: "yna-button yna-danger", onclick: () => void this.remove() }, "Remove");
    this.confirm.replaceChildren(
      h("p", {}, `Remove ${visible(this.key)}? It is disconnected${tools > 0 ? `, and its ${tools === 1 ? "tool goes" : `${tools} tools go`} with it` : ""}.`),
      h("div", { class: "yna-buttons" }, remove, h("button", { class: "yna-button", onclick: () => this.keep() }, "Keep it")),
    );
    this.confirm.hidden = false;
    this.bar.hidden = true;
    remove.focus();
  }

  private keep(): void {
    this.confirm.hidden = true;
    this.bar.hidden = false;
    this.buttons.get("remove")?.focus();
  }

  private async remove(): Promise<void> {
    this.keep();
    await this.act("remove");
  }
}

function aboutElements(server: Server): (HTMLElement | null)[] {
  const facts: [string, string][] = [];
  const fact = (label: string, text: string): void => void (text && facts.push([label, visible(text)]));
  fact(server.kind === "stdio" ? "Command" : "Address", server.target);
  fact("Calls itself", server.title);
  fact("Version", server.version);
  fact("Protocol", server.protocol);
  fact("Capabilities", server.capabilities.join(", "));
  fact("Tools", String(server.tools));
  fact("Restarts", server.restarts > 0 ? String(server.restarts) : "");
  const stderr = server.stderr.join("\n");
  return [
    factList(facts),
    server.instructions
      ? h("div", {}, h("p", { class: "yna-section-title" }, "How it wants to be used"), h("p", { class: "yna-plain yna-instructions" }, server.instructions))
      : null,
    stderr
      ? h(
          "div",
          { class: "yna-section" },
          h("div", { class: "yna-section-bar" }, h("span", {}, "Standard error, the last lines"), copyButton(() => stderr)),
          h("pre", { tabindex: "0", role: "group", label: "Standard error" }, stderr),
        )
      : null,
  ];
}
