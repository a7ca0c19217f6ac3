// Prompts of a server: their arguments, and the messages that they make.

import { h, icon } from "../dom";
import { begin, settle } from "../entries";
import { visible } from "../text";
import type { Prompt, PromptMessage } from "./forms";
import type { Inspected } from "./inspected";
import { item } from "./resources_view";
import { Complaint, labelled, textField } from "./small";

const MOST = 200;

export class PromptsView {
  readonly element: HTMLElement;
  private readonly complaint = new Complaint();
  private readonly list = h("div", { class: "yna-items" });

  constructor(
    private readonly inspected: Inspected,
    private readonly server: string,
  ) {
    const reload = h("button", { class: "yna-ghost", onclick: () => void this.load() }, icon("again"), "Refresh");
    this.element = h("div", { class: "yna-prompts" }, h("div", { class: "yna-section-head yna-one-line" }, h("span", { class: "yna-muted" }, "Texts that the server has ready for a person to start from."), reload), this.complaint.element, this.list);
    void this.load();
  }

  /** They are to be listed again. */
  renew(): void {
    void this.load();
  }

  private async load(): Promise<void> {
    const loaded = await this.complaint.of(this.inspected.context.act<{ prompts: Prompt[] }>({ type: "list_prompts", server: this.server }));
    if (!loaded) return;
    const { prompts } = loaded;
    this.list.replaceChildren(
      ...(prompts.length === 0 ? [h("p", { class: "yna-muted" }, "It lists no prompts.")] : []),
      ...prompts.slice(0, MOST).map((prompt) => this.promptElement(prompt)),
    );
  }

  private promptElement(prompt: Prompt): HTMLElement {
    const contents = h("div", { class: "yna-contents" });
    const complaint = new Complaint();
    const fields = prompt.arguments.map(({ name, description, required }): [string, HTMLInputElement, HTMLElement] => {
      const input = textField(required ? { required: true } : {});
      return [name, input, labelled(required ? `${visible(name)} (required)` : visible(name), input, description)];
    });
    const get = (): void => {
      const values = Object.fromEntries(fields.flatMap(([name, { value }]) => (value ? [[name, value]] : [])));
      void this.get(prompt.name, values, contents, complaint);
    };
    const form = h("div", { class: "yna-item-fields" }, ...fields.map(([, , element]) => element));
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) get();
    });
    const button = h("button", { class: "yna-ghost", onclick: get }, icon("play"), "Get");
    return item(prompt.title || prompt.name, [], prompt.name, prompt.description, [button], form, complaint.element, contents);
  }

  private async get(name: string, values: Record<string, string>, place: HTMLElement, complaint: Complaint): Promise<void> {
    const { context } = this.inspected;
    const got = await complaint.of(context.act<{ description: string; messages: PromptMessage[] }>({ type: "get_prompt", server: this.server, name, arguments: values }));
    if (!got) return;
    const close = h("button", { class: "yna-ghost", onclick: () => place.replaceChildren() }, icon("cross"), "Close");
    place.replaceChildren(
      h("div", { class: "yna-section-head" }, h("span", { class: "yna-muted", role: "status" }, got.description || `${got.messages.length} ${got.messages.length === 1 ? "message" : "messages"}`), close),
      ...got.messages.map((message) => this.messageElement(name, message)),
    );
  }

  private messageElement(name: string, { role, content, details }: PromptMessage): HTMLElement {
    const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
    const rest = content.filter(({ type }) => type !== "text");
    const call = settle(begin(new Map(), name, name), { is_error: false, content: rest, details });
    const more = rest.length > 0 || (details?.parts.length ?? 0) > 0;
    return h(
      "div",
      { class: "yna-prompt-message" },
      h("p", { class: "yna-prompt-role" }, visible(role)),
      ...texts.map((text) => h("p", { class: "yna-plain" }, text)),
      more ? this.inspected.context.result(call, visible(name)) : null,
    );
  }
}
