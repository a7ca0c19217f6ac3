"""The trace panel: a page that opens it has the rows and stays in step, and may ask for what they held."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from widgets.inspecting import InspectorPage, RefusedError

from yiemagent_nb import Agent, Limits, TracePanel, tool
from yiemagent_nb.core.events import ToolExecutionEnd, ToolExecutionStart
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.testing import Scripted, call
from yiemagent_nb.tracing.details import Details
from yiemagent_nb.tracing.recorder import TraceRecorder
from yiemagent_nb.tracing.rows import Row
from yiemagent_nb.widgets import trace_panel

pytestmark = pytest.mark.requirement("Y FR-006")


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class TracePage(InspectorPage):
    """A page on which the trace stands beside an inspector that nobody opens; ``rows`` are as the page has them."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.panel = TracePanel(agent)
        super().__init__(agent, self.panel)

    async def open(self) -> dict[str, Any]:
        """Show the trace; returns its state."""
        self.host.receive({"type": "hello", "last_seq": 0})
        await self.until(lambda: bool(self.session))
        self.host.receive({"type": "open_panel", "panel": "trace"})
        await self.until(lambda: bool(self.state))
        return self.state

    @property
    def rows(self) -> dict[int, dict[str, Any]]:
        """The rows by their numbers."""
        known: dict[int, dict[str, Any]] = {}
        for event in self.events:
            if event["type"] == "state":
                known = {row["row"]: row for row in event["state"]["rows"]}
            else:
                known |= {row["row"]: row for row in event["rows"]}
        return known


@asynccontextmanager
async def tracing(*answers: Any) -> AsyncGenerator[TracePage]:
    limits = Limits(max_turns=None, messages_per_minute=None)
    agent = Agent(Scripted(answers or ([call("add", a=1, b=2)], "3")), "Be brief.", tools=[add], limits=limits)
    page = TracePage(agent)
    try:
        yield page
    finally:
        page.close()
        await agent.shutdown()


def read(path: Path) -> str:
    return path.read_text("utf-8")


