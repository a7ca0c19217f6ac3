"""The result of a call by hand as the inspector's page is told of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from yiemagent_nb.core.json_schema import compile_schema
from yiemagent_nb.core.json_values import json_form
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.tools import Tool
from yiemagent_nb.widgets.inspector.json_texts import shown_json
from yiemagent_nb.widgets.page_forms import AudioShelf, content_form
from yiemagent_nb.widgets.texts import one_line, shortened

__all__ = ["Outcome", "outcome_of"]

MOST_PROBLEMS = 20
LONGEST_PROBLEM = 500
LONGEST_SUMMARY = 160


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is kept of a result: as much as a page is shown.

    Args:
        content: As ``tool_end`` of ``protocol`` has it.
        details: The same; None where there are none.
        raw: JSON text of the result.
        summary: One line of it.
        problems: Where it does not fit the tool's output schema, a sentence each.
        fits: Whether it does; None where there is no such schema, or the call failed.
    """

    content: list[dict[str, Any]]
    details: dict[str, Any] | None
    raw: str
    summary: str
    problems: tuple[str, ...] = ()
    fits: bool | None = None


def outcome_of(tool: Tool | None, result: ToolResult, shelf: AudioShelf) -> Outcome:
    """Read a result, which may take a while where it is large. Meant for a thread."""
    structured = _structured(result)
    problems, fits = _checked(tool, result, structured)
    return Outcome(
        content=content_form(result.content),
        details=shelf.details_form(result.details, result.content),
        raw=shown_json(_raw(result)),
        summary=_summary(result),
        problems=problems,
        fits=fits,
    )


def _mcp_details(result: ToolResult) -> Mapping[str, Any] | None:
    details: object = result.details
    if isinstance(details, Mapping) and {"server", "tool"} <= details.keys():
        return cast("Mapping[str, Any]", details)
    return None


def _structured(result: ToolResult) -> object:
    """What an output schema is about: what a server gave as such, or what a Python tool returned."""
    details = _mcp_details(result)
    if details is not None:
        return details.get("structured_content")
    return result.text if result.details is None else json_form(result.details)


def _raw(result: ToolResult) -> dict[str, Any]:
    """The result, in MCP's words where it came over MCP: ``beside`` are blocks that are more than text."""
    details = _mcp_details(result)
    if details is None:
        fields = {name: json_form(value) for name, value in _fields(result).items()}
        return {"content": [block.model_dump() for block in result.content], **fields, "is_error": result.is_error}
    raw: dict[str, Any] = {"content": [block.model_dump() for block in result.content]}
    names = {"content": "beside", "structured_content": "structuredContent", "meta": "_meta", "left_out": "left_out"}
    raw |= {ours: details[name] for name, ours in names.items() if name in details}
    return {**raw, "isError": result.is_error}


def _fields(result: ToolResult) -> dict[str, Any]:
    named = {"details": result.details, "usage": result.usage, "added_tool_names": result.added_tool_names}
    return {name: value for name, value in named.items() if value is not None}


def _checked(tool: Tool | None, result: ToolResult, structured: object) -> tuple[tuple[str, ...], bool | None]:
    if tool is None or tool.output_schema is None or result.is_error:
        return (), None
    if structured is None:
        return ("The tool promises a structured result and gave none.",), False
    check = compile_schema(tool.output_schema, trusted=tool.function is not None)
    problems = tuple(
        shortened(_of_the_result(each), LONGEST_PROBLEM) for each in check(cast("Any", structured))[:MOST_PROBLEMS]
    )
    return problems, not problems


def _of_the_result(problem: str) -> str:
    """What is said of arguments, said of a result."""
    return re.sub(r"^(T|t)he arguments\b", r"\1he result", problem)


def _summary(result: ToolResult) -> str:
    if words := one_line(result.text, LONGEST_SUMMARY):
        return words
    return f"{len(result.content)} parts" if result.content else "nothing"
