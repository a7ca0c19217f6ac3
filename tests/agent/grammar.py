"""What must hold after every run: the order of its events, its history, and the request that follows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from yiemagent_nb.core.events import (
    AgentEnd,
    AgentStart,
    ApprovalRequested,
    ApprovalResolved,
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
    CustomMessage,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from yiemagent_nb.core.reading.blocks import NAMELESS
from yiemagent_nb.core.reading.fields import read_arguments

__all__ = ["EventGrammar", "check_history", "check_request", "users_texts"]


class EventGrammar:
    """A listener that refuses an event which must not stand where it comes.

    ``runs`` holds the messages of each run that ended, ``inputs`` how many each turn began with.
    Call ``finish`` when the agent is idle.

    ::

        events := (run | outside)*                    outside: queue, tools, backend, error, trace
        run    := AS turn+ AE
        turn   := TS input* answer calls TE
        input  := MS(u) ME(u)
        answer := MS(a) MU* ME(a)
        calls  := (XS XU* XE MS(t) ME(t))*            one after the other, or
                | XS* (XU | XE)* (MS(t) ME(t))*       at once, the results in the order of the calls
    """

    def __init__(self) -> None:
        self.runs: list[tuple[Message, ...]] = []
        self.inputs: list[int] = []
        self._in_run = False
        self._turns = 0
        self._added: list[Message] = []
        self._ids: set[str] = set()
        self._turn: _Turn | None = None
        self._kinds: Mapping[type[Any], Callable[[Any], None]] = {
            AgentStart: self._agent_start,
            AgentEnd: self._agent_end,
            TurnStart: self._turn_start,
            TurnEnd: self._turn_end,
            MessageStart: self._message_start,
            MessageUpdate: lambda event: self._open_turn(event).message_update(event),
            MessageEnd: self._message_end,
            ToolExecutionStart: lambda event: self._open_turn(event).call_start(event),
            ToolExecutionUpdate: lambda event: self._open_turn(event).call_update(event),
            ToolExecutionEnd: lambda event: self._open_turn(event).call_end(event),
            ApprovalRequested: lambda event: self._open_turn(event).require_started(event.tool_call_id),
            ApprovalResolved: lambda event: self._open_turn(event).require_started(event.tool_call_id),
        }

    def __call__(self, event: Event, _signal: object = None) -> None:
        """Take the next event."""
        check = self._kinds.get(type(event))
        if check is not None:
            check(event)

    def finish(self) -> None:
        """Check that no run is left open."""
        assert not self._in_run, "a run began and did not end"

    def _open_turn(self, event: object) -> _Turn:
        assert self._turn is not None, f"{event} stands outside a turn"
        return self._turn

    def _agent_start(self, _: AgentStart) -> None:
        assert not self._in_run, "a run began inside another"
        self._in_run = True
        self._turns = 0
        self._added = []

    def _agent_end(self, event: AgentEnd) -> None:
        assert self._in_run, "a run ended that never began"
        assert self._turn is None, "a run ended inside a turn"
        assert self._turns, "a run ended without a turn"
        _same(event.messages, self._added, "AgentEnd carries other messages than its run told")
        self._in_run = False
        self.runs.append(event.messages)

    def _turn_start(self, _: TurnStart) -> None:
        assert self._in_run, "a turn began outside a run"
        assert self._turn is None, "a turn began inside another"
        self._turns += 1
        self._turn = _Turn()
        self.inputs.append(0)

    def _turn_end(self, event: TurnEnd) -> None:
        self._open_turn(event).end(event)
        self._turn = None

    def _message_start(self, event: MessageStart) -> None:
        assert event.message_id not in self._ids, f"the id {event.message_id} came twice"
        self._ids.add(event.message_id)
        self._open_turn(event).message_start(event)

    def _message_end(self, event: MessageEnd) -> None:
        self._open_turn(event).message_end(event)
        self._added.append(event.message)
        self.inputs[-1] += isinstance(event.message, UserMessage)


class _Turn:
    """One turn: what came of it, and so what may come next."""

    def __init__(self) -> None:
        self.answer: AssistantMessage | None = None
        self.open_message: MessageStart | None = None
        self.started: list[str] = []
        self.ended: set[str] = set()
        self.results: list[ToolResultMessage] = []
        self.lengths: dict[int, int] = {}
        self.texts: dict[tuple[str, str], str] = {}
        self.errors: dict[str, bool] = {}

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        assert self.answer is not None, "a call was told before its answer was whole"
        return self.answer.tool_calls

    def message_start(self, event: MessageStart) -> None:
        assert self.open_message is None, "a message began inside another"
        self.open_message = event
        message = event.message
        if self.answer is None:
            assert not isinstance(message, ToolResultMessage), "a result was told before the answer"
        else:
            assert isinstance(message, ToolResultMessage), f"{message.role} was told after the answer of its turn"
            open_calls = set(self.started) - self.ended
            assert not open_calls, f"a result was told while {open_calls} still ran"
            expected = self.calls[len(self.results)].id
            assert message.tool_call_id == expected, f"the result of {message.tool_call_id} came before {expected}"
            assert expected in self.ended, f"the result of {expected} was told before its end"
            assert message.is_error is self.errors[expected], "a call's end and its result differ"

    def message_update(self, event: MessageUpdate) -> None:
        begun = self.open_message
        assert begun is not None, "a delta came outside a message"
        assert begun.message_id == event.message_id, "a delta names another message"
        assert isinstance(begun.message, AssistantMessage), "a delta came in a message that does not stream"
        assert event.offset == self.lengths.get(event.block, 0), "a delta does not begin where the last one ended"
        self.lengths[event.block] = event.offset + len(event.delta)
        key = (event.kind, event.tool_call_id or "")
        self.texts[key] = self.texts.get(key, "") + event.delta

    def message_end(self, event: MessageEnd) -> None:
        begun, message = self.open_message, event.message
        assert begun is not None, "a message ended that never began"
        assert begun.message_id == event.message_id, "a message ended inside another"
        assert begun.message.role == message.role, "a message ended with another role"
        self.open_message = None
        if isinstance(message, AssistantMessage):
            self.answer = message
            if self.texts:
                self._check_deltas(message)
        elif isinstance(message, ToolResultMessage):
            self.results.append(message)
        else:
            assert begun.message is message, "a message changed between its start and its end"

    def _check_deltas(self, message: AssistantMessage) -> None:
        # What was held back to the end, where a tag or a pair of surrogates might have begun, has no delta.
        for kind, text in (("text", message.text), ("reasoning", message.reasoning)):
            told = self.texts.get((kind, ""), "")
            assert _valid(text).startswith(_valid(told)), f"the deltas are not the {kind}"
        for call in message.tool_calls:
            told = self.texts.get(("tool_call", call.id))
            if told is None:
                assert call.name == NAMELESS, f"the call {call.id} was never told"
                continue
            half = told[: len(told) // 2]
            readings = [read_arguments(text) for text in (told, half) if text in (told, told[len(half) :])]
            assert (call.arguments, call.raw_arguments) in readings, (
                "the deltas are not the arguments, told once or twice"
            )

    def call_start(self, event: ToolExecutionStart) -> None:
        position = len(self.started)
        assert position < len(self.calls), f"{event.tool_call_id} is no call of its answer, or started twice"
        call = self.calls[position]
        assert event.tool_call_id == call.id, f"{event.tool_call_id} started before {call.id}"
        assert event.tool_name == call.name, "a call started under another name"
        if self.results:
            assert len(self.results) == position, "calls that run in turn, and calls that run at once, are mixed"
        self.started.append(call.id)

    def require_started(self, call_id: str) -> None:
        assert call_id in self.started, f"{call_id} has not started"
        assert call_id not in self.ended, f"{call_id} has ended"

    def call_update(self, event: ToolExecutionUpdate) -> None:
        self.require_started(event.tool_call_id)

    def call_end(self, event: ToolExecutionEnd) -> None:
        self.require_started(event.tool_call_id)
        assert event.is_error is event.result.is_error, "an end says otherwise than its result"
        assert event.duration >= 0, "a call took less than no time"
        self.ended.add(event.tool_call_id)
        self.errors[event.tool_call_id] = event.is_error

    def end(self, event: TurnEnd) -> None:
        assert self.open_message is None, "a turn ended inside a message"
        assert self.answer is not None, "a turn ended without an answer"
        assert event.message is self.answer, "a turn ended with another answer"
        _same(event.tool_results, self.results, "TurnEnd carries other results than its turn told")
        told = [result.tool_call_id for result in self.results]
        assert told == [call.id for call in self.calls], "a turn ended before each call had its result"


def _valid(text: str) -> str:
    return text.replace("\ufffd", "")


def _same(left: Sequence[object], right: Sequence[object], message: str) -> None:
    assert len(left) == len(right), message
    assert all(one is other for one, other in zip(left, right, strict=True)), message


def check_history(messages: Sequence[Message]) -> None:
    """Check that each call is followed by its one result, in the order of the calls."""
    expected: list[ToolCall] = []
    for message in messages:
        if isinstance(message, CustomMessage):
            continue
        if isinstance(message, ToolResultMessage):
            assert expected, f"the result of {message.tool_call_id} has no call"
            call = expected.pop(0)
            assert message.tool_call_id == call.id, "the results do not stand in the order of the calls"
            assert message.tool_name == call.name, "a result names another tool"
            assert message.content, "a result is empty"
        else:
            assert not expected, f"{message.role} stands before the results of {[call.id for call in expected]}"
            if isinstance(message, AssistantMessage):
                expected = list(message.tool_calls)
                assert len({call.id for call in expected}) == len(expected), "two calls of an answer have one id"
    assert not expected, f"the calls {[call.id for call in expected]} have no result"


def check_request(messages: Sequence[Mapping[str, Any]], *, open_end: bool = True) -> None:
    """Check messages in OpenAI's form as the strictest server would.

    Args:
        messages: What is sent.
        open_end: Whether the last message must be one that waits for an answer.
    """
    assert messages, "a request has no messages"
    json.dumps(messages, ensure_ascii=False).encode()
    waiting: list[str] = []
    for position, message in enumerate(messages):
        role, content = message["role"], message.get("content")
        if role == "tool":
            assert message["tool_call_id"] in waiting, "a result has no call before it"
            waiting.remove(message["tool_call_id"])
            assert isinstance(content, str), "a server takes text only as a result"
            assert content, "a result is empty"
            continue
        assert not waiting, f"{role} stands before the results of {waiting}"
        if role == "system":
            assert position == 0, "a system message stands behind others"
        elif role == "assistant":
            calls: Sequence[Mapping[str, Any]] = message.get("tool_calls", ())
            waiting = [_check_call(call) for call in calls]
            assert len(set(waiting)) == len(waiting), "two calls have one id"
            assert content is None or isinstance(content, str), "blocks are refused in an assistant's message"
            assert calls or (content and content.strip()), "an answer is empty"
        else:
            assert role == "user", f"no server knows the role {role}"
            assert content, "a user's message is empty"
    assert not waiting, f"the calls {waiting} have no result"
    if open_end:
        assert messages[-1]["role"] in ("user", "tool"), "the request waits for no answer"


def _check_call(call: Mapping[str, Any]) -> str:
    assert call["type"] == "function"
    assert call["id"], "a call has no id"
    assert isinstance(json.loads(call["function"]["arguments"]), dict), "a call's arguments are no object"
    call_id: str = call["id"]
    return call_id


def users_texts(messages: Sequence[Message]) -> list[str]:
    """What people said, in order."""
    return [message.text for message in messages if isinstance(message, UserMessage)]
