"""The tool inspector: what tools and servers are, what they answer by hand, and what is said to them."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from browser.conftest import OpenNotebook
from browser.lab import Notebook
from browser.test_accessibility import scan
from browser.test_demo_and_looks import CONTRAST
from browser.test_speed import longest, tasks
from mcp_client.reference_server import reference_command, reference_in_a_cell
from playwright.async_api import Locator, expect
from widgets.payloads import PAYLOADS

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

TOOLS = '''
import asyncio
from dataclasses import dataclass
from typing import Literal
from yiemagent_nb import Agent
from yiemagent_nb.core.approval import approve
from yiemagent_nb.core.hooks import BeforeToolCallResult
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.tools import Tool, ToolAnnotations, tool
from yiemagent_nb.widgets.tool_inspector import ToolInspector

@dataclass
class Stop:
    place: str
    minutes: int

@tool(annotations=ToolAnnotations(read_only=True))
def plan_trip(city: str, stops: list[Stop], by: Literal["train", "bicycle"] = "train", note: str | None = None) -> dict:
    """Plan a trip.

    Args:
        city: Where it ends.
        stops: Where to stop, and how long.
        by: How to travel.
        note: What else to know.
    """
    return {"stops": stops, "city": city, "by": by, "note": note}

@tool(annotations=ToolAnnotations(destructive=True))
def delete_file(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"

@tool
def guarded() -> str:
    """Something that a hook forbids."""
    return "it ran"

async def promise(tool_call_id, arguments, signal, on_update):
    return ToolResult("Many.", details={"seats": "many"})

seats = Tool(name="seats", description="Count seats.", execute=promise, output_schema={
    "type": "object", "properties": {"seats": {"type": "integer"}}, "required": ["seats"]})

offered = []

def model(messages, tools=None, **more):
    offered.append(sorted(each["function"]["name"] for each in tools or []))
    return "fine"

asking = approve()

def guard(context, signal):
    if context.tool_call.name == "guarded":
        return BeforeToolCallResult(block=True, reason="not on a Sunday")
    return asking(context, signal)
'''

AGENT = TOOLS + "agent = Agent(model, tools=[plan_trip, delete_file, guarded, seats], before_tool_call=guard)\n"
INSPECTOR = "ToolInspector(agent)\n"

LATER = """
@tool
def later(text: str) -> str:
    'Something new.'
    return text

agent.set_tools([*agent.tools.values(), later])
"""


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    """The first call of a kernel loads what checks schemas, which takes its time on a busy machine."""
    expect.set_options(timeout=15_000)
    yield
    expect.set_options(timeout=5_000)


class Inspector:
    """The inspector in a page."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook
        self.widget = notebook.widget()
        self.list = self.widget.get_by_role("tree")
        self.page = self.widget.locator(".yna-inspector-detail")
        self.call = self.page.locator(".yna-hand-call")

    def row(self, name: str) -> Locator:
        return self.list.get_by_role("treeitem", name=name)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    async def open(self, name: str, tab: str = "") -> None:
        await self.row(name).click()
        if tab:
            await self.page.get_by_role("tab", name=tab).click()

    async def run(self) -> None:
        await self.button("Call").click()


async def value(notebook: Notebook, index: int) -> Any:
    """What a cell shows."""
    await notebook.run_cell(index)
    return eval(await notebook.cell(index).locator(".jp-OutputArea-output").inner_text())  # noqa: S307 - our own value


