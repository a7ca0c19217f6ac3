// What a server lets one read: resources and templates of their addresses.

import { h, icon } from "../dom";
import { begin, settle } from "../entries";
import type { ResultPart } from "../protocol";
import { bytes, visible } from "../text";
import type { Resource, Template } from "./forms";
import type { Inspected } from "./inspected";
import { Complaint, labelled, searchField, textField } from "./small";
import { expand, variablesOf } from "./uri_template";

const FIRST = 100;

export class ResourcesView {
  readonly element: HTMLElement;
  private readonly complaint = new Complaint();
  private readonly list = h("div", { class: "yna-items" });
  private readonly templates = h("div", { class: "yna-items" });
  private readonly reload: HTMLButtonElement;
  private resources: Resource[] = [];
  private words: string[] = [];
  private most = FIRST;
  /** What tells that a resource changed, by its address. */
  private readonly shown = new Map<string, { again: () => void }>();

  constructor(
    private readonly inspected: Inspected,
    private readonly server: string,
  ) {
    this.reload = h("button", { class: "yna-ghost", onclick: () => void this.load() }, icon("again"), "Refresh");
    const find = (words: string[]): void => {
      this.words = words;
      this.show();
    };
    this.element = h(
      "div",
      { class: "yna-resources" },
      h("div", { class: "yna-section-head" }, searchField("Search resources", find), this.reload),
      this.complaint.element,
      this.list,
      this.templates,
    );
    void this.load();
  }

  /** They are to be listed again. */
  renew(): void {
    void this.load();
  }

  /** One that is watched changed: it is read again where it is shown. */
  changed(uri: string): void {
    const element = this.shown.get(uri);
    if (element) element.again();
  }

  private async load(): Promise<void> {
    const asked = this.inspected.context.act<{ resources: Resource[]; templates: Template[] }>({ type: "list_resources", server: this.server });
    const loaded = await this.complaint.of(asked);
    if (!loaded) return;
    this.resources = loaded.resources;
    this.show();
    this.templates.replaceChildren(
      ...(loaded.templates.length > 0 ? [h("p", { class: "yna-section-title" }, "Templates")] : []),
      ...loaded.templates.slice(0, FIRST).map((template) => this.templateElement(template)),
    );
  }

  private show(): void {
    const found = this.resources.filter(({ uri, name, title, description }) => {
      const text = `${uri}\n${name}\n${title}\n${description}`.toLowerCase();
      return this.words.every((word) => text.includes(word));
    });
    const left = found.length - this.most;
    const more = h("button", { class: "yna-more" }, `Show ${Math.min(left, FIRST)} more of ${left.toLocaleString()}`);
    more.addEventListener("click", () => {
      this.most += FIRST;
      this.show();
    });
    this.list.replaceChildren(
      ...(found.length === 0 ? [h("p", { class: "yna-muted" }, this.words.length > 0 ? "No resource has all these words." : "It lists no resources.")] : []),
      ...found.slice(0, this.most).map((resource) => this.resourceElement(resource)),
      ...(left > 0 ? [more] : []),
    );
  }

  private resourceElement(resource: Resource): HTMLElement {
    const { uri, name, title, description, mime_type: type, size } = resource;
    const contents = h("div", { class: "yna-contents" });
    const complaint = new Complaint();
    const news = h("span", { class: "yna-badge", role: "status", hidden: true }, "changed");
    this.shown.set(uri, {
      again: () => {
        news.hidden = false;
        if (contents.childElementCount > 0) void this.read(uri, contents, complaint);
      },
    });
    const watch = h("button", { class: "yna-ghost", "aria-pressed": String(resource.watched) }, resource.watched ? "Watched" : "Watch");
    watch.addEventListener("click", () => {
      const wanted = !resource.watched;
      const asked = this.inspected.context.act({ type: "watch_resource", server: this.server, uri, watch: wanted });
      void complaint.of(asked.then(() => true)).then((done) => {
        if (!done) return;
        resource.watched = wanted;
        watch.setAttribute("aria-pressed", String(wanted));
        watch.textContent = wanted ? "Watched" : "Watch";
      });
    });
    return item(
      title || name || uri,
      [type, size === null ? "" : bytes(size)],
      uri,
      description,
      [h("button", { class: "yna-ghost", onclick: () => void this.read(uri, contents, complaint) }, icon("file"), "Read"), watch, news],
      complaint.element,
      contents,
    );
  }

  private templateElement({ uri_template: template, name, title, description, mime_type: type }: Template): HTMLElement {
    const contents = h("div", { class: "yna-contents" });
    const complaint = new Complaint();
    const fields = variablesOf(template).map((variable): [string, HTMLInputElement] => [variable, textField()]);
    const read = (): void => {
      const values = new Map(fields.flatMap(([variable, { value }]) => (value ? [[variable, value] as const] : [])));
      void this.read(expand(template, values), contents, complaint);
    };
    const form = h("div", { class: "yna-item-fields" }, ...fields.map(([variable, input]) => labelled(visible(variable), input)));
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) read();
    });
    return item(title || name || template, [type], template, description, [h("button", { class: "yna-ghost", onclick: read }, icon("file"), "Read")], form, complaint.element, contents);
  }

  private async read(uri: string, place: HTMLElement, complaint: Complaint): Promise<void> {
    const { context } = this.inspected;
    const read = await complaint.of(context.act<{ contents: ResultPart[] }>({ type: "read_resource", server: this.server, uri }));
    if (!read) return;
    const call = settle(begin(new Map(), uri, uri), { is_error: false, content: [], details: { server: this.server, parts: read.contents, left_out: "" } });
    const shown = context.result(call, visible(uri));
    for (const folded of shown.querySelectorAll("details")) folded.open = true;
    const close = h("button", { class: "yna-ghost", onclick: () => place.replaceChildren() }, icon("cross"), "Close");
    place.replaceChildren(h("div", { class: "yna-section-head" }, h("span", { class: "yna-muted", role: "status" }, `Read ${visible(uri)}`), close), read.contents.length > 0 ? shown : h("p", { class: "yna-muted" }, "It is empty."));
  }
}

/** A thing of a list: its name, facts, address and what it is, buttons, and what they bring. */
export function item(name: string, facts: string[], address: string, about: string, buttons: HTMLElement[], ...more: HTMLElement[]): HTMLElement {
  return h(
    "div",
    { class: "yna-item", role: "group", label: visible(name) },
    h(
      "div",
      { class: "yna-item-head" },
      h("b", { class: "yna-item-name" }, visible(name)),
      h("span", { class: "yna-muted" }, facts.filter(Boolean).map(visible).join(" · ")),
      h("span", { class: "yna-item-buttons" }, ...buttons),
    ),
    address && address !== name ? h("code", { class: "yna-item-address" }, visible(address)) : null,
    about ? h("p", { class: "yna-item-about" }, about) : null,
    ...more,
  );
}
