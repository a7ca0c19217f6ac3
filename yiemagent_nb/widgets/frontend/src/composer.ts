// Where a person writes. Its nodes are apart from the transcript's, so rendering never touches them.

import { AttachmentBar } from "./attachments";
import { CommandMenu } from "./command_menu";
import type { Connection, Reply } from "./connection";
import { History, joined, readCommand, takeApart, tooMuch, whatEnterDoes } from "./drafts";
import { h, icon, newId, setText } from "./dom";
import { catchDrops, catchPastes } from "./file_drop";
import { onFirstLine } from "./lines";
import type { Content, Refusal } from "./protocol";
import { QueueView } from "./queue_view";
import type { Change, Store } from "./store";

const REMEMBERED = 50;
/** Milliseconds in which the run of an accepted message begins; after a stop, it may as well be held. */
const RUN_BEGINS = 2_000;
const STOP_HOLDS = 500;
const ROOM_FOR_MENU = 180;

type Kind = "send" | "follow_up";

export class Composer {
  readonly element: HTMLElement;
  private readonly input = h("textarea", {
    class: "yna-input",
    rows: "1",
    label: "Message to the agent",
    spellcheck: "true",
  });
  private readonly problem = h("div", { class: "yna-problem", role: "alert", hidden: true });
  private readonly notice = h("div", { class: "yna-notice-text" });
  private readonly noticeLine: HTMLElement;
  private readonly hint = h("span", { class: "yna-hint", id: newId() });
  private readonly box: HTMLElement;
  private readonly send: HTMLButtonElement;
  private readonly steer: HTMLButtonElement;
  private readonly queue: HTMLButtonElement;
  private readonly stop: HTMLButtonElement;
  private readonly menu: CommandMenu;
  private readonly files: AttachmentBar;
  private readonly waiting: QueueView;
  private readonly history = new History();
  /** What was said here, the newest last. */
  private readonly said: string[] = [];
  /** What is on its way to Python. */
  private pending: Promise<void> | null = null;
  /** Whether that is a message, which starts a run or joins one. */
  private saying = false;
  /** A message was taken and its run has not begun; the timer gives up waiting. */
  private begins: ReturnType<typeof setTimeout> | undefined;
  private stopping = false;
  /** How many runs began or ended, as far as is known. */
  private turns = 0;
  private disposed = false;

  constructor(
    private readonly store: Store,
    private readonly connection: Connection,
    private readonly root: HTMLElement,
    private readonly onSent: () => void,
  ) {
    const button = (name: string, title: string, work: () => void): HTMLButtonElement =>
      h("button", { class: "yna-button", title, onclick: work }, name);
    const round = (kind: string, name: string, title: string, work: () => void): HTMLButtonElement =>
      h("button", { class: `yna-round yna-${kind}`, title, label: name, onclick: work }, icon(kind));
    this.send = round("send", "Send", "Send (Enter)", () => this.submit("send"));
    this.send.classList.add("yna-primary");
    this.steer = button("Steer", "Joins the conversation before the next request to the model (Enter)", () =>
      this.submit("send"),
    );
    this.queue = button("Queue", "Waits until the agent has finished (Alt+Enter)", () => this.submit("follow_up"));
    this.stop = round("stop", "Stop", "Stop (Esc)", () => this.halt());
    const picker = h("input", { type: "file", multiple: true, hidden: true, tabindex: "-1", label: "Files to attach" });
    picker.addEventListener("change", () => {
      this.attach(picker.files ?? []);
      picker.value = "";
    });
    const attach = round("clip", "Attach files", "Attach images or text files", () => picker.click());
    attach.classList.add("yna-quiet");
    this.files = new AttachmentBar(
      () => this.refresh(),
      (text) => this.complain(joined(this.problem.textContent ?? "", text).replaceAll("\n\n", "\n")),
      () => this.input.focus(),
    );
    this.waiting = new QueueView({
      takeBack: (key) => this.takeBack(key),
      steerNow: (key) => this.steerNow(key),
      onFocusLost: () => this.input.focus(),
    });
    this.menu = new CommandMenu(this.input, (command) => this.write(`/${command.name}${command.takes ? " " : ""}`));
    this.noticeLine = h(
      "div",
      { class: "yna-notice", hidden: true },
      this.notice,
      h("button", { class: "yna-ghost", label: "Dismiss", onclick: () => this.dismiss() }, icon("cross")),
    );
    this.box = h(
      "div",
      { class: "yna-box" },
      this.files.element,
      this.input,
      h("div", { class: "yna-bar" }, attach, picker, this.hint, this.queue, this.steer, this.stop, this.send),
    );
    this.element = h(
      "div",
      { class: "yna-composer" },
      this.noticeLine,
      this.waiting.element,
      this.problem,
      h("div", { class: "yna-writing" }, this.menu.element, this.box),
    );
    this.input.setAttribute("aria-describedby", this.hint.id);
    this.input.value = store.draft;
    this.input.addEventListener("input", () => this.onInput());
    this.input.addEventListener("keydown", (event) => this.onKey(event));
    this.input.addEventListener("keyup", () => this.refresh()); // the caret may have moved
    this.input.addEventListener("click", () => this.refresh());
    const take = (files: File[]): void => {
      this.attach(files);
      this.input.focus();
    };
    this.box.addEventListener("mousedown", (event) => {
      if (event.target instanceof Element && event.target.closest("button, input, textarea, a")) return;
      event.preventDefault();
      this.input.focus();
    });
    catchDrops(root, take);
    catchPastes(root, this.input, take);
    this.files.put(store.attached);
    this.showQueue();
  }

