"""A scripted model, a recorder of events, and tools that tests can hold on to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, cast

from agent.grammar import EventGrammar, check_history, check_request

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.events import (
    AgentEnd,
    AgentError,
    AgentStart,
    Event,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from yiemagent_nb.core.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from yiemagent_nb.core.request import RequestBuilder

__all__ = [
    "LENGTH",
    "Gate",
    "Model",
    "Recorder",
    "call",
    "check_agent",
    "eventually",
    "forever",
    "history_of",
    "labels",
    "stop",
    "words_of",
]

Step = str | Mapping[str, Any] | BaseException | Callable[[], Any]
"""A piece of an answer, an error to raise, or a function to call (and await) at this point."""

LENGTH: Step = {"finish_reason": "length"}
"""The answer ended because it got too long."""


def call(name: str, arguments: Mapping[str, Any] | str | None = None, call_id: str = "") -> Step:
    """A piece that is a whole call."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return {"tool_calls": [{"id": call_id or name.upper(), "function": {"name": name, "arguments": text}}]}


async def forever() -> None:
    """Wait until cancelled."""
    await asyncio.Event().wait()


@dataclass(frozen=True)
class Request:
    """What a model was asked."""

    messages: Sequence[Mapping[str, Any]]
    tools: tuple[str, ...]
    options: Mapping[str, Any]

    @property
    def texts(self) -> list[str]:
        """The text of each message."""
        return [str(message.get("content")) for message in self.messages]


class Model:
    """A backend that gives the next answer at each request, and ``"done"`` when none is left.

    Each request must be one that the strictest server takes.
    """

    def __init__(self, *answers: Step | Sequence[Step]) -> None:
        self._answers = [_steps(answer) for answer in answers]
        self.requests: list[Request] = []

    async def __call__(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Iterable[Mapping[str, Any]] | None = None, **options: Any
    ) -> AsyncGenerator[object, None]:
        """Stream the next answer."""
        check_request(messages)
        names = tuple(str(tool["function"]["name"]) for tool in tools or ())
        self.requests.append(Request(list(messages), names, options))
        for step in self._answers.pop(0) if self._answers else ["done"]:
            if isinstance(step, BaseException):
                raise step
            if not callable(step):
                yield step
                continue
            value: object = step()
            if isawaitable(value):
                await cast("Awaitable[object]", value)


def _steps(answer: Step | Sequence[Step]) -> list[Step]:
    if isinstance(answer, str | Mapping | BaseException) or callable(answer):
        return [answer]
    return list(answer)


class Recorder:
    """Keeps the events of an agent, and checks their order on the way."""

    def __init__(self, agent: Agent | None = None) -> None:
        self.events: list[Event] = []
        self.grammar = EventGrammar()
        self.violation: Exception | None = None
        if agent is not None:
            agent.subscribe(self)

    def __call__(self, event: Event, _signal: object = None) -> None:
        """Take an event."""
        self.events.append(event)
        try:
            self.grammar(event)
        except Exception as violation:
            self.violation = self.violation or violation

    def check(self) -> None:
        """Raise the first violation of the grammar, or one that a run left open is."""
        if self.violation is not None:
            raise self.violation
        self.grammar.finish()

    def of_type(self, *kinds: type[Any]) -> list[Any]:
        """The events of some types."""
        return [event for event in self.events if isinstance(event, kinds)]

    @property
    def order(self) -> str:
        """The events in the words of the specification's table, queue and backend left aside."""
        return " ".join(_collapse(labels(self.events)))

    @property
    def order_with_errors(self) -> str:
        """The same, with ``error`` where something is told to a person."""
        return " ".join(_collapse(labels(self.events, errors=True)))


_LABELS: Mapping[type[Any], Callable[[Any], str]] = {
    AgentStart: lambda _: "AS",
    AgentEnd: lambda _: "AE",
    TurnStart: lambda _: "TS",
    TurnEnd: lambda _: "TE",
    MessageStart: lambda event: f"MS({_name(event.message)})",
    MessageUpdate: lambda _: "MU",
    MessageEnd: lambda event: f"ME({_name(event.message)})",
    ToolExecutionStart: lambda event: f"XS({event.tool_call_id})",
    ToolExecutionUpdate: lambda event: f"XU({event.tool_call_id})",
    ToolExecutionEnd: lambda event: f"XE({event.tool_call_id}{',error' if event.is_error else ''})",
    AgentError: lambda _: "error",
}


def labels(events: Iterable[Event], *, errors: bool = False) -> list[str]:
    """A short word for each event of a run: AS AE, TS TE, MS MU ME, XS XU XE, and ``error`` if asked for."""
    return [
        _LABELS[type(event)](event)
        for event in events
        if type(event) in _LABELS and (errors or not isinstance(event, AgentError))
    ]


def _collapse(words: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for word in words:
        if word != "MU" or not kept or kept[-1] != "MU":
            kept.append(word)
    return kept


def _name(message: Message) -> str:
    if isinstance(message, AssistantMessage):
        return f"a,{message.stop_reason}" if message.stop_reason in ("aborted", "error") else "a"
    if isinstance(message, ToolResultMessage):
        return f"t{message.tool_call_id}"
    return message.text if isinstance(message, UserMessage) else message.kind


def history_of(agent: Agent) -> str:
    """The history in the words of the specification's table."""
    return words_of(agent.messages)


def words_of(messages: Iterable[Message]) -> str:
    """Messages in the words of the specification's table."""
    return " ".join(map(_name, messages))


class Gate:
    """A tool's body that waits until a test opens it.

    Args:
        value: What it returns.
    """

    def __init__(self, value: object = "ok") -> None:
        self.started = asyncio.Event()
        self.opened = asyncio.Event()
        self.cancelled = False
        self._value = value

    async def __call__(self) -> object:
        """Wait at the gate."""
        self.started.set()
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return self._value


async def eventually(condition: Callable[[], bool]) -> None:
    """Let others work until a condition holds; the test's own timeout ends a wait in vain."""
    while True:
        if condition():
            return
        await asyncio.sleep(0)


def stop(agent: Agent) -> None:
    """Abort the run of an agent that is built after its model's script."""
    agent.abort()


async def check_agent(agent: Agent, recorder: Recorder | None = None) -> None:
    """Check that an agent is idle, its history valid and sendable, and that it still answers."""
    await agent.wait_idle()
    assert not agent.is_running
    assert agent.state.pending_tool_calls == frozenset()
    assert agent.state.streaming_message is None
    check_history(agent.messages)
    check_request(RequestBuilder().build("", [*agent.messages, UserMessage("next")]))
    if recorder is not None:
        recorder.check()
        told = [message for run in recorder.grammar.runs for message in run]
        assert told == list(agent.messages[len(agent.messages) - len(told) :])
    agent.set_llm_call(Model("still here"))
    await agent.prompt("are you there?")
    await agent.wait_idle()
    position = next(n for n, message in enumerate(agent.messages) if _name(message) == "are you there?")
    answer = agent.messages[position + 1]
    assert isinstance(answer, AssistantMessage)
    assert answer.text == "still here"
    check_history(agent.messages)
