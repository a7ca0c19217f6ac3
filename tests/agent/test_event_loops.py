"""Which event loop an agent works on, and what happens when that loop ends under it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator

import pytest
from agent.script import Gate, Model, Recorder, Step, call, check_agent, eventually, forever, history_of

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.errors import AgentBusyError, AgentClosedError
from yiemagent_nb.core.events import AgentError, Event
from yiemagent_nb.core.messages import AssistantMessage, ToolResultMessage

pytestmark = pytest.mark.requirement("Y SD-001", "Y NFR-003", "Y P-005")


class LoopInThread:
    """An event loop in a thread, which a test can close at any moment."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()

    def run(self, work: Awaitable[object]) -> object:
        """Await something there and wait for it here."""

        async def await_it() -> object:
            return await work

        return asyncio.run_coroutine_threadsafe(await_it(), self.loop).result(30)

    def start(self, work: Callable[[], Awaitable[object]]) -> None:
        """Start something there that may be lost with its loop."""

        async def await_it() -> None:
            with contextlib.suppress(Exception):
                await work()

        asyncio.run_coroutine_threadsafe(await_it(), self.loop)

    def stop(self) -> None:
        """Stop the loop, with all that runs on it."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(30)

    def resume(self) -> None:
        """Let a stopped loop do what was left on it, in this thread."""

        async def steps() -> None:
            for _ in range(20):
                await asyncio.sleep(0)

        self.loop.run_until_complete(steps())

    def close(self) -> None:
        """Stop and close it."""
        self.stop()
        self.loop.close()


@pytest.fixture
def loop_in_thread() -> Generator[LoopInThread]:
    """A loop in a thread. What asyncio says of the tasks that die with it is not of interest."""
    loop = LoopInThread()
    logger = logging.getLogger("asyncio")
    before, logger.disabled = logger.disabled, True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", _ignore)
        yield loop
        loop.close()
        gc.collect()
        gc.collect()
    logger.disabled = before


def _ignore(_: object) -> None:
    pass


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait in a thread; the test's own timeout ends a wait in vain."""
    while not condition():
        time.sleep(0.001)


def test_one_agent_works_in_several_asyncio_runs_in_a_row() -> None:
    agent = Agent(Model("one", "two", "three"))
    recorder = Recorder(agent)

    texts = [asyncio.run(agent.prompt(str(number))).text for number in range(3)]

    assert texts == ["one", "two", "three"]
    assert history_of(agent) == "0 a 1 a 2 a"
    recorder.check()


def test_async_listeners_are_served_on_each_loop_in_turn() -> None:
    handled: list[str] = []

    async def listen(event: Event, _: object) -> None:
        await asyncio.sleep(0)
        handled.append(event.type)

    agent = Agent(Model())
    agent.subscribe(listen)

    async def prompt() -> None:
        await agent.prompt("u")
        await agent.wait_idle()

    asyncio.run(prompt())
    asyncio.run(prompt())

    assert handled.count("agent_end") == 2


def test_a_run_that_its_loop_leaves_in_the_middle_is_over_and_the_next_loop_goes_on() -> None:
    agent = Agent(Model(["Hel", forever], "two"))
    recorder = Recorder(agent)

    async def leave() -> None:
        agent.steer("u")
        await eventually(lambda: "MU" in recorder.order)

    asyncio.run(leave())
    answer = asyncio.run(agent.prompt("v"))

    assert answer.text == "two"
    assert history_of(agent) == "u a,aborted v a"
    recorder.check()


@pytest.mark.parametrize("steps", range(6))
def test_nothing_that_was_said_is_lost_when_its_loop_ends_at_any_moment(steps: int) -> None:
    agent = Agent(Model(["Hel", forever], "two"))
    recorder = Recorder(agent)

    async def leave() -> None:
        agent.steer("u")
        for _ in range(steps):
            await asyncio.sleep(0)

    asyncio.run(leave())
    agent.set_llm_call(Model())
    asyncio.run(agent.prompt("v"))
    asyncio.run(agent.wait_idle())

    assert [word for word in history_of(agent).split() if word in ("u", "v")] in (["u", "v"], ["v", "u"])
    recorder.check()


async def stuck() -> str:
    """Never end."""
    await forever()
    return ""


