// How full the model's context is, and what was spent.

import { h, setText } from "./dom";
import type { Usage } from "./protocol";
import { shortNumber } from "./text";

export class UsageMeter {
  private readonly words = h("span", { class: "yna-usage-words" });
  private readonly fill = h("span", { class: "yna-usage-fill" });
  private readonly bar = h("span", { class: "yna-usage-bar", "aria-hidden": "true" }, this.fill);
  private readonly spent = h("span", { class: "yna-usage-spent" });
  readonly element = h("span", { class: "yna-usage", hidden: true }, this.bar, this.words, this.spent);

  show({ context, window, spent }: Usage): void {
    this.element.hidden = context === null && spent === "";
    const share = context !== null && window ? Math.min(1, context / window) : null;
    this.bar.hidden = share === null;
    this.fill.style.width = `${100 * (share ?? 0)}%`;
    this.element.dataset["full"] = String(share !== null && share > 0.8);
    this.words.hidden = context === null;
    const used = shortNumber(context ?? 0);
    setText(this.words, window ? `${used} of ${shortNumber(window)}` : `${used} tokens`);
    setText(this.spent, spent);
    this.spent.hidden = spent === "";
    const exact = (value: number): string => value.toLocaleString("en");
    const share_text = share === null ? "" : ` (${Math.round(100 * share)} %)`;
    const tokens =
      context === null
        ? ""
        : window
          ? `${exact(context)} of ${exact(window)} tokens of context${share_text}`
          : `${exact(context)} tokens of context`;
    this.element.title = [tokens, spent && `${spent} spent`].filter(Boolean).join("\n");
  }
}
