// Files that are dropped on a widget, or pasted into it. Nothing of it reaches the notebook or leaves the page.

/** Whether a drag brings files; until they are dropped, no more is told. */
function bringsFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes("Files") ?? false;
}

function isEditable(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("textarea, input, [contenteditable]") !== null;
}

/** Take files that are pasted anywhere in `root`, except where a person writes something else than in `input`. */
export function catchPastes(root: HTMLElement, input: HTMLElement, take: (files: File[]) => void): void {
  root.addEventListener("paste", (event) => {
    event.stopPropagation();
    if (event.target !== input && isEditable(event.target)) return;
    const files = pastedFiles(event.clipboardData);
    if (files.length === 0) return;
    event.preventDefault();
    take(files);
  });
}

/** Take files that are dropped anywhere on `root`, which says so meanwhile. */
export function catchDrops(root: HTMLElement, take: (files: File[]) => void): void {
  const show = (on: boolean): void => void root.classList.toggle("yna-dropping", on);
  const over = (event: DragEvent): void => {
    event.stopPropagation();
    const files = bringsFiles(event);
    if (!files && isEditable(event.target)) return; // the browser moves text by itself
    event.preventDefault();
    if (event.dataTransfer) event.dataTransfer.dropEffect = files ? "copy" : "none";
    show(files);
  };
  root.addEventListener("dragenter", over);
  root.addEventListener("dragover", over);
  root.addEventListener("dragleave", (event) => {
    event.stopPropagation();
    if (!(event.relatedTarget instanceof Node && root.contains(event.relatedTarget))) show(false);
  });
  root.addEventListener("drop", (event) => {
    event.stopPropagation();
    show(false);
    if (!bringsFiles(event) && isEditable(event.target)) return;
    event.preventDefault(); // a link or a picture would take the place of the page
    if (event.dataTransfer?.files.length) take([...event.dataTransfer.files]);
  });
}

/** The files of a paste; none where its text is meant: programs add a picture of what was copied. */
function pastedFiles(data: DataTransfer | null): File[] {
  const files = [...(data?.files ?? [])];
  const names = new Set(files.map(({ name }) => name));
  const lines = (data?.getData("text/plain") ?? "").split(/[\r\n]+/).filter((line) => line.trim() !== "");
  const onlyNames = lines.every((line) => names.has(line.split(/[\\/]/).at(-1) ?? line));
  return onlyNames ? files : [];
}
