"""What a request says, read from OpenAI's form: who said what, which tools are there, what they answered.

Everything here is untrusted and may have any shape; what has none that is known is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from yiemagent_nb.backends.demo.slots import Slot, read_slots

__all__ = [
    "Call",
    "Entry",
    "Image",
    "Outcome",
    "ToolCard",
    "Topic",
    "canonical",
    "read_entries",
    "read_tools",
    "topics",
]

MAX_TEXT = 8_000
"""Characters of one message that are read; the rest is not looked at."""
MAX_RESULT = 100_000
MAX_BLOCKS = 200
MAX_SUMMARY = 160
MAX_MESSAGES = 2_000
"""Newest messages that are looked at."""
MAX_TOOLS = 2_000

_IMAGES_OF = re.compile(r"Images from the result of \S{1,128} \(call (\S{1,200})\):")
_ABORTED = re.compile(r"\[EXECUTION_ABORTED\]\s*\Z|\ANo result: the call was interrupted")

Role = Literal["user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Image:
    """An image as it stands in a message: a data URL, or an address."""

    url: str = field(repr=False)

    @property
    def kind(self) -> str:
        """Its format in capitals, as people name it; empty where unknown."""
        found = re.match(r"data:image/([a-zA-Z0-9.+-]{1,20})", self.url)
        return found.group(1).split("+")[0].upper() if found else ""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that an assistant made."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """One message."""

    role: Role
    text: str = ""
    images: tuple[Image, ...] = ()
    calls: tuple[Call, ...] = ()
    call_id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A call and what came back."""

    call: Call
    text: str
    images: tuple[Image, ...] = ()

    @property
    def aborted(self) -> bool:
        """Whether a person stopped it."""
        return _ABORTED.search(self.text) is not None


@dataclass(frozen=True, slots=True)
class Topic:
    """What a person said in one go, and the calls made since, up to what was said next."""

    texts: tuple[str, ...]
    images: tuple[Image, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCard:
    """A tool that was offered."""

    name: str
    description: str
    slots: tuple[Slot, ...] = ()

    @property
    def summary(self) -> str:
        """The description's first sentence."""
        first = re.split(r"(?<=[.!?])\s|\n", self.description.strip(), maxsplit=1)[0].strip()
        return first if len(first) <= MAX_SUMMARY else first[: MAX_SUMMARY - 1].rstrip() + "…"


def canonical(call: Call) -> str:
    """A call as text, the same for the same name and arguments."""
    return f"{call.name} {json.dumps(call.arguments, sort_keys=True, default=repr)}"


def _items(value: object, most: int) -> Iterator[object]:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        yield from cast("Sequence[object]", value)[:most]


def _fields(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _string(value: object, most: int) -> str:
    return value[:most].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _content(value: object, most: int) -> tuple[str, tuple[Image, ...], tuple[tuple[str, Image], ...]]:
    """Text, images, and images with the id of the call that made them."""
    if isinstance(value, str):
        return _string(value, most), (), ()
    texts: list[str] = []
    images: list[Image] = []
    labelled: list[tuple[str, Image]] = []
    label = ""
    for block in _items(value, MAX_BLOCKS):
        fields = _fields(block)
        text = block if isinstance(block, str) else fields.get("text")
        if isinstance(text, str):
            found = _IMAGES_OF.match(text)
            label = found.group(1) if found else ""
            if not label:
                texts.append(text)
            continue
        source = fields.get("image_url")
        url = source if isinstance(source, str) else _fields(source).get("url")
        if isinstance(url, str) and url:
            images.append(Image(url))
            if label:
                labelled.append((label, Image(url)))
    return _string("\n".join(texts), most), tuple(images), tuple(labelled)


def _read_call(value: object) -> Call | None:
    fields = _fields(value)
    function = _fields(fields.get("function"))
    name = function.get("name")
    arguments: object = function.get("arguments")
    if not isinstance(name, str):
        return None
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = {}
    call_id = fields.get("id")
    return Call(_string(call_id, 200), _string(name, 200), _fields(arguments))


def read_entries(messages: object) -> list[Entry]:
    """The messages of a request, without system prompts; images join the results that they belong to."""
    entries: list[Entry] = []
    if isinstance(messages, Iterable) and not isinstance(messages, Sequence):
        messages = list(cast("Iterable[object]", messages))
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        return entries
    for message in cast("Sequence[object]", messages)[-MAX_MESSAGES:]:
        fields = _fields(message)
        role = fields.get("role")
        if role == "user":
            text, images, labelled = _content(fields.get("content"), MAX_TEXT)
            if labelled and not text.strip() and entries and entries[-1].role == "tool":
                _attach(entries, labelled)
            else:
                entries.append(Entry("user", text, images))
        elif role == "assistant":
            text, images, _ = _content(fields.get("content"), MAX_RESULT)
            calls = tuple(call for item in _items(fields.get("tool_calls"), MAX_BLOCKS) if (call := _read_call(item)))
            entries.append(Entry("assistant", text, images, calls))
        elif role == "tool":
            text, images, _ = _content(fields.get("content"), MAX_RESULT)
            call_id, name = _string(fields.get("tool_call_id"), 200), _string(fields.get("name"), 200)
            entries.append(Entry("tool", text, images, call_id=call_id, name=name))
    return entries


def _attach(entries: list[Entry], labelled: Iterable[tuple[str, Image]]) -> None:
    for call_id, image in labelled:
        for position in range(len(entries) - 1, -1, -1):
            entry = entries[position]
            if entry.role != "tool":
                break
            if entry.call_id == call_id:
                entries[position] = replace(entry, images=(*entry.images, image))
                break


def read_tools(tools: object) -> list[ToolCard]:
    """The tools of a request, each name once."""
    cards: dict[str, ToolCard] = {}
    for item in _items(tools, MAX_TOOLS):
        function = _fields(_fields(item).get("function"))
        name = function.get("name")
        if isinstance(name, str) and name and name not in cards:
            description = _string(function.get("description"), MAX_TEXT)
            cards[name] = ToolCard(_string(name, 200), description, read_slots(function.get("parameters")))
    return list(cards.values())


def topics(entries: Sequence[Entry]) -> tuple[list[Topic], list[Entry]]:
    """What was said since the last answer in words, and everything before it.

    A topic whose calls were stopped is left out when something was said after it: the person
    moved on.
    """
    start = 0
    for position, entry in enumerate(entries):
        if entry.role == "assistant" and not entry.calls:
            start = position + 1
    found: list[Topic] = []
    calls: dict[str, Call] = {}
    open_for_text = False
    for entry in entries[start:]:
        if entry.role == "user":
            if not open_for_text:
                found.append(Topic(()))
            topic = found[-1]
            found[-1] = replace(topic, texts=(*topic.texts, entry.text), images=(*topic.images, *entry.images))
            open_for_text = True
            continue
        open_for_text = False
        if not found:
            found.append(Topic(()))
        topic = found[-1]
        if entry.role == "assistant":
            calls = {call.id: call for call in entry.calls}
            found[-1] = replace(topic, calls=(*topic.calls, *entry.calls))
        else:
            call = calls.get(entry.call_id) or Call(entry.call_id, entry.name or "the tool", {})
            outcome = Outcome(call, entry.text, entry.images)
            found[-1] = replace(topic, outcomes=(*topic.outcomes, outcome))
    live = [
        topic
        for position, topic in enumerate(found)
        if position == len(found) - 1 or not any(outcome.aborted for outcome in topic.outcomes)
    ]
    return live, list(entries[:start])
