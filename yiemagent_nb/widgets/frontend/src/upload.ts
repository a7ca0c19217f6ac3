// Reads a file that a person adds: an image, scaled down where it is large, or a text. The rest is refused in words.

import type { Attached } from "./attachments";
import { BESIDE, toBase64 } from "./drafts";
import { bytes as inWords } from "./text";

const LONGEST_SIDE = 2_048;
const HEAVIEST_IMAGE = 2_000_000;
const LARGEST_TEXT = 200_000;
/** What is larger is not even looked at. */
const LARGEST_FILE = 100_000_000;
const QUALITIES = [0.9, 0.8, 0.65];

/** Read a file; an Error with a sentence for the person where it cannot be sent. */
export async function readUpload(file: File): Promise<Attached> {
  const name = file.name || "pasted";
  if (file.size > LARGEST_FILE) throw new Error(`${name} is too large (${inWords(file.size)}). ${BESIDE}`);
  let start: Uint8Array;
  try {
    start = new Uint8Array(await file.slice(0, 12).arrayBuffer());
  } catch {
    throw new Error(`${name} cannot be read. If it is a folder, name its path instead.`);
  }
  const kind = imageType(start);
  if (kind !== null || (file.type.startsWith("image/") && file.type !== "image/svg+xml")) return readImage(file, name, kind);
  return readText(file, name);
}

function imageType(start: Uint8Array): string | null {
  const text = String.fromCharCode(...start);
  if (text.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (text.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (text.startsWith("GIF8")) return "image/gif";
  return text.startsWith("RIFF") && text.startsWith("WEBP", 8) ? "image/webp" : null;
}

async function readImage(file: File, name: string, kind: string | null): Promise<Attached> {
  let bitmap: ImageBitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Error(`${name} is no image that this browser can show. Convert it to PNG or JPEG first.`);
  }
  try {
    const { width, height } = bitmap;
    if (kind !== null && Math.max(width, height) <= LONGEST_SIDE && file.size <= HEAVIEST_IMAGE) {
      return { name, mime_type: kind, data: await base64(file), note: `${width} × ${height}` };
    }
    const { blob, canvas } = await scaledDown(bitmap, kind);
    const small = canvas.width === width ? "made lighter" : `scaled to ${canvas.width} × ${canvas.height}`;
    return { name, mime_type: blob.type, data: await base64(blob), note: small };
  } finally {
    bitmap.close();
  }
}

/** An image of at most so many pixels and bytes: with its transparency if that fits, else as JPEG. */
async function scaledDown(bitmap: ImageBitmap, kind: string | null): Promise<{ blob: Blob; canvas: HTMLCanvasElement }> {
  for (let side = Math.min(LONGEST_SIDE, Math.max(bitmap.width, bitmap.height)); ; side = Math.round(side * 0.75)) {
    const canvas = drawn(bitmap, side);
    if (kind !== "image/jpeg") {
      const blob = await encoded(canvas, "image/png");
      if (blob.size <= HEAVIEST_IMAGE) return { blob, canvas };
    }
    for (const quality of QUALITIES) {
      const blob = await encoded(drawn(bitmap, side, "white"), "image/jpeg", quality);
      if (blob.size <= HEAVIEST_IMAGE) return { blob, canvas };
    }
  }
}

function drawn(bitmap: ImageBitmap, side: number, background = ""): HTMLCanvasElement {
  const scale = side / Math.max(bitmap.width, bitmap.height);
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext("2d");
  if (!context) throw new Error("This browser cannot scale the image. Make it smaller first.");
  if (background) {
    context.fillStyle = background;
    context.fillRect(0, 0, canvas.width, canvas.height);
  }
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas;
}

function encoded(canvas: HTMLCanvasElement, type: string, quality?: number): Promise<Blob> {
  return new Promise((resolve, reject) => {
    const take = (blob: Blob | null): void => {
      if (blob) resolve(blob);
      else reject(new Error("This browser cannot scale the image. Make it smaller first."));
    };
    canvas.toBlob(take, type, quality);
  });
}

async function readText(file: File, name: string): Promise<Attached> {
  if (file.size > LARGEST_TEXT) {
    throw new Error(`${name} (${inWords(file.size)}) is too large: text files go up to ${inWords(LARGEST_TEXT)}. ${BESIDE}`);
  }
  const data = new Uint8Array(await file.arrayBuffer());
  try {
    if (new TextDecoder("utf-8", { fatal: true }).decode(data).includes("\0")) throw new TypeError("no text");
  } catch {
    throw new Error(`${name} is neither an image nor text. ${BESIDE}`);
  }
  const type = file.type === "" || file.type.startsWith("image/") ? "text/plain" : file.type.slice(0, 200);
  return { name, mime_type: type, data: toBase64(data), note: inWords(file.size) };
}

async function base64(blob: Blob): Promise<string> {
  return toBase64(new Uint8Array(await blob.arrayBuffer()));
}
