// What Python tells of servers, tools and calls by hand; yiemagent_nb/widgets/panel_protocol.py lists it by field.

import type { ApprovalRequest, Content, Question, ResultDetails, ResultPart } from "../protocol";

export type ServerAction = "connect" | "reconnect" | "disconnect" | "remove" | "refresh" | "check";

export interface Server {
  name: string;
  kind: string;
  target: string;
  state: string;
  error: string;
  enabled: boolean;
  /** Seconds. */
  latency: number | null;
  restarts: number;
  protocol: string;
  title: string;
  version: string;
  instructions: string;
  capabilities: string[];
  tools: number;
  problems: string[];
  stderr: string[];
}

export interface Tool {
  name: string;
  label: string;
  source: string;
  summary: string;
  hints: string[];
  enabled: boolean;
  warnings: number;
  /** How many matters of style. */
  advice: number;
  takes: number;
}

export interface Fact {
  label: string;
  text: string;
}

export interface ToolDetails {
  name: string;
  label: string;
  original: string;
  source: string;
  description: string;
  input_schema: string;
  output_schema: string | null;
  /** The input schema; null where it is too large for a form. */
  schema: Schema | null;
  /** The source text of a Python tool, or empty. */
  definition: string;
  facts: Fact[];
  hints: string[];
  warnings: string[];
  /** Matters of style, such as parameters without a description. */
  advice: string[];
  read_only: boolean;
}

export type CallState = "running" | "waiting" | "done" | "failed" | "cancelled";

export interface HandCall {
  call: string;
  name: string;
  arguments_text: string;
  /** Whether there is more of them. */
  arguments_cut: boolean;
  state: CallState;
  /** Milliseconds since 1970. */
  started: number;
  /** Seconds. */
  duration: number | null;
  /** Seconds before the tool itself began, as for a person's word. */
  waited: number;
  /** From 0 to 1. */
  progress: number | null;
  progress_text: string;
  summary: string;
  hooks: boolean;
  /** What waits for a person's word. */
  approval: ApprovalRequest | null;
}

export interface CallDetails extends HandCall {
  content: Content[];
  details: ResultDetails | null;
  raw: string;
  /** Where a structured result does not fit the output schema. */
  problems: string[];
  fits: boolean | null;
}

export type Direction = "out" | "in" | "stderr" | "rubbish" | "state";

export interface LogEntry {
  number: number;
  /** Milliseconds since 1970. */
  time: number;
  direction: Direction;
  method: string;
  id: string | number | null;
  summary: string;
  /** Bytes. */
  size: number;
  seconds: number | null;
  is_error: boolean;
  /** Of a server's log message; else empty. */
  level: string;
}

export interface Resource {
  uri: string;
  name: string;
  title: string;
  description: string;
  mime_type: string;
  size: number | null;
  watched: boolean;
}

export interface Template {
  uri_template: string;
  name: string;
  title: string;
  description: string;
  mime_type: string;
}

export interface Prompt {
  name: string;
  title: string;
  description: string;
  arguments: { name: string; description: string; required: boolean }[];
}

export interface PromptMessage {
  role: string;
  content: Content[];
  details: ResultDetails | null;
}

export interface ResourceContents {
  contents: ResultPart[];
}

/** A JSON Schema; it comes from a server, so nothing in it is sure. */
export type Schema = { [keyword: string]: unknown } | boolean;

export interface InspectorState {
  servers: Server[];
  tools: Tool[];
  calls: HandCall[];
  problems: string[];
  approvals: ApprovalRequest[];
  questions: Question[];
}
