"""How one request to the model differs from another."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Literal, cast

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.json_values import clean_text
from yiemagent_nb.core.redaction import mask_keys
from yiemagent_nb.tracing.details import as_json, options_of, tools_of
from yiemagent_nb.tracing.masking import masked_beginning
from yiemagent_nb.tracing.requests import common_beginning
from yiemagent_nb.tracing.rows import Row

if TYPE_CHECKING:
    from yiemagent_nb.tracing.recorder import TraceRecorder

__all__ = ["Difference", "DifferenceLine", "DifferenceSection", "difference"]

Message = Mapping[str, Any]
LineKind = Literal["same", "added", "removed"]

MOST_LINES = 2_000
"""Lines of two texts that are compared one by one; longer ones are told as removed and added."""

MOST_SHOWN = 400
"""Lines of one section."""

MOST_SECTIONS = 200

LONGEST_LINE = 2_000
_LONGEST = 400_000


@dataclass(frozen=True, slots=True)
class DifferenceLine:
    """A line of both requests, or of one."""

    kind: LineKind
    text: str


@dataclass(frozen=True, slots=True)
class DifferenceSection:
    """A part of the requests that is not the same: such as a message, or the tools."""

    title: str
    lines: list[DifferenceLine]


@dataclass(frozen=True, slots=True)
class Difference:
    """What a request has that another has not. ``against`` is the other's row; None where there is none."""

    against: int | None
    sections: list[DifferenceSection]
    unchanged: str


@dataclass(frozen=True, slots=True)
class _Request:
    messages: list[Message]
    tools: Sequence[Mapping[str, Any]]
    options: dict[str, Any]

    @property
    def system_prompt(self) -> str:
        return _text(self.messages[0]) if self.has_prompt else ""

    @property
    def has_prompt(self) -> bool:
        return bool(self.messages) and self.messages[0].get("role") == "system"


def difference(trace: TraceRecorder, row: Row, against: Row | None = None) -> Difference:
    """How the request of a row differs from another. What both begin with is only counted.

    Args:
        trace: The trace that has the rows.
        row: A call of the model.
        against: Another one; default: the one before it.

    Raises:
        InvalidParametersError: One of them is no call of the model, or what was sent was let go.
    """
    new = _request_of(row)
    if against is None:
        against = trace.model_call_before(row)
    if against is None:
        return Difference(None, [], "This is the first request that the trace has.")
    old = _request_of(against)
    sections: list[DifferenceSection] = []
    same: list[str] = []
    if old.system_prompt != new.system_prompt:
        sections.append(DifferenceSection("System prompt", _lines(old.system_prompt, new.system_prompt)))
    elif new.has_prompt:
        same.append("the system prompt")
    _compare_messages(old.messages[old.has_prompt :], new.messages[new.has_prompt :], sections, same)
    _compare_tools(old.tools, new.tools, sections, same)
    _compare_options(old.options, new.options, sections, same)
    left = len(sections) - MOST_SECTIONS
    if left > 0:
        del sections[MOST_SECTIONS:]
        same.append(f"{left} further differences are not shown; else the same")
    words = f"The same: {', '.join(same)}." if same else "Nothing is the same."
    return Difference(against.number, sections, words)


def _request_of(row: Row) -> _Request:
    if row.kind != "model":
        raise InvalidParametersError(f"Row {row.number} is no call of the model; only those have a request.")
    if row.body is None:
        raise InvalidParametersError(f"What row {row.number} sent was let go: the trace holds no more.")
    body = row.model
    if not body.requests:
        return _Request([], (), {})
    exchange = body.exchanges[body.used]
    return _Request(body.requests[body.used].messages, tools_of(exchange), options_of(exchange))


# Messages


def _compare_messages(
    old: list[Message], new: list[Message], sections: list[DifferenceSection], same: list[str]
) -> None:
    start = common_beginning(old, new)
    tail = common_beginning(old[start:][::-1], new[start:][::-1])
    kept = start + tail
    old_keys, new_keys = _keys(old[start : len(old) - tail]), _keys(new[start : len(new) - tail])
    old_at = new_at = 0
    for one, other in [*_matches(old_keys, new_keys), (len(old_keys), len(new_keys))]:
        _tell_gap(old, new, range(start + old_at, start + one), range(start + new_at, start + other), sections)
        if one < len(old_keys):
            kept += 1
        old_at, new_at = one + 1, other + 1
    if kept:
        where = "the first " if kept == start else ""
        same.append(f"{where}{kept} message{'s' if kept > 1 else ''}")


def _tell_gap(
    old: list[Message], new: list[Message], gone: range, come: range, sections: list[DifferenceSection]
) -> None:
    """Messages that stand in place of others. Those of one role, in order, are told as changed."""
    waiting = list(come)
    for index in gone:
        role = old[index].get("role")
        paired = next((place for place, at in enumerate(waiting) if new[at].get("role") == role), None)
        if paired is None:
            lines = _cut([DifferenceLine("removed", line) for line in _split(_text(old[index]))])
            sections.append(DifferenceSection(_title(old[index], index, "removed"), lines))
            continue
        sections.extend(_added(new, at) for at in waiting[:paired])
        at = waiting[paired]
        del waiting[: paired + 1]
        sections.append(DifferenceSection(_title(new[at], at, "changed"), _lines(_text(old[index]), _text(new[at]))))
    sections.extend(_added(new, at) for at in waiting)


