"""Whatever a hook of the editor does, the run goes on, and its failure says where and what."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.approval import approve
from yiemagent_nb.core.errors import BackendError
from yiemagent_nb.core.events import ApprovalRequested
from yiemagent_nb.core.hooks import AgentContext, BeforeToolCallResult
from yiemagent_nb.core.messages import AssistantMessage, ToolResultMessage
from yiemagent_nb.core.redaction import Redactor
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.hooks.failures import Failure
from yiemagent_nb.hooks.guard import GuardedHook, HookSource
from yiemagent_nb.hooks.kinds import KINDS, HookName, OnError
from yiemagent_nb.hooks.versions import HookBench
from yiemagent_nb.testing import Scripted, call

LIMIT = 0.1
HOOKS: tuple[HookName, ...] = tuple(KINDS)


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def adding() -> Scripted:
    return Scripted([[call("add", a=1, b=2)], "three"])


def agent_with(
    hook: HookName, function: Callable[..., Any], on_error: OnError = "go_on", seconds: float = 30.0
) -> tuple[Agent, list[Failure]]:
    failures: list[Failure] = []
    source = HookSource("", __file__, 3)
    guarded = GuardedHook(
        KINDS[hook], function, source, report=failures.append, on_error=on_error, seconds=seconds, provider=lambda: ""
    )
    agent = Agent(adding(), tools=[add])
    agent.set_hooks(**{hook: guarded})
    return agent, failures


def results(agent: Agent) -> list[ToolResultMessage]:
    return [message for message in agent.messages if isinstance(message, ToolResultMessage)]


FAILING = {
    "raises": ("    1 / 0\n", "It raised ZeroDivisionError: division by zero.", 2),
    "raises, async": ("async     1 / 0\n", "It raised ZeroDivisionError: division by zero.", 2),
    "exits": ("    raise SystemExit(1)\n", "It raised SystemExit: 1.", 2),
    "returns nonsense": ("    return 42\n", "It returned 42, of type int.", 1),
    "returns nonsense, async": ("async     return object()\n", "It returned an object of type object.", 1),
    "never returns": ("    while True:\n        pass\n", "It did not return in time", 2),
    "never returns, async": ("async     while True:\n        pass\n", "It did not return in time", 2),
    "waits for nothing": (
        "async     import asyncio\n    await asyncio.Event().wait()\n",
        "It did not return in time, and was ended after 0.1 s.",
        3,
    ),
}


@pytest.mark.requirement("Y FR-005", "Y NFR-202")
@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("failing", FAILING.values(), ids=FAILING.keys())
async def test_a_hook_that_fails_stops_no_run_and_says_where_and_what(
    hook: HookName, failing: tuple[str, str, int]
) -> None:
    body, message, line = failing
    word = "async " if body.startswith("async") else ""
    code = f"{word}def {hook}({', '.join(KINDS[hook].takes)}):\n{body.removeprefix('async ')}"
    agent = Agent(adding(), tools=[add])
    bench = HookBench.of(agent)
    bench.set_seconds(LIMIT)
    await bench.apply(hook, code)
    answer = await agent.prompt("1 + 2?")
    assert (answer.text, answer.stop_reason) == ("three", "end_turn")
    (failure,) = bench.failures.of(hook)
    assert failure.message.startswith(message)
    assert (failure.version, failure.count) == (1, 1 if KINDS[hook].several else 2)
    assert failure.line in (line, line + 1)
    assert failure.action
    (result,) = results(agent)
    if KINDS[hook].several:
        assert result.is_error
        assert f"The hook {hook} (version 1 of the editor, line {failure.line}) failed: {message}" in result.text
    else:
        assert result.text == "3"


@pytest.mark.parametrize("hook", ["prepare_context", "format_messages", "around_llm_call"])
async def test_a_run_may_be_ended_by_a_hook_that_fails(hook: HookName) -> None:
    def fail(*_: object) -> None:
        raise LookupError("no key")

    agent, failures = agent_with(hook, fail, "end")
    answer = await agent.prompt("1 + 2?")
    assert answer.stop_reason == "error"
    assert f"The hook {hook} (version 3 of the editor, line " in str(answer.error_message)
    assert "failed: It raised LookupError: no key. " in str(answer.error_message)
    assert [failure.action for failure in failures] == ["The run ended with this error."]
    agent.set_hooks(**{hook: None})
    assert (await agent.prompt("1 + 2?")).text == "three"


async def test_a_policy_that_fails_lets_no_call_through() -> None:
    called: list[int] = []

    def count(a: int) -> int:
        """Count."""
        called.append(a)
        return a

    def fail(*_: object) -> None:
        raise LookupError

    agent, _failures = agent_with("before_tool_call", fail)
    agent.set_tools([count])
    agent.set_llm_call(Scripted([[call("count", a=1)], "done"]))
    await agent.prompt("go")
    assert called == []


class Hostile:
    """Fails wherever it is looked at."""

    def __getattribute__(self, name: str) -> Any:
        raise ZeroDivisionError(name)

    def __repr__(self) -> str:
        raise ZeroDivisionError("repr")

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError("eq")

    def __hash__(self) -> int:
        raise ZeroDivisionError("hash")


class HostileError(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError("str")


@dataclass
class Returns:
    value: Any


@dataclass
class Raises:
    error: BaseException


ANSWERS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(max_size=20),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ),
    st.lists(
        st.dictionaries(st.sampled_from(["role", "content", "tool_calls"]), st.text() | st.integers()), max_size=3
    ),
    st.builds(Hostile),
    st.sampled_from([int, Hostile, ToolResult, lambda: 1, iter([1, 2]), {1, 2}, ..., NotImplemented]),
    st.builds(
        BeforeToolCallResult,
        block=st.booleans() | st.text(),
        reason=st.none() | st.text() | st.integers(),
        arguments=st.none() | st.dictionaries(st.text(max_size=2), st.integers()) | st.integers(),
        note=st.text() | st.integers(),
    ),
    st.builds(ToolResult.model_construct, content=st.integers() | st.text() | st.lists(st.integers())),
    st.builds(ToolResult, st.text(), terminate=st.just(value=False), details=st.builds(Hostile)),
    st.builds(
        AgentContext,
        system_prompt=st.text() | st.integers(),
        messages=st.lists(st.text(max_size=5) | st.integers(), max_size=3) | st.integers(),
        tools=st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    ),
    st.builds(AssistantMessage, st.text()),
).map(Returns)

ERRORS: st.SearchStrategy[Any] = st.sampled_from(
    [
        ValueError("no"),
        HostileError(),
        SystemExit(2),
        GeneratorExit(),
        StopIteration(3),
        StopAsyncIteration(),
        asyncio.CancelledError(),
        TimeoutError(),
        RecursionError(),
        MemoryError(),
        BaseExceptionGroup("several", [KeyError(1), SystemExit()]),
        BackendError("not the backend's"),
        BaseException("the root"),
    ]
).map(Raises)


@pytest.mark.requirement("Y FR-005", "Y NFR-202")
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(hook=st.sampled_from(HOOKS), outcome=ANSWERS | ERRORS, is_async=st.booleans())
def test_no_value_and_no_error_of_a_hook_ends_the_run(hook: HookName, outcome: Any, *, is_async: bool) -> None:
    def act(*_: object) -> Any:
        if isinstance(outcome, Raises):
            raise outcome.error
        return outcome.value

    async def act_async(*offered: object) -> Any:
        return act(*offered)

    async def run() -> None:
        agent, failures = agent_with(hook, act_async if is_async else act)
        answer = await agent.prompt("1 + 2?")
        assert answer.stop_reason != "error", answer.error_message
        assert answer.stop_reason != "aborted"
        assert not agent.is_running
        if isinstance(outcome, Raises):
            assert failures

    asyncio.run(run())


HOSTILE_TEXTS = {
    "loops": "while True: pass",
    "exits": "raise SystemExit(3)",
    "interrupts": "raise KeyboardInterrupt",
    "sleeps": "import time; time.sleep(0.4)",
}


@pytest.mark.parametrize("word", ["", "async "])
@pytest.mark.parametrize("body", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
async def test_the_text_of_an_error_is_made_within_the_limit(body: str, word: str) -> None:
    for hook in ("before_tool_call", "after_tool_call"):
        agent = Agent(adding(), tools=[add])
        bench = HookBench(agent, seconds=LIMIT)
        head = f"class OwnError(Exception):\n    def __str__(self):\n        {body}\n        return 'text'\n"
        takes = ", ".join(KINDS[hook].takes)
        await bench.apply(hook, f"{head}{word}def {hook}({takes}):\n    raise OwnError\n")
        began = time.monotonic()
        assert (await agent.prompt("1 + 2?")).text == "three"
        assert time.monotonic() - began < 2
        (failure,) = bench.failures.of(hook)
        expected = "It raised OwnError: (it has no readable text)." if "raise" in body else "It did not return in time"
        assert failure.message.startswith(expected)
        (shown,) = results(agent)
        assert shown.is_error
        assert shown.text != "3"


async def test_an_async_hook_that_holds_up_the_event_loop_is_reported_with_its_line() -> None:
    for seconds, message in ((5.0, "It held up everything else"), (0.55, "It did not return in time")):
        agent = Agent(adding(), tools=[add])
        bench = HookBench(agent, seconds=seconds)
        await bench.apply(
            "before_tool_call", "import time\nasync def before_tool_call(context, signal):\n    time.sleep(0.7)\n"
        )
        await agent.prompt("1 + 2?")
        (failure,) = bench.failures.of("before_tool_call")
        assert failure.message.startswith(message)
        assert (failure.line, "leave out `async`" in failure.hint) == (3, True)
        assert (results(agent)[0].text == "3") == (seconds == 5)


@pytest.mark.requirement("Y NFR-201")
async def test_no_key_of_a_connection_stands_in_a_failure_or_the_history() -> None:
    key = "sk-proj-Hq8Lw3Xv9Rt2Yp5Nb7Mc4Kd6"
    redactor = Redactor()
    redactor.add(key)
    for body in (f"raise ValueError('{'x' * 980}{key}')", f"return ['{key}']"):
        agent = Agent(adding(), tools=[add])
        bench = HookBench.of(agent)
        await bench.apply("before_tool_call", f"def before_tool_call(context, signal):\n    {body}\n")
        await agent.prompt("1 + 2?")
        shown = repr([each.form() for each in bench.failures.of("before_tool_call")]) + results(agent)[0].text
        assert key[:8] not in shown
        assert "[key]" in shown


# What the time limit counts


async def test_a_person_who_is_asked_may_take_their_time() -> None:
    agent, failures = agent_with("before_tool_call", approve(), seconds=LIMIT)
    asked = asyncio.Event()
    agent.subscribe(lambda event, _: asked.set() if isinstance(event, ApprovalRequested) else None)
    running = asyncio.ensure_future(agent.prompt("1 + 2?"))
    await asked.wait()
    await asyncio.sleep(4 * LIMIT)
    (request,) = agent.approvals.pending
    agent.approvals.resolve(request.request_id, "allow_session")
    assert (await running).text == "three"
    assert failures == []
    assert results(agent)[0].text == "3"
    assert agent.approvals.allowed_for_session(agent.tools["add"])  # what a hook is given shares all with the agent's


async def test_a_model_may_take_its_time_behind_a_hook() -> None:
    async def slow(_messages: object) -> AsyncIterator[str]:
        await asyncio.sleep(2 * LIMIT)
        yield "slow "
        await asyncio.sleep(2 * LIMIT)
        yield "answer"

    async def louder(call: Any, messages: Any, options: Any) -> AsyncIterator[str]:
        async for piece in await call(messages, **options):
            yield piece.upper()

    agent, failures = agent_with("around_llm_call", louder, seconds=LIMIT)
    agent.set_llm_call(slow)
    assert (await agent.prompt("hi")).text == "SLOW ANSWER"
    assert failures == []


# Around the model


class Counting:
    """A backend that streams, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, _messages: object) -> AsyncIterator[str]:
        self.asked += 1
        for piece in ("one ", "two ", "three"):
            yield piece


