// A tool: what it is, what it takes, and how it is called by hand.

import { copyButton, h, icon, setBusy, setText } from "../dom";
import type { Problem } from "../schema_form/schema_form";
import { seconds, visible } from "../text";
import { ArgumentsForm } from "./arguments_form";
import { CallView, stateMark, waitedText } from "./call_view";
import { fill } from "./filled";
import type { HandCall, Tool, ToolDetails } from "./forms";
import { refusalText, sourceName, type Inspected, type Told } from "./inspected";
import type { Page } from "./page";
import { rawJson, schemaTree } from "./schema_view";
import { clock, Complaint, factList, hintBadge, Segments } from "./small";
import { Tabs } from "./tabs";

const MOST_EARLIER = 20;
const LONG_DESCRIPTION = 400;
const MOST_MISFITS = 5;

const BEGUN = { arguments_cut: false, state: "running", duration: null, waited: 0, progress: null, progress_text: "", summary: "", approval: null } as const;

export class ToolPage implements Page {
  readonly element: HTMLElement;
  private readonly heading = h("h3", { class: "yna-page-title", tabindex: "-1" });
  private readonly badges = h("div", { class: "yna-page-badges" });
  private readonly toggle = h("button", { class: "yna-switch", role: "switch", "aria-checked": "true", onclick: () => this.enable() }, h("span", { class: "yna-switch-track" }), "Offered to the model");
  private readonly warnings = h("div", { class: "yna-warnings", role: "group", label: "Warnings", hidden: true });
  private readonly advice = h("div", { class: "yna-advice", role: "group", label: "Could be better", hidden: true });
  private readonly busy = h("p", { class: "yna-muted", role: "status", hidden: true });
  private readonly about = h("div", { class: "yna-description" });
  private readonly gone = h("p", { class: "yna-problem", role: "status", hidden: true }, "The agent does not have this tool any more.");
  private readonly complaint = new Complaint();
  private readonly tabs = new Tabs("About this tool");
  private readonly calling = h("div", { class: "yna-calling" });
  private readonly schema = h("div", { class: "yna-schema" });
  private readonly facts = h("div", { class: "yna-about" });
  private readonly place = h("div");
  private readonly misfits = h("div", { class: "yna-misfit-list", role: "status" });
  private readonly hooks = h("input", { type: "checkbox", checked: true });
  private readonly button: HTMLButtonElement;
  private readonly call: CallView;
  private readonly earlier = h("div", { class: "yna-earlier" });
  private form: ArgumentsForm | null = null;
  private details: ToolDetails | null = null;
  private shownTool = "";
  private current: string | null = null;
  /** What was started, as long as Python has not told of it: what stands below moves once, and at once. */
  private begun: HandCall | null = null;
  private starting = false;

