// The messages of a request, each as a section of its own, from the JSON that was sent.

import type { Section } from "./sections";

const ROLES: Record<string, string> = {
  system: "System prompt",
  developer: "System prompt",
  user: "User",
  assistant: "Assistant",
  tool: "Result of a tool",
};

type Fields = Record<string, unknown>;

/** A section for each message; null where the text is not a list of messages. */
export function messageSections({ title, language, text }: Section): Section[] | null {
  if (language !== "json" || !/^messages\b/i.test(title)) return null;
  const messages = parse(text);
  if (!messages) return null;
  const prompt = messages[0]?.["role"] === "system" ? 0 : 1;
  return messages.flatMap((message, at) => sectionsOf(message, at + prompt));
}

/** A list of messages, as far as it is whole: a long one is cut. */
function parse(text: string): Fields[] | null {
  for (const whole of [text, `${text.slice(0, Math.max(0, text.lastIndexOf("\n  },")))}\n  }\n]`]) {
    try {
      const value: unknown = JSON.parse(whole);
      const fits = Array.isArray(value) && value.every((each) => typeof each?.role === "string");
      return fits ? (value as Fields[]) : null;
    } catch {
      continue;
    }
  }
  return null;
}

/** `number` is 0 for the system prompt at the beginning, which is not counted. */
function sectionsOf(message: Fields, number: number): Section[] {
  const { role, content, tool_calls: calls, tool_call_id: id, ...rest } = message;
  const name = ROLES[String(role)] ?? String(role);
  const title = `${number === 0 ? "" : `${number}. `}${name}${typeof id === "string" ? ` ${id}` : ""}`;
  const sections: Section[] = [];
  const add = (what: string, language: string, text: string): void => {
    sections.push({ title: what ? `${title}: ${what}` : title, language, text, left_out: 0 });
  };
  // What a tool gave is shown as it is: it was not written for people.
  if (typeof content === "string" && content !== "") add("", role === "tool" ? "text" : "markdown", content);
  else if (Array.isArray(content)) {
    for (const part of content as Fields[]) {
      if (typeof part?.["text"] === "string") add("", "markdown", part["text"]);
      else add(String(part?.["type"] ?? "part"), "json", JSON.stringify(part, null, 2));
    }
  } else if (typeof content === "object" && content !== null) add("", "json", JSON.stringify(content, null, 2));
  if (Array.isArray(calls)) {
    for (const call of calls as Fields[]) {
      const called = (call?.["function"] ?? {}) as Fields;
      const text = called["arguments"];
      add(`calls ${String(called["name"] ?? "a tool")}`, "json", typeof text === "string" ? text : JSON.stringify(text ?? call, null, 2));
    }
  }
  if (Object.keys(rest).length > 0) add("further fields", "json", JSON.stringify(rest, null, 2));
  if (sections.length === 0) add("", "", "");
  return sections;
}
