// Characters that cannot be seen, or that change how others are shown: a person must not approve what they hide.

/** Controls, marks of direction, characters without a width, tags; joiners of scripts and emoji are left alone. */
const INVISIBLE =
  /(?![\t\n\r])\p{Cc}|[\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\u{e0000}-\u{e007f}]/gu;

const WRITTEN = /\\u(?:00[01][\da-f]|007f|00[89][\da-f])/i;

/** Whether a JSON text holds such characters, themselves or by their numbers. */
export function hasInvisible(json: string): boolean {
  return json.search(INVISIBLE) >= 0 || WRITTEN.test(json);
}

/** A JSON text with such characters by their numbers; it says the same. */
export function visibleJson(json: string): string {
  return json.replace(INVISIBLE, (char) =>
    [...Array(char.length).keys()].map((at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
  );
}