  /** The view is gone: its draft waits for the next one. */
  dispose(): void {
    this.disposed = true;
    clearTimeout(this.begins);
    this.store.draft = this.input.value;
    this.store.attached = this.files.draft;
  }

  /** Whether there is something to stop: from the moment of sending on. */
  get working(): boolean {
    return this.store.running || this.saying || this.begins !== undefined;
  }

  take(change: Change): void {
    switch (change.kind) {
      case "run":
        this.turns += 1;
        this.endWaiting();
        if (!this.store.running) this.stopping = false;
        else if (this.stopping) this.connection.tell({ type: "stop" });
        break;
      case "reset":
        if (this.store.running) this.endWaiting();
        else if (!this.saying) this.stopping = false;
        break;
      case "append":
        if (change.entry.role !== "error" || this.begins === undefined) return;
        this.endWaiting(); // no run begins
        break;
      case "notice":
        return this.tell(change.text);
      case "status":
      case "queue":
        break;
      default:
        return;
    }
    this.showQueue();
    this.refresh();
  }

  /** Put a text there for the person to send. */
  fill(text: string): void {
    this.remember(this.input.value);
    this.write(text);
  }

  halt(): void {
    if (!this.working) return;
    this.stopping = true;
    this.connection.tell({ type: "stop" });
    if (this.begins !== undefined) this.awaitRun();
    this.refresh();
  }

  private onInput(): void {
    this.remember(this.history.leave());
    this.complain("");
    this.refresh();
  }

