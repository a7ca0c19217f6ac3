"""The trace in the page: what ran when, what exactly was sent and what came back; 10,000 rows stay quick."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from browser.conftest import OpenNotebook
from browser.lab import Notebook
from browser.model_server import Exchange, ModelServer
from browser.test_accessibility import SCAN
from browser.test_demo_and_looks import CONTRAST
from browser.test_speed import longest, tasks
from playwright.async_api import Locator, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

MOST = 50
"""Milliseconds that a task of the page may take."""

KEY = "sk-harbour-0123456789abcdef0123"

AGENT = '''
import asyncio
from yiemagent_nb import Agent, AgentWidget, OpenAICompatible, TracePanel, tool
from yiemagent_nb.core.approval import approve
from yiemagent_nb.core.models import LlmModel, ModelCost
from yiemagent_nb.core.tools import ToolAnnotations
from yiemagent_nb.widgets import ChatPanel

quiet = ToolAnnotations(read_only=True)
gate = asyncio.Event()

@tool(annotations=quiet)
async def depth(place: str) -> str:
    """Tell how deep the water is."""
    await gate.wait()
    return "3.5 m"

@tool(annotations=quiet)
async def tide(place: str) -> str:
    """Tell when high water is."""
    raise ConnectionError("The tide table is away.")

@tool(annotations=ToolAnnotations(destructive=True))
def dredge(place: str) -> str:
    """Dig."""
    return f"dug at {{place}}"

agent = Agent(
    OpenAICompatible(
        "{url}", LlmModel(id="tide-1", cost=ModelCost(input=1.0, output=10.0)), provider="harbour", retries=0,
        api_key="{key}",
    ),
    "You know the **sea**.",
    tools=[depth, tide, dredge],
    before_tool_call=approve(),
)
AgentWidget(agent, panels=[ChatPanel(agent), TracePanel(agent)], height="{height}px", transcript=False)
'''


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


def agent_cell(server: ModelServer, height: int = 700) -> str:
    return AGENT.format(url=server.base_url, key=KEY, height=height)


HIDE_WHILE_AXIS_IS_DUE = """async (view, tab) => {
    view.querySelector(".yna-trace-fold-all").click();
    for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
    tab.click();
    await new Promise((resolve) => setTimeout(resolve, 500));
    tab.click();
}"""
"""The list rests for 120 ms before its axis is fitted to the rows in sight."""


class Trace:
    """The panel as a person uses it."""

    def __init__(self, notebook: Notebook, index: int = 0) -> None:
        self.notebook = notebook
        self.view = notebook.widget(index).locator(".yna-trace")
        self.list = self.view.get_by_role("treegrid")

    @classmethod
    async def open(cls, notebook: Notebook) -> Trace:
        await notebook.widget().get_by_role("button", name="Trace", exact=True).click()
        trace = cls(notebook)
        await trace.view.wait_for()
        return trace

    def line(self, title: str) -> Locator:
        """Rows whose title this is."""
        return self.list.get_by_role("row").filter(
            has=self.notebook.page.locator(".yna-trace-title", has_text=re.compile(f"^{re.escape(title)}$"))
        )

    async def shows(self, *lines: str) -> None:
        """Wait until these rows are shown: two spaces for each level, the title, and the state behind a slash."""
        told = """rows => rows.map((row) => "  ".repeat(row.getAttribute("aria-level") - 1)
            + row.querySelector(".yna-trace-title").textContent + " / "
            + row.querySelector(".yna-trace-state-name").textContent)"""
        rows = self.list.locator(".yna-virtual-row")
        await expect(rows).to_have_count(len(lines))
        assert await rows.evaluate_all(told) == list(lines)

    async def choose(self, tab: str) -> Locator:
        """Open a tab of the details."""
        await self.view.get_by_role("tab", name=tab, exact=True).click()
        return self.view.get_by_role("tabpanel")

    def button(self, name: str) -> Locator:
        return self.view.get_by_role("button", name=name, exact=True)

    @property
    def sum(self) -> Locator:
        return self.view.locator(".yna-trace-sum > span").first


async def ask_for_three(server: ModelServer) -> Exchange:
    """The model's first answer: three calls at once."""
    first = await server.asked()
    await first.write(content="I look it **up**.")
    for index, name in enumerate(("depth", "tide", "dredge")):
        await first.call(index, name=name, arguments='{"place": "harbour"}')
    await first.finish("tool_calls", prompt_tokens=1_000, completion_tokens=50)
    return first


