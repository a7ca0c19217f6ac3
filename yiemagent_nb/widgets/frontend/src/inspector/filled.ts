// Elements that are built anew only where what they show is another: focus, scroll and selection stay.

const shown = new WeakMap<Element, string>();

/** Fill an element by what `build` gives, unless it shows this very value already. Returns whether it was filled. */
export function fill(element: HTMLElement, value: unknown, build: () => (Node | string | null)[]): boolean {
  const key = JSON.stringify(value) ?? "";
  if (shown.get(element) === key) return false;
  shown.set(element, key);
  element.replaceChildren(...build().filter((each) => each !== null));
  return true;
}
