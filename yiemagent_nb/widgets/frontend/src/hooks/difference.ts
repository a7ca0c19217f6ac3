// How two texts differ, by lines: a longest common subsequence of what is left between their common ends.

export interface DifferenceLine {
  kind: "same" | "added" | "removed" | "gap";
  text: string;
}

/** Lines in the middle of which a subsequence is still looked for; longer ones are shown as replaced. */
const MOST = 600;
const CONTEXT = 2;

/** The lines of both, with those that stay left out where there are many. */
export function difference(before: string, after: string): DifferenceLine[] {
  return shorten(compare(before.split("\n"), after.split("\n")));
}

function compare(old: string[], now: string[]): DifferenceLine[] {
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  const most = Math.min(old.length, now.length) - start;
  while (end < most && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  const same = (text: string): DifferenceLine => ({ kind: "same", text });
  return [
    ...old.slice(0, start).map(same),
    ...middle(old.slice(start, old.length - end), now.slice(start, now.length - end)),
    ...old.slice(old.length - end).map(same),
  ];
}

function middle(old: string[], now: string[]): DifferenceLine[] {
  const removed = (text: string): DifferenceLine => ({ kind: "removed", text });
  const added = (text: string): DifferenceLine => ({ kind: "added", text });
  if (old.length > MOST || now.length > MOST || !old.length || !now.length) return [...old.map(removed), ...now.map(added)];
  const width = now.length + 1;
  const lengths = new Uint16Array((old.length + 1) * width); // of the subsequences from each place on
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      const [diagonal, down, right] = [lengths[(i + 1) * width + j + 1], lengths[(i + 1) * width + j], lengths[i * width + j + 1]];
      lengths[i * width + j] = old[i] === now[j] ? (diagonal ?? 0) + 1 : Math.max(down ?? 0, right ?? 0);
    }
  }
  const lines: DifferenceLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    const [was, is] = [old[i], now[j]];
    const down = lengths[(i + 1) * width + j] ?? 0;
    const right = lengths[i * width + j + 1] ?? 0;
    if (was !== undefined && was === is) {
      lines.push({ kind: "same", text: was });
      i += 1;
      j += 1;
    } else if (was !== undefined && (is === undefined || down >= right)) {
      lines.push(removed(was));
      i += 1;
    } else if (is !== undefined) {
      lines.push(added(is));
      j += 1;
    }
  }
  return lines;
}

function shorten(lines: DifferenceLine[]): DifferenceLine[] {
  const kept = new Set<number>();
  for (const [at, { kind }] of lines.entries()) {
    if (kind === "same") continue;
    for (let near = at - CONTEXT; near <= at + CONTEXT; near += 1) kept.add(near);
  }
  const shown: DifferenceLine[] = [];
  for (const [at, line] of lines.entries()) {
    if (kept.has(at)) shown.push(line);
    else if (shown.at(-1)?.kind !== "gap") shown.push({ kind: "gap", text: "" });
  }
  return kept.size > 0 ? shown : [];
}

/** Where two lines begin and end to differ: what is alike before, and behind. */
export function alike(old: string, now: string): [before: number, behind: number] {
  const most = Math.min(old.length, now.length);
  let before = 0;
  while (before < most && old[before] === now[before]) before += 1;
  let behind = 0;
  while (behind < most - before && old[old.length - 1 - behind] === now[now.length - 1 - behind]) behind += 1;
  return [before, behind];
}