def names_below(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.py"))


async def test_a_page_that_opens_the_panel_later_has_what_happened_before_and_stays_in_step() -> None:
    async with tracing([call("add", a=1, b=2)], "3", "more") as page:
        await page.agent.prompt("1 + 2?")
        state = await page.open()
        assert {key: state[key] for key in ("start", "total", "cleared")} == {"start": 0, "total": 6, "cleared": 0}
        assert [row["kind"] for row in state["rows"]] == ["run", "turn", "model", "tool", "turn", "model"]
        await page.agent.prompt("again")
        await page.until(lambda: page.rows.get(6, {}).get("state") == "done")
        kernel = page.panel.state()
        assert [*page.rows.values()] == kernel["rows"]
        assert page.rows[3]["parent"] == 1
        assert page.rows[8]["summary"] == "more"
        assert page.rows[6]["started"] / 1000 == pytest.approx(time.time(), abs=60)


async def test_a_page_that_did_not_open_it_is_told_nothing() -> None:
    async with tracing() as page:
        page.host.receive({"type": "hello", "last_seq": 0})
        await page.until(lambda: page.session)
        await page.agent.prompt("1 + 2?")
        page.agent.set_tools([])
        await page.until(lambda: any(event["type"] == "tools" for event in page.others))
        assert not page.events


async def test_rows_and_what_they_held_are_loaded() -> None:
    async with tracing() as page:
        await page.agent.prompt("1 + 2?")
        await page.open()
        loaded = await page.ask("load_rows", start=2, count=2)
        assert (loaded["start"], [row["row"] for row in loaded["rows"]]) == (2, [2, 3])
        details = await page.ask("load_row", row=2)
        assert details["kind"] == "model"
        assert [part["title"] for part in details["request"]] == ["Messages (2)", "Tools (1)", "Options"]
        assert json.loads(details["request"][0]["text"])[1] == {"role": "user", "content": "1 + 2?"}
        assert details["wire"] == []
        assert ["Ended", "tool_calls"] in details["facts"]
        found = await page.ask("load_difference", row=5, against=None)
        assert found["against"] == 2
        assert [part["title"] for part in found["sections"]] == [
            "Message 2, assistant: added",
            "Message 3, tool: added",
        ]
        with pytest.raises(RefusedError, match="does not exist"):
            await page.ask("load_row", row=99)
        with pytest.raises(RefusedError, match="no call of the model"):
            await page.ask("load_difference", row=0, against=None)


async def test_copies_and_tests_are_made_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with tracing() as page:
        await page.agent.prompt("1 + 2?")
        await page.open()
        copied = await page.ask("copy_row", row=2, form="python")
        assert "await ask(backend, messages" in copied["text"]
        with pytest.raises(RefusedError, match="no HTTP request"):
            await page.ask("copy_row", row=2, form="curl")
        offered = await page.ask("copy_row", row=0, form="test")
        assert offered["name"] == "tests/test_recorded_0.py"
        written = await page.act("write_test", row=0, path=offered["name"])
        assert written["path"] == offered["name"]
        assert read(tmp_path / written["path"]) == offered["text"]
        again = await page.act("write_test", row=0, path=offered["name"])
        assert again["path"] == "tests/test_recorded_0_2.py"
        with pytest.raises(RefusedError, match="below the notebook"):
            await page.act("write_test", row=0, path="../test_out.py")
        with pytest.raises(RefusedError, match="session"):
            await page.ask("write_test", row=0, path="test_x.py", session="another")
        assert names_below(tmp_path) == ["test_recorded_0.py", "test_recorded_0_2.py"]


async def test_forgetting_is_told_and_numbers_go_on() -> None:
    async with tracing("one", "two") as page:
        await page.agent.prompt("a")
        await page.open()
        await page.act("clear_trace")
        await page.told("state", lambda event: event["state"]["cleared"] == 1)
        assert not page.rows
        await page.agent.prompt("b")
        await page.until(lambda: page.rows.get(3, {}).get("state") == "done")
        assert [*page.rows] == [3, 4, 5]
        with pytest.raises(RefusedError, match="was forgotten"):
            await page.ask("load_row", row=0)


async def test_with_ten_thousand_rows_an_event_costs_what_it_costs_with_few() -> None:
    async with tracing("x") as page:
        listen = page.panel.trace._listen  # pyright: ignore[reportPrivateUsage] - real calls take a minute
        for number in range(5_000):
            for name in ("one", "two"):
                listen(ToolExecutionStart(f"{name}{number}", name, {"number": number}), AbortSignal())
            for name in ("two", "one"):
                listen(ToolExecutionEnd(f"{name}{number}", name, ToolResult("done"), False, 0.1), AbortSignal())
        assert len(page.panel.trace) == 10_000
        state = await page.open()
        assert len(state["rows"]) == 200
        size = len(page.text)
        await page.agent.prompt("go")
        await page.until(lambda: page.rows.get(page.panel.trace.total - 3, {}).get("state") == "done")
        assert len(page.text) - size < 100_000
        began = time.process_time()
        page.panel.state()
        assert time.process_time() - began < 0.1


async def test_panels_of_one_agent_share_a_trace() -> None:
    async with tracing() as page:
        assert TracePanel(page.agent).trace is page.panel.trace is TraceRecorder.of(page.agent)


async def test_what_takes_long_holds_neither_the_page_messages_nor_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()
    free = threading.Event()

    def slow(_row: Row) -> Details:
        asked.set()
        assert free.wait(30)
        return Details()

    async with tracing(*["ok"] * 2) as page:
        await page.agent.prompt("hi")
        await page.open()
        monkeypatch.setattr(trace_panel, "details_of", slow)
        loading = asyncio.create_task(page.ask("load_row", row=2))
        await asyncio.to_thread(asked.wait, 30)
        await page.agent.prompt("meanwhile")
        assert (await page.ask("load_rows", start=0, count=1))["rows"][0]["row"] == 0
        assert not loading.done()
        free.set()
        assert (await loading)["row"] == 2