  private onKey(event: KeyboardEvent): void {
    if (event.isComposing || event.keyCode === 229) return; // an input method has this key
    if (this.menu.onKey(event)) return this.refresh();
    const plain = !event.shiftKey && !event.altKey && !event.ctrlKey && !event.metaKey;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit(event.altKey && this.working ? "follow_up" : "send");
    } else if (event.key === "ArrowUp" && plain && (this.history.recalled || onFirstLine(this.input))) {
      this.recall(event, 1);
    } else if (event.key === "ArrowDown" && plain && this.history.recalled) {
      this.recall(event, -1);
    }
  }

  private attach(files: Iterable<File>): void {
    this.complain("");
    this.files.add(files);
  }

  private recall(event: KeyboardEvent, step: 1 | -1): void {
    if (this.pending) return;
    const text = this.history.move(step, this.texts(), this.input.value);
    if (text === null) return;
    event.preventDefault();
    this.input.value = text;
    this.refresh();
  }

  /** What the person said, the newest first. */
  private texts(): string[] {
    const entries = this.store.entries.filter((entry) => entry.role === "user");
    const texts = entries.map(({ blocks }) => {
      const content = blocks.filter(({ kind }) => kind === "text").map(({ text }): Content => ({ type: "text", text }));
      return takeApart(content).text;
    });
    return [...new Set([...texts, ...this.said].reverse())].filter((text) => text.trim() !== "").slice(0, REMEMBERED);
  }

  private remember(text: string): void {
    if (text.trim() !== "") this.said.push(text);
  }

  private submit(kind: Kind): void {
    if (this.pending) return;
    const text = this.input.value;
    const command = readCommand(text, this.store.commands);
    if (text.trim() === "" && this.files.files.length + this.files.reading.length === 0) return;
    if (this.connection.status === "disconnected") {
      return this.complain("The kernel is gone. Copy what you wrote, then run the cell again: its new view begins empty.");
    }
    this.complain("");
    this.tell("");
    this.stopping = false;
    this.saying = command === null;
    this.pending = (command ? this.run(text, command) : this.say(kind, text)).finally(() => {
      this.pending = null;
      this.saying = false;
      if (!this.store.running && this.begins === undefined) this.stopping = false;
      this.refresh();
    });
    this.refresh();
  }

  private async run(text: string, { command, words }: NonNullable<ReturnType<typeof readCommand>>): Promise<void> {
    if (await this.ask({ type: "command", name: command.name, text: words })) this.sent(text);
  }

  private async say(kind: Kind, text: string): Promise<void> {
    if (this.files.reading.length > 0) {
      await this.files.settled();
      // A stop takes the message back, and one whose file was refused is not what the person means.
      if (this.stopping || !this.problem.hidden) return;
    }
    const files = this.files.files;
    const problem = tooMuch(text, files);
    if (problem) return this.complain(problem);
    const attachments = files.map(({ name, mime_type, data }) => ({ name: name.slice(0, 300), mime_type, data }));
    const turns = this.turns;
    const accepted = await this.ask({ type: kind, text, ...(attachments.length > 0 && { attachments }) });
    if (!accepted) return;
    // A stop that was pressed meanwhile may have come before the message did.
    if (this.stopping) this.connection.tell({ type: "stop" });
    if (!this.store.running && turns === this.turns && !this.disposed) this.awaitRun();
    this.files.remove(files);
    this.sent(text);
    this.onSent();
  }

  /** Without a kernel a request would wait forever. */
  private request(message: Record<string, unknown>): Promise<Reply | null> {
    if (this.connection.status !== "disconnected") return this.connection.request(message);
    return Promise.reject({ message: "The kernel is gone.", hint: "Run the cell again." });
  }

  /** Ask Python; returns whether it said yes, and shows why not. */
  private ask(message: Record<string, unknown>): Promise<boolean> {
    return this.request(message).then(
      () => true,
      (refusal: Refusal) => {
        this.complain(`${refusal.message} ${refusal.hint}`.trim());
        return false;
      },
    );
  }

  private sent(text: string): void {
    this.remember(text);
    this.remember(this.history.leave());
    if (this.input.value === text) this.input.value = "";
    if (!this.disposed) return;
    if (this.store.draft === text) this.store.draft = ""; // the next view has begun with it
    this.store.attached = [];
  }

  private takeBack(key: string): Promise<void> {
    this.complain("");
    return this.request({ type: "take_back", key }).then(
      async (reply) => {
        await this.pending; // what is on its way leaves the field first
        if (reply?.type !== "taken_back") return;
        const { text, files } = takeApart(reply.content);
        this.files.put(files);
        this.write(joined(text, this.input.value), text.length);
      },
      (refusal: Refusal) => this.complain(`${refusal.message} ${refusal.hint}`.trim()),
    );
  }

  private async steerNow(key: string): Promise<void> {
    this.complain("");
    await this.ask({ type: "steer_now", key });
  }

  private write(text: string, caret = text.length): void {
    this.remember(this.history.leave());
    this.input.value = text;
    this.input.focus();
    this.input.setSelectionRange(caret, caret);
    this.refresh();
  }

  /** A run begins soon, unless something holds the message, as a stop does. */
  private awaitRun(): void {
    clearTimeout(this.begins);
    const give = (): void => {
      this.endWaiting();
      this.stopping = false;
      this.showQueue();
      this.refresh();
    };
    this.begins = setTimeout(give, this.stopping ? STOP_HOLDS : RUN_BEGINS);
  }

  private endWaiting(): void {
    clearTimeout(this.begins);
    this.begins = undefined;
  }

  private complain(text: string): void {
    this.problem.textContent = text;
    this.problem.hidden = text === "";
  }

  private dismiss(): void {
    this.tell("");
    this.input.focus();
  }

  private tell(text: string): void {
    setText(this.notice, text);
    this.noticeLine.hidden = text === "";
  }

  private refresh(): void {
    const { working } = this;
    const { value } = this.input;
    const pending = this.pending !== null;
    const reading = this.files.reading;
    this.input.readOnly = pending;
    this.menu.update(pending ? [] : this.store.commands);
    const command = readCommand(value, this.store.commands)?.command ?? null;
    const empty = value.trim() === "" && this.files.files.length + reading.length === 0;
    const focused = [this.send, this.steer, this.queue, this.stop].find((each) => each.matches(":focus"));
    this.send.hidden = working;
    this.stop.hidden = !working;
    this.steer.hidden = !working || command !== null;
    this.queue.hidden = !working || command !== null;
    this.send.disabled = this.steer.disabled = this.queue.disabled = empty || pending;
    if (focused && (focused.hidden || focused.disabled)) this.input.focus();
    this.element.classList.toggle("yna-pending", pending);
    this.input.placeholder = working ? "Steer the agent, or queue what comes next" : "Ask anything, / for commands";
    const { steering, follow_ups: followUps } = this.store.queue;
    const hint = whatEnterDoes({
      status: this.connection.status,
      running: working,
      stopping: this.stopping,
      pending,
      reading,
      command,
      option: this.menu.option,
      waits: !working && steering.length + followUps.length > 0,
    });
    setText(this.hint, hint);
    this.hint.title = hint;
    this.placeMenu();
    this.grow();
  }

  /** The list of commands lies over the transcript where there is room for it. */
  private placeMenu(): void {
    if (this.menu.element.hidden) return;
    const room = this.box.getBoundingClientRect().top - this.root.getBoundingClientRect().top - 12;
    this.menu.element.classList.toggle("yna-floating", room >= ROOM_FOR_MENU);
  }

  private grow(): void {
    if (CSS.supports("field-sizing", "content")) return;
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight, 220)}px`;
  }

  private showQueue(): void {
    this.waiting.show(this.store.queue, this.working);
  }
}
