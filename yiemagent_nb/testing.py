"""For tests of agents: a scripted backend, short builders of messages, and a recorder of events.

Example::

    from yiemagent_nb import Agent
    from yiemagent_nb.testing import EventRecorder, Scripted, call


    async def test_the_agent_adds():
        agent = Agent(Scripted([[call("add", a=1, b=2)], "3"]), tools=[add])
        recorder = EventRecorder()
        agent.subscribe(recorder)
        await agent.prompt("1 + 2?")
        assert recorder.text() == "3"
        assert "XE(add)" in recorder.types()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from yiemagent_nb.backends.scripted import Answer, Request, Scripted
from yiemagent_nb.core.events import (
    AgentEnd,
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
from yiemagent_nb.core.messages import (
    AssistantMessage,
    AssistantToolCallMessage,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from yiemagent_nb.core.signal import AbortSignal

__all__ = ["Answer", "EventRecorder", "Request", "Scripted", "assistant", "call", "result", "user"]

Kind = TypeVar("Kind")

_CODES: dict[type[Event], str] = {
    AgentStart: "AS",
    AgentEnd: "AE",
    TurnStart: "TS",
    TurnEnd: "TE",
    MessageStart: "MS",
    MessageUpdate: "MU",
    MessageEnd: "ME",
    ToolExecutionStart: "XS",
    ToolExecutionUpdate: "XU",
    ToolExecutionEnd: "XE",
}


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A call of a tool: ``call("add", a=1, b=2)``."""
    return ToolCall(name=name, arguments=arguments)


def user(text: str) -> UserMessage:
    """What a person says."""
    return UserMessage(text)


def assistant(text: str = "", calls: Sequence[ToolCall] = (), **fields: Any) -> AssistantMessage:
    """An answer, with calls where they are given; ``fields`` are the message's others."""
    if calls:
        content = [text, *calls] if text else calls
        return AssistantToolCallMessage.model_validate({"content": content, **fields})
    return AssistantMessage(text, **fields)


def result(of: ToolCall, text: str = "done", **fields: Any) -> ToolResultMessage:
    """What a tool answered to a call; ``is_error=True`` for a failure."""
    return ToolResultMessage(tool_call_id=of.id, tool_name=of.name, content=(TextContent(text),), **fields)


class EventRecorder:
    """A listener that keeps what it hears: ``agent.subscribe(recorder)``."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event, _signal: AbortSignal | None = None) -> None:
        """Keep an event."""
        self.events.append(event)

    def __len__(self) -> int:
        """How many events were heard."""
        return len(self.events)

    def __repr__(self) -> str:
        """The events as codes."""
        return f"EventRecorder({' '.join(self.types())})"

    def clear(self) -> None:
        """Forget what was heard."""
        self.events.clear()

    def of(self, kind: type[Kind]) -> list[Kind]:
        """The events of one type, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    def text(self) -> str:
        """The text of the last answer that is whole; empty before there is one."""
        answers = (e.message for e in reversed(self.events) if isinstance(e, MessageEnd))
        return next((message.text for message in answers if isinstance(message, AssistantMessage)), "")

    def types(self, *, every_update: bool = False, everything: bool = False) -> list[str]:
        """The events as short codes, to compare with a list.

        ``AS AE`` begin and end a run, ``TS TE`` a turn, ``MS ME`` a message, ``XS XE`` a call;
        ``MU`` and ``XU`` are pieces of these. In brackets stands whose: ``u`` a user's, ``a`` an
        assistant's, ``t`` and the tool's name a result; for calls the tool's name. What ended badly
        says so: ``ME(a, aborted)``, ``XE(add, error)``.

        Args:
            every_update: Each piece, and not one ``MU`` or ``XU`` for those that follow each other.
            everything: Also the events that belong to no run, by the names of their types.
        """
        codes: list[str] = []
        for event in self.events:
            code = _CODES.get(type(event))
            if code is None:
                codes += [type(event).__name__] if everything else []
                continue
            code += _whose(event)
            if every_update or not (isinstance(event, MessageUpdate | ToolExecutionUpdate) and codes[-1:] == [code]):
                codes.append(code)
        return codes


def _whose(event: Event) -> str:
    if isinstance(event, MessageStart | MessageEnd):
        return f"({_speaker(event.message, ended=isinstance(event, MessageEnd))})"
    if isinstance(event, ToolExecutionEnd):
        return f"({event.tool_name}, error)" if event.is_error else f"({event.tool_name})"
    if isinstance(event, ToolExecutionStart | ToolExecutionUpdate):
        return f"({event.tool_name})"
    return ""


def _speaker(message: Message, *, ended: bool) -> str:
    if isinstance(message, ToolResultMessage):
        return f"t{message.tool_name}"
    if isinstance(message, AssistantMessage):
        return f"a, {message.stop_reason}" if ended and message.stop_reason in {"aborted", "error"} else "a"
    return message.role[0]
