"""Recorded: exchanges with the model that follow each other, as a test can play them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import TYPE_CHECKING, Any

from yiemagent_nb.core.backend import provider_of
from yiemagent_nb.core.errors import InvalidParametersError, ToolNotFoundError
from yiemagent_nb.core.json_values import json_form
from yiemagent_nb.core.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from yiemagent_nb.core.request import RequestBuilder, WireMessage
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.tools import MAX_NAME_LENGTH, TOOL_NAME
from yiemagent_nb.tracing.details import options_of, tools_of
from yiemagent_nb.tracing.given import given_of, in_one_piece, is_split
from yiemagent_nb.tracing.requests import StoredRequest, common_beginning
from yiemagent_nb.tracing.rows import CallBody, Row, RunBody
from yiemagent_nb.tracing.sent import Sent, sent_of

if TYPE_CHECKING:
    from yiemagent_nb.tracing.recorder import TraceRecorder

__all__ = ["Recorded", "RecordedTurn", "recorded_of"]

Wire = Mapping[str, Any]

_AHEAD = 66
"""So many pieces may have come that nobody read: an iterator in a thread runs ahead."""

_GIVEN = (
    "What was sent does not follow from a history, since hooks of the agent made it: it is given as it was, "
    "and what is read is tested."
)
_MADE = "A hook around the model made its own of an answer: that is given in place of the backend's."


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """One exchange.

    Args:
        shared: So many of its messages are those of the exchange before.
        sent: The rest of them.
        tools: What the model was offered.
        whole: What the backend gave, where it did not stream.
        pieces: What it gave, where it did.
        ended: ``error`` and ``aborted`` tell of an answer that is not whole; else empty.
        error: Why.
        read: The message that was made of it, as ``read_of`` has it.
        called_too: Tools that it called though they were not offered: they may have come meanwhile.
        results: Those of its calls, in order: content, is_error and terminate; None where none is known.
        said: What people said while it went on.
    """

    shared: int
    sent: list[Wire]
    tools: Sequence[Wire]
    whole: Any
    pieces: list[Any]
    ended: str
    error: str
    read: dict[str, Any]
    called_too: list[str]
    results: list[dict[str, Any] | None]
    said: list[UserMessage]


@dataclass(frozen=True, slots=True)
class Recorded:
    """Exchanges, and what an agent needs to make the same.

    Args:
        system_prompt: Whatever stood first, however it was made.
        history: What had been said before the first of them; None where hooks made requests that do not
            follow from a history, which a test then gives as they were.
        turns: The exchanges.
        options: Those of the first request, without keys.
        provider: Whom they went to.
        is_run: Whether they are all of a run.
        aborts: Whether the run was ended by a person while its last calls went on.
        text_tool_calls: Whether calls were read that the model wrote as text.
    """

    system_prompt: str
    history: list[Message] | None
    turns: list[RecordedTurn]
    options: dict[str, Any]
    provider: str
    is_run: bool
    aborts: bool
    text_tool_calls: bool
    left_out: list[str] = field(default_factory=list[str])


def recorded_of(trace: TraceRecorder, row: Row) -> Recorded:
    """The exchange of a model call, or all those of a run.

    Raises:
        InvalidParametersError: The row is neither, goes on, has no request, or what it held was let go.
    """
    if row.duration is None:
        raise InvalidParametersError(f"Row {row.number} has not ended.", "Make a test of it when it has.")
    if row.kind == "model":
        models = [row]
    elif row.kind == "run":
        models = _models_of(trace, row)
    else:
        raise InvalidParametersError(f"Row {row.number} is a {row.kind}; a test is made of a model call or a run.")
    asked = [sent_of(each) for each in models]
    is_run = row.kind == "run"
    history = _history(asked)
    given = [given_of(sent) for sent in asked]
    text_tool_calls = any(
        each.read["calls"] and not each.reads(text_tool_calls=False) and each.reads(text_tool_calls=True)
        for each in given
    )
    made = [not each.reads(text_tool_calls=text_tool_calls) for each in given]
    results = _results_by_turn(trace, row) if is_run else {}
    turns: list[RecordedTurn] = []
    for number, (each, sent) in enumerate(zip(models, asked, strict=True)):
        shared = _shared(asked[number - 1].request if number else None, sent.request)
        as_one = made[number] or is_split(given[number])
        answer = sent.answer or AssistantMessage(stop_reason="aborted")
        found = results.get(id(each.parent), {})
        called = [_result(found.get(call.id)) for call in answer.tool_calls] if is_run else []
        turns.append(
            RecordedTurn(
                shared=shared,
                sent=[dict(message) for message in _from(sent.request, shared)],
                tools=tools_of(sent.exchange),
                whole=None if as_one else given[number].whole,
                pieces=in_one_piece(given[number], answer) if as_one else given[number].pieces,
                ended=given[number].ended or "",
                error=answer.error_message or "",
                read=given[number].read,
                called_too=_called_too(sent, answer, called),
                results=called,
                said=_said(sent, asked[number + 1]) if number + 1 < len(asked) else [],
            )
        )
    first, body = asked[0], row.body
    return Recorded(
        system_prompt=_system_prompt(first.messages),
        history=history,
        turns=turns,
        options=_plain(options_of(first.exchange)),
        provider=provider_of(first.exchange.llm_call),
        is_run=is_run,
        aborts=isinstance(body, RunBody) and body.reason == "aborted" and not turns[-1].ended,
        text_tool_calls=text_tool_calls,
        left_out=[*([_GIVEN] if history is None else []), *([_MADE] if any(made) else [])],
    )


def _models_of(trace: TraceRecorder, run: Row) -> list[Row]:
    if run.body is None or run.number < trace.start:
        raise InvalidParametersError(
            f"What row {run.number} held was let go: the trace holds no more.", "Choose a newer run."
        )
    turns = {id(turn) for turn in trace.children(run)}
    rows = [each for each in trace.rows(run.number) if each.kind == "model" and id(each.parent) in turns]
    rows = [each for each in rows if each.body is None or each.model.exchanges]
    if not rows:
        raise InvalidParametersError(f"Row {run.number} sent nothing to the model.")
    return rows


def _results_by_turn(trace: TraceRecorder, run: Row) -> dict[int, dict[str, ToolResult]]:
    """The results of the calls in a run, by the identity of the turn and by the id of the call."""
    results: dict[int, dict[str, ToolResult]] = {}
    for row in trace.rows(run.number):
        if row.kind == "run" and row is not run:
            break
        if row.parent is not None and isinstance(row.body, CallBody) and row.body.result is not None:
            results.setdefault(id(row.parent), {})[row.body.call_id] = row.body.result
    return results


def _result(result: ToolResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        "content": [json_form(block) for block in result.content],
        "is_error": result.is_error,
        "terminate": result.terminate,
    }


# What one request has of the one before


def _shared(before: StoredRequest | None, request: StoredRequest) -> int:
    """How many messages a request shares with another; the store knows it of those that follow each other."""
    if before is None:
        return 0
    known, shared, _ = request.parts
    return shared if known is before else common_beginning(before.messages, request.messages)


def _from(request: StoredRequest, shared: int) -> list[Wire]:
    known, first, rest = request.parts
    return rest if known is not None and first == shared else request.messages[shared:]


def _called_too(sent: Sent, answer: AssistantMessage, results: Sequence[dict[str, Any] | None]) -> list[str]:
    """The names of stand-ins that must be there beside what was offered, so that calls give what they gave.

    A call whose arguments cannot be read reaches no tool: what it gives tells whether there was one.
    """
    offered = {tool["function"]["name"] for tool in tools_of(sent.exchange)}
    names: dict[str, bool] = {}
    for call, result in zip(answer.tool_calls, results, strict=False):
        if call.name not in offered and TOOL_NAME.fullmatch(call.name) and len(call.name) <= MAX_NAME_LENGTH:
            is_missing = call.raw_arguments is not None and ToolNotFoundError.code in str(result)
            names[call.name] = names.get(call.name, True) and not is_missing
    return [name for name, is_there in names.items() if is_there]


# What was said


def _sources(messages: Sequence[Wire]) -> list[Message]:
    """The messages that a request was made of."""
    return [each.source for each in messages if isinstance(each, WireMessage) and each.source is not None]


def _said(sent: Sent, after: Sent) -> list[UserMessage]:
    """What people said between two requests."""
    shared = _shared(sent.request, after.request)
    known = len(_sources(_from(sent.request, shared))) if shared < len(sent.request) else 0
    news = _sources(_from(after.request, shared))[known:]
    return [message for message in news if isinstance(message, UserMessage)]


def _history(asked: Sequence[Sent]) -> list[Message] | None:
    """The history behind the first request, where all follow from it and from what was answered and said.

    Requests of which each goes on where the one before ended are built once, with the last of them.
    """
    first = asked[0].messages
    system_prompt = _system_prompt(first)
    sources: list[Message] = []
    for number, sent in enumerate(asked):
        before = asked[number - 1] if number else None
        if before is not None and _shared(before.request, sent.request) == len(before.request):
            news = _sources(_from(sent.request, len(before.request)))
            if not _begins_with(news, _answer_of(before)):
                return None
            sources += news
        else:
            whole = _sources(sent.messages)
            if before is not None and not _begins_with(whole, [*sources, *_answer_of(before)]):
                return None
            sources = whole
        if not sources or not isinstance(sources[-1], UserMessage | ToolResultMessage):
            return None
        if number + 1 == len(asked) or _shared(sent.request, asked[number + 1].request) < len(sent.request):
            messages = sent.messages
            built = RequestBuilder().build(system_prompt, sources, provider_of(sent.exchange.llm_call))
            if _system_prompt(messages) != system_prompt or list(built) != messages:
                return None
    return _sources(first)


def _begins_with(messages: Sequence[Message], beginning: Sequence[Message]) -> bool:
    return len(messages) >= len(beginning) and all(map(is_, beginning, messages))


def _answer_of(sent: Sent) -> list[Message]:
    """The answer, where it stands in what is sent next."""
    return [] if sent.answer is None or not _is_sent(sent.answer) else [sent.answer]


def _is_sent(answer: AssistantMessage) -> bool:
    return bool(answer.tool_calls or answer.text.strip()) and answer.stop_reason not in {"error", "aborted"}


def _system_prompt(messages: Sequence[Wire]) -> str:
    first: Wire = messages[0] if messages else {}
    content: object = first.get("content")
    return content if first.get("role") == "system" and isinstance(content, str) else ""


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that a test can write down: no keys."""
    kept = {name: value for name, value in options.items() if "SecretStr" not in repr(value)}
    return {name: json_form(value) for name, value in kept.items()}