async def whole_run(notebook: Notebook, server: ModelServer, question: str) -> tuple[Exchange, Exchange]:
    """A run of two turns, which ends."""
    await notebook.say(question)
    first = await ask_for_three(server)
    await notebook.widget().get_by_role("button", name="Allow once").click()
    second = await server.asked()
    await second.answer("It is **3.5 m** deep.", prompt_tokens=1_200, completion_tokens=30)
    await notebook.until_ready()
    return first, second


async def check_filters(trace: Trace) -> None:
    """They keep what leads to a row, and count what is shown."""
    await trace.button("Failed").click()
    await trace.shows("Run / Done", "  Turn 1 / Done", "    tide / Failed")
    await expect(trace.sum).to_contain_text("0 model calls · 1 tool call · 1 failed")
    await trace.button("Failed").click()
    await trace.button("Model").click()
    await expect(trace.sum).to_contain_text("2 model calls · 0 tool calls · 2.2k → 80 tokens · $0.003")
    await trace.button("Show all").click()
    await trace.view.get_by_label("Show rows with this text").fill("TABLE IS AWAY")
    await expect(trace.line("dredge")).to_have_count(0)
    await expect(trace.line("tide")).to_have_count(1)
    await trace.view.get_by_label("Show rows with this text").press("Escape")
    await expect(trace.line("dredge")).to_have_count(1)
    await trace.view.get_by_label("Slower than").fill("100000")
    await expect(trace.view).to_contain_text("No row matches the filter.")
    await trace.button("Show all").click()


async def check_keyboard(trace: Trace) -> None:
    """By keyboard alone: to a row, its details, along their tabs, back, and fold the run."""
    keyboard = trace.notebook.page.keyboard
    await trace.list.focus()
    await keyboard.press("Home")
    for _ in range(3):
        await keyboard.press("ArrowDown")
    await keyboard.press("Enter")
    details = trace.view.get_by_role("region", name="Details of the chosen row")
    await expect(details.get_by_role("heading", name="depth")).to_be_visible()
    await keyboard.press("ArrowDown")
    await expect(details.get_by_role("heading", name="tide")).to_be_visible()
    await expect(details.locator(".yna-trace-error")).to_contain_text("The tide table is away.")
    divider = trace.view.get_by_role("separator", name="Room for the list")
    await divider.focus()
    before = await trace.list.evaluate("list => list.offsetWidth")
    await keyboard.press("ArrowLeft")
    assert await trace.list.evaluate("list => list.offsetWidth") < before
    await expect(trace.line("tide")).to_be_in_viewport()
    await trace.view.get_by_role("tab", name="Request").focus()
    await keyboard.press("ArrowRight")
    await expect(trace.view.get_by_role("tab", name="Response")).to_be_focused()
    await keyboard.press("Escape")
    await expect(details).to_be_hidden()
    await expect(trace.list).to_be_focused()
    for _ in range(3):
        await keyboard.press("ArrowLeft")
    await trace.shows("Run / Done", "  Turn 1 / Done", "  Turn 2 / Done", "    harbour: tide-1 / Done")
    await keyboard.press("ArrowLeft")
    await keyboard.press("ArrowLeft")
    await trace.shows("Run / Done")


