"""The form made from a JSON Schema: what a person enters by its controls is what is sent, and what raw JSON says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from browser.panels.form_cases import ABSENT, Case, agrees, fits, generate, same
from playwright.async_api import BrowserContext, Page, expect
from widgets.front_end import STATIC

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

DRIVER = Path(__file__).with_name("form_driver.js")
BATCH = 100

OpenForm = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: BrowserContext) -> AsyncIterator[Page]:
    """An empty page with the built form in it, and what drives its controls."""
    page = await browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    await page.set_content(
        '<div class="yna" style="--yna-height: none"><div id="place" style="padding: 14px"></div></div>'
    )
    await page.add_style_tag(path=STATIC / "widget.css")
    await page.evaluate(
        """async ([part, driver]) => {
          const load = (text) => import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
          const { SchemaForm, style } = await load(part);
          document.head.append(Object.assign(document.createElement("style"), { textContent: style }));
          Object.assign(window, { SchemaForm, driver: await load(driver), place: document.getElementById("place") });
        }""",
        [(STATIC / "inspector.js").read_text(), DRIVER.read_text()],
    )
    yield page
    await page.close()
    assert problems == []


@pytest.fixture
def open_form(page: Page) -> OpenForm:
    """Shows the form of a schema."""

    async def open_form(schema: Any, value: Any = None) -> Page:
        await page.evaluate(
            """([schema, value]) => {
              window.form = new SchemaForm(schema);
              if (value !== null) form.setText(value);
              place.replaceChildren(form.element);
            }""",
            [schema if isinstance(schema, str) else json.dumps(schema), None if value is None else json.dumps(value)],
        )
        return page

    return open_form


async def entered(page: Page) -> Any:
    return json.loads(await page.evaluate("() => form.text"))


async def problems(page: Page) -> dict[str, str]:
    return {each["path"]: each["message"] for each in await page.evaluate("() => form.problems()")}


def judge(case: Case, report: dict[str, Any], foreign: Any) -> list[str]:
    """What is wrong with what a form made of a case."""
    if error := report.get("error"):
        return [error]
    value = json.loads(report["text"])
    start = report["untouched"]
    checks = {
        "the value is another": same(value, case.value),
        "the value does not validate": fits(case.schema, value),
        "the form complains": report["problems"] == [] == report["secondProblems"],
        "raw JSON is refused": report["refused"] is None is report["foreignRefused"],
        "the controls show another value": agrees(report["seen"], case.value),
        "a second form gives another text": report["text"] == report["secondText"] == report["thirdText"],
        "a second form shows another value": agrees(report["secondSeen"], case.value),
        "JSON of another kind is not kept": json.dumps(json.loads(report["foreignText"])) == json.dumps(foreign),
        "JSON of another kind is not shown": agrees(report["foreignSeen"], foreign),
        "an untouched form holds something else": start == ""
        if case.untouched is ABSENT
        else same(json.loads(start), case.untouched),
    }
    return [f"{what}: {report}" for what, holds in checks.items() if not holds]


async def test_what_is_entered_validates_the_untouched_is_absent_and_raw_and_form_agree(page: Page) -> None:
    cases = generate(1_000)
    assert len(cases) == 1_000
    wrong: list[tuple[Case, list[str]]] = []
    for start in range(0, len(cases), BATCH):
        batch = range(start, start + BATCH)
        foreign = [cases[at - 1].value for at in batch]  # a value of another schema
        reports = await page.evaluate(
            "(cases) => cases.map((each) => driver.tryCase(SchemaForm, place, each))",
            [
                {"schema": json.dumps(cases[at].schema), "plan": cases[at].plan, "foreign": json.dumps(other)}
                for at, other in zip(batch, foreign, strict=True)
            ],
        )
        for at, report, other in zip(batch, reports, foreign, strict=True):
            if problems := judge(cases[at], report, other):
                wrong.append((cases[at], problems))
    simplest = min(wrong, key=lambda pair: len(json.dumps(pair[0].schema)), default=None)
    assert simplest is None, f"{len(wrong)} of {len(cases)}, the simplest of them: {simplest}"


async def test_numbers_keep_every_digit_and_their_spelling(open_form: OpenForm) -> None:
    page = await open_form(
        '{"properties": {"id": {"type": "integer", "minimum": 9007199254740993}, "rate": {"type": "number"},'
        ' "key": {"enum": [9007199254740993, 9007199254740992]}}}'
    )
    await page.get_by_role("textbox", name="id", exact=True).fill("9007199254740992")
    assert await problems(page) == {"id": "This must be at least 9007199254740993."}
    await page.get_by_role("textbox", name="id", exact=True).fill("12345678901234567890123456789")
    await page.get_by_role("textbox", name="rate", exact=True).fill("1.50e2")
    await page.get_by_role("combobox", name="key").select_option("9007199254740993")
    text = '{\n  "id": 12345678901234567890123456789,\n  "rate": 1.50e2,\n  "key": 9007199254740993\n}'
    assert await page.evaluate("() => form.text") == text
    assert await page.evaluate("(text) => [form.setText(text), form.text]", text.replace("1.50e2", "0.10")) == [
        None,
        text.replace("1.50e2", "0.10"),
    ]
    await expect(page.get_by_role("textbox", name="rate", exact=True)).to_have_value("0.10")
    assert await problems(page) == {}


async def test_what_was_touched_goes_back_to_being_absent(open_form: OpenForm) -> None:
    page = await open_form(
        {
            "properties": {
                "note": {"type": ["string", "null"]},
                "limit": {"type": "integer", "default": 10},
                "deep": {"type": "object", "properties": {"on": {"type": "boolean"}}},
                "tags": {"type": "array", "items": {"type": "string"}, "default": ["new"]},
            }
        }
    )
    await expect(page.get_by_role("textbox", name="limit", exact=True)).to_have_attribute("placeholder", "Default: 10")
    await page.get_by_role("textbox", name="note", exact=True).fill("text")
    await page.get_by_role("textbox", name="limit", exact=True).fill("3")
    await page.get_by_role("button", name="Add deep").click()
    await page.get_by_role("radiogroup", name="on").get_by_label("true").check()
    await page.get_by_role("button", name="Add tags").click()
    assert await entered(page) == {"note": "text", "limit": 3, "deep": {"on": True}, "tags": ["new"]}
    await page.get_by_role("button", name="Clear tags").click()
    await page.get_by_role("radiogroup", name="on").get_by_label("Not set").check()
    await page.get_by_role("textbox", name="limit", exact=True).fill("")
    await page.get_by_role("button", name="Null for note").click()
    assert await entered(page) == {"note": None, "deep": {}}
    await page.get_by_role("button", name="Clear deep").click()
    await page.get_by_role("button", name="Clear note").click()
    await page.get_by_role("button", name="Empty text for note").click()
    assert await entered(page) == {"note": ""}
    await page.get_by_role("button", name="Empty text for note").click()
    assert await entered(page) == {}


async def test_what_the_form_cannot_show_stays_as_json_in_its_place(open_form: OpenForm) -> None:
    schema = {
        "properties": {"count": {"type": "integer"}, "__proto__": {"type": "string"}},
        "required": ["count"],
        "additionalProperties": False,
    }
    value = {"unknown": [1, {"a": None}], "count": "many", "__proto__": "own"}
    page = await open_form(schema, value)
    assert json.dumps(await entered(page)) == json.dumps(value)
    assert await problems(page) == {
        "count": "A whole number is expected.",
        "unknown": "The tool knows no property of this name.",
    }
    await expect(page.get_by_role("textbox", name="count", exact=True)).to_have_value('"many"')
    await expect(page.get_by_role("textbox", name="__proto__", exact=True)).to_have_value("own")
    await page.get_by_role("button", name="Use the field").click()
    await page.get_by_role("textbox", name="count", exact=True).fill("1.5")
    await expect(page.locator(".yna-form-problem:visible")).to_contain_text(["A whole number is expected."])
    await page.get_by_role("textbox", name="count", exact=True).fill("2")
    await page.get_by_role("button", name="Remove property unknown").click()
    assert await entered(page) == {"count": 2, "__proto__": "own"}
    assert await page.evaluate("() => form.setText('{\"count\": 1,}')") == "This comma is one too many before }."
    assert await page.evaluate('() => form.setText(\'{"a": 1, "a": 2}\')') == 'The name "a" stands twice in one object.'
    assert await entered(page) == {"count": 2, "__proto__": "own"}


async def test_a_chosen_form_writes_what_tells_it_apart_and_its_own_problems_are_told(open_form: OpenForm) -> None:
    page = await open_form(
        {
            "properties": {
                "when": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
                "shape": {
                    "oneOf": [
                        {
                            "title": "Dot",
                            "properties": {"kind": {"const": "dot", "default": "dot"}, "size": {"type": "integer"}},
                        },
                        {
                            "title": "Line",
                            "properties": {
                                "kind": {"const": "line", "default": "line"},
                                "from": {"type": "integer", "minimum": 1},
                                "to": {"type": "integer", "minimum": 1},
                            },
                        },
                    ]
                },
                "points": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
            },
        }
    )
    await page.get_by_role("combobox", name="shape", exact=True).select_option("Line")
    assert await entered(page) == {"shape": {"kind": "line"}}
    for name in ("from", "to"):
        await page.get_by_role("textbox", name=name, exact=True).fill("0")
    await page.get_by_role("textbox", name="when", exact=True).fill("yesterday")
    found = await problems(page)
    assert "date" in found.pop("when")
    assert found == dict.fromkeys(["shape.from", "shape.to"], "This must be at least 1.")
    await page.get_by_role("button", name="Add points").click()
    await page.get_by_role("button", name="Add item to points").click()
    await expect(page.get_by_role("textbox", name="x", exact=True)).to_be_focused()


async def test_an_untouched_required_field_is_called_wrong_when_it_is_asked_for(open_form: OpenForm) -> None:
    page = await open_form({"properties": {"path": {"type": "string", "description": "Where"}}, "required": ["path"]})
    field = page.get_by_role("textbox", name="path", exact=True)
    await expect(field).to_have_accessible_description("string Where")
    assert await problems(page) == {"path": "This is required."}
    await expect(page.locator(".yna-form-problem:visible")).to_have_count(0)
    assert await page.evaluate("() => form.reveal()")
    await expect(field).to_be_focused()
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(field).to_have_accessible_description("string Where This is required.")
    await field.fill("a/path")
    await expect(page.locator(".yna-form-problem:visible")).to_have_count(0)


HOSTILE: dict[str, Any] = {
    "it is no schema": [1, 2],
    "a type nobody knows": {"properties": {"a": {"type": "wild"}, "b": {"type": 7}, "c": 5}, "required": "a"},
    "keywords of wrong kinds": {
        "properties": {"a": {"type": "string", "enum": "x", "pattern": "(", "minLength": "3", "anyOf": 1, "allOf": {}}},
        "patternProperties": {"(": {}},
    },
    "a reference to itself": {"$ref": "#"},
    "references in a circle": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    "a reference to nowhere": {"properties": {"a": {"$ref": "#/$defs/none"}, "b": {"$ref": "https://example.org/x"}}},
    "one form, which is itself": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
    "two forms, which are itself": {"oneOf": [{"$ref": "#"}, {"$ref": "#"}]},
    "it requires itself for ever": {"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}, "required": ["a", "b"]},
    "more and more of it": {
        "$ref": "#/$defs/d0",
        "$defs": {
            f"d{level}": {
                "type": "object",
                "properties": {name: {"$ref": f"#/$defs/d{level + 1}"} for name in "abcdefghij"},
                "required": list("abcdefghij"),
            }
            for level in range(9)
        },
    },
    "a pattern that takes for ever": {"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
    "names of a page's own objects": {
        "properties": {name: {"type": "string"} for name in ("__proto__", "constructor", "toString")}
    },
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_an_odd_schema_still_gives_a_form_that_keeps_what_is_entered(open_form: OpenForm, kind: str) -> None:
    page = await open_form(HOSTILE[kind])
    value: dict[str, Any] = {"a": "a" * 40 + "!", "b": {"a": [1, 2, {}]}, "constructor": "c", "__proto__": None}
    assert await page.evaluate("(text) => form.setText(text)", json.dumps(value)) is None
    assert json.dumps(await entered(page)) == json.dumps(value)
    await page.evaluate("() => (form.problems(), form.reveal())")
    assert await page.locator("#place").locator("textarea, input, select, button").count() > 0


async def test_5000_properties_and_deep_nesting_leave_no_task_over_50_ms(open_form: OpenForm) -> None:
    deep: dict[str, Any] = {"type": "string"}
    for level in range(100):
        deep = {"type": "object", "properties": {f"level{level}": deep}, "required": [f"level{level}"]}
    schema = {
        "properties": {
            **{f"p{number}": {"type": ("string", "integer", "array", "object")[number % 4]} for number in range(5_000)},
            "deep": deep,
        },
        "required": ["p4998", "deep"],
    }
    page = await open_form({})
    took = await page.evaluate(
        """async (schema) => {
          const took = {};
          const time = (what, act) => {
            const start = performance.now();
            act();
            void place.offsetHeight;
            took[what] = Math.round(performance.now() - start);
          };
          const times = (what, act) => { for (let turn = 0; turn < 5; turn += 1) time(`${what} ${turn}`, act); };
          times("build", () => {
            window.form = new SchemaForm(schema);
            place.replaceChildren(form.element);
          });
          const box = place.querySelector("textarea");
          times("type", () => { box.value += "x"; box.dispatchEvent(new InputEvent("input", { bubbles: true })); });
          times("more", () => place.querySelector(".yna-more:not([hidden])").click());
          const search = place.querySelector(".yna-form-search");
          const input = () => new InputEvent("input", { bubbles: true });
          times("find", () => { search.value += "4"; search.dispatchEvent(input()); });
          return took;
        }""",
        json.dumps(schema),
    )
    best = {what: min(took[f"{what} {turn}"] for turn in range(5)) for what in ("build", "type", "more", "find")}
    assert max(best.values()) < 50, took
    await page.get_by_role("searchbox").fill("p4321")
    await page.get_by_role("textbox", name="p4321", exact=True).fill("17")
    await page.get_by_role("searchbox").fill("")
    assert (await entered(page))["p4321"] == 17
    await expect(page.get_by_role("group", name="p4998")).to_be_visible()
