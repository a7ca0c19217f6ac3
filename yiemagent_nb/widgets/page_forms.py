"""The forms in which a page is told of results, approvals, questions and what waits."""

from __future__ import annotations

import itertools
import json
import math
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast
from weakref import WeakKeyDictionary

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.events import ApprovalRequested, QuestionAsked, ToolExecutionEnd
from yiemagent_nb.core.json_values import json_form
from yiemagent_nb.core.messages import (
    AssistantContent,
    ImageContent,
    ReasoningContent,
    TextContent,
    ToolCall,
    UserContent,
    UserMessage,
)
from yiemagent_nb.core.queues import Sendable
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.sessions.pieces import attached_file
from yiemagent_nb.widgets.question_fields import question_fields
from yiemagent_nb.widgets.texts import one_line, shortened
from yiemagent_nb.widgets.tool_details import Audio, read_details

__all__ = [
    "AudioShelf",
    "QueueKeys",
    "approval_form",
    "audio_shelf",
    "block_form",
    "content_form",
    "form_size",
    "progress_form",
    "question_form",
    "tool_end_form",
]

RESULT_CHARACTERS = 50_000
"""A longer text of a tool is cut for the page; the agent's history has all of it."""

ARGUMENT_CHARACTERS = 200_000
"""Longer arguments are cut where they are shown for approval, and cannot be edited there."""

LONGEST_ARGUMENT = 2_000
LONGEST_QUEUED = 500
LONGEST_QUESTION = 10_000
LONGEST_ADDRESS = 5_000
LONGEST_SOURCE = 80
LONGEST_LABEL = 120
LONGEST_DESCRIPTION = 500
LONGEST_HINT = 60
MOST_HINTS = 8
BY_HAND = "hand_"
"""Ids of calls by hand begin so. Those of the model may too: a page asks this only of what is no call of an answer."""

LARGEST_INTEGER = 2**53 - 1
"""Of those that JavaScript keeps exactly."""
MOST_AUDIOS = 100

_AMOUNT = re.compile(r"(\d[\d,]*(?:\.\d+)?)/(\d[\d,]*(?:\.\d+)?)(?=:|$)", re.ASCII)


class AudioShelf:
    """Recordings that the page knows of and may ask for, the newest hundred."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Audio] = OrderedDict()

    def put(self, audio: Audio) -> str:
        """Keep a recording; returns the key by which the page asks for it. From any thread."""
        key = f"{id(audio.data):x}"  # what is kept keeps its identity taken
        with self._lock:
            self._kept[key] = audio
            self._kept.move_to_end(key)
            if len(self._kept) > MOST_AUDIOS:
                self._kept.popitem(last=False)
        return key

    def event(self, key: str) -> dict[str, Any]:
        """The recording of a key, as a page is told. From any thread.

        Raises:
            InvalidParametersError: It is not kept, or not any more.
        """
        audio = self._kept.get(key)
        if audio is None:
            raise InvalidParametersError(
                "This recording is not at hand any more.", "Find it in the details of its result."
            )
        return {"type": "audio", "key": key, "data": audio.data}

    def details_form(self, details: object, content: Sequence[UserContent]) -> dict[str, Any] | None:
        """What a result holds beside its ``content``; None where that is nothing."""
        known = read_details(details, {block.data for block in content if isinstance(block, ImageContent)})
        if known is None:
            return None
        parts: list[dict[str, Any]] = []
        for part in known.parts:
            form = asdict(part)
            if isinstance(part, Audio):
                del form["data"]
                form["key"] = self.put(part) if part.data else ""
            parts.append(form)
        return {"server": known.server, "parts": parts, "left_out": known.left_out}


_shelves: WeakKeyDictionary[object, AudioShelf] = WeakKeyDictionary()


def audio_shelf(agent: object) -> AudioShelf:
    """The shelf of an agent, which all panels share: any of them gives the page a recording."""
    return _shelves.setdefault(agent, AudioShelf())


def block_form(block: AssistantContent, seconds: float | None) -> dict[str, Any]:
    """A block of an answer."""
    match block:
        case ReasoningContent():
            return {"type": "reasoning", "text": block.text, "seconds": seconds}
        case ToolCall():
            return {
                "type": "function",
                "id": block.id,
                "name": block.name,
                "arguments": block.arguments,
                "raw_arguments": block.raw_arguments,
            }
        case _:
            return block.model_dump()


def content_form(content: Sequence[UserContent]) -> list[dict[str, Any]]:
    """What a tool gave, long texts cut."""
    return [_cut_block(block.model_dump()) for block in content]


def _cut_block(block: dict[str, Any]) -> dict[str, Any]:
    text = block.get("text", "")
    if len(text) > RESULT_CHARACTERS:
        block["text"] = text[:RESULT_CHARACTERS]
        block["left_out"] = len(text) - RESULT_CHARACTERS
    return block


def form_size(form: Mapping[str, Any]) -> int:
    """About how many characters a message's form has."""
    details: Mapping[str, Any] = form.get("details") or {}
    blocks = [*form.get("content", ()), *details.get("parts", ())]
    return sum(len(block.get("text") or block.get("data") or "") for block in blocks)


