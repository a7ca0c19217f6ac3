"""Tool calls that a model writes into its text, because its server has no parser for them.

Known forms, by the models that write them:

- Hermes, Qwen: ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``; Qwen Coder puts
  ``<function=name><parameter=key>value</parameter></function>`` in it, GLM ``name`` and pairs of
  ``<arg_key>``, ``<arg_value>``;
- Mistral: ``[TOOL_CALLS][{…}, …]`` and ``[TOOL_CALLS]name[ARGS]{…}``;
- Llama: the bare object with ``parameters`` as the whole text, also after ``<|python_tag|>``;
  ``<function=name>{…}</function>``; ``[name(key="value")]`` as the whole text;
- Granite and Phi: ``<|tool_call|>[{…}]`` and ``functools[{…}]``;
- DeepSeek and Kimi: their control tokens around a name and an object.

A call counts only if its tool was offered and it does not stand in a code fence or in backticks;
all else stays text.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from yiemagent_nb.core.reading.fields import read_call
from yiemagent_nb.core.reading.tags import held_suffix

__all__ = ["TextCall", "TextCalls", "split_text_calls"]

_DECODER = json.JSONDecoder(strict=False)
_MARKERS = (
    "<tool_call>",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<function=",
    "<|tool_call|>",
    "functools[",
    "<｜tool▁calls▁begin｜>",  # noqa: RUF001 - the model's own characters
    "<｜tool▁call▁begin｜>",  # noqa: RUF001
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
)
_MARKER = re.compile("|".join(map(re.escape, _MARKERS)))
_XML_FUNCTION = re.compile(r"<function=([^>\s]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_XML_PARAMETER = re.compile(r"<parameter=([^>]+)>(.*?)(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL)
_GLM_PAIR = re.compile(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_NAMED = re.compile(r"(?:function<｜tool▁sep｜>)?(?:functions\.)?([\w.-]+?)(?::\d+)?(?![\w.-])")  # noqa: RUF001
_BEFORE_OBJECT = re.compile(
    r"\s*(?:\[CALL_ID\][\w-]*)?(?:\[ARGS\]|<｜tool▁sep｜>|<\|tool_call_argument_begin\|>)?\s*(?:```json)?\s*(?=\{)"  # noqa: RUF001
)
_AFTER_OBJECT = re.compile(
    r"\s*(?:```)?\s*(?:<｜tool▁call▁end｜>|<\|tool_call_end\|>)?\s*(?:<｜tool▁calls▁end｜>|<\|tool_calls_section_end\|>)?"  # noqa: RUF001
)
_BETWEEN_CALLS = re.compile(r"\s*(?:<｜tool▁call▁begin｜>|<\|tool_call_begin\|>|\[TOOL_CALLS\])?\s*")  # noqa: RUF001
_CLOSING = re.compile(r"\s*(?:</tool_call>|<\|/tool_call\|>|<\|eom_id\|>|<\|eot_id\|>)?")
_SPACE = re.compile(r"\s*")
_SEMICOLON = re.compile(r"\s*;?")
_MEANT_NAME = re.compile(r'"name"\s*:\s*"([^"]+)"')


@dataclass(frozen=True, slots=True)
class TextCall:
    """A call found in text. ``arguments`` is an object, or the text that should have been one."""

    name: str
    arguments: Mapping[str, Any] | str


_Found = tuple[list[TextCall], int]
"""Calls, and where the text goes on after them."""


def _of_json(value: object, names: Collection[str], *, bare: bool = False) -> list[TextCall]:
    """The calls in parsed JSON; none if any part of it is something else."""
    if isinstance(value, list):
        items = cast("list[object]", value)
        found = [_of_json(item, names, bare=bare) for item in items]
        return [call for calls in found for call in calls] if all(found) else []
    if not isinstance(value, dict):
        return []
    _, name, arguments = read_call(cast("dict[str, Any]", value))
    if name not in names or (bare and arguments is None):
        return []
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict | str):
        return []
    return [TextCall(name, cast("dict[str, Any] | str", arguments))]


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def _json_at(text: str, position: int) -> tuple[object, int] | None:
    start = _skip(_SPACE, text, position)
    if text[start : start + 1] not in {"{", "["}:
        return None
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def _json_calls(text: str, position: int, names: Collection[str]) -> _Found | None:
    """One value of JSON or several, parted by semicolons or white space."""
    calls: list[TextCall] = []
    while (parsed := _json_at(text, position)) is not None:
        found = _of_json(parsed[0], names)
        if not found:
            break
        calls += found
        position = parsed[1]
        position = _skip(_SEMICOLON, text, position)
    return (calls, position) if calls else None


def _value_of(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text


def _xml_call(text: str, position: int, names: Collection[str]) -> _Found | None:
    match = _XML_FUNCTION.match(text, position)
    if match is None or match[1] not in names:
        return None
    parsed = _json_at(match[2], 0)
    if parsed is not None and isinstance(parsed[0], dict):
        return [TextCall(match[1], cast("dict[str, Any]", parsed[0]))], match.end()
    values = {key.strip(): _value_of(value.strip("\n")) for key, value in _XML_PARAMETER.findall(match[2])}
    if not values and match[2].strip():
        return [TextCall(match[1], match[2].strip())], match.end()
    return [TextCall(match[1], values)], match.end()


def _tagged(text: str, position: int, names: Collection[str]) -> _Found | None:
    """What stands after ``<tool_call>``."""
    found = _json_calls(text, position, names)
    if found is None:
        start = _skip(_SPACE, text, position)
        found = _xml_call(text, start, names)
    if found is not None:
        return found[0], _skip(_CLOSING, text, found[1])
    inner, tag, _ = text[position:].partition("</tool_call>")
    end = position + len(inner) + len(tag)
    name = inner.partition("<arg_key>")[0].strip()
    if name in names:
        values = {key.strip(): _value_of(value) for key, value in _GLM_PAIR.findall(inner)}
        return [TextCall(name, values)], end
    meant = _MEANT_NAME.search(inner)
    # The model meant a call, and hears that its JSON is broken.
    return ([TextCall(meant[1], inner.strip())], end) if meant and meant[1] in names else None


def _named_objects(text: str, position: int, names: Collection[str]) -> _Found | None:
    """``name {…}``, one or several, with control tokens between."""
    calls: list[TextCall] = []
    end = position
    while True:
        start = _skip(_BETWEEN_CALLS, text, end)
        name = _NAMED.match(text, start)
        if name is None or name[1] not in names:
            break
        before = _BEFORE_OBJECT.match(text, name.end())
        parsed = _json_at(text, before.end()) if before else None
        if parsed is None or not isinstance(parsed[0], dict):
            break
        calls.append(TextCall(name[1], cast("dict[str, Any]", parsed[0])))
        end = _skip(_AFTER_OBJECT, text, parsed[1])
    return (calls, end) if calls else None


def _json_or_named(text: str, position: int, names: Collection[str]) -> _Found | None:
    found = _json_calls(text, position, names) or _named_objects(text, position, names)
    return (found[0], _skip(_CLOSING, text, found[1])) if found else None


def _after_marker(
    marker: str, start: int, end: int
) -> tuple[Callable[[str, int, Collection[str]], _Found | None], int]:
    if marker == "<tool_call>":
        return _tagged, end
    if marker == "<function=":
        return _xml_call, start
    return _json_or_named, end - 1 if marker == "functools[" else end


def _pythonic(text: str, names: Collection[str]) -> list[TextCall]:
    """``[name(key="value"), …]`` as the whole text."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        elements = tree.elts if isinstance(tree, ast.List) else [tree]
        calls: list[TextCall] = []
        for element in elements:
            if not isinstance(element, ast.Call) or not isinstance(element.func, ast.Name) or element.args:
                return []
            arguments = {keyword.arg: ast.literal_eval(keyword.value) for keyword in element.keywords if keyword.arg}
            if element.func.id not in names or len(arguments) != len(element.keywords):
                return []
            calls.append(TextCall(element.func.id, arguments))
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError):
        return []
    return calls


