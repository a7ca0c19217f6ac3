// What a tool gave: its text in the form that suits it, images, recordings, resources and structured result.

import { webAddress } from "./addresses";
import type { CallActions } from "./approval_card";
import { needsWhole } from "./blocks";
import { copyButton, h, icon } from "./dom";
import type { Call } from "./entries";
import { errorWords } from "./error_words";
import { highlightInto } from "./highlight";
import { imageGrid } from "./images";
import { jsonTree } from "./json_tree";
import { MarkdownView } from "./markdown";
import { mathElement } from "./math";
import { standingOf } from "./outcome";
import type { AudioPart, Content, ImageBlock, LinkPart, PicturePart, Refusal, ResultPart } from "./protocol";
import { objectsTable, resultForm, type ResultForm } from "./result_form";
import { tableElement } from "./table_view";
import { bytes, visible } from "./text";

/** Of markdown that can only be rendered whole, so much is. */
const LONGEST_WHOLE = 10_000;
const MARKDOWN_A_FRAME = 3_000;
const ONLY_BEGINNING = "This is only its beginning.";

/** The whole result, as it stands in an opened card. */
export function resultElement(call: Call): HTMLElement | null {
  const content = call.content ?? [];
  const result = textOf(content, "\n");
  const parts = (call.details?.parts ?? []).map(partElement);
  const nothing = content.length === 0 && parts.length === 0;
  const failed = standingOf(call) === "failed";
  const title = failed ? "Error" : call.note || call.status === "failed" ? "What the model is told" : "Result";
  const left = leftOut(content);
  if (!result && !nothing && parts.every((part) => part === null)) return null;
  return h(
    "div",
    { class: "yna-result" },
    result || nothing ? textSection(call, title, result) : null,
    left ? note(`${left.toLocaleString()} more characters are not shown.`) : null,
    ...parts,
    call.details?.left_out ? note(`Left out: ${call.details.left_out}.`) : null,
  );
}

function textSection(call: Call, title: string, text: string): HTMLElement {
  if (standingOf(call) === "failed") return errorSection(title, text);
  const form = formOf(call.content ?? []);
  switch (form.kind) {
    case "json":
      return section(title, jsonTree(form.value), text);
    case "markdown":
      return section(title, markdown(title, text), text);
    case "table":
    case "formula": // it stands below the row; this is what the model reads
      return folded(h("span", {}, "As text"), title, "", text, false, "");
    default:
      return section(title, plain(title, text || "(nothing)"), text);
  }
}

/** Markdown, a piece a frame where it is long. */
function markdown(title: string, text: string): HTMLElement {
  const view = new MarkdownView();
  const element = h("div", { class: "yna-result-markdown", tabindex: "0", role: "group", label: title }, view.element);
  const show = (end: number): void => {
    view.update(text.slice(0, end), end >= text.length);
    if (end < text.length) requestAnimationFrame(() => element.isConnected && show(end + MARKDOWN_A_FRAME));
  };
  show(MARKDOWN_A_FRAME);
  return element;
}

/** What happened, what to do, and the code by which it is known. */
function errorSection(title: string, text: string): HTMLElement {
  const { message, hint, code } = errorWords(text);
  const words = h(
    "div",
    { class: "yna-call-error", tabindex: "0", role: "group", label: title },
    h("p", { class: "yna-error-text" }, message || "It says no more."),
    hint ? h("p", { class: "yna-error-hint" }, hint) : null,
    code ? h("code", { class: "yna-error-code" }, code) : null,
  );
  return section(title, words, text);
}

const forms = new WeakMap<Content[], ResultForm>();

/** What the text of a result is; looked at once. */
function formOf(content: Content[]): ResultForm {
  const known = forms.get(content) ?? readForm(content);
  forms.set(content, known);
  return known;
}

function readForm(content: Content[]): ResultForm {
  const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  if (texts.length > 1) {
    const each = texts.map((text) => resultForm(text));
    const values = each.flatMap((form) => (form.kind === "json" ? [form.value] : []));
    if (values.length !== each.length) return { kind: "text" };
    const table = objectsTable(values);
    return table ? { kind: "table", table } : { kind: "json", value: values };
  }
  const form = resultForm(texts[0] ?? "", leftOut(content) > 0);
  const slow = form.kind === "markdown" && (texts[0]?.length ?? 0) > LONGEST_WHOLE && needsWhole(texts[0] ?? "");
  return slow ? { kind: "text" } : form;
}

function leftOut(content: Content[]): number {
  return content.reduce((sum, block) => sum + (block.type === "text" ? (block.left_out ?? 0) : 0), 0);
}

/** What of a result is seen without opening its card: tables, formulas, images, recordings. */
export function richElements(call: Call, label: string, load: CallActions["audio"]): HTMLElement[] {
  const content = call.content ?? [];
  const parts = call.details?.parts ?? [];
  const rich: HTMLElement[] = [];
  if (call.status === "done") {
    const form = formOf(content);
    if (form.kind === "table") rich.push(tableElement(form.table, label));
    if (form.kind === "formula") rich.push(h("div", { class: "yna-result-formula" }, mathElement(form.tex, true)));
  }
  const images = [
    ...content.filter((block): block is ImageBlock => block.type === "image"),
    ...parts.filter((part): part is PicturePart => part.type === "picture"),
  ];
  if (images.length > 0) rich.push(imageGrid(images, `Image from ${label}`));
  const audios = parts.filter((part): part is AudioPart => part.type === "audio");
  rich.push(...audios.map((audio) => audioElement(audio, load)));
  return rich;
}

