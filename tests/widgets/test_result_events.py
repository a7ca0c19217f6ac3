"""A page is told what an MCP server's result holds, at a size that a page can bear."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from widgets.page import Page

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.execution import ToolUpdate
from yiemagent_nb.core.messages import UserMessage
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import Tool
from yiemagent_nb.testing import Scripted, call

RECORDING = base64.b64encode(b"RIFF" * 500).decode()
DETAILS: dict[str, Any] = {
    "server": "studio",
    "tool": "record",
    "content": [
        {"type": "audio", "data": RECORDING, "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "https://example.org", "name": "more"},
    ],
    "structured_content": {"seconds": 2},
}


def studio(details: Any = DETAILS, *, progress: ToolResult | None = None) -> Agent:
    def record(_call_id: str, _arguments: dict[str, Any], _signal: AbortSignal, on_update: ToolUpdate) -> ToolResult:
        if progress is not None:
            on_update(progress)
        return ToolResult("recorded", details=details)

    tool = Tool(name="record", description="Record.", source="studio", execute=record)
    return Agent(Scripted([[call("record")], "Done."]), tools=[tool])


async def run(agent: Agent) -> Page:
    page = Page(agent)
    page.hello()
    await agent.prompt("record")
    await page.until("run_end")
    return page


async def test_the_parts_of_a_result_are_told_once_and_a_recording_when_it_is_asked_for() -> None:
    page = await run(studio())
    [end] = page.events("tool_end")
    assert end["details"]["server"] == "studio"
    assert [part["type"] for part in end["details"]["parts"]] == ["audio", "link", "structure"]
    assert str(page.batches).count("https://example.org") == 1
    assert RECORDING not in str(page.batches)
    key = end["details"]["parts"][0]["key"]
    page.host.receive({"type": "load_audio", "ticket": "t", "key": key})
    await page.until("audio")
    assert page.events("audio") == [{"type": "audio", "key": key, "data": RECORDING}]
    assert (await page.reply("t"))["type"] == "accepted"


async def test_a_page_that_comes_late_may_hear_it_too() -> None:
    agent = studio()
    await run(agent)
    late = Page(agent)
    late.hello()
    await late.until("alive")
    result = late.batches[0]["snapshot"]["chat"]["messages"][2]
    late.host.receive({"type": "load_audio", "ticket": "t", "key": result["details"]["parts"][0]["key"]})
    await late.until("audio")
    assert late.events("audio")[0]["data"] == RECORDING


async def test_a_recording_that_nobody_was_told_of_is_refused() -> None:
    page = await run(studio())
    page.host.receive({"type": "load_audio", "ticket": "t", "key": "140000"})
    assert (await page.reply("t"))["code"] == "INVALID_PARAMETERS"


async def test_details_of_a_function_stay_in_python() -> None:
    page = await run(studio({"rows": "SECRET"}))
    assert "SECRET" not in str(page.batches)
    assert "details" not in page.events("tool_end")[0]


async def test_a_history_of_large_results_comes_in_parts_of_a_bearable_size() -> None:
    details: dict[str, Any] = {**DETAILS, "content": [], "structured_content": {"rows": ["row"] * 100_000}}
    agent = Agent(
        Scripted([answer for _ in range(12) for answer in ([call("record")], "Done.")]),
        tools=list(studio(details).state.tools.values()),
    )
    for _ in range(12):
        await agent.prompt("again")
    page = Page(agent)
    page.hello()
    await page.until("alive")
    assert page.size < 700_000
    assert page.batches[0]["snapshot"]["chat"]["start"] > 0


@pytest.mark.parametrize(
    ("details", "told"),
    [
        ({"progress": 3, "total": 10}, 0.3),
        ({"progress": 12, "total": 10}, 1.0),
        ({"progress": -1, "total": 10}, 0.0),
        ({"progress": 3, "total": 0}, None),
        ({"progress": 3}, None),
        ({"progress": "3", "total": "10"}, None),
        ({"progress": float("nan"), "total": 10}, None),
        ([3, 10], None),
    ],
)
async def test_how_far_a_call_has_come_is_told_as_a_share(details: object, told: float | None) -> None:
    page = await run(studio(progress=ToolResult("working", details=details)))
    [update] = page.events("tool_update")
    assert update["progress"] == told
    assert update["content"] == [{"type": "text", "text": "working"}]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("3/10", 0.3),
        ("1,500/3,000: copying", 0.5),
        ("0.5/1: half", 0.5),
        ("3/0", None),
        ("3", None),
        ("3/10 of it", None),
        ("see 3/10", None),
        ("30/11/2026", None),
        ("?/10", None),
    ],
)
async def test_a_count_of_a_whole_is_read_from_the_text(text: str, told: float | None) -> None:
    page = await run(studio(progress=ToolResult(text)))
    assert page.events("tool_update")[0]["progress"] == told


async def test_five_hundred_tools_make_a_small_snapshot() -> None:
    tools = [
        Tool(
            name=f"server_{number // 50}__find_things_by_kind_{number}",
            label="Find things " * 50,
            description="Finds things of a kind, with all that is known of them. " * 20,
            source=f"server-{number // 50}",
            input_schema={"type": "object", "properties": {"kind": True}, "required": ["kind"]},
            execute=print,
        )
        for number in range(500)
    ]
    page = Page(Agent(Scripted([]), tools=tools, messages=[UserMessage("hello")]))
    page.hello()
    await page.until("alive")
    snapshot = page.batches[0]["snapshot"]
    assert len(snapshot["tools"]["tools"]) == 500
    assert len(json.dumps(snapshot)) < 100_000
