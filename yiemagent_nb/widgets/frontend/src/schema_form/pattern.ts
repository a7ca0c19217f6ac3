// Patterns of a schema. They come from whoever wrote the tool: one that could take for ever is not tried here.

const LONGEST_PATTERN = 500;
const LONGEST_TEXT = 10_000;
/** A text of this length at most is tried on a pattern that may go through it several times over. */
const SHORT_TEXT = 200;
const MOST_REPEATS = 4;

const known = new Map<string, RegExp | null>();

/** Whether a text fits a pattern; null where that is not told here. */
export function fitsPattern(pattern: string, text: string): boolean | null {
  let expression = known.get(pattern);
  if (expression === undefined) {
    expression = compile(pattern);
    known.set(pattern, expression);
  }
  if (!expression || text.length > (repeats(pattern) > 1 ? SHORT_TEXT : LONGEST_TEXT)) return null;
  return expression.test(text);
}

function compile(pattern: string): RegExp | null {
  if (pattern.length > LONGEST_PATTERN || !isTame(pattern)) return null;
  try {
    return new RegExp(pattern, "u");
  } catch {
    return null; // another dialect's pattern: the tool itself will tell
  }
}

/** Without what its brackets and escapes stand for. */
function skeleton(pattern: string): string {
  return pattern.replace(/\\[1-9]/g, "\u0001").replace(/\\./gsu, "a").replace(/\[[^\]]*\]/g, "a");
}

function repeats(pattern: string): number {
  return skeleton(pattern).match(/[*+]|\{\d+,\d*\}/g)?.length ?? 0;
}

/** No reference back, and no repeated group in which something repeats or is chosen: time grows slowly with the text. */
function isTame(pattern: string): boolean {
  let rest = skeleton(pattern);
  if (rest.includes("\u0001") || rest.includes("\\k") || repeats(pattern) > MOST_REPEATS) return false;
  for (;;) {
    const inner = /\(([^()]*)\)([*+]|\{\d+(?:,\d*)?\})?/.exec(rest);
    if (!inner) return !/[()]/.test(rest);
    const [group, body = "", repeat] = inner;
    const several = /[*+|?]|\{\d+,?\d*\}/.test(body.replace(/^\?(?::|<?[=!]|<\w+>)/, ""));
    if (repeat && several) return false;
    rest = rest.replace(group, several ? "a*" : "a");
  }
}