function partElement(part: ResultPart): HTMLElement | null {
  switch (part.type) {
    case "audio":
    case "picture":
      return null; // stands beside the images
    case "words":
      return h("div", {}, section("For you", plain("For you", part.text), part.text), part.cut ? note(ONLY_BEGINNING) : null);
    case "link":
      return linkElement(part);
    case "structure":
      return folded(h("span", {}, part.title), part.title, "", part.text, part.cut, "json");
    case "resource": {
      const title = h("span", { class: "yna-address" }, visible(part.uri));
      if (part.text === null) return h("p", { class: "yna-part-row" }, title, muted(words([part.mime_type, bytes(part.size)])));
      return folded(title, part.uri, part.mime_type, part.text, part.cut, /json/.test(part.mime_type) ? "json" : "");
    }
  }
}

function linkElement(link: LinkPart): HTMLElement {
  const facts = words([link.description, link.mime_type, link.size === null ? "" : bytes(link.size)]);
  return h(
    "p",
    { class: "yna-part-row" },
    icon("link"),
    link.name ? h("span", { class: "yna-part-name" }, visible(link.name)) : null,
    addressElement(link.uri),
    muted(facts),
  );
}

/** An address: a link where a page of the web is meant, else its text alone. */
function addressElement(uri: string): HTMLElement {
  const href = webAddress(uri)?.href;
  if (href === undefined) return h("span", { class: "yna-address" }, visible(uri));
  return h("a", { class: "yna-address", href, target: "_blank", rel: "noopener noreferrer nofollow" }, visible(uri));
}

/** Something long that is filled in when a person opens it. */
function folded(title: HTMLElement, name: string, facts: string, text: string, cut: boolean, language: string): HTMLElement {
  const place = h("div");
  const element = h(
    "details",
    { class: "yna-part yna-section" },
    h("summary", { class: "yna-part-row" }, icon("chevron"), title, muted(facts)),
    place,
    cut ? note(ONLY_BEGINNING) : null,
  );
  const fill = (): void => {
    const form: ResultForm = language === "json" && !cut ? resultForm(text) : { kind: "text" };
    if (form.kind === "json") return place.append(jsonTree(form.value));
    if (form.kind === "table") return place.append(tableElement(form.table, name));
    const code = h("code");
    highlightInto(code, text, language);
    place.append(h("pre", { tabindex: "0", label: name }, code));
  };
  element.addEventListener("toggle", () => element.open && fill(), { once: true });
  return element;
}

function note(text: string): HTMLElement {
  return h("p", { class: "yna-call-decision" }, text);
}

function muted(text: string): HTMLElement | null {
  return text ? h("span", { class: "yna-muted" }, text) : null;
}

function words(facts: string[]): string {
  return facts.filter(Boolean).join(" · ");
}

/** A recording: it is fetched, and played, when a person asks for it. */
export function audioElement(audio: AudioPart, load: CallActions["audio"]): HTMLElement {
  const facts = words([audio.mime_type, bytes(audio.size)]);
  if (!audio.key || !/^audio\/[\w-]+$/.test(audio.mime_type)) {
    return h("p", { class: "yna-muted" }, `A recording (${facts}) that cannot be played here.`);
  }
  const note = h("span", { class: "yna-muted", role: "status" }, facts);
  const button = h("button", { class: "yna-button yna-play" }, icon("play"), "Play recording");
  const element = h("div", { class: "yna-audio" }, button, note);
  button.addEventListener("click", () => {
    button.disabled = true;
    note.textContent = "Loading…";
    load(audio.key).then(
      (data) => {
        const player = h("audio", { class: "yna-player", controls: true, label: `Recording, ${facts}` });
        player.addEventListener("error", () => element.replaceChildren(muted(`This program cannot play ${facts}.`) ?? ""));
        player.src = URL.createObjectURL(new Blob([decode(data)], { type: audio.mime_type }));
        element.replaceChildren(player, note);
        note.textContent = facts;
        player.focus();
        player.play().catch(() => {}); // the browser may want another click
      },
      (refusal: Refusal) => {
        button.disabled = false;
        note.textContent = `${refusal.message} ${refusal.hint}`.trim();
      },
    );
  });
  return element;
}

/** Let go of what recordings under an element take. */
export function releaseAudio(element: HTMLElement): void {
  for (const player of element.querySelectorAll("audio")) URL.revokeObjectURL(player.src);
}

function decode(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

export function textOf(content: Content[], between = ""): string {
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join(between);
}

function section(title: string, shown: HTMLElement, copied: string): HTMLElement {
  return h("div", { class: "yna-section" }, h("div", { class: "yna-section-bar" }, h("span", {}, title), copyButton(() => copied)), shown);
}

function plain(title: string, text: string): HTMLElement {
  return h("pre", { tabindex: "0", label: title }, text);
}
