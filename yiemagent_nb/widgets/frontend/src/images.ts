// Images of tools and models: they stand in a grid, and grow in their place.

import { h } from "./dom";
import type { ImageBlock } from "./protocol";
import { visible } from "./text";

const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

type Image = Pick<ImageBlock, "data" | "mime_type">;

function imageElement(image: Image, name: string): HTMLElement {
  if (!IMAGE_TYPES.includes(image.mime_type) || !image.data) {
    return h("span", { class: "yna-muted" }, `An image of type ${visible(image.mime_type)} cannot be shown here.`);
  }
  const element = h("img", { class: "yna-image", alt: name });
  element.src = `data:${image.mime_type};base64,${image.data}`;
  return element;
}

/** Images side by side. A click makes one as large as the place allows; another, or Escape, puts it back. */
export function imageGrid(images: Image[], name: string): HTMLElement {
  const several = images.length > 1;
  const items = images.map((image, at) => growingImage(image, several ? `${name}, ${at + 1} of ${images.length}` : name));
  return h("div", { class: several ? "yna-images yna-several" : "yna-images" }, ...items);
}

/** An image that a click makes larger, and another, or Escape, puts back. */
export function growingImage(image: Image, name: string): HTMLElement {
  const element = imageElement(image, name);
  if (!(element instanceof HTMLImageElement)) return element;
  const button = h("button", { class: "yna-image-button", "aria-expanded": "false", label: `Enlarge ${name}`, title: "Enlarge" }, element);
  const set = (large: boolean): void => {
    button.classList.toggle("yna-large", large);
    button.setAttribute("aria-expanded", String(large));
    button.title = large ? "Make smaller (Esc)" : "Enlarge";
    button.scrollIntoView({ block: "nearest" });
  };
  button.addEventListener("click", () => set(!button.classList.contains("yna-large")));
  button.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !button.classList.contains("yna-large")) return;
    event.stopPropagation();
    event.preventDefault();
    set(false);
  });
  return button;
}
