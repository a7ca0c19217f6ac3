// The arguments of a call, one below the other. Only what grew is touched.

import { argumentsOf, valueText } from "./arguments";
import { copyButton, growText, h, setText } from "./dom";
import type { Call } from "./entries";
import { visible } from "./text";

const LONGEST_VALUE = 20_000;

interface Row {
  name: HTMLElement;
  value: HTMLElement;
}

export class ArgumentsView {
  private readonly list = h("dl", { class: "yna-args" });
  private readonly raw = h("pre", { class: "yna-raw" });
  private readonly scroller = h("div", { class: "yna-args-scroll", role: "group", tabindex: "0", label: "Arguments" }, this.list, this.raw);
  readonly element = h(
    "div",
    { class: "yna-section" },
    h("div", { class: "yna-section-bar" }, h("span", {}, "Arguments"), copyButton(() => argumentsText(this.call))),
    this.scroller,
  );
  private readonly rows: Row[] = [];

  constructor(private readonly call: Call) {}

  update(): void {
    const { call, scroller } = this;
    const growing = call.status === "writing";
    const atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 8;
    const found = call.raw === null ? argumentsOf(call.args, call.argsText) : null;
    this.list.hidden = found === null;
    this.raw.hidden = found !== null;
    if (found === null) growText(this.raw, clipped(call.raw ?? call.argsText));
    else if (found.length === 0 && !growing) growText(this.row(0, "").value, "none");
    else {
      found.forEach(({ name, value }, at) => growText(this.row(at, name).value, clipped(valueText(value, growing, 2))));
      for (const row of this.rows.splice(found.length)) {
        row.name.remove();
        row.value.remove();
      }
    }
    if (growing && atEnd) scroller.scrollTop = scroller.scrollHeight;
  }

  private row(at: number, name: string): Row {
    const known = this.rows[at];
    const shown = visible(name);
    if (known) {
      setText(known.name, shown);
      return known;
    }
    const row = { name: h("dt", {}, shown), value: h("dd") };
    this.rows.push(row);
    this.list.append(row.name, row.value);
    return row;
  }
}

/** The arguments as JSON, as far as they are known. */
function argumentsText(call: Call): string {
  return call.raw ?? (call.args ? JSON.stringify(call.args, null, 2) : call.argsText);
}

function clipped(text: string): string {
  if (text.length <= LONGEST_VALUE) return text;
  return `${text.slice(0, LONGEST_VALUE)}\n… ${(text.length - LONGEST_VALUE).toLocaleString()} more characters`;
}
