"""How models write a tool call as text: a reader for each form, from where its marker ends.

A reader takes a text, a position in it and the offered names, and gives the calls that stand there
and where the text goes on after them; None where there is none of its form.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from yiemagent_nb.core.reading.fields import offered_name, read_call
from yiemagent_nb.core.reading.loose_objects import read_loose_object

__all__ = ["TextCall", "calls_after", "whole_text_calls"]

_DECODER = json.JSONDecoder(strict=False)
_XML_FUNCTION = re.compile(r"\s*<function=([^>\s]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_XML_PARAMETER = re.compile(r"<parameter=([^>]+)>(.*?)(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL)
_INVOKE = re.compile(r'\s*<([^\s<>"]*)invoke name="([^"]+)"[^>]*>(.*?)</\1invoke>', re.DOTALL)
_INVOKE_PARAMETER = re.compile(r'<([^\s<>"]*)parameter name="([^"]+)"([^>]*)>(.*?)</\1parameter>', re.DOTALL)
_BRACES = re.compile(r"\s*call:\s*([\w.-]+)\s*(?=\{)")
_HARMONY = re.compile(
    r"(?:<\|start\|>assistant)?\s*(?:to=([\w.-]+))?\s*(?:<\|channel\|>)?(?:commentary|analysis)?\s*(?:to=([\w.-]+))?"
    r"[^{<]{0,20}(?:<\|constrain\|>)?[^{<]{0,20}(?:<\|message\|>)?\s*(?=\{)"
)
_GLM_PAIR = re.compile(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_NAMED = re.compile(r"(?:function<｜tool▁sep｜>)?([\w.-]+(?::\d+)?)")  # noqa: RUF001 - the model's own characters
_BEFORE_OBJECT = re.compile(
    r"\s*(?:\[CALL_ID\][\w-]*)?(?:\[ARGS\]|<｜tool▁sep｜>|<\|tool_call_argument_begin\|>)?\s*(?:```json)?\s*(?=\{)"  # noqa: RUF001
)
_AFTER_OBJECT = re.compile(
    r"\s*(?:```)?\s*(?:<｜tool▁call▁end｜>|<\|tool_call_end\|>)?\s*(?:<｜tool▁calls▁end｜>|<\|tool_calls_section_end\|>)?"  # noqa: RUF001
)
_BETWEEN_CALLS = re.compile(r"\s*(?:<｜tool▁call▁begin｜>|<\|tool_call_begin\|>|\[TOOL_CALLS\])?\s*")  # noqa: RUF001
_CLOSING = re.compile(
    r"(?:\s*(?:</[\w:]*tool_calls?>|</TOOLCALL>|</function_calls?>|</｜DSML｜\w+>|<\|/tool_call\|>|<\|tool_call_end\|>"  # noqa: RUF001
    r"|<end_function_call>|<tool_call\|>|<\|END_ACTION\|>|<\|python_end\|>"
    r"|<\|(?:call|end|return|im_end|eom_id|eot_id)\|>))+"
)
_END_OF_CODE = re.compile(r"<\|[a-z_]+\|>|</[a-z_]+>|\Z")
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

_Reader = Callable[[str, int, Collection[str]], _Found | None]


def calls_after(marker: str, text: str, start: int, end: int, names: Collection[str]) -> _Found | None:
    """The calls of offered tools behind a marker, which stands from ``start`` to ``end``."""
    readers = _READERS
    if "commentary" in marker or " to=" in marker:
        readers, end = (_harmony,), start
    elif marker in {"<function=", "<invoke name="}:
        end = start  # these are part of the call
    elif marker == "functools[":
        end -= 1
    found = next((found for read in readers if (found := read(text, end, names)) is not None), None)
    if found is None and marker == "<tool_call>":
        found = _tagged(text, end, names)
    return (found[0], _skip(_CLOSING, text, found[1])) if found else None


def whole_text_calls(text: str, names: Collection[str]) -> list[TextCall]:
    """Calls, where the whole text is nothing else."""
    stripped = text.strip()
    if not stripped.startswith(("{", "[")):
        return []
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
    found = _code(stripped, 0, names) if stripped.startswith("[") else None
    return found[0] if found is not None and found[1] == len(stripped) else []


def _of_json(value: object, names: Collection[str], *, bare: bool = False) -> list[TextCall]:
    """The calls in parsed JSON; none if any part of it is something else."""
    if isinstance(value, list):
        items = cast("list[object]", value)
        found = [_of_json(item, names, bare=bare) for item in items]
        return [call for calls in found for call in calls] if all(found) else []
    if not isinstance(value, dict):
        return []
    _, name, arguments = read_call(cast("dict[str, Any]", value))
    name = offered_name(name, names)
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


def _several(
    pattern: re.Pattern[str], text: str, position: int, read: Callable[[re.Match[str]], TextCall | None]
) -> _Found | None:
    """The calls that ``read`` makes of one match of ``pattern`` after the other."""
    calls: list[TextCall] = []
    while (match := pattern.match(text, position)) is not None and (call := read(match)) is not None:
        calls.append(call)
        position = match.end()
    return (calls, position) if calls else None


def _xml_calls(text: str, position: int, names: Collection[str]) -> _Found | None:
    """``<function=name><parameter=key>value</parameter></function>``, or an object in it."""

    def read(match: re.Match[str]) -> TextCall | None:
        if (name := offered_name(match[1], names)) not in names:
            return None
        parsed = _json_at(match[2], 0)
        if parsed is not None and isinstance(parsed[0], dict):
            return TextCall(name, cast("dict[str, Any]", parsed[0]))
        values = {key.strip(): _value_of(value.strip("\n")) for key, value in _XML_PARAMETER.findall(match[2])}
        return TextCall(name, match[2].strip() if match[2].strip() and not values else values)

    return _several(_XML_FUNCTION, text, position, read)


def _invokes(text: str, position: int, names: Collection[str]) -> _Found | None:
    """``<invoke name="…"><parameter name="key">value</parameter></invoke>``, with any prefix."""

    def read(match: re.Match[str]) -> TextCall | None:
        if (name := offered_name(match[2], names)) not in names:
            return None
        values = {
            key: value if 'string="true"' in flags else _value_of(value.strip("\n"))
            for _, key, flags, value in _INVOKE_PARAMETER.findall(match[3])
        }
        return TextCall(name, values)

    return _several(_INVOKE, text, position, read)


def _braces(text: str, position: int, names: Collection[str]) -> _Found | None:
    """``call:name{key:value}``, its strings between tokens of the model."""
    match = _BRACES.match(text, position)
    if match is None or (name := offered_name(match[1], names)) not in names:
        return None
    parsed = read_loose_object(text, match.end())
    return ([TextCall(name, parsed[0])], parsed[1]) if parsed is not None else None


def _harmony(text: str, position: int, names: Collection[str]) -> _Found | None:
    """``<|channel|>commentary to=functions.name <|constrain|>json<|message|>{…}``."""
    match = _HARMONY.match(text, position)
    name = offered_name((match[1] or match[2] or "") if match else "", names)
    parsed = _json_at(text, match.end()) if match and name in names else None
    if parsed is None or not isinstance(parsed[0], dict):
        return None
    return [TextCall(name, cast("dict[str, Any]", parsed[0]))], parsed[1]


def _tagged(text: str, position: int, names: Collection[str]) -> _Found | None:
    """What stands after ``<tool_call>`` and is no other form: GLM's pairs, or broken JSON."""
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
        match = _NAMED.match(text, start)
        name = offered_name(match[1].partition(":")[0], names) if match else ""
        if match is None or name not in names:
            break
        before = _BEFORE_OBJECT.match(text, match.end())
        parsed = _json_at(text, before.end()) if before else None
        if parsed is None or not isinstance(parsed[0], dict):
            break
        calls.append(TextCall(name, cast("dict[str, Any]", parsed[0])))
        end = _skip(_AFTER_OBJECT, text, parsed[1])
    return (calls, end) if calls else None


def _code(text: str, position: int, names: Collection[str]) -> _Found | None:
    """``[name(key="value"), …]``, or such calls one a line; values are literals."""
    ending = _END_OF_CODE.search(text, position)
    end = ending.start() if ending else len(text)
    calls: list[TextCall] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            statements = ast.parse(text[position:end].strip()).body
        for statement in statements:
            value = statement.value if isinstance(statement, ast.Expr) else None
            for element in value.elts if isinstance(value, ast.List) else [value]:
                call = _of_code(element, names)
                if call is None:
                    return None
                calls.append(call)
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError):
        return None
    return (calls, end) if calls else None


def _of_code(element: ast.expr | None, names: Collection[str]) -> TextCall | None:
    if not isinstance(element, ast.Call) or element.args:
        return None
    # Llama writes name.call(…) for tools that it knows by itself.
    name = offered_name(ast.unparse(element.func).removesuffix(".call"), names)
    arguments = {keyword.arg: ast.literal_eval(keyword.value) for keyword in element.keywords if keyword.arg}
    return TextCall(name, arguments) if name in names and len(arguments) == len(element.keywords) else None


_READERS: tuple[_Reader, ...] = (_json_calls, _xml_calls, _invokes, _braces, _named_objects, _code)
