// One hook: what is installed, the editor, and what one does with the code in it.

import type { CodeEditor } from "../code/editor";
import { copyButton, h, icon, newId, setBusy, setText } from "../dom";
import type { PanelContext } from "../panel";
import { visible } from "../text";
import { asCell } from "./cell";
import { Choices } from "./choices";
import { command, disclosure, unfold } from "./controls";
import { Draft } from "./draft";
import {
  applied,
  isDraft,
  recordedWords,
  startingText,
  type Applied,
  type Hook,
  type HooksState,
  type OnError,
  type Problem,
  type Trial,
} from "./forms";
import { InstalledView } from "./installed_view";
import { forget, keep, lostText, type KeptText } from "./kept";
import { libraryView } from "./library_view";
import { ProblemsView } from "./problems_view";
import { TrialView, failuresIn, outcome } from "./trial_view";
import { VersionsView } from "./versions_view";

/** Milliseconds after the last key before the draft is kept, and before the code is checked. */
const KEEP = 400;
const CHECK = 350;
type State = Pick<HooksState, "library" | "recorded" | "namespace">;

export class HookPage {
  readonly element: HTMLElement;
  /** Told when what the list says of this hook may be another. */
  onChange: () => void = () => {};
  private editor: CodeEditor | null = null;
  private readonly draft: Draft;
  private problems: Problem[] = [];
  private checks = 0;
  private keeping: ReturnType<typeof setTimeout> | undefined;
  private checking: ReturnType<typeof setTimeout> | undefined;
  private opened = false;
  /** What stood here before the kernel was gone; a person says what becomes of it. */
  private lost: KeptText | null = null;
  /** The problems and failures that are shown. */
  private shown = "";

  private readonly place = h("div", { class: "yna-hook-editor" }, h("p", { class: "yna-loading" }, "Loading…"));
  private readonly standing = h("span", { class: "yna-hook-standing" });
  private readonly said = h("p", { class: "yna-hook-said", role: "status" });
  private readonly conflict = h("div", { class: "yna-hook-conflict", role: "alert", hidden: true });
  private readonly offer = h("div", { class: "yna-hook-lost", hidden: true });
  private readonly namespace = h("p", { class: "yna-muted yna-hook-namespace" });
  private readonly recorded = h("span", { class: "yna-muted" });
  private readonly installed: InstalledView;
  private readonly versions: VersionsView;
  private readonly trial = new TrialView((line) => this.goTo(line, null));
  private readonly wrong: ProblemsView;
  private readonly library = h("div", { hidden: true, id: newId() });
  private readonly history = h("div", { hidden: true, id: newId() });
  private readonly libraryButton = disclosure("Start from…", "hook", this.library);
  private readonly historyButton = disclosure("Versions", "clock", this.history);
  private readonly choices: Choices;
  private readonly tryButton = command("Try", ["Shift", "Mod", "Enter"], (button) => void this.act(() => this.try(), button));
  private readonly applyButton = command("Apply", ["Mod", "Enter"], (button) => void this.act(() => this.apply(), button));
  private readonly revertButton = h("button", { class: "yna-button yna-bare", onclick: () => void this.act(() => this.revert()) }, "Revert");

  constructor(
    private hook: Hook,
    private state: State,
    private readonly context: PanelContext,
  ) {
    this.draft = new Draft(hook.draft ?? startingText(hook));
    const highlight = (element: HTMLElement, text: string): void => context.highlight(element, text, "python");
    this.installed = new InstalledView({
      highlight,
      edit: (index) => this.edit(index),
      remove: (index) => void this.act(() => this.remove(index)),
    });
    this.versions = new VersionsView({
      highlight,
      load: async (version) => (await this.ask<{ code: string }>({ type: "load_version", version })).code,
      edit: (code, version) => {
        const found = this.hook.versions.find((each) => each.version === version);
        this.load(code, `version ${version}`, found?.on_error ?? null);
      },
      current: () => this.draft.text,
      complain: (error) => this.complain(error),
    });
    this.wrong = new ProblemsView({
      goTo: (line, column) => this.goTo(line, column),
      holds: (version) => this.holds(version),
      look: (version) => {
        unfold(this.historyButton, this.history, true);
        void this.versions.look(version).catch((error: unknown) => this.complain(error));
      },
    });
    this.history.append(this.versions.element);
    this.choices = new Choices(hook);
    const copy = copyButton(() => asCell(this.draft.text, this.hook.name, this.hook.several), "Copy as cell");
    const title = h("h3", { tabindex: "-1" }, hook.title);
    this.applyButton.classList.add("yna-primary");
    this.element = h(
      "article",
      { class: "yna-hook", label: hook.title },
      h("header", {}, title, h("code", { class: "yna-hook-name" }, signature(hook)), h("p", {}, hook.tells)),
      this.installed.element,
      h(
        "section",
        { class: "yna-hook-work", label: "Editor" },
        h("div", { class: "yna-hook-tools" }, h("h4", {}, "Editor"), this.standing, this.libraryButton, this.historyButton, copy),
        this.library,
        this.history,
        this.offer,
        this.conflict,
        this.place,
        this.wrong.element,
        this.choices.element,
        h(
          "div",
          { class: "yna-hook-foot" },
          h("div", { class: "yna-hook-bar" }, this.tryButton, this.applyButton, this.revertButton, this.recorded),
          this.said,
        ),
      ),
      this.trial.element,
      this.namespace,
    );
    this.take(hook, state);
  }