  constructor(
    private readonly inspected: Inspected,
    readonly key: string,
  ) {
    this.call = new CallView(inspected);
    this.button = h("button", { class: "yna-button yna-primary yna-call-button", title: "Ctrl+Enter", onclick: () => this.run() }, icon("play"), "Call");
    this.calling.append(
      this.place,
      h("div", { class: "yna-call-actions" }, this.button, h("label", { class: "yna-hooks-check" }, this.hooks, "through the agent’s hooks"), this.misfits),
      this.complaint.element,
      this.call.element,
      this.earlier,
    );
    this.element = h(
      "div",
      { class: "yna-page yna-tool-page" },
      h("div", { class: "yna-page-head" }, this.heading, this.toggle),
      this.badges,
      this.gone,
      this.warnings,
      this.busy,
      this.about,
      this.advice,
      this.tabs.list,
      this.tabs.panels,
    );
    this.calling.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
      event.preventDefault();
      event.stopPropagation();
      this.run();
    }, true);
    this.tabs.set([
      { key: "call", title: "Call", build: () => this.calling },
      { key: "schema", title: "Schema", build: () => this.schema },
      { key: "about", title: "Details", build: () => this.facts },
    ]);
    setBusy(this.button, true); // until there is a form
    this.current = inspected.callsOf(key)[0]?.call ?? null;
    this.update();
  }

  update(told?: Told): void {
    if (told && !["all", "tools", "call"].includes(told.kind)) return;
    if (told?.kind === "call" && told.call.name !== this.key) return;
    const tool = this.inspected.tool(this.key);
    this.gone.hidden = tool !== null;
    this.toggle.hidden = tool === null;
    setText(this.heading, visible(tool?.label || this.details?.label || this.key));
    if (tool) {
      this.toggle.setAttribute("aria-checked", String(tool.enabled));
      this.showBadges(tool);
      const { enabled: _enabled, ...rest } = tool;
      const shown = JSON.stringify(rest);
      if (told?.kind !== "call" && (shown !== this.shownTool || told?.kind === "all")) {
        this.shownTool = shown;
        this.load();
      }
    }
    this.showCalls();
  }

  connected(): void {
    const words = { busy: "The kernel is busy; this comes when the cell is done.", disconnected: "The kernel is gone. Run the cell again.", connecting: "", ready: "" };
    const text = this.details ? "" : words[this.inspected.context.connection.status];
    setText(this.busy, text);
    this.busy.hidden = text === "";
    this.tabs.list.hidden = this.tabs.panels.hidden = text !== "";
  }

  focus(): void {
    this.heading.focus({ preventScroll: true });
  }

  /** Put arguments into the form; and call with them, if that is wanted. */
  async again(call: HandCall, run: boolean): Promise<void> {
    this.tabs.show("call");
    const text = await this.complaint.of(this.inspected.argumentsOf(call));
    if (text === null) return;
    this.hooks.checked = call.hooks;
    this.inspected.drafts.set(this.key, text);
    this.form?.setText(text);
    if (run) this.start(text, call.hooks);
    else this.form?.focus();
  }

  dispose(): void {
    this.form?.dispose();
    this.call.dispose();
  }

  private showBadges(tool: Tool): void {
    const original = this.details?.original ?? "";
    fill(this.badges, [tool.name, original, tool.source, tool.hints], () => [
      h("code", { class: "yna-tool-name", title: "The name that the model uses" }, visible(tool.name)),
      original && original !== tool.name ? h("span", { class: "yna-muted" }, "at its server ", h("code", {}, visible(original))) : null,
      h("span", { class: "yna-badge yna-source" }, sourceName(tool.source)),
      ...tool.hints.map((hint) => hintBadge(hint)),
    ]);
  }

  private load(): void {
    this.connected();
    this.inspected.context.ask<ToolDetails>({ type: "load_tool", name: this.key }).then(
      (details) => this.show(details),
      (refusal) => {
        if (!this.details) fill(this.place, "refused", () => [h("p", { class: "yna-problem", role: "alert" }, refusalText(refusal))]);
      },
    );
  }

  private show(details: ToolDetails): void {
    const before = this.details;
    this.details = details;
    this.connected();
    const tool = this.inspected.tool(this.key);
    if (tool) this.showBadges(tool);
    this.warnings.hidden = details.warnings.length === 0;
    fill(this.warnings, details.warnings, () => details.warnings.map((text) => h("p", {}, icon("alert"), h("span", {}, text))));
    this.advice.hidden = details.advice.length === 0;
    fill(this.advice, details.advice, () => details.advice.map((text) => h("p", {}, text)));
    fill(this.about, details.description, () => [description(details.description)]);
    if (!this.form || before?.input_schema !== details.input_schema) this.makeForm(details);
    fill(this.schema, [details.input_schema, details.output_schema], () => this.schemaElements(details));
    fill(this.facts, [details.facts, details.definition], () => this.factElements(details));
  }

  private makeForm(details: ToolDetails): void {
    const hadFocus = this.place.contains(document.activeElement);
    const draft = this.form?.text ?? this.inspected.drafts.get(this.key) ?? null;
    this.form?.dispose();
    const form = new ArgumentsForm(this.inspected.context, details.schema === null ? null : details.input_schema, draft, () => this.entered());
    this.form = form;
    this.place.replaceChildren(form.element);
    this.ready();
    if (hadFocus) form.focus();
  }

  private entered(): void {
    if (!this.form) return; // it is being made
    this.inspected.drafts.set(this.key, this.form.text);
    this.complaint.say("");
    this.showMisfits([]);
  }

  private run(): void {
    const { form } = this;
    if (!form) return;
    const fault = form.fault();
    if (fault) return this.complaint.say(fault);
    const problems = form.problems();
    this.showMisfits(problems);
    if (problems.length === 0) this.start(form.text, this.hooks.checked);
  }

  /** What the tool says to arguments that do not fit, a person may want to see all the same. */
  private showMisfits(problems: Problem[]): void {
    const { form } = this;
    fill(this.misfits, problems, () => {
      if (!form || problems.length === 0) return [];
      const words = problems.slice(0, MOST_MISFITS).map(({ path, message }) => h("li", {}, path ? h("code", {}, visible(path)) : null, path ? " " : null, message));
      const left = problems.length - MOST_MISFITS;
      const anyway = (): void => {
        this.showMisfits([]);
        this.start(form.text, this.hooks.checked);
        this.button.focus();
      };
      return [h("ul", {}, ...words, left > 0 ? h("li", {}, `and ${left} more`) : null), h("button", { class: "yna-ghost", onclick: anyway }, "Call all the same")];
    });
  }

  private start(text: string, hooks: boolean): void {
    if (this.starting) return;
    this.starting = true;
    setBusy(this.button, true);
    const { call, answer } = this.inspected.start(this.key, text, hooks);
    this.current = call;
    this.begun = { ...BEGUN, call, name: this.key, arguments_text: text, started: Date.now(), hooks };
    this.showCalls();
    this.call.follow(call);
    answer.catch(() => (this.begun = null));
    void this.complaint.of(answer).finally(() => {
      this.ready();
      this.showCalls();
    });
  }

  private ready(): void {
    this.starting = false;
    setBusy(this.button, false);
  }

  private showCalls(): void {
    const known = this.current ? this.inspected.call(this.current) : null;
    if (known && this.form) this.ready(); // it has begun: another may be started beside it
    this.call.update(known ?? this.begun);
    const calls = this.inspected.callsOf(this.key).filter(({ call }) => call !== this.current).slice(0, MOST_EARLIER);
    fill(this.earlier, calls.map(({ call, state, duration, summary }) => [call, state, duration, summary]), () =>
      calls.length > 0 ? [h("p", { class: "yna-section-title" }, "Earlier calls"), ...calls.map((call) => this.earlierCall(call))] : [],
    );
  }

  private earlierCall(call: HandCall): HTMLElement {
    const look = (): void => {
      this.current = call.call;
      this.begun = null;
      this.showCalls();
      this.call.element.scrollIntoView({ block: "nearest" });
    };
    return h(
      "div",
      { class: "yna-earlier-call", "data-state": call.state },
      h("button", { class: "yna-earlier-look", title: "Show its result", onclick: look },
        h("span", { class: "yna-call-mark" }, stateMark(call.state)),
        h("code", { class: "yna-earlier-args" }, visible(call.arguments_text)),
        h("span", { class: "yna-muted" }, [clock(call.started), call.duration === null ? "" : seconds(call.duration), waitedText(call)].filter(Boolean).join(" · ")),
      ),
      h("button", { class: "yna-ghost", onclick: () => void this.again(call, false) }, "Fill in"),
      h("button", { class: "yna-ghost", onclick: () => void this.again(call, true) }, icon("again"), "Call again"),
    );
  }

  private enable(): void {
    const enabled = this.toggle.getAttribute("aria-checked") !== "true";
    this.toggle.setAttribute("aria-checked", String(enabled));
    const asked = this.inspected.context.act({ type: "enable_tool", name: this.key, enabled });
    asked.catch(() => this.toggle.setAttribute("aria-checked", String(!enabled)));
    void this.complaint.of(asked);
  }

  private schemaElements(details: ToolDetails): (HTMLElement | null)[] {
    const { context } = this.inspected;
    const readable = h("div", {}, h("p", { class: "yna-section-title" }, "Parameters"), schemaTree(details.schema, "It takes no parameters."));
    const raw = h("div", { class: "yna-raw-schemas", hidden: true });
    const output = parsed(details.output_schema);
    if (details.output_schema !== null) readable.append(h("p", { class: "yna-section-title" }, "Structured result"), schemaTree(output, "It may hold anything."));
    const segments = new Segments("Schema as", [["readable", "Readable"], ["raw", "Raw"]], (key) => {
      readable.hidden = key === "raw";
      raw.hidden = key !== "raw";
      if (key === "raw" && raw.childElementCount === 0) {
        raw.append(rawJson(context, "Input schema", details.input_schema));
        if (details.output_schema !== null) raw.append(rawJson(context, "Output schema", details.output_schema));
      }
    });
    segments.press("readable");
    return [segments.element, readable, raw];
  }

  private factElements({ facts, definition, original, source, read_only }: ToolDetails): (HTMLElement | null)[] {
    const said: [string, string][] = facts.map(({ label, text }) => [label, text]);
    if (said.length === 0) said.push(["Name at its source", original], ["Source", source], ["Read-only", read_only ? "yes" : "not told"]);
    return [factList(said), definition ? this.definitionElement(definition) : null];
  }

  private definitionElement(definition: string): HTMLElement {
    const code = h("code");
    this.inspected.context.highlight(code, definition, "python");
    return h(
      "div",
      { class: "yna-section yna-definition" },
      h("div", { class: "yna-section-bar" }, h("span", {}, "Where it is defined"), copyButton(() => definition)),
      h("pre", { tabindex: "0", role: "group", label: "Where it is defined" }, code),
    );
  }
}

function description(text: string): HTMLElement {
  if (!text) return h("p", { class: "yna-muted" }, "It has no description, so a model can only guess what it is for.");
  const words = h("p", { class: "yna-plain" }, text);
  if (text.length <= LONG_DESCRIPTION && text.split("\n").length <= 6) return words;
  words.classList.add("yna-clamped");
  const more = h("button", { class: "yna-more", "aria-expanded": "false" }, "Show all of it");
  more.addEventListener("click", () => {
    const clamped = words.classList.toggle("yna-clamped");
    more.setAttribute("aria-expanded", String(!clamped));
    more.textContent = clamped ? "Show all of it" : "Show less";
  });
  return h("div", {}, words, more);
}

function parsed(text: string | null): unknown {
  try {
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}
