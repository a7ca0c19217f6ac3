// What the panel of hooks is told; yiemagent_nb/widgets/panel_protocol.py lists the fields.

export type HookName = "prepare_context" | "format_messages" | "before_tool_call" | "after_tool_call" | "around_llm_call";

/** What a run does when the hook fails: go on without it, or end. */
export type OnError = "go_on" | "end";

export interface Installed {
  name: string;
  source: string;
  origin: string;
  editable: boolean;
  version: number | null;
  on_error: OnError | null;
}

export interface Version {
  version: number;
  time: number;
  lines: number;
  note: string;
  on_error: OnError | null;
}

export interface Failure {
  hook: HookName;
  version: number | null;
  line: number | null;
  message: string;
  hint: string;
  count: number;
  time: number;
  action: string;
}

export interface Hook {
  name: HookName;
  title: string;
  takes: string[];
  tells: string;
  template: string;
  several: boolean;
  installed: Installed[];
  draft: string | null;
  versions: Version[];
  failures: Failure[];
  waits: boolean;
  revertible: boolean;
}

export interface Ready {
  name: string;
  title: string;
  hook: HookName;
  tells: string;
  code: string;
  on_error: OnError | null;
}

export interface HooksState {
  hooks: Hook[];
  library: Ready[];
  recorded: Partial<Record<HookName, number>>;
  namespace: string;
}

export interface Problem {
  line: number | null;
  column: number | null;
  message: string;
  severity?: "error" | "warning";
}

export type Effect = "changed" | "blocked" | "unchanged" | "failed";

export interface TriedCall {
  title: string;
  detail: string;
  effect: Effect;
  before: string;
  after: string;
  line: number | null;
  message: string;
  seconds: number;
}

export interface Trial {
  calls: TriedCall[];
  problems: Problem[];
  printed: string;
  note: string;
}

/** An error in the others is the result of the call, which the model reads: it never ends a run. */
export const MAY_END: ReadonlySet<HookName> = new Set(["prepare_context", "format_messages", "around_llm_call"]);

/** What was applied from here last and is installed. */
export function applied(hook: Hook): Installed | null {
  return hook.installed.findLast(({ version }) => version !== null) ?? null;
}

/** What stands in the editor where there is no draft. */
export function startingText(hook: Hook): string {
  return applied(hook)?.source || hook.template;
}

/** Whether a text is neither what is installed nor what one begins with. */
export function isDraft(hook: Hook, text: string): boolean {
  const plain = text.trim();
  return plain !== hook.template.trim() && !hook.installed.some(({ source }) => source.trim() === plain);
}

/** A number and what it counts. */
export function counted(count: number, one: string, more = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : more}`;
}

/** A text without the marks that Python's docstrings put around code. */
export function plain(text: string): string {
  return text.replace(/``([^`]+)``/g, "$1");
}

/** What a trial runs on. */
export function recordedWords(hook: HookName, recorded: number): string {
  const tool = hook === "before_tool_call" || hook === "after_tool_call";
  if (recorded === 0) return tool ? "The model called no tool yet: Try runs it on an example." : "Nothing was sent yet: Try runs it on an example.";
  return tool ? `Try runs it on ${counted(recorded, "call")} of the model's, on none by hand.` : `Try runs it on ${counted(recorded, "recorded request")}.`;
}

/** When something was, in few characters. */
export function clock(time: number): string {
  const date = new Date(time);
  const today = date.toDateString() === new Date().toDateString();
  const hour = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  return today ? hour : `${date.toLocaleDateString()} ${hour}`;
}

/** What an apply gives: no version where there are problems. */
export interface Applied {
  version: number | null;
  problems: Problem[];
}
