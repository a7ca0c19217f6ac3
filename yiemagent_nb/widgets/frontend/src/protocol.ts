// The messages between the page and Python; yiemagent_nb/widgets/protocol.py describes them.

import type { PanelEvent, SidePanelName } from "./panel";

export interface TextBlock {
  type: "text";
  text: string;
  length?: number;
  left_out?: number;
}

export interface ImageBlock {
  type: "image";
  data: string;
  mime_type: string;
}

export interface ReasoningBlock {
  type: "reasoning";
  text: string;
  length?: number;
  seconds?: number | null;
}

export interface CallBlock {
  type: "function";
  id: string;
  name: string;
  arguments: Record<string, unknown>;
  raw_arguments: string | null;
}

export type Content = TextBlock | ImageBlock;
export type AssistantBlock = Content | ReasoningBlock | CallBlock;

/** What an answer took: one line, and all of it in several. */
export interface Took {
  line: string;
  details: string;
}

export interface ErrorText {
  message: string;
  hint: string;
  code: string;
}

/** Where the conversation branches: which of how many branches this is. */
export interface Branch {
  position: number;
  count: number;
}

export interface UserMessage {
  role: "user";
  content: Content[];
  branch?: Branch;
}

/** What a result has beside text and images; yiemagent_nb/widgets/tool_details.py describes the parts. */
export interface ResultDetails {
  server: string;
  parts: ResultPart[];
  /** What is not there, in words. */
  left_out: string;
}

export interface WordsPart {
  type: "words";
  text: string;
  cut: boolean;
}

export interface PicturePart {
  type: "picture";
  mime_type: string;
  size: number;
  /** Empty where it cannot be shown. */
  data: string;
}

export interface AudioPart {
  type: "audio";
  mime_type: string;
  size: number;
  uri: string;
  /** By which it is asked for; empty where it cannot be played. */
  key: string;
}

export interface LinkPart {
  type: "link";
  uri: string;
  name: string;
  description: string;
  mime_type: string;
  size: number | null;
}

export interface ResourcePart {
  type: "resource";
  uri: string;
  mime_type: string;
  text: string | null;
  size: number;
  cut: boolean;
}

export interface StructurePart {
  type: "structure";
  title: string;
  text: string;
  cut: boolean;
}

export type ResultPart = WordsPart | PicturePart | AudioPart | LinkPart | ResourcePart | StructurePart;

/** What a running call tells of itself; `progress` is from 0 to 1. */
export interface Progress {
  content: Content[];
  progress: number | null;
}

export interface AssistantMessage {
  role: "assistant";
  content: AssistantBlock[];
  stop_reason: string;
  error_message?: string | null;
  took: Took | null;
  /** Since its run began. */
  seconds?: number | null;
  error: ErrorText | null;
  branch?: Branch;
}

export interface ToolResultMessage {
  role: "toolResult";
  tool_call_id: string;
  tool_name: string;
  is_error: boolean;
  duration?: number | null;
  content?: Content[];
  details?: ResultDetails;
}

export interface CustomMessage {
  role: "custom";
  kind: string;
  data: unknown;
}

export type Message = UserMessage | AssistantMessage | ToolResultMessage | CustomMessage;

export interface ApprovalRequest {
  request_id: string;
  call_id: string;
  name: string;
  label: string;
  args: Record<string, unknown>;
  /** Stands for arguments that are too long to be edited here. */
  args_text: string | null;
  source: string;
  description: string;
  /** What its source says of it, in words such as "destructive". */
  hints: string[];
  /** Whether a person made the call, beside the conversation. */
  by_hand?: boolean;
}

export interface QuestionField {
  name: string;
  kind: "text" | "number" | "integer" | "boolean" | "choice" | "choices" | "json";
  title: string;
  description: string;
  /** What fits, in words. */
  hint: string;
  required: boolean;
  nullable: boolean;
  format: "" | "email" | "uri" | "date" | "date-time";
  default: unknown;
  choices: { value: unknown; label: string }[];
}

/** A server's question: fields, or an address to visit, or neither where it is too large. */
export interface Question {
  request_id: string;
  source: string;
  message: string;
  fields: QuestionField[] | null;
  url: string;
}

export type QuestionAction = "accept" | "decline" | "cancel";

export type ApprovalChoice = "allow_once" | "allow_session" | "allow_edited" | "deny";

/** A message that waits; it is named by its key. */
export interface Queued {
  key: string;
  text: string;
  /** How many images it has. */
  images: number;
  /** The names of its files. */
  files: string[];
}

export interface Queue {
  steering: Queued[];
  follow_ups: Queued[];
}

/** A file that a person adds, in base64. */
export interface Attachment {
  name: string;
  mime_type: string;
  data: string;
}