def _whole(text: str, names: Collection[str]) -> list[TextCall]:
    """Calls, where the whole text is nothing else."""
    stripped = text.strip()
    if stripped.startswith(("{", "[")):
        calls: list[TextCall] = []
        position = 0
        while (parsed := _json_at(stripped, position)) is not None:
            found = _of_json(parsed[0], names, bare=True)
            if not found:
                return []
            calls += found
            position = _skip(_SEMICOLON, stripped, parsed[1])
        if calls and position == len(stripped):
            return calls
        return _pythonic(stripped, names) if stripped.startswith("[") else []
    return []


def _quoted(text: str, position: int) -> bool:
    """Whether code fences or backticks are open at ``position``."""
    before = text[:position]
    return before.count("```") % 2 == 1 or (before.rpartition("\n")[2].replace("```", "").count("`") % 2 == 1)


def split_text_calls(text: str, names: Collection[str], start: int = 0) -> list[str | TextCall]:
    """Split ``text`` from ``start`` on into what stays text and the calls in it, in their order.

    Args:
        text: The whole text; what stands before ``start`` only says whether a fence is open.
        names: The tools that were offered.
        start: Where to begin.
    """
    if not text[:start].strip() and (calls := _whole(text[start:], names)):
        return list(calls)
    parts: list[str | TextCall] = []
    shown = position = start
    while (match := _MARKER.search(text, position)) is not None:
        position = match.end()
        if _quoted(text, match.start()):
            continue
        read, begin = _after_marker(match[0], match.start(), match.end())
        found = read(text, begin, names)
        if found is None:
            continue
        between = text[shown : match.start()]
        if between.strip():
            parts.append(between)
        parts += found[0]
        shown = position = found[1]
    rest = text[shown:]
    if rest.strip() or not parts:
        parts.append(rest)
    return parts


class TextCalls:
    """Holds back text in which a call may stand, until it can be told.

    Args:
        names: The tools that were offered.
    """

    __slots__ = ("_held", "_holding", "_names", "_shown")

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)
        self._shown: list[str] = []
        self._held = ""
        self._holding = False

    def feed(self, text: str) -> str:
        """Take a piece; give back what can be shown at once."""
        self._held += text
        if self._holding:
            return ""
        if not self._shown:
            start = self._held.lstrip()
            if not start or start[0] in "{[":
                self._holding = bool(start)
                return ""
        match = _MARKER.search(self._held)
        if match is not None:
            self._holding = True
            cut = match.start()
        else:
            cut = len(self._held) - held_suffix(self._held, _MARKERS)
        shown, self._held = self._held[:cut], self._held[cut:]
        if shown:
            self._shown.append(shown)
        return shown

    def flush(self) -> list[str | TextCall]:
        """What was held back, told apart now that the text is whole."""
        if not self._held:
            return []
        before = "".join(self._shown)
        parts = split_text_calls(before + self._held, self._names, len(before))
        self._shown.append(self._held)
        self._held, self._holding = "", False
        return parts
