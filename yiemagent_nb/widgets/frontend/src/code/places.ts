// Places in a text, as Python counts them (code points) and as a page does (UTF-16 units).

/** The index in UTF-16 units of a character of a text. */
export function indexOf(text: string, character: number): number {
  let index = 0;
  for (let left = character; left > 0 && index < text.length; left -= 1) {
    index += (text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1;
  }
  return index;
}