  /** Whether what stands here was not applied. */
  get drafted(): boolean {
    return isDraft(this.hook, this.draft.text);
  }

  /** Whether something stands here that a kernel lost. */
  get offers(): boolean {
    return this.lost !== null;
  }

  /** It stands in the page now, where an editor before it may have left something. */
  arrive(): void {
    const lost = lostText(this.element, this.hook.name, this.context.connection);
    if (lost && this.hook.draft === null && lost.text.trim() !== this.draft.text.trim()) this.offerLost(lost);
    else this.remember();
  }

  /** It is shown: have the editor, on first need. */
  open(): void {
    if (this.opened) return;
    this.opened = true;
    this.context
      .code()
      .then(({ CodeEditor }) => this.build(new CodeEditor(this.editorOptions())))
      .catch((error: unknown) => {
        this.opened = false; // the next time one comes here it is asked for again
        this.place.replaceChildren(h("p", { class: "yna-problem", role: "alert" }, `The editor could not be loaded. ${words(error)}`));
      });
  }

  /** What the kernel says of this hook now; `state` comes with all that the panel needs, anew. */
  take(hook: Hook, state?: State): void {
    this.hook = hook;
    this.state = state ?? this.state;
    const text = hook.draft ?? startingText(hook);
    if (state && hook.draft === null) this.draft.rebase(text); // a new kernel: what stands here is all there is
    const taken = this.draft.take(text, this.editor?.hasFocus ?? false);
    if (taken === "adopted") {
      this.put(this.draft.text);
      this.check();
    }
    this.remember();
    this.installed.show(hook);
    this.versions.show(hook.versions, new Set(hook.installed.flatMap(({ version }) => version ?? [])));
    setText(this.historyButton.lastChild as HTMLElement, `Versions (${hook.versions.length})`);
    this.historyButton.hidden = hook.versions.length === 0;
    if (hook.versions.length === 0) unfold(this.historyButton, this.history, false);
    this.revertButton.hidden = !hook.revertible;
    const ready = this.state.library.filter((each) => each.hook === hook.name);
    if (!this.library.firstChild) this.library.append(libraryView(ready, hook.template, (...start) => this.start(...start)));
    this.choices.show(hook);
    this.showConflict();
    this.showProblems();
    this.showStanding();
    this.onChange();
  }

  /** How many calls there are to try on now, by hook. */
  count(recorded: State["recorded"]): void {
    this.state = { ...this.state, recorded };
    this.showStanding();
  }

  focus(): void {
    if (this.editor) this.editor.focus();
    else this.element.querySelector<HTMLElement>("h3")?.focus();
  }

  /** Keep the draft now: what is typed here may be left any moment. */
  keep(): void {
    clearTimeout(this.keeping);
    const text = this.draft.due;
    if (text === null) return;
    this.draft.send(text);
    this.ask({ type: "draft_hook", code: text }).then(
      () => this.draft.settle(text, true),
      (error: unknown) => {
        this.draft.settle(text, false);
        this.complain(error, "The draft is not kept in the kernel: ");
      },
    );
  }

  dispose(): void {
    this.keep();
    clearTimeout(this.checking);
    this.editor?.dispose();
  }

