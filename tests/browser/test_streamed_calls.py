"""A person sees a tool call from its name on: its arguments as they grow, and how it ended."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from browser.conftest import OpenNotebook
from browser.lab import Notebook
from browser.model_server import Exchange, ModelServer
from browser.test_demo_and_looks import CONTRAST
from playwright.async_api import Locator, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

AGENT = '''
import asyncio
from yiemagent_nb import Agent, AgentWidget, OpenAICompatible

go_on = asyncio.Event()

async def write_file(path: str, text: str, overwrite: bool = False) -> str:
    """Write a file."""
    await go_on.wait()
    return f"{{len(text)}} characters in {{path}}"

async def search(query: str, limit: int = 10) -> str:
    """Search the notes."""
    await go_on.wait()
    return f"{{limit}} notes about {{query}}"

agent = Agent(OpenAICompatible("{url}", "tide-1", retries=0), tools=[write_file, search])
AgentWidget(agent)
'''

NOTE = 'Tides of the "Rio Tejo":\n' + "\n".join(f"{hour:02d}:15  {hour % 4} m" for hour in range(40))
WRITE: dict[str, Any] = {"path": "notes/tides.md", "text": NOTE, "overwrite": True}
SEARCH: dict[str, Any] = {"query": "tides in Lisbon", "limit": 12}

WATCH = """() => {
    const log = document.querySelector(".yna-log");
    const cards = [...log.querySelectorAll(".yna-call")];
    const places = () => JSON.stringify(cards.map((card) => {
        const { top, height } = card.getBoundingClientRect();
        return [Math.round(top - log.getBoundingClientRect().top), Math.round(height)];
    }));
    window.seen = { nodes: [], places: new Set([places()]), changes: 0 };
    window.watcher = new MutationObserver((records) => {
        window.seen.changes += 1;
        window.seen.places.add(places());
        for (const record of records) {
            for (const node of [...record.addedNodes, ...record.removedNodes]) {
                if (node.nodeType === Node.ELEMENT_NODE) window.seen.nodes.push(node.outerHTML.slice(0, 80));
            }
        }
    });
    window.watcher.observe(log, { childList: true, characterData: true, subtree: true });
}"""

SEEN = """() => {
    window.watcher.disconnect();
    return { ...window.seen, places: [...window.seen.places] };
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


def cut(arguments: dict[str, Any], count: int) -> list[str]:
    text = json.dumps(arguments)
    size = len(text) // count + 1
    return [text[at : at + size] for at in range(0, len(text), size)]


async def ask(open_notebook: OpenNotebook, server: ModelServer, *cells: str) -> tuple[Notebook, Exchange]:
    notebook = await open_notebook(AGENT.format(url=server.base_url), *cells)
    await notebook.say("go")
    return notebook, await server.asked()


def row(notebook: Notebook, index: int) -> Locator:
    return notebook.widget().locator(".yna-call").nth(index)


def summary(notebook: Notebook, index: int) -> Locator:
    return row(notebook, index).locator(".yna-call-summary")


async def test_a_card_appears_with_the_name_and_shows_its_arguments_grow(
    open_notebook: OpenNotebook, server: ModelServer, tmp_path: Path
) -> None:
    notebook, exchange = await ask(open_notebook, server, "go_on.set()")
    await exchange.call(0, name="write_file")
    await expect(row(notebook, 0)).to_have_attribute("data-status", "writing")
    await expect(row(notebook, 0).locator(".yna-call-row")).to_have_text("Calling write file")
    await exchange.call(1, name="search")
    await expect(row(notebook, 1).locator(".yna-call-row")).to_have_text("Calling search")
    await exchange.call(0, arguments='{"path": "notes/ti')
    await expect(summary(notebook, 0)).to_have_text("path: notes/ti")
    await exchange.call(1, arguments='{"query": "tides in Lisbon", "lim')
    await expect(summary(notebook, 1)).to_have_text("query: tides in Lisbon")
    await exchange.call(1, arguments='it": 1')
    await expect(summary(notebook, 1)).to_have_text("query: tides in Lisbon, limit: 1")
    await row(notebook, 0).locator(".yna-call-row").press("Enter")
    rest = json.dumps(WRITE).removeprefix('{"path": "notes/ti')
    for at in range(0, len(rest), 20):
        await exchange.call(0, arguments=rest[at : at + 20])
    await exchange.call(1, arguments="2}")
    await expect(summary(notebook, 1)).to_have_text("query: tides in Lisbon, limit: 12")
    await expect(summary(notebook, 0)).to_contain_text("overwrite: true")
    await expect(row(notebook, 0).locator(".yna-call-time")).to_have_text(f"{len(json.dumps(WRITE))} characters")
    values = row(notebook, 0).locator(".yna-args dd")
    await expect(values).to_have_text(["notes/tides.md", NOTE, "true"], use_inner_text=True)
    assert await notebook.page.evaluate(CONTRAST) == []
    await notebook.widget().screenshot(path=tmp_path / "writing_light.png")
    try:
        await notebook.set_theme("JupyterLab Dark")
        assert await notebook.page.evaluate(CONTRAST) == []
        await notebook.widget().screenshot(path=tmp_path / "writing_dark.png")
    finally:
        await notebook.set_theme("JupyterLab Light")
    await exchange.finish("tool_calls")
    await expect(row(notebook, 0)).to_have_attribute("data-status", "running")
    await expect(row(notebook, 1)).to_have_attribute("data-status", "running")
    await notebook.run_cell(1)
    await (await server.asked()).answer("Both are done.")
    await notebook.until_ready()
    await expect(row(notebook, 0)).to_have_attribute("data-status", "done")
    await expect(row(notebook, 1)).to_have_attribute("data-status", "done")
    await expect(values).to_have_text(["notes/tides.md", NOTE, "true"], use_inner_text=True)
    await expect(row(notebook, 0).locator(".yna-section pre").last).to_have_text(
        f"{len(NOTE)} characters in notes/tides.md"
    )
    print(f"\nscreenshots in {tmp_path}")


async def test_while_arguments_grow_the_cards_stay_where_and_what_they_are(
    open_notebook: OpenNotebook, server: ModelServer
) -> None:
    notebook, exchange = await ask(open_notebook, server)
    await exchange.call(0, name="write_file")
    await exchange.call(1, name="search")
    await expect(row(notebook, 1)).to_be_visible()
    await notebook.page.evaluate(WATCH)
    for piece, other in zip(cut(WRITE, 40), cut(SEARCH, 40) + [""] * 40, strict=False):
        await exchange.call(0, arguments=piece)
        await exchange.call(1, arguments=other)
    await expect(summary(notebook, 1)).to_contain_text("limit: 12")
    await expect(summary(notebook, 0)).to_contain_text("overwrite: true")
    seen = await notebook.page.evaluate(SEEN)
    assert seen["nodes"] == []
    assert len(seen["places"]) == 1
    assert 0 < seen["changes"] <= 80
    await exchange.finish("tool_calls")


async def test_a_long_value_is_clipped_and_its_tooltip_tells_more(
    open_notebook: OpenNotebook, server: ModelServer
) -> None:
    notebook, exchange = await ask(open_notebook, server)
    await exchange.call(0, name="write_file", arguments=json.dumps(WRITE))
    await expect(summary(notebook, 0)).to_have_text(
        f"path: notes/tides.md, text: {' '.join(NOTE.split())[:59]}…, overwrite: true"
    )
    title = await summary(notebook, 0).get_attribute("title")
    assert title is not None
    assert title.startswith(f"path: notes/tides.md\ntext: {NOTE[:400]}")
    await exchange.finish("tool_calls")


async def test_a_call_whose_id_comes_late_stays_one_card(open_notebook: OpenNotebook, server: ModelServer) -> None:
    notebook, exchange = await ask(open_notebook, server, "go_on.set()")
    await notebook.run_cell(1)
    await exchange.write(tool_calls=[{"index": 0, "function": {"name": "search", "arguments": ""}}])
    await expect(row(notebook, 0)).to_have_attribute("data-status", "writing")
    await exchange.write(tool_calls=[{"index": 0, "id": "late", "function": {"arguments": json.dumps(SEARCH)}}])
    await exchange.finish("tool_calls")
    await (await server.asked()).answer("Found.")
    await notebook.until_ready()
    await expect(notebook.widget().locator(".yna-call")).to_have_count(1)
    await expect(row(notebook, 0)).to_have_attribute("data-status", "done")


async def test_arguments_that_are_no_json_are_shown_as_they_are(
    open_notebook: OpenNotebook, server: ModelServer
) -> None:
    notebook, exchange = await ask(open_notebook, server)
    await exchange.call(0, name="search", arguments="query=tides, lim")
    await expect(summary(notebook, 0)).to_have_text("query=tides, lim")
    await exchange.call(0, arguments="it=12")
    await exchange.finish("tool_calls")
    await (await server.asked()).answer("I could not search.")
    await notebook.until_ready()
    await expect(row(notebook, 0)).to_have_attribute("data-status", "failed")
    await expect(summary(notebook, 0)).to_have_text("query=tides, limit=12")
    await row(notebook, 0).locator(".yna-call-row").click()
    await expect(row(notebook, 0).locator(".yna-raw")).to_have_text("query=tides, limit=12")


@pytest.mark.parametrize("ending", ["cut", "stop"])
async def test_a_call_that_never_became_whole_says_so(
    open_notebook: OpenNotebook, server: ModelServer, ending: str, tmp_path: Path
) -> None:
    notebook, exchange = await ask(open_notebook, server, "AgentWidget(agent)")
    await exchange.call(0, name="write_file", arguments='{"path": "notes/tides.md", "text": "Tides of')
    await expect(summary(notebook, 0)).to_have_text("path: notes/tides.md, text: Tides of")
    widget = notebook.widget()
    if ending == "cut":
        exchange.cut()
        await expect(widget.locator(".yna-error")).to_contain_text("STREAM_INTERRUPTED")
        why = "The answer broke off before this call could run."
    else:
        await widget.get_by_role("button", name="Stop").click()
        await expect(widget.locator(".yna-ending")).to_contain_text("Stopped.")
        await exchange.over.wait()
        why = "The answer was stopped before this call could run."
    await notebook.until_ready()
    await notebook.run_cell(1)
    for index in (0, 1):
        card = notebook.widget(index).locator(".yna-call")
        await expect(card).to_have_attribute("data-status", "stopped")
        await expect(card.locator(".yna-call-row")).to_have_text(
            "Not run: Write filepath: notes/tides.md, text: Tides of"
        )
        await expect(card.locator(".yna-spinner")).to_have_count(0)
        await card.locator(".yna-call-row").click()
        await expect(card.locator(".yna-call-decision")).to_have_text(why)
    await widget.screenshot(path=tmp_path / f"{ending}.png")
    await expect(notebook.page.locator(".yna-static summary").first).to_have_text(
        'Not run: write_file({"path": "notes/tides.md", "text": "Tides of)'
    )
    await notebook.say("again")
    await (await server.asked()).answer("Here I am.")
    await expect(widget.locator(".yna-answer").last).to_contain_text("Here I am.")
    await expect(row(notebook, 0)).to_have_attribute("data-status", "stopped")
    print(f"\nscreenshots in {tmp_path}")
