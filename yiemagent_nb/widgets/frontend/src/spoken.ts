// Markdown as a screen reader should say it: without marks, code by its size.

const LONGEST = 1_000;

/** A finished block of markdown in words. */
export function spoken(markdown: string): string {
  const fence = /^ {0,3}(`{3,}|~{3,})[^\S\n]*([\w+#-]*)[^\n]*\n?([\s\S]*?)(?:\n {0,3}\1[`~]*\s*)?$/.exec(markdown.trimEnd());
  if (fence) {
    const lines = (fence[3] ?? "").split("\n").length;
    return `Code${fence[2] ? `, ${fence[2]}` : ""}, ${lines === 1 ? "1 line" : `${lines} lines`}.`;
  }
  const text = markdown
    .slice(0, 4 * LONGEST)
    .replace(/!\[([^\]]*)\]\([^)]*\)/g, "Image: $1")
    .replace(/\[([^\]]+)\]\([^)]*\)/g, "$1")
    .replace(/^ {0,3}(?:#{1,6}|>)[^\S\n]+/gm, "")
    .replace(/^(?=[^\n]*\|)(?=[^\n]*-)[ \t|:-]+$/gm, "")
    .replace(/^[^\S\n]*\||\|[^\S\n]*$/gm, "")
    .replace(/[^\S\n]*\|[^\S\n]*/g, ", ")
    .replace(/(\*\*|__|~~|`)(?=\S)([\s\S]*?\S)\1/g, "$2")
    .replace(/(?<![\w*])\*(?=\S)([^*\n]*\S)\*(?![\w*])/g, "$1")
    .replace(/\s+/g, " ")
    .trim();
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
