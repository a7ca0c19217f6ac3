"""TranscriptFeed: an agent's events and history, told to a page."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from yiemagent_nb.core.events import (
    AgentEnd,
    AgentError,
    AgentStart,
    ApprovalRequested,
    ApprovalResolved,
    BackendChanged,
    DeltaKind,
    Event,
    HistoryChanged,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    QuestionAnswered,
    QuestionAsked,
    QueueChanged,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from yiemagent_nb.core.json_values import json_form
from yiemagent_nb.core.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    ReasoningContent,
    TextContent,
    ToolResultMessage,
    UserMessage,
    dump_message,
)
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.state import AgentState
from yiemagent_nb.widgets.answer_facts import answer_facts, newest_first
from yiemagent_nb.widgets.by_identity import ByIdentity
from yiemagent_nb.widgets.call_times import CallTimes
from yiemagent_nb.widgets.error_text import read_error
from yiemagent_nb.widgets.page_forms import (
    QueueKeys,
    approval_form,
    audio_shelf,
    block_form,
    content_form,
    form_size,
    progress_form,
    question_form,
    tool_end_form,
)
from yiemagent_nb.widgets.protocol import PageEvent
from yiemagent_nb.widgets.usage import usage_form

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["TranscriptFeed"]

FIRST_MESSAGES = 40
MORE_MESSAGES = 100
CHUNK_CHARACTERS = 200_000
"""How much of the history goes over at once: so many messages, or so much text if that is less."""


@dataclass(slots=True)
class _Block:
    kind: DeltaKind
    started: float
    ended: float
    call_id: str | None = None
    name: str | None = None
    pieces: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def seconds(self) -> float:
        return self.ended - self.started


@dataclass(slots=True)
class _Live:
    """The answer that streams in, as it was told to the page."""

    id: str
    blocks: dict[int, _Block] = field(default_factory=dict[int, _Block])


@dataclass(slots=True)
class _Call:
    """A call that runs."""

    name: str
    args: Mapping[str, Any]
    started: float
    update: ToolResult | None = None

    def progress_form(self) -> dict[str, Any]:
        """The newest that it told of itself."""
        if self.update is None:
            return {"content": None, "progress": None}
        return {"content": content_form(self.update.content), "progress": progress_form(self.update)}


class TranscriptFeed:
    """Turns events into what the page needs to know, and keeps what a snapshot needs besides.

    Not thread-safe: its owner calls it under one lock.

    Args:
        agent: Whose transcript it is.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._total = len(agent.state.messages)
        self._running = agent.is_running
        """As the events told it: a snapshot may be made while the last of a run is still told to others."""
        self._live: _Live | None = None
        self._calls: dict[str, _Call] = {}
        self._ended: dict[str, ToolExecutionEnd] = {}
        self._audios = audio_shelf(agent)
        self.queue_keys = QueueKeys()
        self._times = CallTimes()
        self._thought = ByIdentity[dict[int, float]]()
        self._answered = ByIdentity[float]()
        self._run_began: float | None = None

    def count(self) -> int:
        """Count the messages anew."""
        self._total = len(self._agent.state.messages)
        return self._total

    def translate(self, event: Event) -> Iterator[PageEvent]:
        """What the page is told of an event."""
        self._times.observe(event)
        match event:
            case AgentStart() | AgentEnd() | HistoryChanged():
                yield self._course(event)
            case MessageStart(message_id=message_id, message=AssistantMessage()):
                self._live = _Live(message_id)
                yield {"type": "message_start", "id": message_id}
            case MessageUpdate():
                yield self._delta(event)
            case MessageEnd():
                yield self._message_end(event)
                if isinstance(event.message, AssistantMessage):
                    yield self._usage()
            case ToolExecutionStart() | ToolExecutionUpdate() | ToolExecutionEnd():
                yield from self._execution(event)
            case QueueChanged():
                yield {"type": "queue", **self.queue_keys.form(event.steering, event.follow_ups)}
            case BackendChanged():
                yield self._usage()
            case _:
                yield from _beside(event)

    def _course(self, event: AgentStart | AgentEnd | HistoryChanged) -> PageEvent:
        if isinstance(event, AgentStart):
            self._run_began = time.monotonic()
            self._running = True
            return {"type": "run_start", "total": self.count()}
        self._live = None
        self._calls.clear()
        self._ended.clear()
        if isinstance(event, AgentEnd):
            self._running = False
            return {"type": "run_end", "reason": event.reason}
        self.count()
        return {"type": "renewed"}

    def _usage(self) -> PageEvent:
        return {"type": "usage", **usage_form(self._agent)}

    def _execution(self, event: ToolExecutionStart | ToolExecutionUpdate | ToolExecutionEnd) -> Iterator[PageEvent]:
        call_id = event.tool_call_id
        match event:
            case ToolExecutionStart():
                self._calls[call_id] = _Call(event.tool_name, event.args, time.monotonic())
                yield {"type": "tool_start", "call_id": call_id, "name": event.tool_name, "args": json_form(event.args)}
            case ToolExecutionUpdate():
                if (call := self._calls.get(call_id)) is not None:
                    call.update = event.update
                    yield {"type": "tool_update", "call_id": call_id, **call.progress_form()}
            case ToolExecutionEnd():
                self._calls.pop(call_id, None)
                self._ended[call_id] = event
                yield {"type": "tool_end", **tool_end_form(event, self._audios)}

    def snapshot(self) -> dict[str, Any]:
        """All that a page needs to start: the newest messages, and what is going on."""
        state = self._agent.state
        self._total = len(state.messages)
        start, messages = self._chunk(state.messages, len(state.messages), FIRST_MESSAGES)
        now = time.monotonic()
        self._adopt_calls(state)
        return {
            "messages": messages,
            "start": start,
            "total": self._total,
            "live": self._live_form(state.streaming_message, now),
            "calls": [
                {
                    "call_id": call_id,
                    "name": call.name,
                    "args": json_form(call.args),
                    "elapsed": now - call.started,
                    **call.progress_form(),
                }
                for call_id, call in self._calls.items()
            ],
            "ended": [tool_end_form(event, self._audios) for event in self._ended.values()],
            "running": self._running,
            "queue": self.queue_keys.form(*self._agent.waiting),
            "usage": usage_form(self._agent),
            "commands": [],
            "approvals": [approval_form(request) for request in self._agent.approvals.pending],
            "questions": [question_form(question) for question in self._agent.questions.pending],
        }

    def earlier(self, before: int) -> PageEvent:
        """A chunk of the messages that stand before an index."""
        messages = self._agent.state.messages
        start, chunk = self._chunk(messages, min(before, len(messages)), MORE_MESSAGES)
        return {"type": "history", "start": start, "messages": chunk}

    def audio(self, key: str) -> PageEvent:
        """A recording that the page was told of. From any thread.

        Raises:
            InvalidParametersError: It is not kept any more.
        """
        return self._audios.event(key)

    def _adopt_calls(self, state: AgentState) -> None:
        """Take calls that began before this feed did from the history."""
        unknown = state.pending_tool_calls - self._calls.keys() - self._ended.keys()
        if not unknown:
            return
        last = next((each for each in reversed(state.messages) if isinstance(each, AssistantMessage)), None)
        for call in last.tool_calls if last is not None else ():
            if call.id in unknown:
                self._calls[call.id] = _Call(call.name, call.arguments, time.monotonic())

    def _chunk(self, messages: Sequence[Message], end: int, most: int) -> tuple[int, list[dict[str, Any]]]:
        chunk: list[dict[str, Any]] = []
        size = 0
        start = end
        while start > 0 and (
            (len(chunk) < most and size < CHUNK_CHARACTERS) or isinstance(messages[start], ToolResultMessage)
        ):
            start -= 1
            form = self._form(messages[start], newest_first(messages, start))
            branch = self._agent.branches.at(start)
            if branch.count > 1:
                form["branch"] = asdict(branch)
            size += form_size(form)
            chunk.append(form)
        return start, chunk[::-1]

    def _form(self, message: Message, earlier: Iterable[Message]) -> dict[str, Any]:
        """A message for the page: without what only its provider reads, long results cut."""
        match message:
            case AssistantMessage():
                form = dump_message(message.model_copy(update={"content": ()}))
                facts = answer_facts(message, earlier)
                form["took"] = None if facts is None else facts._asdict()
                failed = message.stop_reason == "error" and message.error_message
                form["error"] = read_error(failed)._asdict() if failed else None
                seconds = self._thought.get(message) or {}
                form["seconds"] = self._answered.get(message)
                form["content"] = [block_form(block, seconds.get(index)) for index, block in enumerate(message.content)]
                return form
            case ToolResultMessage():
                form: dict[str, Any] = {
                    "role": message.role,
                    "tool_call_id": message.tool_call_id,
                    "tool_name": message.tool_name,
                    "is_error": message.is_error,
                    "duration": self._times(message),
                    "content": content_form(message.content),
                }
                if (details := self._audios.details_form(message.details, message.content)) is not None:
                    form["details"] = details
                return form
            case CustomMessage():
                return {"role": message.role, "kind": message.kind}
            case UserMessage():
                return dump_message(message)

    def _delta(self, event: MessageUpdate) -> PageEvent:
        if self._live is None or self._live.id != event.message_id:
            self._live = _Live(event.message_id)  # the feed began in the middle of an answer
        now = time.monotonic()
        block = self._live.blocks.get(event.block)
        first = block is None
        if block is None:
            block = self._live.blocks[event.block] = _Block(event.kind, now, now, event.tool_call_id, event.tool_name)
            if event.offset:  # the feed began in the middle of this block
                block.pieces.append(self._streamed_so_far(event.block)[: event.offset])
        block.ended = now
        block.name = event.tool_name or block.name
        if event.delta:
            block.pieces.append(event.delta)
        told: PageEvent = {"type": "delta", "block": event.block, "offset": event.offset, "text": event.delta}
        if first or event.kind == "tool_call":
            told |= {"kind": event.kind, "call_id": event.tool_call_id, "name": event.tool_name}
        return told

    def _streamed_so_far(self, index: int) -> str:
        partial = self._agent.state.streaming_message
        content = partial.content if partial is not None else ()
        block = content[index] if index < len(content) else None
        return block.text if isinstance(block, TextContent | ReasoningContent) else ""

    def _message_end(self, event: MessageEnd) -> PageEvent:
        message = event.message
        live, streamed = self._live, {}
        if isinstance(message, AssistantMessage) and live is not None and live.id == event.message_id:
            self._live = None
            streamed = live.blocks
            seconds = {index: block.seconds for index, block in streamed.items() if block.kind == "reasoning"}
            if seconds:
                self._thought.put(message, seconds)
        if isinstance(message, AssistantMessage) and self._run_began is not None:
            self._answered.put(message, time.monotonic() - self._run_began)
        ended = self._ended.pop(message.tool_call_id, None) if isinstance(message, ToolResultMessage) else None
        form = self._form(message, newest_first(self._agent.messages, self._total))
        if isinstance(message, AssistantMessage):
            for index, block in enumerate(form["content"]):
                told = streamed.get(index)
                if told is not None and block["type"] == told.kind and block["text"] == told.text:
                    block["length"] = len(block.pop("text"))
        elif isinstance(message, ToolResultMessage) and ended is not None and _same(ended.result, message):
            del form["content"]
            form.pop("details", None)
        index, self._total = self._total, self._total + 1
        branch = self._agent.branches.at(index)
        if branch.count > 1:
            form["branch"] = asdict(branch)
        kind = "message_end" if isinstance(message, AssistantMessage) else "message"
        return {"type": kind, "id": event.message_id, "index": index, "message": form}

    def _live_form(self, partial: AssistantMessage | None, now: float) -> dict[str, Any] | None:
        if self._live is not None:
            return {
                "id": self._live.id,
                "blocks": [
                    {
                        "block": index,
                        "kind": block.kind,
                        "text": block.text,
                        "call_id": block.call_id,
                        "name": block.name,
                        "seconds": now - block.started,
                    }
                    for index, block in self._live.blocks.items()
                ],
            }
        if partial is None:
            return None
        return {  # the feed began in the middle of an answer: its id comes with the next delta
            "id": None,
            "blocks": [
                {"block": index, "kind": block.type, "text": block.text, "call_id": None, "name": None, "seconds": 0.0}
                for index, block in enumerate(partial.content)
                if isinstance(block, TextContent | ReasoningContent)
            ],
        }


def _same(result: ToolResult, message: ToolResultMessage) -> bool:
    return result.content == message.content and result.details is message.details


def _beside(event: Event) -> Iterator[PageEvent]:
    """What the page is told of what stands in no history."""
    match event:
        case ApprovalRequested():
            yield {"type": "approval", **approval_form(event)}
        case ApprovalResolved():
            yield {
                "type": "approval_done",
                "request_id": event.request_id,
                "call_id": event.tool_call_id,
                "choice": event.choice,
                "reason": event.reason,
            }
        case QuestionAsked():
            yield {"type": "question", **question_form(event)}
        case QuestionAnswered():
            yield {"type": "question_done", "request_id": event.request_id, "action": event.action}
        case AgentError():
            yield {"type": "error", **read_error(event.message)._asdict(), "code": event.code}
        case _:
            pass