def progress_form(update: ToolResult) -> float | None:
    """How far a call has come, from 0 to 1: by ``details`` with ``progress`` and ``total``, or a text as ``3/10``."""
    details: object = update.details
    if isinstance(details, Mapping):
        known = cast("Mapping[str, object]", details)
        progress, total = known.get("progress"), known.get("total")
    else:
        amount = _AMOUNT.match(update.text[:LONGEST_SOURCE])
        progress, total = map(_number, amount.groups()) if amount is not None else (None, None)
    if not isinstance(progress, int | float) or not isinstance(total, int | float) or not total > 0:
        return None
    share = progress / total
    return min(1.0, max(0.0, share)) if math.isfinite(share) else None


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def tool_end_form(event: ToolExecutionEnd, shelf: AudioShelf) -> dict[str, Any]:
    """How a call ended."""
    form: dict[str, Any] = {
        "call_id": event.tool_call_id,
        "is_error": event.is_error,
        "duration": event.duration,
        "content": content_form(event.result.content),
    }
    if (details := shelf.details_form(event.result.details, event.result.content)) is not None:
        form["details"] = details
    return form


class QueueKeys:
    """Names for messages that wait, by which the page speaks of them. A name is never used twice."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[str, Sendable]] = {}  # by identity, which a kept message keeps taken
        self._next = itertools.count(1)

    def form(self, steering: Sequence[object], follow_ups: Sequence[object]) -> dict[str, Any]:
        """What waits. Only this is known from now on."""
        known, self._known = self._known, {}
        return {
            "steering": [self._queued(message, known) for message in steering if isinstance(message, UserMessage)],
            "follow_ups": [self._queued(message, known) for message in follow_ups if isinstance(message, UserMessage)],
        }

    def find(self, key: str) -> Sendable:
        """The message of a name.

        Raises:
            InvalidParametersError: It does not wait any more.
        """
        for name, message in tuple(self._known.values()):
            if name == key:
                return message
        raise InvalidParametersError("This message does not wait any more.", "The agent has taken it.")

    def _queued(self, message: UserMessage, known: Mapping[int, tuple[str, Sendable]]) -> dict[str, Any]:
        named = known.get(id(message)) or (str(next(self._next)), message)
        self._known[id(message)] = named
        texts = [block.text for block in message.content if isinstance(block, TextContent)]
        files = [attached_file(text) for text in texts]
        words = [text for text, file in zip(texts, files, strict=True) if file is None]
        return {
            "key": named[0],
            "text": shortened("".join(words), LONGEST_QUEUED),
            "images": sum(isinstance(block, ImageContent) for block in message.content),
            "files": [file.name for file in files if file is not None],
        }


def approval_form(request: ApprovalRequested) -> dict[str, Any]:
    """A call that waits for a person's word.

    Arguments that a page cannot hold, or would change, stand as ``args_text`` instead of ``args``: long
    ones are shortened there, and integers are what they are.
    """
    args = json_form(request.args)
    form: dict[str, Any] = {
        "request_id": request.request_id,
        "call_id": request.tool_call_id,
        "name": request.tool_name,
        "label": one_line(request.label, LONGEST_LABEL),
        "args": args,
        "args_text": None,
        "source": one_line(request.source, LONGEST_SOURCE),
        "description": one_line(request.description.strip().partition("\n")[0], LONGEST_DESCRIPTION),
        "by_hand": request.tool_call_id.startswith(BY_HAND),
        "hints": [one_line(hint, LONGEST_HINT) for hint in request.hints[:MOST_HINTS]],
    }
    if len(json.dumps(args)) > ARGUMENT_CHARACTERS or _has_large_integers(args):
        text = json.dumps(_with_short_texts(args), ensure_ascii=False, indent=2)
        form |= {"args": {}, "args_text": shortened(text, ARGUMENT_CHARACTERS)}
    return form


def _has_large_integers(value: object) -> bool:
    """Whether a JSON value holds integers that a page would round: its numbers are doubles."""
    match value:
        case int():
            return abs(value) > LARGEST_INTEGER
        case dict():
            return any(map(_has_large_integers, cast("dict[str, object]", value).values()))
        case list():
            return any(map(_has_large_integers, cast("list[object]", value)))
        case _:
            return False


def _with_short_texts(value: object) -> Any:
    """A JSON value with its long texts cut."""
    match value:
        case str() if len(value) > LONGEST_ARGUMENT:
            return shortened(value, LONGEST_ARGUMENT)
        case dict():
            return {key: _with_short_texts(item) for key, item in cast("dict[str, object]", value).items()}
        case list():
            return [_with_short_texts(item) for item in cast("list[object]", value)]
        case _:
            return value


def question_form(question: QuestionAsked) -> dict[str, Any]:
    """A server's question: ``fields``, or a ``url``; neither where it is too large to be shown."""
    fields = question_fields(question.schema) if question.schema is not None else None
    shown = question.schema is None and len(question.url) <= LONGEST_ADDRESS
    return {
        "request_id": question.request_id,
        "source": one_line(question.source, LONGEST_SOURCE),
        "message": shortened(question.message, LONGEST_QUESTION),
        "fields": None if fields is None else [asdict(each) for each in fields],
        "url": question.url if shown else "",
    }
