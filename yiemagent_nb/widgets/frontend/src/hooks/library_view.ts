// Ready hooks to start from.

import { h } from "../dom";
import type { OnError, Ready } from "./forms";

type Start = (code: string, from: string, onError: OnError | null) => void;

export function libraryView(ready: readonly Ready[], template: string, start: Start): HTMLElement {
  const entry = (title: string, tells: string, code: string, onError: OnError | null): HTMLElement =>
    h(
      "li",
      {},
      h("button", { class: "yna-ready", onclick: () => start(code, title, onError) }, h("strong", {}, title), h("span", {}, tells)),
    );
  return h(
    "ul",
    { class: "yna-library", label: "Hooks to start from" },
    ...ready.map((each) => entry(each.title, each.tells, each.code, each.on_error)),
    entry("Empty", "The bare function, with what it is given and may answer.", template, null),
  );
}
