// What the views of the kinds share with the field that they stand in.

import type { Field } from "./field";

/** What a field shows below its name. */
export interface Body {
  element: HTMLElement;
  /** What carries the field's name, description and problem. */
  control: HTMLElement;
  /** Whether the control is one that a `label` can belong to. */
  labelled: boolean;
}

export interface FieldOptions {
  name: string;
  /** Ids of the names above that are to be spoken before this one. */
  within?: string;
  /** Stands in place of the name. */
  nameControl?: HTMLElement;
  /** Buttons of the list or object that it is in. */
  tools?: HTMLElement[];
  /** Only what it holds is shown: it stands in another field, whose texts describe it. */
  bare?: { named: string; described: string };
}

/** A field as it is shown. */
export interface Shown {
  readonly element: HTMLElement;
  readonly field: Field;
  readonly nameId: string;
  /** The ids of the texts that tell about it. */
  readonly described: string;
  setName(name: string): void;
  /** Show it anew, after its state became another. */
  render(): void;
  focus(): void;
}

/** What a kind's view needs of the form. */
export interface FormView {
  show(field: Field, options: FieldOptions): Shown;
  /** A person changed what a field holds. */
  changed(field: Field): void;
}

/** Let an element hold these, in this order; what stands right already is not touched, and keeps the focus. */
export function arrange(container: Element, elements: Element[]): void {
  const wanted = new Set(elements);
  for (const child of [...container.children]) if (!wanted.has(child)) child.remove();
  let at = container.firstElementChild;
  for (const element of elements) {
    if (element === at) at = at.nextElementSibling;
    else container.insertBefore(element, at);
  }
}

/** Give the keyboard to the first control within. */
export function focusFirst(element: Element | null | undefined): void {
  const find = (what: string): HTMLElement | undefined =>
    [...(element?.querySelectorAll<HTMLElement>(what) ?? [])].find((each) => each.checkVisibility());
  (find("input, textarea, select") ?? find("button"))?.focus();
}
