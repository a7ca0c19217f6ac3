// A draft that stands here, in the kernel and perhaps in other views: none overwrites what is typed in another.

export type Taken = "known" | "adopted" | "conflict";

export class Draft {
  /** What another view wrote while something else was written here: a person chooses. */
  theirs: string | null = null;
  private base: string;
  private sent: string[] = [];

  /** `text` is what the kernel has, and what stands in the editor. */
  constructor(public text: string) {
    this.base = text;
  }

  /** What is to be told to the kernel, if anything; nothing is before a conflict is settled. */
  get due(): string | null {
    const last = this.sent.at(-1) ?? this.base;
    return this.theirs === null && this.text !== last ? this.text : null;
  }

  /** A text is on its way to the kernel. */
  send(text: string): void {
    this.sent.push(text);
  }

  /** The kernel has a text that was sent, or does not. */
  settle(text: string, kept: boolean): void {
    this.sent = this.sent.filter((each) => each !== text);
    if (kept && this.theirs === null) this.base = text;
  }

  /** What the kernel has now. `typing` says that the editor has the keyboard. */
  take(text: string, typing: boolean): Taken {
    if (text === this.text) {
      this.base = text;
      this.theirs = null;
      return "known";
    }
    if (text === this.base || this.sent.includes(text)) return "known";
    const clean = this.text === this.base && !typing;
    this.base = text;
    if (!clean) {
      this.theirs = text;
      return "conflict";
    }
    this.text = text;
    return "adopted";
  }

  /** The kernel has no draft but begins with this text; what stands here stays, and is due. */
  rebase(text: string): void {
    this.base = text;
    this.sent = [];
    this.theirs = null;
  }

  /** Settle a conflict: with what stands here, or with what came. */
  choose(mine: boolean): void {
    if (!mine && this.theirs !== null) this.text = this.theirs;
    this.theirs = null;
  }
}