def quick() -> str:
    """End at once."""
    return "real"


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "stopped for good"])
@pytest.mark.parametrize(
    ("answer", "reached", "history"),
    [
        (["Hel", forever], "MU", "u a,aborted v a"),
        ([call("stuck", call_id="A"), call("quick", call_id="B")], "XE(B)", "u a tA tB v a"),
        ([call("quick", call_id="B"), call("stuck", call_id="A")], "XE(B)", "u a tB tA v a"),
        ([call("stuck", call_id="A")], "XS(A)", "u a tA v a"),
    ],
    ids=["in a stream", "in a batch", "in a batch, behind a result", "in a tool"],
)
@pytest.mark.requirement("Y P-005", "Y NFR-201", "A SPEC-7.1")
def test_a_loop_that_ends_under_a_run_leaves_a_valid_history_and_a_usable_agent(
    loop_in_thread: LoopInThread, answer: list[Step], reached: str, history: str, closed: bool
) -> None:
    agent = Agent(Model(answer, "two"), tools=[stuck, quick])
    recorder = Recorder(agent)
    loop_in_thread.start(lambda: agent.prompt("u"))
    wait_until(lambda: reached in recorder.order)
    agent.steer("waits")
    if closed:
        loop_in_thread.close()
    else:
        loop_in_thread.stop()

    async def go_on() -> None:
        await agent.prompt("v")
        await agent.wait_idle()

    asyncio.run(go_on())

    assert history_of(agent) == f"{history} waits a"
    errors = recorder.of_type(AgentError)
    assert [error.code for error in errors] == ["AGENT_CLOSED"]
    assert "loop was closed" in errors[0].message
    results = [m for m in agent.messages if isinstance(m, ToolResultMessage) and m.tool_name == "quick"]
    assert all(result.text == "real" for result in results), "a result that was there is lost"
    if closed:
        gc.collect()
    else:
        loop_in_thread.resume()
    assert history_of(agent) == f"{history} waits a", "the run that was left wrote into the history"
    asyncio.run(check_agent(agent, recorder))


def test_a_caller_on_another_loop_gets_a_typed_error_when_the_agents_loop_is_closed(
    loop_in_thread: LoopInThread,
) -> None:
    agent = Agent(Model(["Hel", forever], "two"))
    recorder = Recorder(agent)
    loop_in_thread.run(agent.wait_idle())

    async def prompt() -> None:
        running = asyncio.create_task(agent.prompt("u"))
        await eventually(lambda: "MU" in recorder.order)
        loop_in_thread.close()
        with pytest.raises(AgentClosedError, match="loop was closed") as caught:
            await running
        assert caught.value.code == "AGENT_CLOSED"
        assert (await agent.prompt("v")).text == "two"

    asyncio.run(prompt())

    assert history_of(agent) == "u a,aborted v a"
    recorder.check()


def test_wait_idle_does_not_wait_for_listeners_whose_loop_is_gone(loop_in_thread: LoopInThread) -> None:
    begun = threading.Event()

    async def slow(*_: object) -> None:
        if not begun.is_set():
            begun.set()
            await forever()

    agent = Agent(Model("one"))
    agent.subscribe(slow)
    loop_in_thread.run(agent.prompt("u"))
    assert begun.wait(30)
    loop_in_thread.close()

    asyncio.run(asyncio.wait_for(agent.wait_idle(), 30))


def test_an_agent_can_be_used_from_a_loop_that_is_not_its_own(loop_in_thread: LoopInThread) -> None:
    threads: list[int] = []
    agent = Agent(Model([lambda: threads.append(threading.get_ident()), "one"]))
    loop_in_thread.run(agent.wait_idle())

    answer = asyncio.run(agent.prompt("u"))

    assert answer.text == "one"
    assert threads != [threading.get_ident()]
    with pytest.raises(AgentBusyError):
        asyncio.run(_twice(agent))


async def _twice(agent: Agent) -> None:
    gate = asyncio.Event()
    agent.set_llm_call(Model([forever]))
    first = asyncio.create_task(agent.prompt("u"))
    while not agent.is_running:  # noqa: ASYNC110 - what another loop does has no event here
        await asyncio.sleep(0)
    try:
        await agent.prompt("v")
    finally:
        agent.abort()
        await first
        gate.set()


def test_a_caller_that_gives_up_on_another_loop_aborts_the_run(loop_in_thread: LoopInThread) -> None:
    agent = Agent(Model(["Hel", forever], "two"))
    recorder = Recorder(agent)
    loop_in_thread.run(agent.wait_idle())

    async def give_up() -> None:
        running = asyncio.create_task(agent.prompt("u"))
        await eventually(lambda: "MU" in recorder.order)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(give_up())
    loop_in_thread.run(agent.wait_idle())

    assert history_of(agent) == "u a,aborted"
    loop_in_thread.run(check_agent(agent, recorder))


# A loop in a thread of the agent's own