def _added(new: list[Message], at: int) -> DifferenceSection:
    lines = _cut([DifferenceLine("added", line) for line in _split(_text(new[at]))])
    return DifferenceSection(_title(new[at], at, "added"), lines)


def _title(message: Message, index: int, how: str) -> str:
    role = masked_beginning(str(message.get("role", "message")), 40)
    return f"Message {index + 1}, {role}: {how}"


def _keys(messages: list[Message]) -> list[object]:
    """What messages are compared by, so that each is looked at once."""
    keys: list[object] = []
    for message in messages:
        encoded: object = getattr(message, "encoded", None)
        keys.append(encoded if isinstance(encoded, bytes) else as_json(message, indent=None).encode("utf-8", "replace"))
    return keys


def _matches(old: list[object], new: list[object]) -> list[tuple[int, int]]:
    """Pairs of places at which both have the same, in order, as many as there are among what is unique."""
    places = _unique(new)
    pairs = [(at, places[key]) for key, at in _unique(old).items() if key in places]
    pairs.sort()
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(tails, place)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [place]
        ends[length : length + 1] = [index]
    found: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _unique(keys: list[object]) -> dict[object, int]:
    places: dict[object, int] = {}
    twice: set[object] = set()
    for at, key in enumerate(keys):
        if key in places:
            twice.add(key)
        places[key] = at
    return {key: at for key, at in places.items() if key not in twice}


def _text(message: Message) -> str:
    """A message to read: its text as it is, and what else it has as JSON."""
    content: object = message.get("content")
    rest = {name: value for name, value in message.items() if name not in {"role", "content"}}
    parts: list[str] = []
    if isinstance(content, str):
        parts.append(content)
    elif content is not None:
        parts.append(as_json(content))
    if rest:
        parts.append(as_json(rest))
    return "\n".join(parts)


# Tools and options


def _compare_tools(
    old: Sequence[Mapping[str, Any]],
    new: Sequence[Mapping[str, Any]],
    sections: list[DifferenceSection],
    same: list[str],
) -> None:
    if old is new or list(old) == list(new):
        if new:
            same.append(f"{len(new)} tool{'s' if len(new) > 1 else ''}")
        return
    before, now = _by_name(old), _by_name(new)
    kept = 0
    for name in [*before, *(name for name in now if name not in before)]:
        one, other = before.get(name), now.get(name)
        if one == other:
            kept += 1
            continue
        how = "added" if one is None else "removed" if other is None else "changed"
        lines = _lines("" if one is None else as_json(one), "" if other is None else as_json(other))
        sections.append(DifferenceSection(f"Tool {mask_keys(name)}: {how}", lines))
    if kept:
        same.append(f"{kept} of the tools")


def _by_name(tools: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    named: dict[str, Mapping[str, Any]] = {}
    for number, tool in enumerate(tools, 1):
        function: object = tool.get("function")
        name = cast("Mapping[str, object]", function).get("name") if isinstance(function, Mapping) else None
        named[str(name or f"number {number}")] = tool
    return named


def _compare_options(
    old: dict[str, Any], new: dict[str, Any], sections: list[DifferenceSection], same: list[str]
) -> None:
    one, other = ("\n".join(f"{name}: {as_json(value)}" for name, value in each.items()) for each in (old, new))
    if one != other:
        sections.append(DifferenceSection("Options", _lines(one, other)))
    elif new:
        same.append("the options")


# Lines


def _lines(old: str, new: str) -> list[DifferenceLine]:
    one, other = _split(old), _split(new)
    if len(one) + len(other) > MOST_LINES:
        half = MOST_SHOWN // 2
        removed = _cut([DifferenceLine("removed", line) for line in one], half)
        return removed + _cut([DifferenceLine("added", line) for line in other], half)
    lines: list[DifferenceLine] = []
    for kind, start, end, from_, to in SequenceMatcher(None, one, other, autojunk=True).get_opcodes():
        if kind == "equal":
            lines += [DifferenceLine("same", line) for line in one[start:end]]
        else:
            lines += [DifferenceLine("removed", line) for line in one[start:end]]
            lines += [DifferenceLine("added", line) for line in other[from_:to]]
    return _cut(_without_far(lines))


def _split(text: str) -> list[str]:
    """Lines to read, without keys. An empty text has none."""
    shown = masked_beginning(clean_text(text), _LONGEST).splitlines()
    return [
        line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}… ({len(line):,} characters)" for line in shown
    ]


def _without_far(lines: list[DifferenceLine]) -> list[DifferenceLine]:
    """Where there are too many lines, those that are the same and far from any other are left out."""
    if len(lines) <= MOST_SHOWN:
        return lines
    near: set[int] = set()
    for at, line in enumerate(lines):
        if line.kind != "same":
            near.update(range(at - 3, at + 4))
    return [line for at, line in enumerate(lines) if at in near]


def _cut(lines: list[DifferenceLine], most: int = MOST_SHOWN) -> list[DifferenceLine]:
    if len(lines) <= most:
        return lines
    return [*lines[:most], DifferenceLine("same", f"… {len(lines) - most:,} more lines")]
