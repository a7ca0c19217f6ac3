"""A server's question is answered in the page, and what it says is text and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from browser.conftest import OpenNotebook
from browser.lab import Notebook
from browser.test_demo_and_looks import CONTRAST
from browser.test_safety import INSPECT
from playwright.async_api import Locator, expect
from widgets.payloads import PAYLOADS

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

AGENT = """
import json
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.events import ApprovalRequested, QuestionAsked
from yiemagent_nb.core.tools import Tool, current_agent
from yiemagent_nb.testing import Scripted, call
from yiemagent_nb.widgets import AgentWidget

questions = [QuestionAsked(f"q-{{number}}", **each) for number, each in enumerate(json.loads({questions!r}))]
answers = []

async def ask(tool_call_id, arguments, signal, on_update):
    for question in questions:
        answer = await current_agent.get().questions.ask(question, signal)
        answers.append((answer.action, dict(answer.content)))
    return "asked"

sampling = Tool(name="sampling", description="Use the model.", source="notes", execute=print)

async def sample(tool_call_id, arguments, signal, on_update):
    text, source = "the tide" * {times}, "notes" * {times}
    request = ApprovalRequested("a-1", "elsewhere", "sampling", {{"text": text}}, source, "Use your model")
    decision = await current_agent.get().approvals.request(sampling, request, signal, None)
    return f"{{decision.choice}} {{decision.arguments}}"