def test_an_agent_with_a_thread_of_its_own_works_from_any_loop_and_ends_with_its_thread() -> None:
    gate_thread: list[str] = []
    agent = Agent(Model([lambda: gate_thread.append(threading.current_thread().name), "one"], "two"), runtime="thread")

    first = asyncio.run(agent.prompt("u"))
    second = asyncio.run(agent.prompt("v"))
    asyncio.run(agent.shutdown())

    assert (first.text, second.text) == ("one", "two")
    assert gate_thread == ["yiemagent_nb agent"]
    assert agent.closed
    wait_until(lambda: not any(t.name == "yiemagent_nb agent" for t in threading.enumerate()))


async def test_an_agent_with_a_thread_of_its_own_goes_on_while_a_cell_blocks() -> None:
    agent = Agent(Model("one"), runtime="thread")
    recorder = Recorder(agent)

    agent.steer("u")
    wait_until(lambda: recorder.order.endswith("AE"))  # blocks this loop

    assert history_of(agent) == "u a"
    await check_agent(agent, recorder)
    await agent.shutdown()


async def test_stream_yields_events_of_an_agent_on_another_loop() -> None:
    agent = Agent(Model(["Hel", "lo"]), runtime="thread")
    recorder = Recorder()

    async for event in agent.stream("u"):
        recorder(event)

    recorder.check()
    assert recorder.order == "AS TS MS(u) ME(u) MS(a) MU ME(a) TE AE"
    await agent.shutdown()


def test_the_thread_of_an_agent_that_nobody_keeps_ends() -> None:
    agent = Agent(Model(), runtime="thread")
    asyncio.run(agent.prompt("u"))
    del agent
    gc.collect()
    wait_until(lambda: not any(t.name == "yiemagent_nb agent" for t in threading.enumerate()))


def test_ask_in_plain_synchronous_code_gives_the_answer_again_and_again() -> None:
    agent = Agent(Model("one", [call("quick")], "three"), tools=[quick])
    recorder = Recorder(agent)

    assert agent.ask("u").text == "one"
    assert agent.ask("v").text == "three"
    assert asyncio.run(agent.prompt("w")).text == "done"

    assert history_of(agent) == "u a v a tQUICK a w a"
    recorder.check()
    asyncio.run(agent.shutdown())


def test_ask_raises_the_errors_of_prompt() -> None:
    gate = threading.Event()
    agent = Agent(Model([lambda: asyncio.to_thread(gate.wait), "one"]))
    errors: list[Exception] = []

    def first() -> None:
        assert isinstance(agent.ask("u"), AssistantMessage)

    thread = threading.Thread(target=first)
    thread.start()
    wait_until(lambda: agent.is_running)
    try:
        agent.ask("v")
    except AgentBusyError as error:
        errors.append(error)
    gate.set()
    thread.join(30)

    assert len(errors) == 1
    assert history_of(agent) == "u a"
    asyncio.run(agent.shutdown())


def test_a_gate_of_an_agent_in_a_thread_is_left_by_abort_from_this_thread() -> None:
    started = threading.Event()
    agent = Agent(Model(["Hel", started.set, forever]), runtime="thread")
    threading.Thread(target=lambda: (started.wait(30), agent.abort())).start()

    answer = agent.ask("u")

    assert (answer.text, answer.stop_reason) == ("Hel", "aborted")
    asyncio.run(check_agent(agent))
    asyncio.run(agent.shutdown())


async def test_tools_and_hooks_see_the_context_variables_of_the_caller() -> None:
    from contextvars import ContextVar  # noqa: PLC0415

    variable: ContextVar[str] = ContextVar("variable", default="unset")
    seen: list[str] = []

    def in_a_thread() -> str:
        """Look at the variable."""
        seen.append(variable.get())
        return "ok"

    async def on_the_loop() -> str:
        """Look at the variable."""
        seen.append(variable.get())
        return "ok"

    agent = Agent(Model([call("in_a_thread"), call("on_the_loop")]), tools=[in_a_thread, on_the_loop])
    variable.set("the caller's")

    await agent.prompt("u")

    assert seen == ["the caller's"] * 2


async def test_a_gate_keeps_the_loop_free_while_a_tool_blocks_its_thread() -> None:
    released = threading.Event()
    gate = Gate()

    def blocks() -> str:
        """Block a thread."""
        assert released.wait(30)
        return "ok"

    async def waits() -> object:
        """Wait on the loop."""
        return await gate()

    agent = Agent(Model([call("blocks"), call("waits")]), tools=[blocks, waits])
    running = asyncio.create_task(agent.prompt("u"))
    await gate.started.wait()
    gate.opened.set()
    released.set()
    await running

    assert history_of(agent) == "u a tBLOCKS tWAITS a"
