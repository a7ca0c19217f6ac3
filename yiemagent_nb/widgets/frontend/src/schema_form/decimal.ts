// Numbers compared as they are written, whatever their size: no step goes through a double.

import { normalNumber } from "./json_value";

/** More digits than these are not divided: it would take too long. */
const MOST_DIGITS = 2_000;

interface Decimal {
  negative: boolean;
  digits: string;
  /** The power of ten of the last digit. */
  exponent: number;
}

/** Below zero where the first is the smaller one, above zero where it is the larger, else zero. */
export function compareNumbers(one: string, other: string): number {
  const [a, b] = [decimal(one), decimal(other)];
  const signs = sign(a) - sign(b);
  if (signs !== 0 || sign(a) === 0) return signs;
  const sizes = a.digits.length + a.exponent - (b.digits.length + b.exponent);
  const length = Math.max(a.digits.length, b.digits.length);
  const [x, y] = [a.digits.padEnd(length, "0"), b.digits.padEnd(length, "0")];
  const larger = sizes || (x < y ? -1 : x > y ? 1 : 0);
  return a.negative ? -larger : larger;
}

export function isWhole(text: string): boolean {
  return decimal(text).exponent >= 0;
}

/** Whether a number is a multiple of another; what would take too long to tell counts as one. */
export function isMultiple(text: string, of: string): boolean {
  const [a, b] = [decimal(text), decimal(of)];
  if (b.digits === "0" || a.digits === "0") return true;
  const shift = a.exponent - b.exponent;
  if (Math.abs(shift) + a.digits.length + b.digits.length > MOST_DIGITS) return true;
  const [up, down] = shift < 0 ? [0, -shift] : [shift, 0];
  return (BigInt(a.digits) * 10n ** BigInt(up)) % (BigInt(b.digits) * 10n ** BigInt(down)) === 0n;
}

function decimal(text: string): Decimal {
  const [number = "0", exponent = "0"] = normalNumber(text).split("e");
  return { negative: number.startsWith("-"), digits: number.replace("-", ""), exponent: Number(exponent) };
}

function sign({ digits, negative }: Decimal): number {
  return digits === "0" ? 0 : negative ? -1 : 1;
}
