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

/** A number in few characters: 950, 12.3k, 128k, 1M. */
export function shortNumber(value: number): string {
  if (value < 1_000) return String(value);
  const [size, unit] = value < 999_500 ? [value / 1_000, "k"] : [value / 1_000_000, "M"];
  return `${size < 99.95 ? size.toFixed(1).replace(/\.0$/, "") : Math.round(size)}${unit}`;
}

/** What to show of a model's name: of a file's path, which llama.cpp takes for one, the file's name. */
export function modelName(name: string): string {
  return name.startsWith("/") || name.endsWith(".gguf") ? (name.split(/[/\\]/).at(-1) ?? name) : name;
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

// Controls, what changes the direction of a text, and what takes no place: all that can make a name look like another.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;
const IN_EMOJI = /\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]*(?:\u200d\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]*)*/gu;

/** A name in which nothing hides: characters that cannot be seen stand as escapes, such as `\u202e`. */
export function visible(name: string): string {
  if (!name || name.search(UNSEEN) < 0) return name;
  const escaped = (text: string): string => text.replace(UNSEEN, escape);
  let shown = "";
  let end = 0;
  for (const emoji of name.matchAll(IN_EMOJI)) {
    shown += escaped(name.slice(end, emoji.index)) + emoji[0];
    end = emoji.index + emoji[0].length;
  }
  return shown + escaped(name.slice(end));
}

function escape(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
}
