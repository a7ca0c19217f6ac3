// What was applied before: look at it, have it in the editor, compare it with what stands there.

import { h, icon } from "../dom";
import { visible } from "../text";
import { differenceView } from "./difference_view";
import { clock, counted, type Version } from "./forms";

export interface VersionActions {
  highlight(element: HTMLElement, text: string): void;
  load(version: number): Promise<string>;
  /** Have a text in the editor. */
  edit(code: string, version: number): void;
  /** What stands in the editor. */
  current(): string;
  complain(error: unknown): void;
}

export class VersionsView {
  readonly element = h("ol", { class: "yna-versions", label: "Versions", reversed: true });
  private readonly rows = new Map<number, HTMLElement>();
  private readonly places = new Map<number, HTMLElement>();

  constructor(private readonly actions: VersionActions) {}

  show(versions: readonly Version[], installed: ReadonlySet<number>): void {
    const known = new Set(versions.map(({ version }) => version));
    for (const [version, row] of this.rows) {
      if (known.has(version)) continue;
      row.remove();
      this.rows.delete(version);
      this.places.delete(version);
    }
    for (const version of [...versions].sort((one, other) => one.version - other.version)) {
      let row = this.rows.get(version.version);
      if (!row) {
        row = this.row(version);
        this.rows.set(version.version, row);
        this.element.prepend(row); // the newest first
      }
      row.classList.toggle("yna-version-installed", installed.has(version.version));
    }
  }

  /** Show the code of a version, and go there. */
  async look(version: number): Promise<void> {
    const place = this.places.get(version);
    if (!place) return;
    await this.fill(version, place, "look");
    place.scrollIntoView({ block: "nearest" });
    place.querySelector<HTMLElement>("[tabindex]")?.focus({ preventScroll: true });
  }

  private row({ version, time, lines, note }: Version): HTMLElement {
    const place = h("div", { class: "yna-version-place" });
    this.places.set(version, place);
    const button = (words: string, label: string, picture: "search" | "edit" | "trace", run: () => Promise<void>): HTMLElement =>
      h("button", { class: "yna-ghost", label: `${words} ${label}`, onclick: () => void run().catch((error: unknown) => this.actions.complain(error)) }, icon(picture), words);
    const name = `version ${version}`;
    return h(
      "li",
      {},
      h(
        "div",
        { class: "yna-version-row" },
        h("span", { class: "yna-version-name" }, `Version ${version}`),
        h("span", { class: "yna-badge yna-version-mark" }, "installed"),
        h("span", { class: "yna-muted" }, `${clock(time)}, ${counted(lines, "line")}${note ? `, ${visible(note)}` : ""}`),
        h(
          "span",
          { class: "yna-installed-buttons" },
          button("Look at", name, "search", () => this.toggle(version, place, "look")),
          button("Compare", name, "trace", () => this.toggle(version, place, "compare")),
          button("Load", name, "edit", async () => this.actions.edit(await this.actions.load(version), version)),
        ),
      ),
      place,
    );
  }

  private async toggle(version: number, place: HTMLElement, how: "look" | "compare"): Promise<void> {
    if (place.dataset.how === how) {
      delete place.dataset.how;
      place.replaceChildren();
    } else {
      await this.fill(version, place, how);
    }
  }

  private async fill(version: number, place: HTMLElement, how: "look" | "compare"): Promise<void> {
    const code = await this.actions.load(version);
    place.dataset.how = how;
    if (how === "compare") {
      const words = h("p", { class: "yna-muted" }, `From version ${version} to what stands in the editor:`);
      place.replaceChildren(words, differenceView(code, this.actions.current(), "The editor holds this version."));
      return;
    }
    const source = h("pre", { class: "yna-hook-source", tabindex: "0", label: `Version ${version}` });
    this.actions.highlight(source, code);
    place.replaceChildren(source);
  }
}
