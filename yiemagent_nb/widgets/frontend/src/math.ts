// Mathematics: the renderer is a part of its own, asked for when the first formula comes.

type Render = (tex: string, display: boolean) => Node;

let render: Render | null = null;
let loading: Promise<void> | null = null;
let load: (() => Promise<string>) | null = null;

/** Say where the part comes from. */
export function setMathLoader(loader: () => Promise<string>): void {
  load ??= loader;
}

async function fetchPart(loader: () => Promise<string>): Promise<void> {
  const url = URL.createObjectURL(new Blob([await loader()], { type: "text/javascript" }));
  try {
    const part = (await import(url)) as { render: Render };
    render = part.render;
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** A formula; it shows as its source until the renderer is there. */
export function mathElement(tex: string, display: boolean): HTMLElement {
  const element = document.createElement("span");
  element.className = display ? "yna-math yna-math-display" : "yna-math";
  if (render) {
    element.replaceChildren(render(tex, display));
    return element;
  }
  element.textContent = tex;
  if (load) {
    loading ??= fetchPart(load).catch((error: unknown) => {
      console.warn("Formulas cannot be shown.", error);
      loading = null;
    });
    void loading.then(() => {
      if (render) element.replaceChildren(render(tex, display));
    });
  }
  return element;
}