async def test_a_run_is_told_while_it_goes_on_with_what_waits_and_what_failed(
    open_notebook: OpenNotebook, server: ModelServer
) -> None:
    notebook = await open_notebook(agent_cell(server), "gate.set()", width=1500)
    trace = await Trace.open(notebook)
    await expect(trace.view.locator(".yna-trace-empty")).to_contain_text("Runs appear here while they happen")
    await notebook.say("How deep?")
    first = await server.asked()
    model = trace.line("harbour: tide-1")
    await expect(model).to_contain_text("Running")
    await expect(model.locator(".yna-trace-first")).to_have_count(1)
    await expect(model.locator(".yna-trace-work")).to_have_count(0)
    before = await model.locator(".yna-trace-time").inner_text()
    await expect(model.locator(".yna-trace-time")).not_to_have_text(before)  # it grows
    await first.write(content="I look it **up**.")
    for index, name in enumerate(("depth", "tide", "dredge")):
        await first.call(index, name=name, arguments='{"place": "harbour"}')
    await first.finish("tool_calls", prompt_tokens=1_000, completion_tokens=50)
    await expect(trace.line("dredge")).to_contain_text("Waiting")
    await expect(trace.line("dredge").locator(".yna-trace-wait")).to_have_count(1)
    await notebook.widget().get_by_role("button", name="Allow once").click()
    await expect(trace.line("dredge")).to_contain_text("Done")
    await expect(trace.line("tide")).to_contain_text("Failed")
    await expect(trace.line("tide")).to_contain_text("The tide table is away.")
    await expect(trace.line("depth")).to_contain_text("Running")
    await notebook.run_cell(1)
    await (await server.asked()).answer("It is **3.5 m** deep.", prompt_tokens=1_200, completion_tokens=30)
    await notebook.until_ready()
    await expect(trace.line("Turn 2")).to_contain_text("Done")
    await trace.shows(
        "Run / Done",
        "  Turn 1 / Done",
        "    harbour: tide-1 / Done",
        "    depth / Done",
        "    tide / Failed",
        "    dredge / Done",
        "  Turn 2 / Done",
        "    harbour: tide-1 / Done",
    )
    # Calls at once stand below each other in the row of their turn; within a bar its parts follow each other.
    lanes = trace.line("Turn 1").locator(".yna-trace-of-tool")
    assert len(set(await lanes.evaluate_all("bars => bars.map((bar) => bar.offsetTop)"))) == 3
    parts = trace.line("dredge").locator(".yna-trace-bar")
    await expect(parts).to_have_class([re.compile("yna-trace-wait"), re.compile("yna-trace-work")])
    await expect(trace.line("Run").locator(".yna-trace-tokens")).to_have_text("2.2k → 80")
    await expect(trace.line("Run").locator(".yna-trace-cost")).to_have_text("$0.003")
    await expect(trace.sum).to_contain_text("2 model calls · 3 tool calls · 1 failed · 2.2k → 80 tokens · $0.003")

    # Another tab and back: the ruler is still there, and so after a zoom by keyboard.
    marks = trace.list.locator(".yna-trace-mark")
    await expect(marks.first).to_have_text("0")
    tab = notebook.widget().get_by_role("button", name="Trace", exact=True)
    await tab.click()
    await tab.click()
    await expect(marks.first).to_have_text("0")
    # And where the panel is hidden while its axis is about to be fitted to what changed.
    await trace.view.evaluate(HIDE_WHILE_AXIS_IS_DUE, await tab.element_handle())
    await expect(marks.first).to_have_text("0")
    await trace.button("Open all").click()
    await trace.list.press("+")
    await expect(trace.view.get_by_label("The time axis shows")).to_have_value("part")
    await trace.view.get_by_label("The time axis shows").select_option("sight")

    await check_filters(trace)
    await check_keyboard(trace)


