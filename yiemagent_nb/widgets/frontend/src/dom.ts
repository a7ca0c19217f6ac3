// Small helpers to build elements. Text always goes in as text.

type Child = Node | string | null | undefined | false;

export interface Attributes {
  class?: string;
  title?: string;
  label?: string;
  role?: string;
  onclick?: (event: MouseEvent) => void;
  [attribute: string]: string | boolean | undefined | ((event: MouseEvent) => void);
}

export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener("click", value as EventListener);
    else if (name === "label") element.setAttribute("aria-label", String(value));
    else element.setAttribute(name, value === true ? "" : value);
  }
  if (tag === "button" && !("type" in attributes)) element.setAttribute("type", "button");
  for (const child of children) if (child) element.append(child);
  return element;
}

// Each widget loads this script anew, so a number alone would come again.
const page = Math.random().toString(36).slice(2, 8);
let ids = 0;

/** An id that no other element of the page has. */
export function newId(): string {
  ids += 1;
  return `yna-${page}-${ids}`;
}

/** Show a button as one that does nothing just now. It is not disabled: it would lose the focus. */
export function setBusy(button: HTMLButtonElement, busy: boolean): void {
  if (busy) button.setAttribute("aria-disabled", "true");
  else button.removeAttribute("aria-disabled");
}

/** Set a text where it is another: a node that stays as it is does not flicker, and keeps a selection. */
export function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Set a text that mostly grows at its end. */
export function growText(element: HTMLElement, text: string): void {
  const node = element.firstChild;
  if (!(node instanceof Text)) element.textContent = text;
  else if (text !== node.data && text.startsWith(node.data)) node.appendData(text.slice(node.length));
  else if (text !== node.data) node.data = text;
}

const PATHS: Record<string, string> = {
  send: "M8 13V3M4 7l4-4 4 4",
  stop: "M4.5 4.5h7v7h-7z",
  check: "M3.5 8.5l3 3 6-7",
  cross: "M4 4l8 8M12 4l-8 8",
  chevron: "M6 4l4 4-4 4",
  back: "M10 4L6 8l4 4",
  up: "M4 10l4-4 4 4",
  edit: "M3 13l.7-3L11 2.7l2.3 2.3L6 12.3zM9.4 4.3l2.3 2.3",
  again: "M13 8a5 5 0 1 1-1.5-3.6M13 2.5v3h-3",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3l3.2 3.2",
  down: "M8 3v10M4 9l4 4 4-4",
  copy: "M5.5 5.5h7v7h-7zM10.5 5.5v-2h-7v7h2",
  clock: "M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 0 1 0-11zM8 5v3.2l2 1.2",
  hand: "M8 2l5 2v4c0 3-2.2 5-5 6-2.8-1-5-3-5-6V4z",
  alert: "M8 2.5l6 10.5H2zM8 7v2.6M8 11.3v.2",
  pause: "M5.5 4v8M10.5 4v8",
  play: "M5.5 3.5l7 4.5-7 4.5z",
  link: "M6.7 9.3a2.6 2.6 0 0 0 3.7 0l2.3-2.3a2.6 2.6 0 0 0-3.7-3.7l-.9.9M9.3 6.7a2.6 2.6 0 0 0-3.7 0L3.3 9a2.6 2.6 0 0 0 3.7 3.7l.9-.9",
  ask: "M2.5 3.5h11v7.5H8l-3 2.5V11H2.5zM6.6 6a1.4 1.4 0 1 1 1.9 1.3c-.4.2-.5.4-.5.7M8 9.3v.1",
  clip: "M11.5 7.5l-4.6 4.6a2.5 2.5 0 0 1-3.5-3.5l5.3-5.3a1.7 1.7 0 0 1 2.4 2.4l-5 5a.8.8 0 0 1-1.2-1.2l4.3-4.3",
  file: "M4 1.8h5.2L12.5 5v9.2H4zM9 2v3.2h3.3M6 8.5h4.5M6 11h4.5",
  tools: "M13 4.2a3.2 3.2 0 0 1-4.2 4.2l-4.6 4.6a1.2 1.2 0 0 1-1.7-1.7l4.6-4.6A3.2 3.2 0 0 1 11.3 2.5L9.4 4.4l1.7 1.7z",
  hook: "M11 1.8a1.5 1.5 0 1 1 0 3a1.5 1.5 0 0 1 0-3M11 4.8v5.4a3.8 3.8 0 0 1-7.6 0V7l2.6 2.6",
  trace: "M2.5 3.5h5M5 8h6M8.5 12.5h5",
  thought: "M8 2.5a4 4 0 0 1 2.2 7.3V12H5.8V9.8A4 4 0 0 1 8 2.5zM6.3 14h3.4",
};

export function icon(name: keyof typeof PATHS & string): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", `yna-icon yna-icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", PATHS[name] ?? "");
  svg.append(path);
  return svg;
}

/** A button that copies text and says so. */
export function copyButton(text: () => string, label = "Copy"): HTMLButtonElement {
  const name = h("span", { class: "yna-copy-name" }, label);
  const button = h("button", { class: "yna-copy yna-ghost", title: `${label} to the clipboard` }, icon("copy"), name);
  button.addEventListener("click", () => {
    const done = (): void => {
      name.textContent = "Copied";
      setTimeout(() => (name.textContent = label), 1_500);
    };
    const failed = (): void => {
      name.textContent = "The browser refused";
      setTimeout(() => (name.textContent = label), 2_500);
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text()).then(done, failed);
    else failed();
  });
  return button;
}
