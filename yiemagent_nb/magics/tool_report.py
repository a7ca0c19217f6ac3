"""What ``%agent_tools`` shows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent, shorten, wrap
from typing import Any, cast

from yiemagent_nb.core.approval_words import hint_words
from yiemagent_nb.core.tools import Tool

__all__ = ["ServerLine", "ToolReport", "ToolSheet"]

WIDTH = 100
LONGEST_NAME = 32
SHOWN_PROBLEMS = 5


@dataclass(frozen=True, slots=True)
class ServerLine:
    """A server, as a person reads of it.

    Args:
        name: Its name, which is the source of its tools.
        state: How it is, in words.
        problems: Why it gives no tools, and what of them was left out.
    """

    name: str
    state: str
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True, repr=False)
class ToolReport:
    """An agent's tools, by where they come from.

    Args:
        tools: Those to show.
        offered: The names of those that the model is offered.
        servers: The agent's servers.
        left_out: How many tools did not match what was looked for.
    """

    tools: Sequence[Tool]
    offered: frozenset[str]
    servers: Sequence[ServerLine] = ()
    left_out: int = 0

    def __repr__(self) -> str:
        """A line a tool, under its source."""
        if not self.tools and not self.servers and not self.left_out:
            return "The agent has no tools. agent.add_tools(...) and agent.add_mcp_servers(...) add some."
        off = sum(tool.name not in self.offered for tool in self.tools)
        count = f"{len(self.tools)} tool{'' if len(self.tools) == 1 else 's'}"
        notes = [f"{off} switched off"] * bool(off) + [f"{self.left_out} others do not match"] * bool(self.left_out)
        lines = [f"{count} ({', '.join(notes)})" if notes else count]
        by_source: dict[str, list[Tool]] = {}
        for tool in self.tools:
            by_source.setdefault(tool.source, []).append(tool)
        servers = {server.name: server for server in self.servers}
        for source in [*by_source, *(name for name in servers if name not in by_source)]:
            lines += self._source(source, by_source.get(source, []), servers.get(source))
        return _plain("\n".join(lines))

    def _source(self, source: str, tools: Iterable[Tool], server: ServerLine | None) -> list[str]:
        lines = ["", source if server is None else f"{source} ({server.state})"]
        problems = () if server is None else server.problems
        lines += [f"  ! {_one_line(problem)}" for problem in problems[:SHOWN_PROBLEMS]]
        if len(problems) > SHOWN_PROBLEMS:
            lines.append(f"  ! and {len(problems) - SHOWN_PROBLEMS} more")
        tools = [*tools]
        width = min(LONGEST_NAME, max((len(tool.name) for tool in tools), default=0))
        for tool in tools:
            hints = hint_words(tool.annotations)
            words = _one_line(tool.description) + (f" [{', '.join(hints)}]" if hints else "")
            state = "   " if tool.name in self.offered else "off"
            lines.append(f"  {state} {tool.name.ljust(width)}  {words}")
        return lines


@dataclass(frozen=True, slots=True, repr=False)
class ToolSheet:
    """All of one tool.

    Args:
        tool: The tool.
        offered: Whether the model is offered it.
    """

    tool: Tool
    offered: bool

    def __repr__(self) -> str:
        """Its description, its parameters, and its schema."""
        tool = self.tool
        lines = [f"{tool.name}{'' if self.offered else ' (switched off)'}"]
        lines += indent("\n".join(wrap(tool.description, WIDTH - 2)), "  ").splitlines()
        facts = [f"from {tool.source}", *hint_words(tool.annotations)]
        if tool.timeout is not None:
            facts.append(f"at most {tool.timeout:g} s")
        lines += ["", f"  {', '.join(facts)}"]
        for title, schema in (("Takes", tool.input_schema), ("Gives", tool.output_schema)):
            if schema is not None:
                lines += ["", f"{title}:", *_parameters(schema), *_raw(schema)]
        return _plain("\n".join(lines))


def _parameters(schema: Mapping[str, Any]) -> list[str]:
    properties: object = schema.get("properties")
    required: object = schema.get("required")
    if not isinstance(properties, Mapping):
        return []
    needed = cast("list[object]", required) if isinstance(required, list) else []
    return [_parameter(name, each, name in needed) for name, each in cast("Mapping[str, object]", properties).items()]


def _parameter(name: str, schema: object, required: bool) -> str:
    known: Mapping[str, object] = cast("Mapping[str, object]", schema) if isinstance(schema, Mapping) else {}
    kind = known.get("type")
    words = [*([kind] if isinstance(kind, str) else []), *(["required"] if required else [])]
    named = f"{name} ({', '.join(words)})" if words else name
    says = known.get("description", "")
    return f"  {_one_line(f'{named}: {says}' if says else named)}"


def _raw(schema: Mapping[str, Any]) -> list[str]:
    return indent(json.dumps(schema, indent=2, ensure_ascii=False, default=repr), "    ").splitlines()


def _plain(text: str) -> str:
    """A text that no terminal obeys: what servers say is in it."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "·" for letter in text)


def _one_line(text: str) -> str:
    return shorten(text, WIDTH, placeholder=" …")
