// Controls to choose one of several values, or one of several forms.

import { h, newId } from "../dom";
import { visible } from "../text";
import { UnionContent } from "./composites";
import { ChoiceContent } from "./contents";
import type { Field } from "./field";
import { writeJson } from "./json_value";
import { placeOf, type Choice } from "./shape";
import type { Body, FormView, Shown } from "./view";

const NOT_SET = "-1";

export function choiceBody(form: FormView, field: Field): Body {
  return field.shape.flags ? flagBody(form, field) : selectBody(form, field);
}

/** The one value that is allowed. */
export function fixedBody(field: Field): Body {
  const element = h("output", { class: "yna-form-fixed" }, visible(writeJson(field.read() ?? null, null)));
  return { element, control: element, labelled: true };
}

function selectBody(form: FormView, field: Field): Body {
  const labels = field.shape.choices.map(({ label }) => label);
  const box = select(labels, unchosen(field), field.isOptional || field.state === "unset", chosen(field));
  box.addEventListener("input", () => {
    choose(field, Number(box.value));
    form.changed(field);
  });
  return { element: box, control: box, labelled: true };
}

/** True and false, and not set where that is possible, all to be seen at once. */
function flagBody(form: FormView, field: Field): Body {
  const { choices } = field.shape;
  const group = newId();
  const at = chosen(field);
  const shown = field.isOptional ? [{ label: unchosen(field), value: null, at: -1 }] : [];
  const all: (Choice & { at: number })[] = [...shown, ...choices.map((choice, at) => ({ ...choice, at }))];
  const radios = all.map(({ label, at: own }) => {
    const radio = h("input", { type: "radio", name: group, value: String(own) });
    radio.checked = own === at;
    radio.addEventListener("input", () => {
      choose(field, own);
      form.changed(field);
    });
    return h("label", { class: "yna-form-flag" }, radio, h("span", {}, label));
  });
  const element = h("div", { class: "yna-form-flags", role: "radiogroup" }, ...radios);
  return { element, control: element, labelled: false };
}

/** One of several forms, and what stands in it. */
export function unionBody(form: FormView, field: Field, ids: { named: string; described: string }): Body {
  const { variants, nullable } = field.shape;
  const labels = [...variants.map(({ label }) => visible(label)), ...(nullable ? ["null"] : [])];
  const content = field.state === "value" && field.content instanceof UnionContent ? field.content : null;
  const at = field.state === "null" ? variants.length : (content?.at ?? -1);
  const box = select(labels, unchosen(field), field.isOptional || at < 0, at);
  box.classList.add("yna-form-variants");
  const element = h("div", { class: "yna-form-union" }, box);
  const showChosen = (): Shown | null => {
    const chosen = field.state === "value" && field.content instanceof UnionContent ? field.content.chosen : null;
    if (!chosen) {
      element.replaceChildren(box);
      return null;
    }
    const shown = form.show(chosen, { name: "", bare: ids });
    element.replaceChildren(box, shown.element);
    return shown;
  };
  showChosen();
  box.addEventListener("input", () => {
    const at = Number(box.value);
    if (at < 0) field.clear();
    else if (at === variants.length) field.setNull();
    else {
      if (field.state !== "value") field.begin();
      if (field.content instanceof UnionContent) field.content.choose(at);
    }
    showChosen();
    form.changed(field);
  });
  return { element, control: box, labelled: true };
}

function chosen(field: Field): number {
  return field.state === "value" && field.content instanceof ChoiceContent ? field.content.at : -1;
}

function choose(field: Field, at: number): void {
  if (at < 0) {
    field.clear();
    return;
  }
  if (field.state !== "value") field.begin();
  if (field.content instanceof ChoiceContent) field.content.choose(at);
}

/** What stands where nothing is chosen. */
function unchosen(field: Field): string {
  if (!field.isOptional) return "Choose…";
  const { fallback, choices } = field.shape;
  const label = fallback === undefined || fallback === null ? undefined : choices[placeOf(choices, fallback)]?.label;
  return label === undefined ? "Not set" : `Default: ${label}`;
}

function select(labels: string[], none: string, withNone: boolean, at: number): HTMLSelectElement {
  const options = labels.map((label, at) => h("option", { value: String(at) }, visible(label)));
  const first = withNone ? h("option", { value: NOT_SET }, none) : null;
  const box = h("select", { class: "yna-field yna-select yna-form-select" }, first, ...options);
  box.value = String(at);
  return box;
}