async def check_copies(trace: Trace, server: ModelServer, first: Exchange) -> None:
    """What is copied has no key; the Python code makes the same request again."""
    notebook = trace.notebook
    page = notebook.page
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    told = trace.view.locator(".yna-trace-told")
    await trace.button("Copy as curl").click()
    await expect(told).to_have_text("Copied as curl.")
    curl = await page.evaluate("navigator.clipboard.readText()")
    assert f"{server.base_url}/chat/completions" in curl
    assert KEY not in curl
    await trace.line("harbour: tide-1").first.click()
    await trace.button("Copy as Python").click()
    await expect(told).to_have_text("Copied as Python.")
    python = await page.evaluate("navigator.clipboard.readText()")
    assert KEY not in python
    await page.evaluate(
        "text => window.jupyterapp.shell.currentWidget.content.widgets[3].model.sharedModel.setSource(text)",
        f'import os; os.environ["MODEL_SERVER_KEY"] = os.environ["HARBOUR_API_KEY"] = "{KEY}"\n{python}',
    )
    await page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 3; }")
    await page.evaluate("() => void window.jupyterapp.commands.execute('notebook:run-cell')")
    again = await server.asked()
    assert again.body == first.body
    await again.answer("Once more.")
    await expect(notebook.cell(3).locator(".jp-OutputArea-output")).to_contain_text("Once more.")


async def check_test(trace: Trace) -> None:
    """A test is written below the notebook's folder only, and passes."""
    notebook = trace.notebook
    told = trace.view.locator(".yna-trace-told")
    await trace.button("Make a test of this").click()
    path = trace.view.get_by_label(re.compile("^Path of the file"))
    assert (await path.input_value()).startswith("tests/test_")
    await path.fill("elsewhere/../../test_out.py")
    await trace.button("Write the test").click()
    await expect(told).to_contain_text("below the notebook's folder")
    await path.fill("checks/test_depth.py")
    await trace.button("Write the test").click()
    await expect(told).to_have_text("Written to checks/test_depth.py")
    written = notebook.lab.notebooks / "checks" / "test_depth.py"
    assert KEY not in written.read_text()
    await notebook.page.evaluate(
        "text => window.jupyterapp.shell.currentWidget.content.widgets[0].model.sharedModel.setSource(text)",
        "import subprocess, sys\nprint(subprocess.run([sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', "
        "'checks/test_depth.py'], capture_output=True, text=True).stdout)",
    )
    await notebook.run_cell(0)
    await expect(notebook.cell(0).locator(".jp-OutputArea-output")).to_contain_text("1 passed")


async def test_details_are_exactly_what_the_server_got_and_become_python_curl_and_a_test(
    open_notebook: OpenNotebook, server: ModelServer
) -> None:
    notebook = await open_notebook("", agent_cell(server), "gate.set()", "", width=1500)
    for index in (1, 2):
        await notebook.run_cell(index)
    trace = await Trace.open(notebook)
    first, second = await whole_run(notebook, server, "How deep?")
    await trace.line("harbour: tide-1").nth(1).click()

    panel = await trace.choose("Request")
    await expect(panel.locator("summary")).to_contain_text(
        ["System prompt", "1. User", "2. Assistant", "2. Assistant: calls depth"]
    )
    await expect(panel.locator(".yna-markdown strong").first).to_have_text("sea")
    await trace.button("Raw").click()
    await trace.button("Open all").click()
    await expect(panel.locator(".yna-trace-text")).to_have_count(3)
    shown = await panel.locator(".yna-trace-text").all_text_contents()
    messages, tools = (json.loads(text) for text in shown[:2])
    assert messages == second.body["messages"]
    assert tools == second.body["tools"]
    panel = await trace.choose("Response")
    await expect(panel.locator(".yna-markdown strong")).to_have_text("3.5 m")
    panel = await trace.choose("Wire")
    await expect(panel.locator("summary")).to_contain_text(f"{server.base_url}/chat/completions")
    body = await panel.get_by_role("group", name="Body").text_content()
    assert json.loads(body or "") == second.body
    assert KEY not in await panel.inner_text()
    panel = await trace.choose("Difference")
    await expect(panel.locator(".yna-trace-diff.yna-trace-added", has_text="I look it **up**.")).to_have_count(1)
    await expect(panel.locator(".yna-trace-diff.yna-trace-removed")).to_have_count(0)
    await expect(panel).to_contain_text("The same: the system prompt, the first 1 message")
    await panel.get_by_label("Compare with").select_option(index=1)
    await expect(panel.locator(".yna-trace-diff.yna-trace-added", has_text="I look it **up**.")).to_have_count(1)
    await expect(await trace.choose("Facts")).to_contain_text("harbour")

    await check_copies(trace, server, first)
    await check_test(trace)


