"""The tool inspector: what it shows of tools, and calls by hand."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from widgets.inspecting import InspectorPage, RefusedError

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.approval import approve
from yiemagent_nb.core.hooks import AfterToolCallContext, BeforeToolCallContext, BeforeToolCallResult
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import ToolAnnotations, ToolContext, tool
from yiemagent_nb.testing import Scripted, call
from yiemagent_nb.widgets.chat_panel import ChatPanel

ran: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@tool(timeout=5, annotations=ToolAnnotations(read_only=True, destructive=True), execution_mode="sequential")
def add(a: Annotated[int, Field(description="One")], b: Annotated[int, Field(description="Two")] = 2) -> int:
    """Add two numbers."""
    ran.append((a, b))
    return a + b


class City(BaseModel):
    name: str
    people: int


@tool(output_schema={"type": "object", "required": ["name", "people"], "properties": {"people": {"type": "integer"}}})
def city(name: str) -> dict[str, Any]:
    """Find a city."""
    return {"name": name, "people": "many"} if name == "Nowhere" else City(name=name, people=5).model_dump()


@tool
async def count(upto: int, context: ToolContext) -> str:
    """Count, and say how far it has come."""
    for number in range(upto):
        context.update(f"{number}/{upto}: counting")
        await asyncio.sleep(0)
    return "counted"


@tool
async def wait_long() -> str:
    """Wait without an end."""
    ran.append("began")
    await asyncio.Event().wait()
    return "never"


@asynccontextmanager
async def inspecting(*tools: Any, **options: Any) -> AsyncGenerator[InspectorPage]:
    agent = Agent(Scripted(["done"]), tools=tools, **options)
    page = InspectorPage(agent)
    await page.open()
    try:
        yield page
    finally:
        page.close()
        await agent.shutdown()


Inspecting = Callable[..., AbstractAsyncContextManager[InspectorPage]]


async def test_a_page_that_has_not_opened_it_is_told_nothing() -> None:
    agent = Agent(Scripted([[call("add", a=1)], "done"]), tools=[add])
    page = InspectorPage(agent)
    page.host.receive({"type": "hello", "last_seq": 0})
    await page.until(lambda: page.session)
    await agent.prompt("go")
    agent.set_tools([add, count])
    page.host.receive({"type": "heartbeat", "last_seq": 1})
    await page.until(lambda: any(event["type"] == "tools" for event in page.others))
    assert page.events == []
    page.close()


async def test_a_tool_is_told_with_its_words_its_schema_its_source_and_its_facts() -> None:
    async with inspecting(add, city) as page:
        row = page.state["tools"][0]
        assert row["name"] == "add"
        assert row["summary"] == "Add two numbers."
        assert row["source"] == "python"
        assert row["hints"] == ["destructive", "read-only by its own word"]
        assert (row["enabled"], row["takes"]) == (True, 2)
        details = await page.ask("load_tool", name="add")
        assert details["definition"].startswith("@tool(timeout=5")
        assert "return a + b" in details["definition"]
        assert json.loads(details["input_schema"])["required"] == ["a"]
        assert details["schema"] == json.loads(details["input_schema"])
        assert details["output_schema"] is None
        facts = {fact["label"]: fact["text"] for fact in details["facts"]}
        assert facts["Time limit"] == "5 s"
        assert facts["Runs"] == "alone"
        assert facts["Kind"] == "sync, in a worker thread"
        assert "one of these hints is wrong" in "".join(details["warnings"])
        assert details["read_only"] is True
        assert json.loads((await page.ask("load_tool", name="city"))["output_schema"])["required"] == ["name", "people"]
        with pytest.raises(RefusedError, match="no tool named"):
            await page.ask("load_tool", name="gone")


async def test_a_tool_is_switched_off_and_on_for_the_model_and_every_view_hears() -> None:
    async with inspecting(add, count) as page:
        other = InspectorPage(page.inspector.agent)
        await other.open()
        await page.act("enable_tool", name="add", enabled=False)
        for each in (page, other):
            told = await each.told("tools", lambda event: not event["tools"][0]["enabled"])
            assert [tool["name"] for tool in told["tools"]] == ["add", "count"]
        assert list(page.inspector.agent.tools) == ["count"]
        await page.act("enable_tool", name="add", enabled=True)
        assert list(page.inspector.agent.tools) == ["add", "count"]
        other.close()


@pytest.mark.parametrize("session", [{}, {"session": "of another kernel"}])
async def test_what_acts_without_this_session_is_refused_and_does_nothing(session: dict[str, str]) -> None:
    async with inspecting(add) as page:
        acts: list[tuple[str, dict[str, Any]]] = [
            ("call_tool", {"call": "x", "name": "add", "arguments_text": '{"a": 1}', "hooks": False}),
            ("enable_tool", {"name": "add", "enabled": False}),
            ("add_server", {"config": "touch here", "name": ""}),
            ("act_on_server", {"server": "s", "action": "connect"}),
            ("list_resources", {"server": "s"}),
            ("list_prompts", {"server": "s"}),
        ]
        for kind, fields in acts:
            with pytest.raises(RefusedError, match="session"):
                await page.ask(kind, **session, **fields)
        assert ran == []
        assert list(page.inspector.agent.tools) == ["add"]
        assert page.inspector.agent.mcp_servers == ()
        assert page.inspector.state()["calls"] == []


async def test_integers_of_any_size_arrive_and_come_back_as_they_are() -> None:
    async with inspecting(add) as page:
        details = await page.call("add", '{"a": 12345678901234567890123, "b": 1}')
        assert ran == [(12345678901234567890123, 1)]
        assert details["state"] == "done"
        assert details["content"] == [{"type": "text", "text": "12345678901234567890124"}]
        assert '"details": 12345678901234567890124' in details["raw"]
        assert details["arguments_text"] == '{"a": 12345678901234567890123, "b": 1}'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1, "a": 2}', '"a" is named twice'),
        ('{"a": {"b": NaN}}', "NaN is no number that JSON has"),
        ('{"a": 1e999}', "too large"),
        ('{"a": 1,\n "b" 2}', "line 2, column 6"),
        ("[1, 2]", "are a list"),
        ("null", "are null"),
        ("[" * 5000, "nested more than"),
        ('{"a": ' + "9" * 5000 + "}", "5,000 digits"),
    ],
)
async def test_arguments_that_are_no_json_object_are_refused_in_plain_words(text: str, why: str) -> None:
    async with inspecting(add) as page:
        with pytest.raises(RefusedError, match=why):
            await page.call("add", text)
        assert ran == []
        assert page.inspector.state()["calls"] == []


async def test_arguments_that_do_not_fit_and_tools_that_fail_are_results_that_say_so() -> None:
    @tool
    def fails() -> str:
        """Fail."""
        raise ValueError("the disk is full")

    async with inspecting(add, fails) as page:
        details = await page.call("add", '{"b": 1}')
        assert details["state"] == "failed"
        assert "Missing required arguments: a" in details["content"][0]["text"]
        assert "the disk is full" in (await page.call("fails", call="c2"))["summary"]


async def test_hooks_are_asked_or_left_out_as_the_person_likes() -> None:
    def block(context: BeforeToolCallContext, _signal: AbortSignal) -> BeforeToolCallResult:
        return BeforeToolCallResult(block=context.arguments["a"] > 1, reason="not above one")

    def shout(context: AfterToolCallContext) -> ToolResult:
        return ToolResult(f"{context.result.text}!")

    async with inspecting(add, before_tool_call=block, after_tool_call=shout) as page:
        assert (await page.call("add", '{"a": 1}', call="1"))["summary"] == "3!"
        assert "not above one" in (await page.call("add", '{"a": 2}', call="2"))["summary"]
        assert (await page.call("add", '{"a": 2}', call="3", hooks=False))["summary"] == "4"
        assert page.inspector.agent.messages == ()


async def test_a_call_that_a_hook_asks_about_waits_and_is_answered_where_it_stands() -> None:
    async with inspecting(add, before_tool_call=approve({"add"})) as page:
        await page.act("call_tool", call="1", name="add", arguments_text='{"a": 1}', hooks=True)
        asked = await page.told("call", lambda event: event["approval"] is not None)
        assert asked["state"] == "waiting"
        assert asked["approval"]["args"] == {"a": 1}
        assert asked["approval"]["by_hand"] is True
        assert page.inspector.state()["approvals"] == []
        assert ran == []
        edited: dict[str, Any] = {
            "request_id": asked["approval"]["request_id"],
            "choice": "allow_edited",
            "arguments": {"a": 40},
        }
        await page.ask("approve", **edited)
        ended = await page.ended("1")
        assert ended["approval"] is None
        assert ended["duration"] > 0
        assert ended["waited"] > 0
        assert ran == [(40, 2)]
        with pytest.raises(RefusedError, match="answered already"):
            await page.ask("approve", **edited)


async def test_a_call_of_the_model_that_waits_is_told_apart_from_those_by_hand() -> None:
    agent = Agent(Scripted([[call("add", a=1)], "done"]), tools=[add], before_tool_call=approve({"add"}))
    page = InspectorPage(agent, ChatPanel(agent))
    await page.open()
    run = asyncio.create_task(agent.prompt("go"))
    told = await page.told("asked", lambda event: event["approvals"])
    await page.ask("approve", request_id=told["approvals"][0]["request_id"], choice="deny")
    await run
    await page.told("asked", lambda event: not event["approvals"])
    assert page.inspector.state()["calls"] == []
    page.close()


async def test_all_panels_of_an_agent_share_its_calls_and_let_the_agent_go() -> None:
    agent = Agent(Scripted(["done"]), tools=[add])
    page, other = InspectorPage(agent), InspectorPage(agent)
    await page.open()
    await page.call("add", '{"a": 1}')
    assert [each["state"] for each in (await other.open())["calls"]] == ["done"]
    page.close()
    other.close()
    await agent.shutdown()
    gone = weakref.ref(agent)
    del agent, page, other
    async with asyncio.timeout(10):
        while gone() is not None:  # what the loop still has to end holds it for a moment
            await asyncio.sleep(0.01)
            gc.collect()


async def test_progress_is_told_a_few_times_a_second_and_each_of_several_calls_to_its_end() -> None:
    async with inspecting(count) as page:
        for name in ("x", "y"):
            await page.act("call_tool", call=name, name="count", arguments_text='{"upto": 3000}', hooks=True)
        for name in ("x", "y"):
            assert (await page.ended(name))["summary"] == "counted"
        told = [event for event in page.events if event["type"] == "call" and event["call"] == "x"]
        seconds = told[-1]["duration"]
        assert len(told) <= 4 + 10 * seconds
        assert any(0 < event["progress"] <= 1 for event in told if event["progress"] is not None)


async def test_a_call_is_cancelled_and_the_state_keeps_it_for_a_page_that_was_loaded_anew() -> None:
    async with inspecting(wait_long, add) as page:
        await page.act("call_tool", call="1", name="wait_long", arguments_text="{}", hooks=True)
        await page.told("call")
        await page.until(lambda: ran == ["began"])
        page.host.receive({"type": "open_panel", "panel": "inspector"})
        await page.until(lambda: page.state["calls"])
        assert page.state["calls"][0]["state"] == "running"
        await page.ask("cancel_call", call="1")
        ended = await page.ended("1")
        assert ended["state"] == "cancelled"
        assert "you stopped it" in ended["summary"]
        assert (await page.call("add", '{"a": 1}', call="2"))["state"] == "done"
        assert [each["state"] for each in page.inspector.state()["calls"]] == ["cancelled", "done"]
        with pytest.raises(RefusedError, match="not kept"):
            await page.ask("load_call", call="unknown")
        with pytest.raises(RefusedError, match="of this name already"):
            await page.act("call_tool", call="2", name="add", arguments_text='{"a": 1}')


async def test_a_result_is_checked_against_the_output_schema() -> None:
    async with inspecting(city, add) as page:
        fitting = await page.call("city", '{"name": "Lisbon"}', call="1")
        assert (fitting["fits"], fitting["problems"]) == (True, [])
        wrong = await page.call("city", '{"name": "Nowhere"}', call="2")
        assert wrong["fits"] is False
        assert "people should be an integer" in wrong["problems"][0]
        assert (await page.call("add", '{"a": 1}', call="3"))["fits"] is None


async def test_results_and_arguments_of_any_size_stay_bounded_on_their_way() -> None:
    @tool
    def flood(text: str) -> list[str]:
        """Give much."""
        return [text] * 2000

    async with inspecting(flood) as page:
        long = json.dumps({"text": "x" * 9000})
        details = await page.call("flood", long)
        assert details["arguments_text"] == long
        assert len(details["raw"]) < 260_000
        json.loads(details["raw"])
        assert "are not shown" in details["raw"]
        assert details["content"][0]["left_out"] > 10_000_000
        (listed,) = page.inspector.state()["calls"]
        assert listed["arguments_cut"]
        assert len(json.dumps(listed)) < 4_000


async def test_the_newest_hundred_calls_are_kept() -> None:
    async with inspecting(add) as page:
        for number in range(0, 105, 15):
            for each in range(number, number + 15):  # of which twenty may go on at once
                message = {"call": f"c{each}", "name": "add", "arguments_text": '{"a": 1}'}
                page.host.receive({"type": "call_tool", "ticket": f"t{each}", "session": page.session, **message})
            await page.ended(f"c{number + 14}")
            await page.until(lambda: all(call["state"] == "done" for call in page.inspector.state()["calls"]))
        calls = page.inspector.state()["calls"]
        assert [each["call"] for each in calls] == [f"c{number}" for number in range(5, 105)]


async def test_calls_go_on_beside_a_run_on_an_agent_in_a_thread_of_its_own() -> None:
    agent = Agent(Scripted(["done"]), tools=[add], runtime="thread")
    page = InspectorPage(agent)
    await page.open()
    assert (await page.call("add", '{"a": 1}'))["summary"] == "3"
    page.close()
    await agent.shutdown()
