// Splits markdown that grows at its end into blocks that are finished and one that is not.

const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/;
const MATH_OPEN = /^ {0,3}(\$\$|\\\[)/;

export interface OpenFence {
  language: string;
  code: string;
}

/**
 * A block ends at a blank line outside of fenced code and displayed mathematics, when what follows
 * begins at the margin: an indented line still belongs to a list.
 */
export class BlockSplitter {
  /** What is not finished. */
  open = "";
  private scanned = 0;
  private blankAt = -1;
  private fence: { mark: string; start: number } | null = null;
  private math: string | null = null;

  /** Add text; returns the blocks that it finished. */
  push(text: string): string[] {
    this.open += text;
    const closed: string[] = [];
    for (;;) {
      const end = this.open.indexOf("\n", this.scanned);
      const complete = end >= 0;
      const line = complete ? this.open.slice(this.scanned, end) : this.open.slice(this.scanned);
      if (this.blankAt >= 0 && line.trim() !== "" && !/^\s/.test(line)) {
        closed.push(this.open.slice(0, this.blankAt));
        this.open = this.open.slice(this.scanned);
        this.scanned = 0;
        this.blankAt = -1;
        continue;
      }
      if (!complete) return closed;
      this.line(line);
      this.scanned = end + 1;
    }
  }

  /** The fenced code that is open now and is all of the open block, if so. */
  openFence(): OpenFence | null {
    if (!this.fence || this.fence.start !== 0) return null;
    const end = this.open.indexOf("\n");
    if (end < 0) return null;
    const language = this.open.slice(0, end).trim().slice(this.fence.mark.length).trim();
    return { language, code: this.open.slice(end + 1) };
  }

  private line(line: string): void {
    if (this.fence) {
      const mark = this.fence.mark;
      const text = line.trim();
      if (/^ {0,3}\S/.test(line) && text.startsWith(mark) && text.replaceAll(mark[0] ?? "`", "") === "") {
        this.fence = null;
      }
      return;
    }
    if (this.math !== null) {
      if (line.includes(this.math)) this.math = null;
      return;
    }
    if (line.trim() === "") {
      if (this.blankAt < 0 && this.scanned > 0) this.blankAt = this.scanned;
      return;
    }
    this.blankAt = -1;
    const fence = FENCE.exec(line);
    if (fence?.[1]) {
      this.fence = { mark: fence[1], start: this.scanned };
      return;
    }
    const math = MATH_OPEN.exec(line);
    if (math?.[1]) {
      const close = math[1] === "$$" ? "$$" : "\\]";
      if (!line.slice(math[0].length).includes(close)) this.math = close;
    }
  }
}

/** Whether blocks of a text hang together so that only the whole of it is rendered right. */
export function needsWhole(text: string): boolean {
  return /^ {0,3}\[[^\]\n]+\]:/m.test(text) || /^ {0,3}<[a-z]/im.test(text);
}