async def _fails_with_the_answer(call: Any, messages: Any, options: Any) -> Any:
    await call(messages, **options)
    raise LookupError("afterwards")


async def _fails_when_it_read_all(call: Any, messages: Any, options: Any) -> Any:
    text = "".join([piece async for piece in await call(messages, **options)])
    raise LookupError(text)


async def _fails_at_a_piece(call: Any, messages: Any, options: Any) -> AsyncIterator[str]:
    async for piece in await call(messages, **options):
        if piece.startswith("two"):
            raise LookupError(piece)
        yield piece


async def _gives_nonsense_at_a_piece(call: Any, messages: Any, options: Any) -> AsyncIterator[Any]:
    async for piece in await call(messages, **options):
        yield 7 if piece.startswith("two") else piece


async def _gives_nothing(_call: Any, _messages: Any, _options: Any) -> AsyncIterator[Any]:
    for piece in ():
        yield piece


@pytest.mark.parametrize(
    "hook",
    [_fails_with_the_answer, _fails_when_it_read_all, _fails_at_a_piece, _gives_nonsense_at_a_piece, _gives_nothing],
)
async def test_the_answer_that_came_is_used_when_the_hook_around_it_fails(hook: Callable[..., Any]) -> None:
    backend = Counting()
    agent, failures = agent_with("around_llm_call", hook)
    agent.set_llm_call(backend)
    assert (await agent.prompt("hi")).text == "one two three"
    assert backend.asked == 1
    assert len(failures) == 1


