"""Tools as the inspector's page is told of them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yiemagent_nb.core.approval_words import hint_words
from yiemagent_nb.core.schema import underlying_function
from yiemagent_nb.core.tools import Tool
from yiemagent_nb.core.validation import shorten
from yiemagent_nb.widgets.inspector.tool_warnings import ToolWarnings, beside_each_other
from yiemagent_nb.widgets.texts import one_line, shortened

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["ToolForms"]

LONGEST_LABEL = 80
LONGEST_SOURCE = 100
LONGEST_SUMMARY = 160
SHORTEST_SUMMARY = 16
ROWS = 110_000
"""Characters of all rows together, about: where there are many tools, their summaries are short."""

NAMES_OF_FIELDS = 120
"""Characters of a row beside its texts."""

LONGEST_DESCRIPTION = 20_000
LONGEST_SCHEMA = 200_000
"""A longer one is cut where it is read, and there is no form for it."""

LONGEST_SOURCE_TEXT = 30_000
MOST_WARNINGS = 30
LONGEST_WARNING = 600


class ToolForms:
    """The tools of an agent in the forms of ``panel_protocol``."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._warnings = ToolWarnings()

    def read(self) -> bool:
        """Read what tools say of themselves, as far as that is new; returns whether it was. Meant for a thread."""
        unread = self._warnings.unread(self._agent.registered_tools)
        for tool in unread:
            self._warnings.own(tool)
            self._warnings.advice(tool)
        return bool(unread)

    @property
    def is_unread(self) -> bool:
        """Whether the warnings of some tools are not known yet."""
        return bool(self._warnings.unread(self._agent.registered_tools))

    def rows(self) -> list[dict[str, Any]]:
        """All tools, a row each."""
        tools, offered = self._agent.registered_tools, self._agent.tools
        beside = beside_each_other(tools.values())
        problems = self._agent.mcp_problems

        def count(name: str, tool: Tool) -> int:
            return sum(map(len, (self._warnings.known(tool), beside.get(name, ()), self._more(tool, problems))))

        unread = set(self._warnings.unread(tools))
        rows: list[dict[str, Any]] = [
            {
                "name": name,
                "label": one_line(tool.label, LONGEST_LABEL),
                "source": one_line(tool.source, LONGEST_SOURCE),
                "summary": one_line(tool.description, LONGEST_SUMMARY),
                "hints": list(hint_words(tool.annotations)),
                "enabled": name in offered,
                "warnings": count(name, tool),
                "advice": len(self._warnings.advice(tool)) if tool not in unread else 0,
                "takes": len(tool.input_schema["properties"]),
            }
            for name, tool in tools.items()
        ]
        room = ROWS // max(1, len(rows)) - NAMES_OF_FIELDS
        for row in rows:
            texts = sum(map(len, (row["name"], row["label"], row["source"], *row["hints"])))
            row["summary"] = one_line(row["summary"], max(SHORTEST_SUMMARY, room - texts))
        return rows

    def details(self, tool: Tool) -> dict[str, Any]:
        """All that is known of a tool."""
        beside = beside_each_other(self._agent.registered_tools.values()).get(tool.name, ())
        warnings = [*self._more(tool, self._agent.mcp_problems), *beside, *self._warnings.own(tool)]
        schema_text = _json_text(tool.input_schema)
        return {
            "name": tool.name,
            "label": one_line(tool.label, LONGEST_LABEL),
            "original": tool.original_name,
            "source": one_line(tool.source, LONGEST_SOURCE),
            "description": shortened(tool.description, LONGEST_DESCRIPTION),
            "input_schema": shortened(schema_text, LONGEST_SCHEMA),
            "output_schema": (
                None if tool.output_schema is None else shortened(_json_text(tool.output_schema), LONGEST_SCHEMA)
            ),
            "schema": dict(tool.input_schema) if len(schema_text) <= LONGEST_SCHEMA else None,
            "definition": _source_text(tool),
            "facts": self._facts(tool),
            "hints": list(hint_words(tool.annotations)),
            "warnings": [shortened(each, LONGEST_WARNING) for each in warnings[:MOST_WARNINGS]],
            "advice": [shortened(each, LONGEST_WARNING) for each in self._warnings.advice(tool)],
            "read_only": bool(tool.annotations.read_only),
        }

    def _more(self, tool: Tool, problems: Mapping[str, tuple[str, ...]]) -> list[str]:
        """What only the agent knows: that a tool changed, and what discovery left aside of it."""
        found = [each for each in problems.get(tool.source, ()) if f"the tool {shorten(tool.original_name)}" in each]
        if self._agent.approvals.changed(tool):
            found.insert(0, "It is defined otherwise than when you were first asked about it: look at it again.")
        return found

    def _facts(self, tool: Tool) -> list[dict[str, str]]:
        server = next((each for each in self._agent.mcp_servers if each.name == tool.source), None)
        facts = _python_facts(tool) if server is None else _server_facts(server)
        if tool.original_name != tool.name:
            facts["Name at its source"] = tool.original_name
        if tool.execution_mode is not None:
            facts["Runs"] = "alone" if tool.execution_mode == "sequential" else "beside others"
        if tool.timeout is not None:
            facts["Time limit"] = f"{tool.timeout:g} s"
        if tool.prepare_arguments is not None:
            facts["Arguments"] = "are changed by prepare_arguments before they are checked"
        if self._agent.approvals.allowed_for_session(tool):
            facts["Approval"] = "allowed for this session"
        return [{"label": label, "text": shortened(text, LONGEST_WARNING)} for label, text in facts.items()]


def _python_facts(tool: Tool) -> dict[str, str]:
    facts = {"Kind": f"{'async' if tool.is_async else 'sync, in a worker thread'}"}
    if tool.function is None:
        return facts
    function = underlying_function(tool.function)
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    facts["Function"] = f"{module}.{name}" if module else str(name)
    code = getattr(function, "__code__", None)
    if code is not None:
        where = "in a cell" if "ipykernel" in code.co_filename else Path(code.co_filename).name
        facts["Defined"] = f"{where}, line {code.co_firstlineno}"
    return facts


def _server_facts(server: Any) -> dict[str, str]:
    facts = {
        "Server": f"{server.kind}, {server.target}",
        "Result for the model": f"at most {server.max_result_characters:,} characters",
    }
    if server.timeout is not None:
        facts["Time limit"] = f"{server.timeout:g} s without a word of the server"
    return facts


def _source_text(tool: Tool) -> str:
    """Where a Python tool is defined; empty where that is not known, as of builtins and of code from a string."""
    if tool.function is None:
        return ""
    try:
        return shortened(inspect.getsource(underlying_function(tool.function)), LONGEST_SOURCE_TEXT)
    except (OSError, TypeError, SyntaxError):
        return ""


def _json_text(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, ensure_ascii=False, indent=2, default=repr)