tools = [Tool(name=each.__name__, description="Ask.", source="railways", execute=each) for each in (ask, sample)]
agent = Agent(Scripted([[call("{tool}")], "Thank you."]), tools=tools)
AgentWidget(agent)
"""

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2, "description": "As on the passport"},
        "email": {"type": "string", "format": "email", "title": "Email"},
        "day": {"type": "string", "format": "date", "title": "Day"},
        "seats": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2, "title": "Seats"},
        "class": {"enum": ["s", "f"], "enumNames": ["Second", "First"], "title": "Class"},
        "extras": {"type": "array", "items": {"anyOf": [{"const": "b", "title": "Bike"}, {"const": "m"}]}},
        "window": {"type": "boolean", "title": "Window"},
        "terms": {"type": "boolean", "title": "Terms"},
        "note": {"type": "string", "title": "Note"},
    },
    "required": ["name", "terms"],
}


def question(**fields: Any) -> dict[str, Any]:
    return {"source": "railways", "message": "Which train?", "schema": None, "url": "", **fields}


def agent(*questions: dict[str, Any], tool: str = "ask", times: int = 1) -> str:
    return AGENT.format(questions=json.dumps(questions), tool=tool, times=times)


def card(notebook: Notebook, index: int = 0) -> Locator:
    return notebook.widget(index).locator(".yna-question")


def settled(verb: str) -> str:
    return f"{verb} railways\N{RIGHT SINGLE QUOTATION MARK}s question"


async def answers(notebook: Notebook, cell: int) -> str:
    await notebook.run_cell(cell)
    return (await notebook.cell(cell).locator(".jp-OutputArea-output").inner_text()).strip()


async def test_a_form_is_filled_in_and_sent_by_keyboard_alone(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(agent(question(schema=FORM)), "print(json.dumps(answers))")
    await notebook.say("go")
    form = card(notebook)
    await expect(form).to_contain_text("railways asks")
    await expect(form).to_contain_text("Enter no passwords or keys")
    await expect(notebook.widget().locator(".yna-status")).to_have_text("1 waits for you")
    assert await notebook.page.evaluate(CONTRAST) == []
    name, seats = form.get_by_label("Your name"), form.get_by_label("Seats")
    await expect(name).to_have_accessible_description("at least 2 characters As on the passport")
    await name.focus()
    keyboard = notebook.page.keyboard
    await keyboard.type("A")
    await keyboard.press("Enter")
    await expect(form.get_by_role("alert")).to_contain_text("Your name should fit")
    await expect(name).to_have_value("A")
    await keyboard.type("da b")
    await keyboard.press("Tab")
    await keyboard.type("ada")
    await keyboard.press("Enter")
    await expect(form.get_by_label("Email")).to_have_attribute("aria-invalid", "true")
    await keyboard.type("@example.org")
    await seats.focus()
    await keyboard.press("ArrowUp")
    await form.get_by_label("Bike").focus()
    await keyboard.press("Space")
    await form.get_by_label("Class").select_option("First")
    await form.get_by_label("Day").fill("2027-02-03")
    await keyboard.press("Escape")
    await keyboard.press("Enter")
    await expect(notebook.widget().locator(".yna-settled")).to_have_text(settled("Answered"))
    await expect(form).to_have_count(0)
    await notebook.until_ready()
    assert json.loads(await answers(notebook, 1)) == [
        [
            "accept",
            {
                "name": "Ada b",
                "email": "ada@example.org",
                "day": "2027-02-03",
                "seats": 3,
                "class": "f",
                "extras": ["b"],
                "terms": False,
            },
        ]
    ]


async def test_every_view_shows_what_waits_and_one_answer_settles_all(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(
        agent(question(schema=FORM), question(message="Sure?", schema={})), "AgentWidget(agent)"
    )
    await notebook.say("go")
    await expect(card(notebook)).to_have_count(1)
    await notebook.run_cell(1)
    await card(notebook, 1).get_by_label("Your name").fill("Ada")
    await card(notebook, 1).get_by_role("button", name="Decline").click()
    for view in (0, 1):
        await expect(notebook.widget(view).locator(".yna-settled").first).to_have_text(settled("Declined"))
        await expect(card(notebook, view)).to_contain_text("Sure?")
    await card(notebook, 0).get_by_role("button", name="Dismiss").click()
    await expect(notebook.widget(1).locator(".yna-settled")).to_have_count(2)
    await notebook.until_ready()


async def test_a_question_outlives_a_reload_of_the_page(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(agent(question(schema=FORM)), own_page=True)
    await notebook.say("go")
    await expect(card(notebook)).to_have_count(1)
    await notebook.save()
    await notebook.reload()
    await card(notebook).get_by_label("Your name").fill("Ada")
    await card(notebook).get_by_role("button", name="Submit").click()
    await expect(notebook.widget().locator(".yna-answer").last).to_contain_text("Thank you.")


async def test_a_visit_shows_where_it_leads_and_only_the_web_can_be_opened(open_notebook: OpenNotebook) -> None:
    good, bad = "https://safe.example@evil.example:8443/a?b=c#d", "javascript:window.pwned=1//https://x.org"
    notebook = await open_notebook(agent(question(url=good), question(url=bad)), "print(json.dumps(answers))")
    await notebook.say("go")
    await expect(card(notebook).locator(".yna-url")).to_have_text(good)
    await expect(card(notebook).locator(".yna-url b")).to_have_text("evil.example:8443")
    link = card(notebook).get_by_role("link", name="Open")
    await expect(link).to_have_attribute("href", good)
    await expect(link).to_have_attribute("rel", "noopener noreferrer")
    await expect(link).to_have_attribute("target", "_blank")
    await card(notebook).get_by_role("button", name="Done").click()
    await expect(card(notebook).locator(".yna-url")).to_have_text(bad)
    await expect(card(notebook).get_by_role("link")).to_have_count(0)
    await card(notebook).get_by_role("button", name="Decline").click()
    await notebook.until_ready()
    assert json.loads(await answers(notebook, 1)) == [["accept", {}], ["decline", {}]]


async def test_a_request_that_is_no_call_has_a_card_of_its_own(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(agent(tool="sample"))
    await notebook.say("go")
    request = notebook.widget().locator(".yna-request")
    await expect(request).to_contain_text("Allow sampling for notes?")
    await expect(request.locator(".yna-args")).to_have_text("textthe tide")
    await expect(request.locator(".yna-buttons").first.get_by_role("button")).to_have_count(4)
    await request.get_by_role("button", name="Edit…").click()
    await request.get_by_label("Arguments as JSON").fill('{"text": "the moon"}')
    await request.get_by_role("button", name="Allow with these arguments").click()
    await expect(notebook.widget().locator(".yna-settled")).to_have_text(
        "sampling for notes: Allowed with edited arguments."
    )
    await notebook.until_ready()
    await notebook.widget().locator(".yna-call-row").click()
    await expect(notebook.widget().locator(".yna-result")).to_contain_text("allow_edited {'text': 'the moon'}")


OVERFLOWS = """widget => [widget, ...widget.querySelectorAll(".yna-asks, .yna-asks *")]
    .filter(each => each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== "inline")
    .map(each => `${each.className}: ${each.scrollWidth} > ${each.clientWidth}`)"""


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
async def test_a_card_holds_names_and_texts_of_any_length(open_notebook: OpenNotebook, theme: str) -> None:
    long = "x" * 20_000
    schema = {"properties": {long: {"title": long, "description": long}}}
    notebook = await open_notebook(
        agent(question(source=long, message=long, schema=schema), question(url=f"https://{long[:4000]}.org/{long}")),
        agent(tool="sample", times=5_000),
        width=700,
    )
    await notebook.set_theme(theme)
    try:
        await notebook.say("go")
        for number in range(2):
            await expect(notebook.widget().locator(".yna-settled")).to_have_count(number)
            await expect(card(notebook)).to_have_count(1)
            assert await notebook.widget().evaluate(OVERFLOWS) == []
            await card(notebook).get_by_role("button", name="Decline").click()
        await notebook.until_ready()
        await notebook.run_cell(1)
        await notebook.say("go", 1)
        request = notebook.widget(1).locator(".yna-request")
        await expect(request).to_contain_text("Allow sampling for notesnotes")
        assert await notebook.widget(1).evaluate(OVERFLOWS) == []
        box = await request.bounding_box()
        assert box is not None
        assert box["height"] < 600
        await expect(request.get_by_role("button", name="Deny…")).to_be_in_viewport()
        assert await notebook.page.evaluate(CONTRAST) == []
        await request.get_by_role("button", name="Allow once").click()
        await expect(notebook.widget(1).locator(".yna-settled")).to_contain_text("Allowed once.")
        assert await notebook.widget(1).evaluate(OVERFLOWS) == []
        await notebook.until_ready(1)
    finally:
        await notebook.set_theme("JupyterLab Light")


async def test_what_is_missing_is_told_at_its_field_by_its_title(open_notebook: OpenNotebook) -> None:
    properties = {
        "name": {"type": "string", "title": "String"},
        "age": {"type": "integer", "title": "Age", "maximum": 9, "default": 10},
    }
    notebook = await open_notebook(agent(question(schema={"properties": properties, "required": ["name", "age"]})))
    await notebook.say("go")
    await card(notebook).get_by_role("button", name="Submit").click()
    name = card(notebook).get_by_label("String")
    await expect(name).to_be_focused()
    await expect(name).to_have_attribute("aria-invalid", "true")
    await expect(card(notebook).get_by_role("alert")).to_have_text("This is asked for.")
    await name.fill("Ada")
    await card(notebook).get_by_role("button", name="Submit").click()
    await expect(card(notebook).get_by_role("alert")).to_contain_text('Age should fit {"maximum": 9}, got 10')
    await card(notebook).get_by_role("button", name="Dismiss").click()
    await notebook.until_ready()


async def test_nothing_in_a_question_runs(open_notebook: OpenNotebook) -> None:
    def fields(text: str) -> dict[str, Any]:
        kinds: dict[str, Any] = {
            text: {"type": "string", "default": text},
            f"{text}1": {"enum": [text, "a"], "default": text},
            f"{text}2": {"type": "array", "items": {"enum": [text]}},
            f"{text}3": {"type": "string", "format": "uri", "default": text},
            f"{text}4": {"type": "boolean", "default": True},
            f"{text}5": {"type": "object", "default": {text: text}},
        }
        return {name: {**schema, "title": text, "description": text} for name, schema in kinds.items()}

    def hostile(texts: Sequence[str]) -> dict[str, Any]:
        properties = {name: schema for text in texts for name, schema in fields(text).items()}
        schema = {"properties": properties, "required": [*texts]}
        return question(source=texts[0], message="\n\n".join(texts), schema=schema)

    texts = [*PAYLOADS.values()]
    addresses = [text for name, text in PAYLOADS.items() if "link" in name or "javascript" in name or "bidi" in name]
    hostiles = [hostile(texts[start : start + 8]) for start in range(0, len(texts), 8)]
    hostiles += [question(source=text, message=text, url=text) for text in addresses]
    notebook = await open_notebook(agent(*hostiles))
    page = notebook.page
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    await notebook.say("go")
    for number in range(len(hostiles)):
        await expect(notebook.widget().locator(".yna-settled")).to_have_count(number)
        await expect(card(notebook)).to_have_count(1)
        assert await page.evaluate(INSPECT) == []
        await expect(card(notebook).get_by_role("link")).to_have_count(0)
        await card(notebook).get_by_role("button", name="Decline").click()
    await notebook.until_ready()
    assert await page.evaluate(INSPECT) == []
    assert await page.evaluate("() => window.pwned") is None
    assert [url for url in requests if not url.startswith((notebook.lab.url, "blob:", "data:"))] == []