async def test_an_error_of_the_backend_is_no_failure_of_the_hook() -> None:
    async def fail(_messages: object) -> AsyncIterator[str]:
        yield "begun"
        raise BackendError("the server is gone")

    async def pass_on(call: Any, messages: Any, options: Any) -> AsyncIterator[str]:
        async for piece in await call(messages, **options):
            yield piece

    async def hide(call: Any, messages: Any, options: Any) -> Any:
        try:
            return [piece async for piece in await call(messages, **options)]
        except BackendError:
            raise LookupError("hidden") from None

    for hook, count in ((pass_on, 0), (hide, 1)):
        agent, failures = agent_with("around_llm_call", hook)
        agent.set_llm_call(fail)
        answer = await agent.prompt("hi")
        assert answer.stop_reason == "error"
        assert "the server is gone" in str(answer.error_message)
        assert len(failures) == count


async def test_an_abort_ends_a_hook_and_is_no_failure() -> None:
    waiting = asyncio.Event()

    async def wait(*_: object) -> None:
        waiting.set()
        await asyncio.sleep(60)

    for hook in HOOKS:
        waiting.clear()
        agent, failures = agent_with(hook, wait)
        running = asyncio.ensure_future(agent.prompt("1 + 2?"))
        await waiting.wait()
        agent.abort()
        assert (await running).stop_reason in ("aborted", "tool_calls")
        assert failures == []
