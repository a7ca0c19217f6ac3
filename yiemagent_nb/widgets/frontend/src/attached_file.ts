// A file that stands as text in a person's message: <file name="data.csv">, its text, </file>.

export interface TextFile {
  name: string;
  text: string;
}

const FILE = /^<file name="([^"<>]*)">\n([\s\S]*?)\n?<\/file>$/;
const ENTITIES: Record<string, string> = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&#39;": "'", "&#x27;": "'", "&amp;": "&" };

/** The file that a block of text is; null where it is none. */
export function readFile(block: string): TextFile | null {
  const match = FILE.exec(block);
  if (!match) return null;
  const name = (match[1] ?? "").replace(/&(?:lt|gt|quot|apos|#39|#x27|amp);/g, (entity) => ENTITIES[entity] ?? entity);
  return { name, text: match[2] ?? "" };
}