  private editorOptions(): ConstructorParameters<typeof CodeEditor>[0] {
    return {
      language: "python",
      label: `Code of ${this.hook.title}`,
      value: this.draft.text,
      minLines: 8,
      maxLines: 28,
      onChange: (text) => this.onType(text),
      onBlur: () => this.keep(),
      complete: (code, cursor) => this.context.ask({ type: "complete_code", code, cursor }),
      keys: { "Mod-Enter": () => this.applyButton.click(), "Shift-Mod-Enter": () => this.tryButton.click() },
    };
  }

  private build(editor: CodeEditor): void {
    const held = this.place.contains(document.activeElement);
    this.editor = editor;
    editor.value = this.draft.text;
    this.place.replaceChildren(editor.element);
    this.shown = "";
    this.showProblems();
    this.check();
    if (held) editor.focus();
  }

  private onType(text: string): void {
    this.draft.text = text;
    clearTimeout(this.keeping);
    this.keeping = setTimeout(() => this.keep(), KEEP);
    clearTimeout(this.checking);
    this.checking = setTimeout(() => this.check(), CHECK);
    this.trial.outdate(text);
    this.remember();
    this.showStanding();
    this.onChange();
  }

  /** Put a text into the editor that a person chose; undo brings the one before it back. */
  private load(text: string, from: string, onError: OnError | null): void {
    this.put(text);
    this.draft.text = text;
    this.choices.onError = onError;
    this.onType(text);
    this.keep();
    this.say(`The editor holds ${from}. Undo brings back what stood there.`);
    this.editor?.goTo(1);
  }

  private put(text: string): void {
    if (this.editor) this.editor.value = text;
    this.trial.outdate(text);
  }

  private start(code: string, from: string, onError: OnError | null): void {
    unfold(this.libraryButton, this.library, false);
    this.load(code, `“${from}”`, onError);
  }

  private edit(index: number): void {
    const installed = this.hook.installed[index];
    if (!installed) return;
    this.load(installed.source, visible(installed.name), installed.on_error);
    this.choices.replace(index);
  }

  private check(): void {
    this.checks += 1;
    const check = this.checks;
    const code = this.draft.text;
    this.context.ask<{ problems: Problem[] }>({ type: "check_code", code }).then(
      ({ problems }) => {
        if (check === this.checks) this.setProblems(problems);
      },
      () => {}, // a kernel that is gone is told of elsewhere; the code is checked again when it is tried
    );
  }

  private setProblems(problems: Problem[]): void {
    this.problems = problems;
    this.showProblems();
  }

  private async try(): Promise<void> {
    this.keep();
    const code = this.draft.text;
    this.say("Trying…");
    const trial = await this.applyHook<Trial>("try", code);
    this.checks += 1; // what it found counts more than a check that is on its way
    this.trial.show(trial, code);
    if (code === this.draft.text) this.setProblems([...trial.problems, ...failuresIn(trial)]);
    this.say(trial.problems.length > 0 ? "It did not run: see what is wrong above." : outcome(trial));
    this.trial.reveal();
  }

  private async apply(): Promise<void> {
    this.keep();
    const code = this.draft.text;
    this.say("Applying…");
    const { version, problems } = await this.applyHook<Applied>("apply", code);
    this.checks += 1;
    if (code === this.draft.text) this.setProblems(problems);
    if (version === null) return this.say("Nothing was applied: see what is wrong above.", true);
    unfold(this.libraryButton, this.library, false);
    this.trial.clear();
    this.say(`Version ${version} is applied. It acts from ${this.hook.waits ? "the next turn" : "now"} on.`);
  }

  private applyHook<Value>(action: "try" | "apply", code: string): Promise<Value> {
    const { replaces, onError } = this.choices;
    return this.context.act({ type: "apply_hook", hook: this.hook.name, code, action, replaces, on_error: onError });
  }

  private async remove(index: number): Promise<void> {
    const name = visible(this.hook.installed[index]?.name ?? "");
    await this.context.act({ type: "remove_hook", hook: this.hook.name, index });
    this.say(`${name} is removed.`);
  }

  private async revert(): Promise<void> {
    await this.context.act({ type: "revert_hook", hook: this.hook.name });
    this.say("What was installed before this editor's first apply is back. The versions stay.");
  }

  private ask<Value = null>(message: Record<string, unknown>): Promise<Value> {
    return this.context.ask<Value>({ ...message, hook: this.hook.name });
  }

  /** Do one thing at a time, and say what kept it from being done. */
  private async act(run: () => Promise<void>, button?: HTMLButtonElement): Promise<void> {
    if (button?.getAttribute("aria-disabled")) return;
    if (button) setBusy(button, true);
    try {
      await run();
    } catch (error) {
      this.complain(error);
    } finally {
      if (button) setBusy(button, false);
    }
  }

