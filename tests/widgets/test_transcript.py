"""A page follows a real agent: streams, tools, approvals, gaps, late arrivals, other threads."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest
from widgets.page import Page

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.approval import approve
from yiemagent_nb.core.channels import Channel
from yiemagent_nb.core.errors import ServerError
from yiemagent_nb.core.messages import (
    AssistantMessage,
    AssistantToolCallMessage,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from yiemagent_nb.core.tools import ToolContext
from yiemagent_nb.widgets.cell_output import CellOutput
from yiemagent_nb.widgets.transcript_output import TranscriptOutput

Messages = Sequence[Mapping[str, Any]]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def chatter(_messages: Messages) -> AsyncIterator[str]:
    for word in ("Good ", "day, ", "\N{PARTY POPPER} ", "friend."):
        yield word
        await asyncio.sleep(0)


async def calculator(messages: Messages) -> AsyncIterator[dict[str, Any]]:
    if messages[-1]["role"] == "tool":
        yield {"content": "It is 42."}
        return
    yield {"reasoning": "A sum."}
    yield {"content": "I add."}
    call = {"index": 0, "id": "call_1", "function": {"name": "add", "arguments": '{"a": 17,'}}
    yield {"tool_calls": [call]}
    yield {"tool_calls": [{"index": 0, "function": {"arguments": ' "b": 25}'}}]}


async def test_a_page_shows_the_words_of_a_stream() -> None:
    agent = Agent(chatter)
    page = Page(agent)
    page.hello()
    await agent.prompt("hello")
    await page.until("run_end")
    assert page.texts == ["hello", "Good day, \N{PARTY POPPER} friend."]
    assert page.problems == []


async def test_text_that_was_streamed_is_not_sent_again() -> None:
    agent = Agent(chatter)
    page = Page(agent)
    page.hello()
    await agent.prompt("hello")
    await page.until("run_end")
    [end] = page.events("message_end")
    assert end["message"]["content"] == [{"type": "text", "length": len("Good day, \N{PARTY POPPER} friend.")}]


async def test_an_answer_that_did_not_stream_is_sent_whole() -> None:
    def prompt(_messages: Messages) -> str:
        return "At once."

    agent = Agent(prompt)
    page = Page(agent)
    page.hello()
    await agent.prompt("hello")
    await page.until("run_end")
    assert page.texts == ["hello", "At once."]


async def test_a_call_is_told_from_its_first_letters_to_its_result() -> None:
    agent = Agent(calculator, tools=[add])
    page = Page(agent)
    page.hello()
    await agent.prompt("17 + 25?")
    await page.until("run_end")
    arguments = "".join(event["text"] for event in page.events("delta") if event.get("kind") == "tool_call")
    [start] = page.events("tool_start")
    [end] = page.events("tool_end")
    assert arguments == '{"a": 17, "b": 25}'
    assert start["args"] == {"a": 17, "b": 25}
    assert end["content"] == [{"type": "text", "text": "42"}]
    assert not end["is_error"]
    assert page.texts == ["17 + 25?", "I add.", "", "It is 42."]


async def test_a_page_that_comes_late_sees_the_same() -> None:
    agent = Agent(calculator, tools=[add])
    first = Page(agent)
    first.hello()
    await agent.prompt("17 + 25?")
    late = Page(agent)
    late.hello()
    await late.until("alive")
    await first.until("run_end")
    assert late.batches[0]["snapshot"]["chat"]["messages"][1]["content"][2]["arguments"] == {"a": 17, "b": 25}
    assert late.texts == ["17 + 25?", "I add.", "42", "It is 42."]


async def test_a_page_that_comes_during_a_stream_goes_on_from_there() -> None:
    halfway, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_messages: Messages) -> AsyncIterator[str]:
        yield "One, "
        yield "two, "
        halfway.set()
        await go_on.wait()
        yield "three."

    agent = Agent(slow)
    first = Page(agent)
    first.hello()
    run = asyncio.ensure_future(agent.prompt("count"))
    await halfway.wait()
    late = Page(agent)
    late.hello()
    await late.until("alive")
    assert late.live == {0: "One, two, "}
    go_on.set()
    await run
    for page in (first, late):
        await page.until("run_end")
        assert page.texts[-1] == "One, two, three."
        assert page.problems == []


@pytest.mark.parametrize("lost", [2, 3, 5])
async def test_a_lost_batch_is_noticed_and_made_good(lost: int) -> None:
    async def steady(_messages: Messages) -> AsyncIterator[str]:
        for number in range(30):
            yield f"{number} "
            await asyncio.sleep(0.01)

    agent = Agent(steady)
    page = Page(agent, lose=frozenset({lost}))
    page.hello()
    message = await agent.prompt("count")
    await page.until("run_end")
    snapshots = [batch for batch in page.batches if "snapshot" in batch]
    assert len(snapshots) == 2
    assert page.texts[-1] == message.text
    assert page.problems == []


async def test_a_flood_of_deltas_ends_with_the_same_text() -> None:
    async def flood(_messages: Messages) -> AsyncIterator[str]:
        for number in range(9_000):
            yield f"{number} "

    agent = Agent(flood)
    page = Page(agent)
    page.hello()
    message = await agent.prompt("go")
    await page.until("run_end")
    assert page.texts[-1] == message.text
    assert len(page.batches) < 100
    assert page.size < 2.5 * len(message.text)


async def test_what_a_person_writes_reaches_the_agent_and_is_acknowledged() -> None:
    agent = Agent(chatter)
    page = Page(agent)
    page.hello()
    page.host.receive({"type": "send", "ticket": "t-1", "text": "hello"})
    assert (await page.reply("t-1"))["type"] == "accepted"
    await page.until("run_end")
    assert page.texts[0] == "hello"


async def test_a_repeated_ticket_is_carried_out_once() -> None:
    agent = Agent(chatter)
    page = Page(agent)
    page.hello()
    for _ in range(3):
        page.host.receive({"type": "send", "ticket": "t-1", "text": "hello"})
    await page.until("run_end")
    await agent.wait_idle()
    assert [message.role for message in agent.state.messages] == ["user", "assistant"]


async def test_a_full_channel_is_refused_with_what_to_do() -> None:
    go_on = asyncio.Event()

    async def waits(_messages: Messages) -> AsyncIterator[str]:
        await go_on.wait()
        yield "done"

    agent = Agent(waits)
    page = Page(agent)
    page.hello()
    page.host.receive({"type": "send", "ticket": "first", "text": "hello"})
    await page.until("message_start")
    channel: Channel[Any, Any] = agent.follow_up_channel
    for number in range(channel.capacity):
        channel.put_nowait(str(number))
    page.host.receive({"type": "follow_up", "ticket": "full", "text": "too much"})
    refused = await page.reply("full")
    assert refused["code"] == "CHANNEL_FULL"
    assert refused["hint"]
    agent.abort()
    agent.follow_up_channel.clear()
    page.host.receive({"type": "follow_up", "ticket": "full", "text": "now there is room"})
    await page.until("accepted", 2)
    go_on.set()


async def test_what_a_page_sends_wrong_is_refused_and_harms_nothing() -> None:
    agent = Agent(chatter)
    page = Page(agent)
    page.hello()
    rubbish: list[Any] = [None, 5, [], {"type": "send"}, {"type": "send", "ticket": "x", "text": 3}, {"type": "no"}]
    for each in rubbish:
        page.host.receive(each)
    await page.until("refused", len(rubbish))
    assert page.replies["x"]["code"] == "INVALID_PARAMETERS"
    assert (await agent.prompt("hello")).text.startswith("Good day")


async def test_stop_ends_a_stream_and_keeps_its_words() -> None:
    async def endless(_messages: Messages) -> AsyncIterator[str]:
        while True:
            yield "on and "
            await asyncio.sleep(0.01)

    agent = Agent(endless)
    page = Page(agent)
    page.hello()
    run = asyncio.ensure_future(agent.prompt("go"))
    await page.until("delta")
    page.host.receive({"type": "stop"})
    message = await run
    await page.until("run_end")
    assert message.stop_reason == "aborted"
    assert page.texts[-1] == message.text
    assert page.events("run_end")[0]["reason"] == "aborted"


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"choice": "allow_once"}, "42"),
        ({"choice": "allow_edited", "arguments": {"a": 1, "b": 2}}, "3"),
        ({"choice": "deny", "reason": "not today"}, "not today"),
    ],
)
async def test_a_call_waits_for_a_persons_word(answer: dict[str, Any], result: str) -> None:
    agent = Agent(calculator, tools=[add], before_tool_call=approve())
    page = Page(agent)
    page.hello()
    run = asyncio.ensure_future(agent.prompt("17 + 25?"))
    await page.until("approval")
    [asked] = page.events("approval")
    late = Page(agent)
    late.hello()
    await late.until("alive")
    assert late.batches[0]["snapshot"]["chat"]["approvals"][0]["request_id"] == asked["request_id"]
    page.host.receive({"type": "approve", "ticket": "t", "request_id": asked["request_id"], **answer})
    assert (await page.reply("t"))["type"] == "accepted"
    await run
    await page.until("run_end")
    assert result in page.events("tool_end")[0]["content"][0]["text"]
    assert page.events("approval_done")[0]["choice"] == answer["choice"]
    page.host.receive({"type": "approve", "ticket": "t2", "request_id": asked["request_id"], "choice": "deny"})
    assert (await page.reply("t2"))["type"] == "refused"


async def test_the_call_that_runs_is_in_a_late_snapshot_with_its_progress() -> None:
    reported, go_on = threading.Event(), threading.Event()

    def add(a: int, b: int, context: ToolContext) -> int:
        """Add two numbers."""
        context.update("half of it")
        reported.set()
        assert go_on.wait(10)
        return a + b

    agent = Agent(calculator, tools=[add])
    early, reopened = Page(agent), Page(agent)
    early.hello()
    run = asyncio.ensure_future(agent.prompt("17 + 25?"))
    await asyncio.to_thread(reported.wait, 10)
    await early.until("tool_update")
    reopened.hello()
    await reopened.until("alive")
    late = Page(agent)  # its widget was built when the call ran already
    late.hello()
    await late.until("alive")
    calls = [page.batches[0]["snapshot"]["chat"]["calls"][0] for page in (reopened, late)]
    assert [(call["name"], call["args"]) for call in calls] == [("add", {"a": 17, "b": 25})] * 2
    assert calls[0]["content"] == [{"type": "text", "text": "half of it"}]
    go_on.set()
    await run


async def test_an_error_of_the_backend_is_told_with_its_code() -> None:
    def broken(_messages: Messages) -> str:
        raise ServerError("The server is out to lunch.", "Ask again.")

    agent = Agent(broken)
    page = Page(agent)
    page.hello()
    await agent.prompt("hello")
    await page.until("run_end")
    [end] = page.events("message_end")
    error = end["message"]["error"]
    assert error == {"message": "The server is out to lunch.", "hint": "Ask again.", "code": "SERVER_ERROR"}
    assert page.events("error") == [{"type": "error", **error}]


async def test_a_long_history_comes_in_parts_the_newest_first() -> None:
    history = [UserMessage(f"question {number}") for number in range(500)]
    agent = Agent(chatter, messages=history)
    page = Page(agent)
    page.hello()
    await page.until("alive")
    chat = page.batches[0]["snapshot"]["chat"]
    assert chat["total"] == 500
    assert chat["messages"][-1]["content"][0]["text"] == "question 499"
    messages, start = chat["messages"], chat["start"]
    while start > 0:
        page.host.receive({"type": "earlier", "before": start})
        await page.until("history", 1 + len([b for b in page.batches for e in b["events"] if e["type"] == "history"]))
        part = page.events("history")[-1]
        messages, start = part["messages"] + messages, part["start"]
    assert [message["content"][0]["text"] for message in messages] == [f"question {n}" for n in range(500)]


async def test_calls_that_share_an_id_keep_what_they_took() -> None:
    durations = iter((0.0, 0.03))

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        time.sleep(next(durations))
        return a + b

    agent = Agent(calculator, tools=[add])
    page = Page(agent)
    page.hello()
    await agent.prompt("17 + 25?")
    await agent.prompt("and again?")
    page.host.receive({"type": "hello", "last_seq": 0})
    await page.until("alive", 2)
    snapshot = next(batch["snapshot"] for batch in reversed(page.batches) if "snapshot" in batch)
    first, second = (each["duration"] for each in snapshot["chat"]["messages"] if each["role"] == "toolResult")
    assert first < 0.03 <= second


async def test_what_was_forgotten_is_kept_by_no_page_and_no_output() -> None:
    agent = Agent(calculator, tools=[add])
    page, output, cell = Page(agent), TranscriptOutput(agent, "name"), CellOutput(agent)
    page.hello()
    with cell:
        await agent.prompt("17 + 25?")
    gone = [weakref.ref(message) for message in agent.messages]
    assert len(gone) == 4
    agent.reset()
    await agent.prompt("and again?")  # until then the agent itself keeps its last run
    await page.until("run_end", 2)
    del cell
    gc.collect()
    assert [ref() for ref in gone] == [None] * 4
    output.close()


async def test_no_part_of_a_long_history_begins_with_a_result_without_its_call() -> None:
    call = ToolCall(id="c", name="add", arguments={})
    turn = [AssistantToolCallMessage(tool_calls=[call]), ToolResultMessage(tool_call_id="c", tool_name="add")]
    agent = Agent(chatter, messages=[UserMessage("begin"), *turn * 60])
    page = Page(agent)
    page.hello()
    await page.until("alive")
    chat = page.batches[0]["snapshot"]["chat"]
    page.host.receive({"type": "earlier", "before": chat["start"]})
    await page.until("history")
    parts = [chat["messages"], page.events("history")[0]["messages"]]
    assert [part[0]["role"] for part in parts] == ["assistant", "user"]


async def test_a_reset_shows_in_the_next_heartbeat() -> None:
    agent = Agent(chatter)
    page = Page(agent)
    page.hello()
    await agent.prompt("hello")
    await page.until("run_end")
    agent.reset()
    page.host.receive({"type": "heartbeat", "last_seq": page.seq})
    await page.until("alive", 2)
    assert page.events("alive")[-1]["total"] == 0


async def test_a_huge_result_is_cut_for_the_page_only() -> None:
    def add(a: int, b: int) -> str:
        """Add two numbers."""
        return "x" * (60_000 + a + b)

    agent = Agent(calculator, tools=[add])
    page = Page(agent)
    page.hello()
    await agent.prompt("17 + 25?")
    await page.until("run_end")
    [block] = page.events("tool_end")[0]["content"]
    assert (len(block["text"]), block["left_out"]) == (50_000, 10_042)
    result = agent.state.messages[2]
    assert isinstance(result, ToolResultMessage)
    assert len(result.text) == 60_042


def test_an_agent_with_a_thread_of_its_own_is_followed_from_a_blocked_one() -> None:
    agent = Agent(chatter, runtime="thread")
    page = Page(agent)
    page.hello()
    message = agent.ask("hello")
    page.until_threadsafe("run_end")
    assert page.texts == ["hello", message.text]
    asyncio.run(agent.shutdown())


async def test_pages_in_other_threads_may_speak_at_once() -> None:
    agent = Agent(chatter, follow_up_mode="all")
    page = Page(agent)
    page.hello()
    await agent.prompt("hello")
    tickets = [f"t-{number}" for number in range(24)]

    def speak(some: Sequence[str]) -> None:
        for ticket in some:
            page.host.receive({"type": "follow_up", "ticket": ticket, "text": ticket})

    await asyncio.gather(*(asyncio.to_thread(speak, tickets[start::4]) for start in range(4)))
    replies = [await page.reply(ticket) for ticket in tickets]
    await agent.wait_idle()
    said = {message.text for message in agent.state.messages if isinstance(message, UserMessage)}
    assert {reply["type"] for reply in replies} == {"accepted"}
    assert said == {"hello", *tickets}


async def test_what_an_answer_took_is_told_with_it_and_in_every_later_snapshot() -> None:
    def metered(messages: Messages) -> dict[str, Any]:
        usage = {"prompt_tokens": 10, "completion_tokens": 2}
        if messages[-1]["role"] == "tool":
            return {"content": "It is 42.", "model": "m", "usage": usage}
        return {"tool_calls": [{"function": {"name": "add", "arguments": '{"a": 17, "b": 25}'}}], "usage": usage}

    agent = Agent(metered, tools=[add])
    page = Page(agent)
    page.hello()
    await agent.prompt("17 + 25?")
    await page.until("run_end")
    late = Page(agent)
    late.hello()
    await late.until("alive")
    told = [event["message"]["took"] for event in page.events("message_end")]
    messages = late.batches[0]["snapshot"]["chat"]["messages"]
    assert [message["took"] for message in messages if message["role"] == "assistant"] == told
    assert told[0] is None
    assert told[1]["line"] == "m · 20 tokens in, 4 out · 2 turns"


async def test_what_a_provider_alone_reads_stays_in_python() -> None:
    answer = AssistantMessage([{"type": "reasoning", "text": "hm", "signature": "SECRET-BLOB"}, "yes"])
    agent = Agent(chatter, messages=[UserMessage("hello"), answer])
    page = Page(agent)
    page.hello()
    await page.until("alive")
    assert "SECRET-BLOB" not in str(page.batches)


async def test_a_closed_host_lets_go_of_the_agent() -> None:
    agent = Agent(chatter)
    page = Page(agent)
    page.hello()
    await page.until("alive")
    page.host.close()
    seen = len(page.batches)
    await agent.prompt("hello")
    assert len(page.batches) == seen
