// The variables of a URI template, and the address that they make: RFC 6570 without the modifiers of its level 4.

const EXPRESSION = /\{([+#./;?&]?)([^{}]*)\}/g;

interface Operator {
  first: string;
  between: string;
  named: boolean;
  /** What `name` alone is followed by where its value is empty. */
  empty: string;
  reserved: boolean;
}

const OPERATORS: Record<string, Operator> = {
  "": { first: "", between: ",", named: false, empty: "", reserved: false },
  "+": { first: "", between: ",", named: false, empty: "", reserved: true },
  "#": { first: "#", between: ",", named: false, empty: "", reserved: true },
  ".": { first: ".", between: ".", named: false, empty: "", reserved: false },
  "/": { first: "/", between: "/", named: false, empty: "", reserved: false },
  ";": { first: ";", between: ";", named: true, empty: "", reserved: false },
  "?": { first: "?", between: "&", named: true, empty: "=", reserved: false },
  "&": { first: "&", between: "&", named: true, empty: "=", reserved: false },
};

function names(list: string): string[] {
  return list.split(",").map((name) => name.trim().replace(/(?:\*|:\d+)$/, "")).filter(Boolean);
}

/** The names of the variables, each once. */
export function variablesOf(template: string): string[] {
  return [...new Set([...template.matchAll(EXPRESSION)].flatMap(([, , list = ""]) => names(list)))];
}

/** The address with these values; a variable without a value is left out. */
export function expand(template: string, values: ReadonlyMap<string, string>): string {
  return template.replace(EXPRESSION, (_whole, operator: string, list: string) => {
    const { first, between, named, empty, reserved } = OPERATORS[operator] as Operator;
    const parts = names(list).flatMap((name) => {
      const value = values.get(name);
      if (value === undefined) return [];
      const text = reserved ? encodeURI(value) : encodeURIComponent(value);
      return [named ? `${name}${text ? `=${text}` : empty}` : text];
    });
    return parts.length > 0 ? first + parts.join(between) : "";
  });
}