async def test_tools_are_found_looked_at_and_taken_from_the_model(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(AGENT + INSPECTOR, "await agent.prompt('go')\noffered[-1]")
    inspector = Inspector(notebook)
    search = inspector.widget.get_by_label("Search tools")
    await expect(inspector.row("Plan trip")).to_contain_text("read-only")
    await expect(inspector.row("Delete file")).to_contain_text("destructive")
    await search.fill("file DELETE")
    await expect(inspector.list.locator(".yna-tool-row")).to_have_count(1)
    await expect(inspector.row("Python")).to_contain_text("1 of 4")
    await search.press("Enter")
    await inspector.list.press("Enter")
    await expect(inspector.page.get_by_role("heading", name="Delete file")).to_be_focused()
    advice = inspector.page.get_by_role("group", name="Could be better")
    await expect(advice).to_contain_text("without a description: path")
    await search.fill("")

    await inspector.open("Plan trip", "Schema")
    schema = inspector.page.get_by_role("tabpanel")
    for words in (
        "cityrequiredtext",
        "stopsrequiredlist of objects",
        "minutesrequiredwhole number",
        '"train" | "bicycle"',
    ):
        await expect(schema).to_contain_text(words)
    await schema.get_by_role("button", name="Raw").click()
    await expect(schema.locator("pre").first).to_contain_text('"additionalProperties"')
    await inspector.page.get_by_role("tab", name="Details").click()
    definition = inspector.page.get_by_role("group", name="Where it is defined")
    await expect(definition).to_contain_text("def plan_trip(city: str")
    await expect(definition.locator(".hljs-keyword, [class*=keyword]").first).to_be_visible()

    switch = inspector.page.get_by_role("switch", name="Offered to the model")
    await expect(switch).to_be_checked()
    assert "plan_trip" in await value(notebook, 1)
    await switch.click()
    await expect(switch).not_to_be_checked()
    await expect(inspector.row("Plan trip")).to_contain_text("off")
    assert await value(notebook, 1) == ["delete_file", "guarded", "seats"]


async def test_nested_arguments_are_entered_called_with_and_called_with_again(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(AGENT + INSPECTOR, LATER)
    inspector = Inspector(notebook)
    page = inspector.page
    await inspector.open("Plan trip")
    await inspector.run()
    await expect(page.get_by_role("button", name="Call all the same")).to_be_visible()
    await expect(inspector.call).to_be_hidden()
    await page.get_by_role("textbox", name="city").fill("Lisbon")
    await page.get_by_role("button", name="Add item to stops").click()
    await page.get_by_role("textbox", name="place").fill("Évora")
    await page.get_by_role("textbox", name="minutes").fill("9007199254740993")
    editor = page.get_by_role("textbox", name="Arguments as JSON")
    await expect(editor).to_contain_text("9007199254740993")
    await expect(editor).not_to_contain_text("note")
    await editor.focus()
    await notebook.page.keyboard.press("Control+a")
    await notebook.page.keyboard.insert_text(
        '{"city": "Porto", "stops": [{"place": "Évora", "minutes": 9007199254740993}]}'
    )
    await expect(page.get_by_role("textbox", name="city")).to_have_value("Porto")
    await page.get_by_role("textbox", name="city").press("Control+Enter")
    await expect(inspector.call).to_have_attribute("data-state", "done")
    await inspector.call.get_by_role("button", name="Raw").click()
    await expect(inspector.call.locator("pre")).to_contain_text("9007199254740993")

    await page.get_by_role("textbox", name="city").fill("Fa")
    await page.get_by_role("textbox", name="city").press("End")
    await notebook.run_cell(1)
    await expect(inspector.row("Later")).to_be_visible()
    await expect(page.get_by_role("textbox", name="city")).to_have_value("Fa")
    await inspector.open("Later")
    await inspector.open("Plan trip")
    await expect(page.get_by_role("textbox", name="city")).to_have_value("Fa")
    await inspector.run()
    await expect(page.get_by_text("Earlier calls")).to_be_visible()
    await page.get_by_role("button", name="Fill in").click()
    await expect(page.get_by_role("textbox", name="city")).to_have_value("Porto")
    await inspector.widget.get_by_role("button", name="Calls 2").click()
    await inspector.widget.get_by_role("listbox", name="Calls by hand").get_by_role("option").last.click()
    await page.get_by_role("button", name="Call again").click()
    await expect(inspector.widget.get_by_role("button", name="Calls 3")).to_be_visible()
    await expect(inspector.call).to_contain_text("Porto")

    await inspector.widget.get_by_role("button", name="Tools", exact=True).click()
    await inspector.open("Seats")
    await page.get_by_label("through the agent").uncheck()
    await inspector.run()
    await expect(page.get_by_role("group", name="Output schema")).to_contain_text("integer")


async def test_a_call_asks_its_hooks_or_does_without_them(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(AGENT + INSPECTOR)
    inspector = Inspector(notebook)
    await inspector.open("Guarded")
    await inspector.run()
    await expect(inspector.call).to_have_attribute("data-state", "failed")
    await expect(inspector.call).to_contain_text("not on a Sunday")
    await inspector.page.get_by_label("through the agent").uncheck()
    await inspector.run()
    await expect(inspector.call).to_have_attribute("data-state", "done")
    await expect(inspector.call).to_contain_text("it ran")

    await inspector.open("Delete file")
    await inspector.page.get_by_role("textbox", name="path").fill("a.txt")
    await inspector.run()
    waiting = inspector.call.get_by_role("group", name="The call waits for your word")
    await expect(waiting).to_contain_text("May Delete file run?")
    await waiting.get_by_role("button", name="Deny").press("Enter")
    await expect(inspector.call).to_have_attribute("data-state", "failed")
    await inspector.page.get_by_role("textbox", name="path").fill("b.txt")
    await inspector.run()
    await waiting.get_by_role("button", name="Allow once").press("Enter")
    await expect(inspector.call).to_contain_text("deleted b.txt")


REFERENCE = f"""
{reference_in_a_cell()}
{TOOLS}
agent = Agent(model, mcp_servers=[server])
await server.check()
{INSPECTOR}"""


async def test_a_real_server_is_called_and_read(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(REFERENCE, "await server.call_tool('toggle-subscriber-updates')\nNone")
    inspector = Inspector(notebook)
    page = inspector.page
    await inspector.widget.get_by_label("Search tools").fill("long running")
    await inspector.open("Long Running Operation")
    await page.get_by_role("textbox", name="duration").fill("30")
    await page.get_by_role("textbox", name="steps").fill("100")
    await inspector.run()
    await expect(inspector.call.get_by_role("progressbar")).not_to_have_js_property("value", 0)
    await inspector.call.get_by_role("button", name="Cancel").click()
    await expect(inspector.call).to_have_attribute("data-state", "cancelled")
    await inspector.widget.get_by_label("Search tools").fill("")

    await inspector.open("everything")
    await expect(page.locator(".yna-page-state")).to_contain_text("Ready, answers in")
    await expect(page.get_by_role("tabpanel")).to_contain_text("resources (subscribe)")
    await page.get_by_role("tab", name="Messages").click()
    log = page.get_by_role("listbox", name="Messages")
    await expect(log.get_by_role("option").last).to_be_visible()
    await page.get_by_label("Search messages").fill("tools/call")
    await page.get_by_role("button", name="→ Sent").click()
    await expect(log.get_by_role("option")).to_have_count(1)
    await log.get_by_role("option").click()
    await expect(page.locator(".yna-log-body")).to_contain_text('name: "trigger-long-running-operation"')
    await page.get_by_role("button", name="Raw").click()
    await expect(page.locator(".yna-log-body pre")).to_contain_text('"duration"')
    await page.get_by_role("button", name="Close the message").click()

    await page.get_by_role("tab", name="Resources").click()
    document = page.get_by_role("group", name="features.md")
    await document.get_by_role("button", name="Read").click()
    await expect(document.locator("pre")).to_contain_text("Everything Server")
    template = page.get_by_role("group", name="Dynamic Text Resource")
    await template.get_by_label("resourceId").fill("7")
    await template.get_by_label("resourceId").press("Enter")
    await expect(template.locator(".yna-contents")).to_contain_text("Resource 7")
    await document.get_by_role("button", name="Watch").click()
    await expect(document.get_by_role("button", name="Watched")).to_be_visible()
    await notebook.run_cell(1)
    await expect(document.get_by_text("changed")).to_be_visible()


async def test_prompts_of_a_real_server_are_filled_in_and_its_notifications_read(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(REFERENCE)
    inspector = Inspector(notebook)
    page = inspector.page
    await inspector.open("everything", "Prompts")
    prompt = page.get_by_role("group", name="Arguments Prompt")
    await prompt.get_by_role("button", name="Get").click()
    await expect(prompt.get_by_role("alert")).to_contain_text("city")
    await prompt.get_by_label("city").fill("Lisbon")
    await prompt.get_by_label("city").press("Enter")
    await expect(prompt.locator(".yna-prompt-message")).to_contain_text("Lisbon")

    await page.get_by_role("tab", name="Notifications").click()
    told = page.get_by_role("listbox", name="Notifications")
    await expect(told.get_by_role("option").filter(has_text="tools/list_changed").first).to_be_visible()
    await page.get_by_label("Level").select_option("info")
    await expect(told.get_by_role("option").filter(has_text="tools/list_changed")).to_have_count(0)
    await expect(told.get_by_role("option").first).to_contain_text("info")
    await page.get_by_label("Level").select_option("error")
    await expect(told.get_by_role("option")).to_have_count(0)


async def test_a_real_server_is_switched_off_reconnected_and_removed(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(REFERENCE)
    inspector = Inspector(notebook)
    page = inspector.page
    await inspector.open("everything")
    state = page.locator(".yna-page-state")
    await inspector.button("Disconnect").click()
    await expect(state).to_have_text("Switched off")
    await inspector.button("Connect").click()
    await expect(state).to_contain_text("Ready")
    await inspector.button("Reconnect").click()
    await page.get_by_role("tab", name="Messages").click()
    await page.get_by_label("Search messages").fill("initialize")
    await page.get_by_role("button", name="→ Sent").click()
    log = page.get_by_role("listbox", name="Messages")
    await expect(log.get_by_role("option").filter(has_not_text="notifications")).to_have_count(3)
    await inspector.button("Remove…").click()
    await inspector.button("Keep it").click()
    await inspector.button("Remove…").click()
    await inspector.button("Remove").click()
    await expect(inspector.row("everything")).to_have_count(0)


@contextmanager
def locked_server() -> Generator[tuple[str, list[str | None]]]:
    """The address of a server that lets nobody in, and the tokens that it was shown."""
    shown: list[str | None] = []

    class Locked(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            shown.append(self.headers["Authorization"])
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Locked) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/mcp", shown
        server.shutdown()
        thread.join()


async def test_servers_are_added_and_a_token_stands_in_no_message(open_notebook: OpenNotebook) -> None:
    empty = TOOLS + "agent = Agent(model)\n" + INSPECTOR
    notebook = await open_notebook(empty, own_page=True)
    sent: list[str] = []
    notebook.page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(str(frame))))
    inspector = Inspector(notebook)
    page = inspector.page
    await expect(page.get_by_role("heading", name="This agent has no tools yet")).to_be_visible()
    await page.get_by_role("button", name="Add a server…").click()
    config = page.get_by_label("Address, command line, or JSON")
    await config.fill("a 'quote is missing")
    await inspector.button("Add").click()
    await expect(page.get_by_role("alert")).to_contain_text("not complete")
    await config.fill(json.dumps({"command": reference_command()[0], "args": reference_command()[1:]}))
    await page.get_by_label("Name").fill("mine")
    await inspector.button("Add").click()
    await expect(page.get_by_role("heading", name="mine")).to_be_visible()
    await expect(page.locator(".yna-page-state")).to_contain_text("Ready", timeout=20_000)
    await expect(inspector.row("Echo Tool")).to_be_visible()

    with locked_server() as (address, shown):
        await inspector.widget.get_by_role("button", name="Add a server").click()
        await config.fill(address)
        await page.get_by_label("Token").fill("open-sesame")
        await inspector.button("Add").click()
        await expect(page.locator(".yna-page-state")).to_have_text("Failed", timeout=20_000)
        await expect(page.get_by_role("group", name="Problems")).not_to_contain_text("open-sesame")
        assert shown
        assert set(shown) == {"Bearer open-sesame"}
    assert "open-sesame" not in await notebook.page.content()
    assert "open-sesame" not in json.dumps(await notebook.save())


async def test_nothing_that_a_tool_says_of_itself_runs(open_notebook: OpenNotebook) -> None:
    hostile = f"""
import json
payloads = json.loads({json.dumps(json.dumps(list(PAYLOADS.values())))})

def echo(tool_call_id, arguments, signal, on_update):
    on_update(payloads[1])
    return "\\n".join(payloads)

def hostile(number, text):
    about = {{"description": text, "title": text, "default": text, "enum": [text, "x"]}}
    inner = {{"type": "object", "title": text, "description": text, "properties": {{text: about}}}}
    schema = {{"type": "object", "properties": {{text: about, "inner": inner}}, "required": [text]}}
    return Tool(name=f"tool_{{number}}", label=text, description=text, source=text, execute=echo, input_schema=schema,
                output_schema={{"type": "object", "required": [text], "properties": {{text: about}}}})

agent = Agent(model, tools=[hostile(*each) for each in enumerate(payloads)])
"""
    notebook = await open_notebook(TOOLS + hostile + INSPECTOR)
    inspector = Inspector(notebook)
    page = notebook.page
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    search = inspector.widget.get_by_label("Search tools")
    for number in (11, len(PAYLOADS) // 2, len(PAYLOADS) - 1):
        await search.fill(f"tool_{number}")
        await inspector.list.locator(f'.yna-tool-label[title="tool_{number}"]').click()
        await expect(inspector.page.locator(".yna-tool-name").first).to_have_text(f"tool_{number}")
        for tab in ("Schema", "Details", "Call"):
            await inspector.page.get_by_role("tab", name=tab).click()
        await inspector.run()
        anyway = inspector.page.get_by_role("button", name="Call all the same")
        await expect(inspector.call.or_(anyway).locator("visible=true").first).to_be_visible()
        if await anyway.is_visible():
            await anyway.click()
        await expect(inspector.call).to_have_attribute("data-state", "done")
    assert await page.evaluate("() => window.pwned") is None
    made = await page.evaluate(
        """() => [...document.querySelectorAll(".yna :is(script, iframe, object, embed, base, link, img)")]
            .map((each) => each.outerHTML)"""
    )
    assert made == []
    assert [each for each in requests if "pwned" in each] == []


async def test_five_hundred_tools_are_searched_under_a_frame(open_notebook: OpenNotebook) -> None:
    many = TOOLS + (
        "async def run(tool_call_id, arguments, signal, on_update):\n    return 'done'\n"
        "def numbered(n):\n"
        "    name, about, source = f'tool_{n:03}', f'Does the {n}th thing. ' * 8, f'source {n % 7}'\n"
        "    return Tool(name=name, description=about, execute=run, source=source)\n"
        "agent = Agent(model, tools=[numbered(n) for n in range(500)])\n"
    )
    notebook = await open_notebook(many, INSPECTOR)
    page = notebook.page
    async with tasks(page) as opening:
        await notebook.run_cell(1)
        await page.wait_for_selector(".yna-tool-row")
    async with tasks(page) as searching:
        await page.locator(".yna-list-pane .yna-find").focus()
        await page.keyboard.type("tool_499", delay=30)
        await page.wait_for_function("() => document.querySelectorAll('.yna-tool-row').length === 1")
        await page.keyboard.press("Escape")
        await page.keyboard.press("Enter")
        for _ in range(15):
            await page.keyboard.press("PageDown")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".yna-call-button")
    print(f"\nlongest tasks while opening {longest(opening)} ms, while searching {longest(searching)} ms")
    assert await page.evaluate("() => document.querySelectorAll('.yna-virtual-row').length") < 80
    assert searching[0] < 50


async def test_it_is_for_everyone_and_fits_a_narrow_column(
    open_notebook: OpenNotebook, front_end: Path, tmp_path: Path
) -> None:
    notebook = await open_notebook(
        REFERENCE.replace("mcp_servers=", "tools=[plan_trip, delete_file, seats], mcp_servers=")
    )
    inspector = Inspector(notebook)
    page, widget = notebook.page, inspector.widget
    await page.evaluate((front_end / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8"))
    found: list[str] = []

    async def look(what: str) -> None:
        for theme in ("JupyterLab Light", "JupyterLab Dark"):
            await notebook.set_theme(theme)
            found.extend(await scan(notebook, f"{what}, {theme}"))
            found.extend(f"{what}, {theme}: {each}" for each in await page.evaluate(CONTRAST))
            await widget.screenshot(path=tmp_path / f"{what} {theme}.png")

    try:
        await look("all")
        await inspector.open("Plan trip")
        await inspector.run()
        await inspector.page.get_by_role("button", name="Call all the same").click()
        await expect(inspector.call).to_have_attribute("data-state", "failed")
        await look("tool")
        await inspector.page.get_by_role("tab", name="Schema").click()
        await look("schema")
        await inspector.open("everything", "Messages")
        await page.locator(".yna-log-row").filter(has_text="tools/list").first.click()
        await expect(page.locator(".yna-log-body .yna-json")).to_be_visible()
        await look("messages")
        await inspector.page.get_by_role("tab", name="Resources").click()
        await expect(inspector.page.get_by_role("group", name="features.md")).to_be_visible()
        await look("resources")

        await page.set_viewport_size({"width": 560, "height": 900})
        await expect(inspector.list).to_be_hidden()
        await inspector.button("Back").click()
        await expect(inspector.list).to_be_focused()
        await look("narrow list")
        await page.keyboard.press("Home")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(inspector.page.get_by_role("heading", name="Plan trip")).to_be_focused()
        wider = await widget.evaluate(
            """widget => [...widget.querySelectorAll("*")].filter((each) =>
                !each.closest("pre, .yna-tab-list, .cm-editor") && each.checkVisibility() &&
                each.getBoundingClientRect().right > widget.getBoundingClientRect().right + 1
            ).map((each) => each.className)"""
        )
        assert wider == []
        await look("narrow tool")
        await page.keyboard.press("Escape")
        await expect(inspector.list).to_be_focused()
    finally:
        await notebook.set_theme("JupyterLab Light")
    assert found == []
