// Which addresses a person may open.

/** An address of the web: http or https; null for any other. */
export function webAddress(address: string): URL | null {
  if (!/^https?:/i.test(address)) return null;
  try {
    return new URL(address);
  } catch {
    return null;
  }
}