export interface SlashCommand {
  name: string;
  description: string;
  /** What the words behind it are; empty where it takes none. */
  takes: string;
}

export interface Usage {
  /** Tokens of the newest request and its answer. */
  context: number | null;
  /** How many tokens the model takes. */
  window: number | null;
  /** What was spent, in words. */
  spent: string;
}

export interface Health {
  state: "unknown" | "checking" | "ok" | "bad";
  message: string;
  hint: string;
}

/** What a person may start from when they add a backend. */
export interface Preset {
  key: string;
  label: string;
  base_url: string;
  key_env: string;
}

export interface ToolInfo {
  name: string;
  label: string;
  source: string;
}

export interface Tools {
  tools: ToolInfo[];
  suggestions: string[];
}

export interface Backend {
  label: string;
  choices: { key: string; label: string }[];
  key: string;
  note: string;
  thinking: Thinking;
  model: string;
  models: string[];
  /** How many tokens the model takes. */
  window: number | null;
  health: Health;
  /** Sampling parameters by name; null where the server decides. */
  options: Record<string, number | null>;
  options_note: string;
  presets: Preset[];
}

export interface Thinking {
  level: string;
  levels: string[];
  /** Why no other level can be picked; empty where it can. */
  note: string;
}

export interface LiveBlock {
  block: number;
  kind: DeltaKind;
  text: string;
  call_id: string | null;
  name: string | null;
  seconds: number;
}

export interface ChatSnapshot {
  messages: Message[];
  start: number;
  total: number;
  live: { id: string | null; blocks: LiveBlock[] } | null;
  calls: {
    call_id: string;
    name: string;
    args: Record<string, unknown>;
    elapsed: number;
    content: Content[] | null;
    progress: number | null;
  }[];
  ended: ToolEnd[];
  running: boolean;
  queue: Queue;
  usage: Usage;
  commands: SlashCommand[];
  approvals: ApprovalRequest[];
  questions: Question[];
}

export interface ToolEnd {
  call_id: string;
  is_error: boolean;
  duration: number;
  content: Content[];
  details?: ResultDetails;
}

export interface Snapshot {
  chat?: ChatSnapshot;
  tools: Tools;
  backend: Backend;
  /** What messages that act must bring back. */
  session: string;
  /** The states of the panels beside the chat; null until one was opened. */
  inspector?: unknown;
  hooks?: unknown;
  trace?: unknown;
}

export type DeltaKind = "text" | "reasoning" | "tool_call";

export interface Refusal {
  ticket: string;
  code: string;
  message: string;
  hint: string;
}

export type PageEvent =
  | { type: "run_start"; total: number }
  | { type: "run_end"; reason: string }
  | { type: "message"; id: string; index: number; message: Message }
  | { type: "message_start"; id: string }
  | {
      type: "delta";
      block: number;
      kind?: DeltaKind;
      offset: number;
      text: string;
      call_id?: string | null;
      name?: string | null;
    }
  | { type: "message_end"; id: string; index: number; message: AssistantMessage }
  | { type: "tool_start"; call_id: string; name: string; args: Record<string, unknown> }
  | ({ type: "tool_update"; call_id: string } & Progress)
  | ({ type: "tool_end" } & ToolEnd)
  | ({ type: "queue" } & Queue)
  | { type: "taken_back"; ticket: string; content: Content[] }
  | ({ type: "usage" } & Usage)
  | { type: "file"; ticket: string; name: string; mime_type: string; text: string }
  | { type: "notice"; text: string }
  | ({ type: "approval" } & ApprovalRequest)
  | { type: "approval_done"; request_id: string; call_id: string; choice: ApprovalChoice; reason: string }
  | ({ type: "question" } & Question)
  | { type: "question_done"; request_id: string; action: QuestionAction }
  | ({ type: "tools" } & Tools)
  | ({ type: "backend" } & Backend)
  | ({ type: "error" } & ErrorText)
  | { type: "history"; start: number; messages: Message[] }
  | { type: "renewed" }
  | { type: "accepted"; ticket: string }
  | ({ type: "refused" } & Refusal)
  | { type: "alive"; total: number }
  | { type: "part"; name: string; text: string }
  | { type: "audio"; key: string; data: string }
  | { type: "panel"; panel: SidePanelName; event: PanelEvent; whole: boolean }
  | { type: "reply"; ticket: string; value: unknown };

export interface Batch {
  seq: number;
  events: PageEvent[];
  snapshot?: Snapshot;
}

export interface ModelProxy {
  get(name: string): unknown;
  send(content: unknown, callbacks?: unknown, buffers?: ArrayBuffer[]): void;
  on(name: string, callback: (...args: never[]) => void): void;
  off(name?: string | null, callback?: ((...args: never[]) => void) | null): void;
}
