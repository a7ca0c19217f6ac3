// JSON with a line for each part. It works on the text, so numbers of any size stay as they are written.

const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g;

/** The same JSON, indented by two spaces; what is no JSON stays as it is. */
export function indented(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  const tokens = text.match(TOKEN) ?? [];
  let shown = "";
  let depth = 0;
  const line = (): string => `\n${"  ".repeat(depth)}`;
  for (const [at, token] of tokens.entries()) {
    const next = tokens[at + 1] ?? "";
    if (token === "{" || token === "[") {
      depth += 1;
      shown += "}]".includes(next) && next ? token : token + line();
    } else if (token === "}" || token === "]") {
      depth -= 1;
      shown += "{[".includes(tokens[at - 1] ?? " ") ? token : line() + token;
    } else if (token === ",") shown += `,${line()}`;
    else shown += token === ":" ? ": " : token;
  }
  return shown;
}
