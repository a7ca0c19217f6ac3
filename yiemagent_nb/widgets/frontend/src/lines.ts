// Where the caret of a text field stands: lines also wrap by themselves.

/** Whether the caret, with nothing selected, is on the first line that one sees. */
export function onFirstLine(input: HTMLTextAreaElement): boolean {
  const { selectionStart: at, selectionEnd: end, value } = input;
  if (at !== end) return false;
  const before = value.slice(0, at);
  if (before === "") return true;
  if (before.includes("\n")) return false;
  const style = getComputedStyle(input);
  const mirror = document.createElement("div");
  Object.assign(mirror.style, {
    position: "absolute",
    visibility: "hidden",
    boxSizing: "border-box",
    width: `${input.clientWidth}px`,
    paddingLeft: style.paddingLeft,
    paddingRight: style.paddingRight,
    font: style.font,
    letterSpacing: style.letterSpacing,
    whiteSpace: "pre-wrap",
    overflowWrap: "break-word",
  });
  mirror.textContent = before;
  input.after(mirror);
  const height = mirror.clientHeight;
  mirror.textContent = "x";
  const line = mirror.clientHeight;
  mirror.remove();
  return height <= line * 1.5;
}
