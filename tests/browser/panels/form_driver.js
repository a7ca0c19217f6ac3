// Fills a form as a person does: by its controls and buttons, found by what they are named and where they stand.

const own = (field, selector) => field.querySelector(`:scope > ${selector}`);
const tool = (field, kind) => own(field, `.yna-form-tools > .yna-form-${kind}`);
const body = (field) => own(field, ".yna-form-body");
const inBody = (field, selector) => body(field).querySelector(`:scope > ${selector}`);

function type(control, text) {
  if (!control) throw new Error("there is no control to type into");
  control.value = text;
  control.dispatchEvent(new InputEvent("input", { bubbles: true, inputType: "insertText" }));
  control.dispatchEvent(new Event("change", { bubbles: true }));
}

function press(button) {
  if (!button || button.hidden || button.disabled) throw new Error(`there is no button to press: ${button?.className}`);
  button.click();
}

/** Add an object or a list where it is not there yet. */
function begin(field) {
  const button = tool(field, "begin");
  if (button && !button.hidden) press(button);
}

function entry(field) {
  return body(field).querySelector(":scope > textarea, :scope > input, :scope > .yna-form-row > textarea");
}

function choose(field, at) {
  const radio = body(field).querySelector(`:scope > .yna-form-flags input[value="${at}"]`);
  if (radio) return radio.click();
  const select = body(field).querySelector("select");
  if (![...select.options].some((option) => option.value === String(at))) throw new Error(`there is no option ${at}`);
  type(select, String(at));
}

function property(object, name) {
  const found = [...own(object, ".yna-form-properties").children].find((field) => field.dataset.key === name);
  if (!found) throw new Error(`there is no property ${name}`);
  return found;
}

function fillObject(field, { properties, cleared, extras }) {
  begin(field);
  const object = inBody(field, ".yna-form-object");
  for (const [name, plan] of cleared) {
    fill(property(object, name), plan);
    clear(property(object, name));
  }
  for (const [name, plan] of properties) fill(property(object, name), plan);
  for (const [name, plan] of extras) {
    press(own(object, ".yna-form-add"));
    const last = () => own(object, ".yna-form-extras").lastElementChild;
    for (const end of [1, name.length]) type(last().querySelector(".yna-form-key"), name.slice(0, end));
    fill(last(), plan);
  }
}

function clear(field) {
  const button = tool(field, "clear");
  if (button) return press(button);
  choose(field, -1);
}

function fillList(field, { items, fixed, detour }) {
  begin(field);
  const list = inBody(field, ".yna-form-list");
  const rows = own(list, ".yna-form-items");
  for (const [at, plan] of items.entries()) {
    if (at >= fixed) press(own(list, ".yna-form-add"));
    fill(rows.children[at], plan);
  }
  if (!detour) return;
  press(own(list, ".yna-form-add"));
  const count = rows.children.length;
  if (count - fixed > 1) {
    press(tool(rows.children[count - 1], "up"));
    press(tool(rows.children[count - 2], "remove"));
  } else press(tool(rows.children[count - 1], "remove"));
  if (count - fixed > 2) {
    press(tool(rows.children[fixed], "down"));
    press(tool(rows.children[fixed + 1], "up"));
  }
}

export function fill(field, plan) {
  switch (plan.do) {
    case "text": {
      const empty = tool(field, "empty");
      if (plan.text !== "" || !empty) return type(entry(field), plan.text);
      if (empty.getAttribute("aria-pressed") !== "true") {
        type(entry(field), "");
        press(empty);
      }
      return;
    }
    case "number":
    case "json":
      return type(entry(field), plan.text);
    case "choose":
      return choose(field, plan.at);
    case "fixed":
      return begin(field);
    case "null":
      if (tool(field, "nullify").getAttribute("aria-pressed") !== "true") press(tool(field, "nullify"));
      return;
    case "object":
      return fillObject(field, plan);
    case "list":
      return fillList(field, plan);
    case "variant":
      type(body(field).querySelector(":scope > .yna-form-union > select"), String(plan.at));
      if (plan.plan) fill(body(field).querySelector(":scope > .yna-form-union > .yna-form-bare"), plan.plan);
  }
}

/** What the controls of a field show; undefined where that is nothing. */
export function see(field) {
  const kind = field.dataset.kind;
  if (!own(field, ".yna-form-note").hidden) return { json: entry(field).value };
  if (tool(field, "nullify")?.getAttribute("aria-pressed") === "true") return { json: "null" };
  if (body(field).hidden) return undefined;
  switch (kind) {
    case "string": {
      const text = entry(field).value;
      const isItem = !tool(field, "empty") || tool(field, "empty").getAttribute("aria-pressed") === "true";
      return text !== "" || isItem ? { text } : undefined;
    }
    case "number":
    case "json":
      return entry(field).value === "" ? undefined : { json: entry(field).value };
    case "fixed":
      return { json: inBody(field, "output").textContent };
    case "choice": {
      const select = inBody(field, "select");
      const checked = select ? select.selectedOptions[0] : inBody(field, ".yna-form-flags").querySelector(":checked");
      const label = select ? checked?.textContent : checked?.parentElement.textContent;
      return !checked || checked.value === "-1" ? undefined : { choice: label };
    }
    case "union": {
      const union = inBody(field, ".yna-form-union");
      const chosen = own(union, ".yna-form-bare");
      if (chosen) return see(chosen);
      return own(union, "select").selectedOptions[0]?.textContent === "null" ? { json: "null" } : undefined;
    }
    case "list":
      return { list: [...own(inBody(field, ".yna-form-list"), ".yna-form-items").children].map(see).filter(Boolean) };
    case "object": {
      const object = inBody(field, ".yna-form-object");
      const listed = [...own(object, ".yna-form-properties").children].map((each) => [each.dataset.key, see(each)]);
      const extras = [...own(object, ".yna-form-extras").children].map((each) => [each.querySelector(".yna-form-key").value, see(each)]);
      return { object: [...listed, ...extras].filter(([, seen]) => seen) };
    }
  }
  throw new Error(`unknown kind ${kind}`);
}

/** Everything about one case; what goes wrong comes as `error`. */
export function tryCase(SchemaForm, place, { schema, plan, foreign }) {
  const forms = [];
  const make = () => {
    const form = new SchemaForm(schema);
    forms.push(form);
    place.replaceChildren(form.element);
    return form;
  };
  const root = (form) => form.element.firstElementChild;
  try {
    const form = make();
    const untouched = form.text;
    let changes = 0;
    form.onChange = () => (changes += 1);
    fill(root(form), plan);
    const { text } = form;
    const second = make();
    const refused = second.setText(text);
    const report = { untouched, text, changes, problems: form.problems(), seen: see(root(form)), refused };
    Object.assign(report, { secondText: second.text, secondSeen: see(root(second)), secondProblems: second.problems() });
    report.foreignRefused = second.setText(foreign);
    Object.assign(report, { foreignText: second.text, foreignSeen: see(root(second)) });
    second.setText(text);
    return { ...report, thirdText: second.text };
  } catch (error) {
    return { error: `${error.message}\n${error.stack}` };
  } finally {
    for (const form of forms) form.dispose();
  }
}
