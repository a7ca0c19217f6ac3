// Buttons of the page of a hook.

import { h, icon } from "../dom";

const MAC = /mac|iphone|ipad/i.test(navigator.platform);
const ON_MAC: Record<string, string> = { Mod: "⌘", Shift: "⇧" };

/** A button that keys press as well, which it shows; "Mod" is Ctrl, or ⌘ on a Mac. */
export function command(name: string, keys: readonly string[], run: (button: HTMLButtonElement) => void): HTMLButtonElement {
  const spoken = keys.map((key) => (key === "Mod" ? (MAC ? "Meta" : "Control") : key)).join("+");
  const shown = MAC ? keys.map((key) => ON_MAC[key] ?? key).join(" ") : keys.join("+").replace("Mod", "Ctrl");
  const hint = h("kbd", { "aria-hidden": "true" }, shown);
  const button = h("button", { class: "yna-button", "aria-keyshortcuts": spoken }, name, " ", hint);
  button.addEventListener("click", () => run(button));
  return button;
}

/** A button that unfolds a place. */
export function disclosure(name: string, picture: "hook" | "clock", place: HTMLElement): HTMLButtonElement {
  const attributes = { class: "yna-ghost", "aria-expanded": "false", "aria-controls": place.id };
  const button = h("button", attributes, icon(picture), h("span", {}, name));
  button.addEventListener("click", () => unfold(button, place, place.hidden !== false));
  return button;
}

export function unfold(button: HTMLElement, place: HTMLElement, shown: boolean): void {
  place.hidden = !shown;
  button.setAttribute("aria-expanded", String(shown));
}
