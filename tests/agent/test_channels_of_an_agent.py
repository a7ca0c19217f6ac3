"""The three channels around a running agent: capacities, order, backpressure, threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from agent.grammar import users_texts
from agent.script import Gate, Model, Recorder, call, check_agent, eventually, history_of

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.errors import ChannelFull
from yiemagent_nb.core.events import QueueChanged
from yiemagent_nb.core.limits import Limits
from yiemagent_nb.core.messages import UserMessage

pytestmark = pytest.mark.requirement(
    "Y FR-001", "Y US-001", "Y US-003", "Y SD-001", "Y SD-002", "Y SD-003", "Y NFR-003"
)

WITHOUT_LIMITS = Limits(max_turns=None, messages_per_minute=None, messages_per_session=None)
THREADS = 4
EACH = 50


def test_the_capacities_are_those_of_the_specification() -> None:
    agent = Agent(Model())
    assert [c.capacity for c in (agent.input_channel, agent.follow_up_channel, agent.output_channel)] == [16, 32, 16]


def put_from_threads(put: Callable[[int, str], None]) -> list[threading.Thread]:
    """Four threads, each of which puts its numbered messages and waits where there is no room."""

    def work(thread: int) -> None:
        for number in range(EACH):
            put(thread, f"{thread}:{number}")

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    return threads


@pytest.mark.requirement("Y NFR-103")
@pytest.mark.parametrize("which", ["input", "follow_up", "both"])
async def test_puts_from_four_threads_into_a_running_agent_lose_nothing_and_keep_their_order(which: str) -> None:
    most = {"input": 0, "follow_up": 0}
    agent = Agent(Model(), limits=WITHOUT_LIMITS)

    def measure(event: object, _: object) -> None:
        if isinstance(event, QueueChanged):
            most["input"] = max(most["input"], len(event.steering))
            most["follow_up"] = max(most["follow_up"], len(event.follow_ups))

    agent.subscribe(measure)
    recorder = Recorder(agent)

    def put(thread: int, text: str) -> None:
        if which == "input" or (which == "both" and thread % 2):
            agent.input_channel.put_threadsafe(text, timeout=60)
        else:
            agent.follow_up_channel.put_threadsafe(text, timeout=60)

    threads = put_from_threads(put)
    await eventually(lambda: not any(thread.is_alive() for thread in threads))
    await agent.wait_idle()

    said = users_texts(agent.messages)
    assert len(said) == THREADS * EACH
    for thread in range(THREADS):
        own = [text for text in said if text.startswith(f"{thread}:")]
        assert own == [f"{thread}:{number}" for number in range(EACH)]
    assert most["input"] <= 16
    assert most["follow_up"] <= 32
    await check_agent(agent, recorder)


async def test_put_waits_while_a_channel_is_full_and_goes_on_when_the_agent_takes() -> None:
    gate = Gate()
    agent = Agent(Model([gate, "one"]), limits=WITHOUT_LIMITS)
    agent.steer("u")
    await gate.started.wait()
    for number in range(16):
        await agent.input_channel.put(f"s{number}")

    waiting = asyncio.create_task(agent.input_channel.put("s16"))
    await asyncio.sleep(0)
    assert not waiting.done()
    with pytest.raises(ChannelFull):
        agent.input_channel.put_nowait("too many")

    gate.opened.set()
    await waiting
    await agent.wait_idle()
    assert users_texts(agent.messages) == ["u", *(f"s{n}" for n in range(17))]


async def test_a_string_on_a_channel_is_a_users_message() -> None:
    agent = Agent(Model())
    agent.abort()
    agent.input_channel.put_nowait("one")
    agent.follow_up_channel.put_nowait(UserMessage("two"))

    steering, follow_ups = agent.input_channel.items(), agent.follow_up_channel.items()

    assert all(isinstance(item, UserMessage) for item in (*steering, *follow_ups))
    await agent.wait_idle()
    assert history_of(agent) == "one a two a"


async def test_listeners_hear_what_waits() -> None:
    agent = Agent(
        Model(
            [
                lambda: agent.steer("s"),
                lambda: agent.follow_up("f"),
                lambda: eventually(lambda: (["s"], ["f"]) in waiting()),
                "one",
            ]
        )
    )
    recorder = Recorder(agent)

    def waiting() -> list[tuple[list[str], list[str]]]:
        return [
            (users_texts(event.steering), users_texts(event.follow_ups)) for event in recorder.of_type(QueueChanged)
        ]

    await agent.prompt("u")
    await agent.wait_idle()

    heard = recorder.of_type(QueueChanged)
    assert (heard[-1].steering, heard[-1].follow_ups) == ((), ())


async def test_every_answer_goes_to_the_output_in_openais_form() -> None:
    agent = Agent(Model(["Let me see.", call("a")], "done"), tools=[a_tool])

    await agent.prompt("u")

    first, second = agent.output_channel.items()
    assert first["role"] == second["role"] == "assistant"
    assert first["content"] == [{"type": "text", "text": "Let me see."}]
    assert first["tool_calls"][0]["function"]["name"] == "a"
    assert second["content"] == [{"type": "text", "text": "done"}]


async def test_the_output_keeps_the_newest_answers_while_nobody_has_ever_read() -> None:
    agent = Agent(Model(), limits=WITHOUT_LIMITS)

    for number in range(20):
        await agent.prompt(str(number))

    assert len(agent.output_channel) == 16
    assert agent.output_channel.dropped == 4
    assert len(agent.messages) == 40


async def test_the_output_blocks_when_it_is_full_once_someone_has_read() -> None:
    agent = Agent(Model(), limits=WITHOUT_LIMITS)
    await agent.prompt("first")
    await agent.output_channel.take()
    for number in range(16):
        await agent.prompt(str(number))

    running = asyncio.create_task(agent.prompt("one too many"))
    await eventually(lambda: history_of(agent).endswith("one too many a"))
    for _ in range(8):
        await asyncio.sleep(0)
    assert not running.done()
    assert agent.is_running

    await agent.output_channel.take()
    await running
    assert agent.output_channel.dropped == 0
    assert len(agent.output_channel) == 16


async def test_an_abort_ends_the_wait_for_a_reader_of_the_output() -> None:
    agent = Agent(Model(), limits=WITHOUT_LIMITS)
    recorder = Recorder(agent)
    await agent.prompt("first")
    await agent.output_channel.take()
    for number in range(16):
        await agent.prompt(str(number))

    running = asyncio.create_task(agent.prompt("one too many"))
    await eventually(lambda: history_of(agent).endswith("one too many a"))
    agent.abort()
    answer = await running

    assert answer.text == "done", "history loses nothing"
    assert not agent.is_running
    while agent.output_channel.take_nowait() is not None:
        pass
    await check_agent(agent, recorder)


async def test_a_reader_in_another_thread_gets_every_answer() -> None:
    agent = Agent(Model(), limits=WITHOUT_LIMITS)
    got: list[object] = []

    async def read() -> None:
        async for answer in agent.output_channel:
            got.append(answer["content"])  # noqa: PERF401 - one at a time, so that the agent has to wait

    reader = threading.Thread(target=lambda: asyncio.run(read()))
    reader.start()
    for number in range(40):
        await agent.prompt(str(number))
    await agent.shutdown()
    await asyncio.to_thread(reader.join, 30)

    assert not reader.is_alive()
    assert len(got) + agent.output_channel.dropped == 40


def a_tool() -> str:
    """Work well."""
    return "ok"


a_tool.__name__ = "a"