  private goTo(line: number, column: number | null): void {
    this.editor?.goTo(line, column ?? 1);
  }

  /** Whether the editor holds what a version is. */
  private holds(version: number | null): boolean {
    const installed = this.hook.installed.find((each) => version !== null && each.version === version);
    return installed?.source.trim() === this.draft.text.trim();
  }

  private showProblems(): void {
    const here = this.hook.failures.filter(({ version, line }) => line !== null && this.holds(version));
    const marks = [...this.problems, ...here.map(({ line, message }) => ({ line, message, severity: "warning" as const }))];
    const now = JSON.stringify([marks, this.hook.failures, this.draft.text]);
    if (now === this.shown) return;
    this.shown = now;
    this.editor?.setProblems(marks);
    this.wrong.show(this.problems, this.hook.failures);
  }

  private showStanding(): void {
    const { drafted } = this;
    const now = applied(this.hook);
    setText(this.standing, drafted ? "A draft, not applied" : now?.source.trim() === this.draft.text.trim() ? "As it is installed" : "");
    this.standing.classList.toggle("yna-hook-drafted", drafted);
    setText(this.recorded, recordedWords(this.hook.name, this.state.recorded[this.hook.name] ?? 0));
    setText(this.namespace, `Code runs in ${this.state.namespace}, as a cell does. Try runs it on copies, and applies nothing.`);
  }

  /** Keep in the page what would be gone with the kernel. */
  private remember(): void {
    if (!this.element.isConnected) return;
    const { connection } = this.context;
    if (this.lost?.text.trim() === this.draft.text.trim()) this.settleLost();
    if (this.lost) return; // it keeps its place until a person has said what becomes of it
    const text = this.drafted ? this.draft.text : applied(this.hook)?.source;
    keep(this.element, this.hook.name, text ? { text, applied: !this.drafted, connection } : null, connection);
  }

  private offerLost(lost: KeptText): void {
    this.lost = lost;
    const what = lost.applied ? "This was applied here" : "This draft stood here";
    const load = (): void => {
      this.settleLost();
      this.load(lost.text, "what stood here before", null);
    };
    const drop = (): void => {
      this.settleLost();
      this.remember();
      this.focus();
    };
    const source = h("pre", { class: "yna-hook-source", tabindex: "0", label: "What stood here before" });
    this.context.highlight(source, lost.text, "python");
    this.offer.append(
      icon("clock"),
      h("span", {}, `${what} before the kernel was gone. The new kernel does not have it.`),
      h("button", { class: "yna-button", onclick: load }, "Put it into the editor"),
      copyButton(() => lost.text),
      h("button", { class: "yna-ghost", onclick: drop }, icon("cross"), "Forget it"),
      h("details", { class: "yna-fold" }, h("summary", {}, icon("chevron"), "Show it"), source),
    );
    this.offer.hidden = false;
    this.onChange();
  }

  private settleLost(): void {
    this.lost = null;
    this.offer.hidden = true;
    this.offer.replaceChildren();
    forget(this.element, this.hook.name);
    this.onChange();
  }

  private showConflict(): void {
    const { theirs } = this.draft;
    this.conflict.hidden = theirs === null;
    if (theirs === null) return this.conflict.replaceChildren();
    if (this.conflict.firstChild) return;
    const choose = (mine: boolean): void => {
      this.draft.choose(mine);
      if (!mine) this.put(this.draft.text);
      this.keep();
      this.check();
      this.showConflict();
      this.showStanding();
      this.onChange();
      this.editor?.focus();
    };
    this.conflict.append(
      icon("alert"),
      h("span", {}, "Another view changed this draft while you write here."),
      h("button", { class: "yna-button", onclick: () => choose(true) }, "Keep mine"),
      h("button", { class: "yna-button", onclick: () => choose(false) }, "Take theirs"),
    );
  }

  private say(text: string, wrong = false): void {
    this.said.classList.toggle("yna-problem", wrong);
    setText(this.said, text);
  }

  private complain(error: unknown, before = ""): void {
    this.say(before + words(error), true);
  }
}

function signature({ name, takes }: Hook): string {
  return `${name}(${takes.join(", ")})`;
}

function words(error: unknown): string {
  const { message, hint } = error as { message?: string; hint?: string };
  return [message ?? String(error), hint].filter(Boolean).join(" ");
}