HOSTILE = '''
import json
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.tools import tool
from yiemagent_nb.widgets.trace_panel import TracePanel

EVIL = "<img src=x onerror='window.pwned=1'><script>window.pwned=1</script>"

@tool
def look(place: str) -> str:
    """Look."""
    raise ValueError(EVIL)

def model(messages):
    if messages[-1]["role"] == "tool":
        return f"{EVIL} [link](javascript:window.pwned=1)"
    return {"tool_calls": [
        {"index": 0, "id": "1", "function": {"name": "look", "arguments": json.dumps({"place": EVIL + "\\u202egnp"})}},
        {"index": 1, "id": "2", "function": {"name": "l\\u202eook" + EVIL, "arguments": "{"}},
    ]}

agent = Agent(model, EVIL, tools=[look])
panel = TracePanel(agent)
await agent.prompt(EVIL)
panel
'''


async def test_hostile_texts_do_nothing_and_axe_finds_nothing_in_light_and_dark(
    open_notebook: OpenNotebook, front_end: Path, tmp_path: Path
) -> None:
    notebook = await open_notebook(HOSTILE, "panel", "len(panel.trace)", height=1100)
    page = notebook.page
    trace = Trace(notebook)
    await page.evaluate((front_end / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8"))
    rows = trace.list.locator(".yna-virtual-row")
    await expect(rows).to_have_count(7)
    await expect(
        trace.line("l\\u202eook<img src=x onerror='window.pwned=1'><script>window.pwned=1</script>")
    ).to_have_count(1)
    found: list[str] = []
    try:
        for index in range(7):
            await rows.nth(index).click()
            await expect(trace.button("Copy as curl")).to_be_hidden()  # a function makes no HTTP request
            for tab in await trace.view.get_by_role("tab").all():
                await tab.click()
                await expect(trace.view.locator(".yna-trace-panel > *")).not_to_have_text("Loading…")
                await trace.view.locator(".yna-trace-panel summary").evaluate_all(
                    "all => all.forEach((s) => s.click())"
                )
        for theme in ("JupyterLab Light", "JupyterLab Dark"):
            await notebook.set_theme(theme)
            await rows.nth(2).click()
            for tab in ("Request", "Difference", "Facts"):
                await trace.choose(tab)
                found += [f"{theme}, {tab}: {each}" for each in await page.evaluate(SCAN)]
                assert await page.evaluate(CONTRAST) == []
            await trace.view.screenshot(path=tmp_path / f"{theme}.png")
    finally:
        await notebook.set_theme("JupyterLab Light")
    assert found == []
    assert await page.evaluate("window.pwned") is None
    assert await trace.view.locator("img, script, a[href^=javascript]").count() == 0

    # What is cleared is asked about, and gone in every view.
    await notebook.run_cell(1)
    other = Trace(notebook, 1)
    await expect(other.list.locator(".yna-virtual-row")).to_have_count(7)
    await trace.button("Clear").click()
    await trace.button("Keep").click()
    await expect(rows).to_have_count(7)
    await trace.button("Clear").click()
    await trace.view.get_by_role("group", name="Forget all rows?").get_by_role("button", name="Clear").click()
    for each in (trace, other):
        await expect(each.view.locator(".yna-trace-empty")).to_be_visible()
    await notebook.run_cell(2)
    await expect(notebook.cell(2).locator(".jp-OutputArea-output")).to_have_text("0")


MANY = '''
import asyncio, json
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.limits import Limits
from yiemagent_nb.core.tools import tool
from yiemagent_nb.widgets import AgentWidget, ChatPanel
from yiemagent_nb.widgets.trace_panel import TracePanel

@tool
async def look(place: str) -> str:
    """Look."""
    return f"saw {place}"

def model(messages):
    if messages[-1]["role"] == "tool":
        return "done"
    return {"tool_calls": [
        {"index": index, "id": str(index), "function": {"name": "look", "arguments": json.dumps({"place": str(index)})}}
        for index in range(20)
    ]}

agent = Agent(model, tools=[look], limits=Limits(messages_per_minute=None))
panel = TracePanel(agent)
for number in range(400):
    await agent.prompt(f"run number {number}")
    agent.reset()
AgentWidget(agent, panels=[ChatPanel(agent), panel], transcript=False)
'''

MORE = """
for number in range(8):
    await agent.prompt(f"one more {number}")
    agent.reset()
    await asyncio.sleep(0.05)
"""


SCROLL = """async () => {
    const list = document.querySelector(".yna-trace-list");
    for (let step = 0; step <= 60; step += 1) {
        list.scrollTop = list.scrollHeight * (1 - step / 60);
        await new Promise(requestAnimationFrame);
    }
}"""


async def calmest(page: Page, work: Callable[[], Awaitable[None]], tries: int = 3) -> list[float]:
    """What the page's tasks take meanwhile; again where one takes long, since others work on the machine too."""
    async with tasks(page) as found:
        await work()
    return found if found[0] < MOST or tries == 1 else await calmest(page, work, tries - 1)


async def test_ten_thousand_rows_open_scroll_filter_and_grow_without_a_long_task(open_notebook: OpenNotebook) -> None:
    notebook = await open_notebook(MANY, MORE, "len(panel.trace)", width=1300)
    page = notebook.page
    widget = notebook.widget()
    await widget.get_by_role("button", name="Trace", exact=True).wait_for()
    loaded = """() => new Promise((resolve) => {
        const look = () => {
            const { hidden } = document.querySelector(".yna-trace-loading") ?? {};
            const sum = document.querySelector(".yna-trace-sum > span")?.textContent;
            if (hidden && sum?.startsWith("800 model calls")) resolve(); else setTimeout(look, 100);
        };
        look();
    })"""
    async with tasks(page) as opening:
        await page.evaluate("() => document.querySelector('.yna-tab').click()")
        await page.evaluate(loaded)
    trace = Trace(notebook)
    await expect(trace.sum).to_contain_text("800 model calls · 8,000 tool calls")
    last = trace.list.locator(".yna-virtual-row").last
    await expect(last).to_have_attribute("data-row", "9999")  # it stands at the end

    async def scroll() -> None:
        await page.evaluate(SCROLL)

    scrolling = await calmest(page, scroll)
    await expect(trace.line("Run").first).to_contain_text("run number 0")
    assert await trace.list.locator(".yna-virtual-row").count() < 60
    search = trace.view.get_by_label("Show rows with this text")
    await search.focus()
    async with tasks(page) as filtering:
        await page.keyboard.type("number 39", delay=30)
        await page.wait_for_function(
            "() => document.querySelector('.yna-trace-list').getAttribute('aria-rowcount') === '23'"
        )
        await page.evaluate("() => document.querySelector('.yna-trace-chip').click()")
        await page.evaluate("() => document.querySelector('.yna-trace-reset').click()")
    await expect(trace.sum).to_contain_text("800 model calls · 8,000 tool calls")
    await trace.button("Newest").click()

    async def grow() -> None:
        total = int(await last.get_attribute("data-row") or 0) + 200
        await notebook.run_cell(1)
        await expect(last).to_have_attribute("data-row", str(total))

    growing = await calmest(page, grow)
    print(
        f"\nlongest tasks while opening {longest(opening)} ms, scrolling {longest(scrolling)} ms, "
        f"filtering {longest(filtering)} ms, growing {longest(growing)} ms"
    )
    for what in (opening, scrolling, filtering, growing):
        assert what[0] < MOST
