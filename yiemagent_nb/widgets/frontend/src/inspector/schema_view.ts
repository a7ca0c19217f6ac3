// A JSON Schema that a person can read: its parameters, and what fits each; and as it was sent.

import { copyButton, h, icon } from "../dom";
import type { PanelContext } from "../panel";
import { visible } from "../text";
import { alternatives, limits, parametersOf, resolved, shortJson, typeWords, type Parameter } from "./schema_words";

const MOST_PARAMETERS = 200;
/** Levels that stand open from the start. */
const OPEN_LEVELS = 3;

/** The readable view; `nothing` is said of a schema without parameters. */
export function schemaTree(schema: unknown, nothing: string): HTMLElement {
  const parameters = parametersOf(schema, schema);
  if (parameters.length > 0) return list(parameters, schema, 0);
  const shown = typeWords(schema, schema);
  return h("p", { class: "yna-muted" }, shown === "object" || shown === "any value" ? nothing : `It is ${shown}.`);
}

/** A JSON text as it was sent. */
export function rawJson(context: PanelContext, title: string, text: string): HTMLElement {
  const code = h("code");
  context.highlight(code, text, "json");
  return h(
    "div",
    { class: "yna-section yna-raw-json" },
    h("div", { class: "yna-section-bar" }, h("span", {}, title), copyButton(() => text)),
    h("pre", { tabindex: "0", role: "group", label: title }, code),
  );
}

function list(parameters: Parameter[], root: unknown, depth: number): HTMLElement {
  const left = parameters.length - MOST_PARAMETERS;
  return h(
    "ul",
    { class: "yna-parameters" },
    ...parameters.slice(0, MOST_PARAMETERS).map((parameter) => h("li", {}, ...parameterElements(parameter, root, depth))),
    left > 0 ? h("li", { class: "yna-muted" }, `and ${left.toLocaleString()} more`) : null,
  );
}

function parameterElements({ name, schema, required }: Parameter, root: unknown, depth: number): (HTMLElement | null)[] {
  const keywords = resolved(schema, root);
  const said = limits(schema, root);
  const title = typeof keywords.title === "string" && !alike(keywords.title, name) ? keywords.title : "";
  return [
    h(
      "div",
      { class: "yna-parameter" },
      h("code", { class: "yna-parameter-name" }, visible(name)),
      required ? h("span", { class: "yna-badge yna-is-required" }, "required") : null,
      keywords.deprecated === true ? h("span", { class: "yna-badge" }, "deprecated") : null,
      h("span", { class: "yna-parameter-type" }, [typeWords(schema, root), ...said].join(", ")),
      "default" in keywords ? h("span", { class: "yna-parameter-default" }, "default ", h("code", {}, shortJson(keywords.default))) : null,
    ),
    title ? h("p", { class: "yna-parameter-about" }, visible(title)) : null,
    typeof keywords.description === "string" && keywords.description ? h("p", { class: "yna-parameter-about" }, keywords.description) : null,
    inner(schema, root, depth),
  ];
}

/** What is in an object, a list of objects, or alternatives of which one has parameters. */
function inner(schema: unknown, root: unknown, depth: number): HTMLElement | null {
  const own = parametersOf(schema, root);
  if (own.length > 0) return folded(own.length === 1 ? "1 parameter" : `${own.length} parameters`, depth, () => list(own, root, depth + 1));
  const several = alternatives(schema, root).filter((each) => parametersOf(each, root).length > 0);
  if (several.length === 0) return null;
  return h(
    "div",
    {},
    ...several.map((each, at) => {
      const { title } = resolved(each, root);
      const words = typeof title === "string" ? visible(title) : several.length > 1 ? `object ${at + 1}` : "the object";
      return folded(`${several.length > 1 ? "as " : "in "}${words}`, depth, () => list(parametersOf(each, root), root, depth + 1));
    }),
  );
}

function folded(words: string, depth: number, build: () => HTMLElement): HTMLElement {
  const element = h("details", { class: "yna-parameter-inner" }, h("summary", {}, icon("chevron"), words));
  const open = (): void => {
    if (element.childElementCount === 1) element.append(build());
  };
  if (depth < OPEN_LEVELS) {
    element.open = true;
    open();
  } else element.addEventListener("toggle", open, { once: true });
  return element;
}

function alike(title: string, name: string): boolean {
  const words = (text: string): string => text.toLowerCase().replace(/[\s_.-]/g, "");
  return words(title) === words(name);
}
