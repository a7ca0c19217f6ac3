// Texts and how long they are, without a page.

/** How long something took, in words. */
export function seconds(value: number): string {
  if (value < 0.0095) return `${Math.max(1, Math.round(value * 1000))} ms`;
  if (value < 1) return `${Math.round(value * 100) * 10} ms`;
  if (value < 60) return `${value < 10 ? value.toFixed(1) : Math.round(value)} s`;
  return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

/** A number of bytes, in words. */
export function bytes(count: number): string {
  if (count < 1_000) return `${count} B`;
  return count < 1_000_000 ? `${(count / 1_000).toFixed(1)} kB` : `${(count / 1_000_000).toFixed(1)} MB`;
}

/** The length of a text in code points, as Python counts it. */
export function codePoints(text: string): number {
  let count = text.length;
  for (let index = 0; index < text.length - 1; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit >= 0xd800 && unit < 0xdc00) {
      const next = text.charCodeAt(index + 1);
      if (next >= 0xdc00 && next < 0xe000) {
        count -= 1;
        index += 1;
      }
    }
  }
  return count;
}
