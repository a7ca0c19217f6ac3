// What a person writes, as data: commands, what came of a message that is taken back, what Enter will do.

import { readFile } from "./attached_file";
import type { Attachment, Content, SlashCommand } from "./protocol";

/** The limits of yiemagent_nb/widgets/protocol.py and attachments.py. */
export const MOST_FILES = 20;
export const MOST_ATTACHED = 8_000_000;
export const MOST_TEXT = 1_000_000;
/** Jupyter servers close a connection over a message of 10 MB. */
const MOST_BYTES = 9_500_000;

export const BESIDE = "Save it beside the notebook and name its path instead.";

/** A command that stands in a text, and the words behind it; null where the text is none. */
export function readCommand(text: string, commands: SlashCommand[]): { command: SlashCommand; words: string } | null {
  const found = /^\s*\/(\S+)(?:\s+([\s\S]*))?$/.exec(text);
  const command = found && commands.find((each) => each.name === found[1]);
  return command ? { command, words: (found[2] ?? "").trim() } : null;
}

/** The commands that a text may become while its first word is written; null where it is no such text. */
export function offered(text: string, caret: number, commands: SlashCommand[]): SlashCommand[] | null {
  const found = /^\/(\S*)$/.exec(text.slice(0, caret));
  if (!found || /^\S/.test(text.slice(caret))) return null;
  const start = (found[1] ?? "").toLowerCase();
  const names = commands.map((command) => ({ command, at: command.name.toLowerCase().indexOf(start) }));
  const fit = [...names.filter(({ at }) => at === 0), ...names.filter(({ at }) => at > 0)];
  return fit.length > 0 ? fit.map(({ command }) => command) : null;
}

/** A message in the parts that a person put together: the typed text, the files, the images. */
export function takeApart(content: Content[]): { text: string; files: Attachment[] } {
  const texts: string[] = [];
  const files: Attachment[] = [];
  for (const block of content) {
    if (block.type === "image") {
      const kind = block.mime_type.slice("image/".length);
      files.push({ name: `image.${kind === "jpeg" ? "jpg" : kind}`, mime_type: block.mime_type, data: block.data });
      continue;
    }
    const file = readFile(block.text);
    if (file) files.push({ name: file.name, mime_type: "text/plain", data: encode(file.text) });
    else texts.push(block.text);
  }
  return { text: texts.join("\n\n"), files };
}

/** Text as UTF-8 in base64. */
export function encode(text: string): string {
  return toBase64(new TextEncoder().encode(text));
}

export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  const step = 0x8000; // a call takes only so many arguments
  for (let at = 0; at < bytes.length; at += step) binary += String.fromCharCode(...bytes.subarray(at, at + step));
  return btoa(binary);
}

/** One text above another, where both are something. */
export function joined(...texts: string[]): string {
  return texts.filter((text) => text.trim() !== "").join("\n\n");
}

/** Why a message cannot be sent, and what to do; empty where it can. */
export function tooMuch(text: string, files: { data: string }[]): string {
  if (text.length > MOST_TEXT) {
    return `The text is longer than ${MOST_TEXT.toLocaleString("en")} characters. Save it as a file beside the notebook and name its path instead.`;
  }
  if (files.length > MOST_FILES) return `At most ${MOST_FILES} files go with one message. Take some away, or send them in turns.`;
  const attached = files.reduce((sum, { data }) => sum + data.length, 0);
  const written = new TextEncoder().encode(JSON.stringify(text)).length;
  if (attached > MOST_ATTACHED || attached + written > MOST_BYTES) {
    return "Together this is too large for one message (about 6 MB). Take a file away, or send them in turns.";
  }
  return "";
}

/** What a person said, the newest last, and where one is in it. */
export class History {
  private at = -1;
  private draft = "";

  /** Whether a text of the history is shown. */
  get recalled(): boolean {
    return this.at >= 0;
  }

  /** Go back by one (`step` 1) or forth (-1); returns what to show, or null where there is nothing. */
  move(step: 1 | -1, texts: string[], current: string): string | null {
    const at = this.at + step;
    if (at < -1 || at >= texts.length) return null;
    if (this.at < 0) this.draft = current;
    this.at = at;
    return at < 0 ? this.draft : (texts[at] ?? null);
  }

  /** What is shown was changed, and is the draft from now on; returns the one before, which must not be lost. */
  leave(): string {
    const draft = this.recalled ? this.draft : "";
    this.at = -1;
    this.draft = "";
    return draft;
  }
}

export interface Situation {
  status: "connecting" | "ready" | "busy" | "disconnected";
  running: boolean;
  /** Stop was pressed. */
  stopping: boolean;
  /** What is on its way to Python. */
  pending: boolean;
  /** Names of files that are being read. */
  reading: string[];
  /** The command that the text is. */
  command: SlashCommand | null;
  /** The command that the menu has chosen. */
  option: SlashCommand | null;
  /** Whether messages wait. */
  waits: boolean;
}

/** What Enter will do now. */
export function whatEnterDoes(now: Situation): string {
  const free = now.status === "busy" ? " when the kernel is free" : "";
  const what = now.reading.length > 1 ? `${now.reading.length} files` : now.reading[0];
  const read = what === undefined ? "" : ` when ${what} ${now.reading.length > 1 ? "are" : "is"} read`;
  if (now.status === "disconnected") return "Nothing can be sent: run the cell again";
  if (now.stopping) return "Stopping…";
  if (now.pending) return read ? `Sent${read}` : now.status === "busy" ? "Sent as soon as the kernel is free" : "Sending…";
  if (now.option) return `Enter completes /${now.option.name} · Esc closes the list`;
  if (now.command) return `Enter runs /${now.command.name}${free}: ${now.command.description}`;
  if (now.running) return `Enter steers${read || free} · Alt+Enter queues · Esc stops`;
  if (read || free) return `Enter sends${read || free}`;
  if (now.waits) return "Enter sends, and what waits goes on with it";
  return "Enter sends · Shift+Enter breaks the line";
}
