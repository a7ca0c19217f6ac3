// The markup of the highlighter, read strictly: spans with its classes, and text.

/** Takes what the markup says, in its order. */
export interface SpanBuilder {
  open(classes: string): void;
  close(): void;
  text(text: string): void;
}

const PREFIX = "yna-hl-";
const PIECE = /<span class="([\w -]+)">|(<\/span>)|([^<>&]+)|&(amp|lt|gt|quot|#x27);/y;
const CHARACTERS: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#x27": "'" };

/** Read markup; returns whether it is nothing but spans and text. */
export function readSpans(markup: string, builder: SpanBuilder): boolean {
  let depth = 0;
  PIECE.lastIndex = 0;
  while (PIECE.lastIndex < markup.length) {
    const piece = PIECE.exec(markup);
    if (!piece) return false;
    const [, classes, end, text, entity] = piece;
    if (classes !== undefined) {
      depth += 1;
      builder.open(classes.split(" ").filter((name) => name.startsWith(PREFIX)).join(" "));
    } else if (end !== undefined) {
      depth -= 1;
      if (depth < 0) return false;
      builder.close();
    } else {
      builder.text(text ?? CHARACTERS[entity ?? ""] ?? "");
    }
  }
  return depth === 0;
}
