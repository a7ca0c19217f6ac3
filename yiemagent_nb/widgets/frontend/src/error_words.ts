// The text of an error, taken apart for people, as yiemagent_nb/widgets/error_text.py does it.

import type { ErrorText } from "./protocol";

const CODE = /\s*\[([A-Z][A-Z_]*)\]\s*$/;
const FIRST_SENTENCE = /^((?:"[^"]*"|[^".!?]|[.!?](?!\s))*[.!?])\s+(\S[^]*)$/;
const LONGEST = 20_000;

/** Message, hint and code of a text such as `message hint [CODE]`; all is message where it has no code. */
export function errorWords(text: string): ErrorText {
  const code = CODE.exec(text)?.[1] ?? "";
  const whole = text.replace(CODE, "").trim();
  const split = code && whole.length <= LONGEST ? FIRST_SENTENCE.exec(whole) : null;
  return { message: split?.[1] ?? whole, hint: split?.[2] ?? "", code };
}
