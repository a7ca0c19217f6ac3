// The formats of texts: how each looks, which keyboard fits, and what surely is none of it.

export interface Format {
  /** What it is called. */
  name: string;
  example: string;
  /** The browser's own way to pick one. */
  picker?: "date" | "time" | "datetime-local";
  keyboard?: "email" | "url" | "tel";
  fits(text: string): boolean;
}

const TIME = "([01]\\d|2[0-3]):[0-5]\\d:([0-5]\\d|60)(\\.\\d+)?(z|[+-]([01]\\d|2[0-3]):[0-5]\\d)";
const LABEL = "[a-z\\d]([a-z\\d-]{0,61}[a-z\\d])?";
const anything = (): boolean => true;

const FORMATS: [string, Format][] = [
  ["date", { name: "date", example: "2026-11-30", picker: "date", fits: isDate }],
  ["time", { name: "time with its zone", example: "09:30:00Z", picker: "time", fits: like(`^${TIME}$`) }],
  ["date-time", { name: "date and time with its zone", example: "2026-11-30T09:30:00Z", picker: "datetime-local", fits: isMoment }],
  ["duration", { name: "duration", example: "P1DT12H", fits: like("^P(?!$)(\\d+W|(\\d+Y)?(\\d+M)?(\\d+D)?(T(?=\\d)(\\d+H)?(\\d+M)?(\\d+(\\.\\d+)?S)?)?)$") }],
  ["email", { name: "e-mail address", example: "name@example.org", keyboard: "email", fits: like("^[^\\s@]+@[^\\s@]+$") }],
  ["idn-email", { name: "e-mail address", example: "name@example.org", keyboard: "email", fits: like("^[^\\s@]+@[^\\s@]+$") }],
  ["hostname", { name: "host name", example: "example.org", keyboard: "url", fits: like(`^${LABEL}(\\.${LABEL})*\\.?$`) }],
  ["uri", { name: "URI", example: "https://example.org/", keyboard: "url", fits: like("^[a-z][a-z\\d+.-]*:\\S*$") }],
  ["url", { name: "URL", example: "https://example.org/", keyboard: "url", fits: like("^[a-z][a-z\\d+.-]*:\\S*$") }],
  ["iri", { name: "IRI", example: "https://example.org/", keyboard: "url", fits: like("^[a-z][a-z\\d+.-]*:\\S*$") }],
  ["uri-reference", { name: "URI or path", example: "/path/to/it", keyboard: "url", fits: like("^\\S*$") }],
  ["uuid", { name: "UUID", example: "123e4567-e89b-12d3-a456-426614174000", fits: like("^[\\da-f]{8}-([\\da-f]{4}-){3}[\\da-f]{12}$") }],
  ["ipv4", { name: "IPv4 address", example: "192.0.2.1", fits: like("^((25[0-5]|2[0-4]\\d|1?\\d?\\d)(\\.(?!$)|$)){4}$") }],
  ["ipv6", { name: "IPv6 address", example: "2001:db8::1", fits: like("^[\\da-f:.]+$") }],
  ["json-pointer", { name: "JSON pointer", example: "/items/0", fits: like("^(/([^~]|~[01])*)?$") }],
  ["regex", { name: "regular expression", example: "^a+$", fits: anything }],
  ["password", { name: "secret", example: "", fits: anything }],
  ["byte", { name: "base64", example: "aGVsbG8=", fits: like("^[a-z\\d+/_-]*={0,2}$") }],
  ["binary", { name: "bytes", example: "", fits: anything }],
];

const BY_NAME = new Map(FORMATS);

export function formatNamed(name: string): Format | undefined {
  return BY_NAME.get(name);
}

function like(pattern: string): (text: string) => boolean {
  const expression = new RegExp(pattern, "i");
  return (text) => expression.test(text);
}

function isDate(text: string): boolean {
  const [, year = "", month = "", day = ""] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? [];
  const date = new Date(Date.UTC(2000, Number(month) - 1, Number(day)));
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  return year !== "" && date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day);
}

function isMoment(text: string): boolean {
  const [, date = "", time = ""] = /^([^t ]*)[t ](.*)$/i.exec(text) ?? [];
  return isDate(date) && like(`^${TIME}$`)(time);
}

/** What the browser's picker gives, as the format has it: a moment gets the zone of this computer. */
export function fromPicker(format: Format, picked: string): string {
  if (picked === "" || format.picker === "date") return picked;
  const full = picked.replace(/(T|^)(\d\d:\d\d)$/, "$1$2:00");
  const minutes = -new Date(format.picker === "time" ? Date.now() : full).getTimezoneOffset();
  const two = (value: number): string => String(Math.trunc(value)).padStart(2, "0");
  const zone = minutes === 0 ? "Z" : `${minutes < 0 ? "-" : "+"}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
  return `${full}${zone}`;
}

/** What the browser's picker shows for a text; empty where it cannot. */
export function toPicker(format: Format, text: string): string {
  if (!format.fits(text)) return "";
  if (format.picker === "date") return text;
  return /^(?:\d{4}-\d\d-\d\d[Tt ])?\d\d:\d\d:\d\d/.exec(text)?.[0].replace(/[t ]/, "T") ?? "";
}
