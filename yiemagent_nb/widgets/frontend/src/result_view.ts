// What a tool gave: its text, images, recordings, resources and structured result.

import type { CallActions } from "./approval_card";
import { copyButton, h, icon } from "./dom";
import { highlightInto } from "./highlight";
import type { AudioPart, Content, ImageBlock, LinkPart, Refusal, ResultDetails, ResultPart } from "./protocol";
import { webAddress } from "./sanitize";
import { bytes } from "./text";

const ONLY_BEGINNING = "This is only its beginning.";
const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export function resultElement(content: Content[], details: ResultDetails | null, title: string): HTMLElement {
  const result = textOf(content);
  const parts = (details?.parts ?? []).map(partElement);
  const nothing = content.length === 0 && parts.length === 0;
  const leftOut = content.reduce((sum, block) => sum + (block.type === "text" ? (block.left_out ?? 0) : 0), 0);
  return h(
    "div",
    { class: "yna-result" },
    result || nothing ? section(title, result || "(nothing)", () => result) : null,
    leftOut ? note(`${leftOut.toLocaleString()} more characters are not shown.`) : null,
    ...parts,
    details?.left_out ? note(`Left out: ${details.left_out}.`) : null,
  );
}

function partElement(part: ResultPart): HTMLElement | null {
  switch (part.type) {
    case "audio":
    case "picture":
      return null; // stands beside the images
    case "words":
      return h("div", {}, section("For you", part.text, () => part.text), part.cut ? note(ONLY_BEGINNING) : null);
    case "link":
      return linkElement(part);
    case "structure":
      return folded(h("span", {}, part.title), part.title, "", part.text, part.cut, "json");
    case "resource": {
      const title = h("span", { class: "yna-address" }, part.uri);
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
    link.name ? h("span", { class: "yna-part-name" }, link.name) : null,
    addressElement(link.uri),
    muted(facts),
  );
}

/** An address: a link where a page of the web is meant, else its text alone. */
function addressElement(uri: string): HTMLElement {
  const href = webAddress(uri)?.href;
  if (href === undefined) return h("span", { class: "yna-address" }, uri);
  return h("a", { class: "yna-address", href, target: "_blank", rel: "noopener noreferrer nofollow" }, uri);
}

/** Something long that is filled in when a person opens it. */
function folded(title: HTMLElement, name: string, facts: string, text: string, cut: boolean, language: string): HTMLElement {
  const code = h("code");
  const element = h(
    "details",
    { class: "yna-part yna-section" },
    h("summary", { class: "yna-part-row" }, icon("chevron"), title, muted(facts)),
    h("pre", { tabindex: "0", label: name }, code),
    cut ? note(ONLY_BEGINNING) : null,
  );
  element.addEventListener("toggle", () => element.open && highlightInto(code, text, language), { once: true });
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

export function textOf(content: Content[]): string {
  return content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

function section(title: string, text: string, copied: () => string): HTMLElement {
  return h(
    "div",
    { class: "yna-section" },
    h("div", { class: "yna-section-bar" }, h("span", {}, title), copyButton(copied)),
    h("pre", { tabindex: "0", label: title }, text),
  );
}

export function imageElement(image: Pick<ImageBlock, "data" | "mime_type">, name: string): HTMLElement {
  if (!IMAGE_TYPES.includes(image.mime_type) || !image.data) {
    return h("span", { class: "yna-muted" }, `An image of type ${image.mime_type} cannot be shown here.`);
  }
  const element = h("img", { class: "yna-image", alt: name });
  element.src = `data:${image.mime_type};base64,${image.data}`;
  return element;
}
