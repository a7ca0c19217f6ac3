// What a call does, in words: "Reading file", "Read file", "Could not read file".

import type { Standing } from "./outcome";

/** Verbs that names of tools begin with; `+` doubles the last letter, and irregular past tenses stand behind a colon. */
const VERBS =
  "add analyze append apply ask book browse build:built calculate call cancel change check clear click close compare " +
  "compile compute connect convert copy count create delete describe download draw:drew edit estimate evaluate execute " +
  "explain export extract fetch filter find:found fit+ fix format+ generate get+:got import insert inspect install list " +
  "load look make:made measure merge move multiply navigate open parse plan+ play plot+ predict print publish query " +
  "read:read remove rename render replace request reset+:reset resolve restart retrieve roll run+:ran save schedule " +
  "search select send:sent set+:set show solve sort split+:split start stop+ store submit+ subtract sum+ summarize " +
  "take:took tell:told test think:thought train translate try type update upload use validate verify view visit wait " +
  "watch write:wrote";

interface Tenses {
  present: string;
  past: string;
}

/** The present participle and the past tense of a verb, as English forms them. */
function tensesOf(verb: string, doubled: string, irregular: string | undefined): Tenses {
  const stem = doubled ? verb + verb.slice(-1) : verb;
  const past = stem.endsWith("e") ? `${stem}d` : /[^aeo]y$/.test(stem) ? `${stem.slice(0, -1)}ied` : `${stem}ed`;
  return { present: `${stem.replace(/e$/, "")}ing`, past: irregular ?? past };
}

const TENSES = new Map(
  VERBS.split(" ").map((entry) => {
    const [, verb = "", doubled = "", irregular] = /^([a-z]+)(\+?)(?::([a-z]+))?$/.exec(entry) ?? [];
    return [verb, tensesOf(verb, doubled, irregular)];
  }),
);

/** A short sentence in two parts: the second is what is done, or whose name. */
export interface Phrase {
  verb: string;
  name: string;
}

/** What a call does or did, made of its tool's label. A label that begins with no known verb is only named. */
export function phrase(label: string, standing: Standing): Phrase {
  const [first = "", rest = ""] = /^([A-Za-z]+)(?:\s+(\S[^]*))?$/.exec(label.trim())?.slice(1) ?? [];
  const verb = first.toLowerCase();
  const tenses = TENSES.get(verb);
  const doing = tenses?.present ?? "running";
  const done = tenses?.past ?? "ran";
  const plain = tenses ? verb : "run";
  const name = tenses ? rest : inSentence(label);
  switch (standing) {
    case "writing":
      return { verb: "Calling", name: inSentence(label) };
    case "queued":
      return { verb: `Will ${plain}`, name };
    case "waiting":
      return { verb: `Wants to ${plain}`, name };
    case "running":
      return { verb: upper(doing), name };
    case "done":
      return { verb: upper(done), name };
    case "failed":
      return { verb: `Could not ${plain}`, name };
    case "stopped":
      return { verb: `Stopped ${doing}`, name };
    case "denied":
    case "unbegun":
      return { verb: `Did not ${plain}`, name };
  }
}

/** A label within a sentence: it begins with a small letter, unless it has capitals of its own. */
export function inSentence(label: string): string {
  return /^.\P{Lu}*$/su.test(label) ? label.charAt(0).toLowerCase() + label.slice(1) : label;
}

function upper(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
