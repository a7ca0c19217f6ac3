"""Tool: something that a model can call. ``@tool`` makes one of a Python function."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from yiemagent_nb.core.errors import InvalidParametersError, ToolNotSupportedError
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["ExecutionMode", "Tool", "ToolAnnotations", "ToolContext", "ToolUpdate"]

TOOL_NAME = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_]*$")
MAX_NAME_LENGTH = 64

ExecutionMode = Literal["sequential", "parallel"]

ToolUpdate = Callable[[Any], None]
"""Reports progress; takes what a tool may return. From any thread."""


class Execute(Protocol):
    """The signature of ``Tool.execute``; a coroutine function runs on the loop, any other in a thread."""

    def __call__(
        self, tool_call_id: str, arguments: dict[str, Any], signal: AbortSignal, on_update: ToolUpdate, /
    ) -> Any | Awaitable[Any]:
        """Run the call. What comes back becomes a ``ToolResult``."""
        ...


@dataclass(frozen=True, slots=True)
class ToolAnnotations:
    """Hints on what a tool does, as MCP has them; None is unknown."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Tool:
    """Something that a model can call."""

    name: str
    description: str
    execute: Execute = field(repr=False)
    label: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}}, repr=False)
    prepare_arguments: Callable[[dict[str, Any]], Mapping[str, Any]] | None = field(default=None, repr=False)
    validate_required_args: Callable[[dict[str, Any]], str | None] | None = field(default=None, repr=False)
    execution_mode: ExecutionMode | None = None
    annotations: ToolAnnotations = ToolAnnotations()
    output_schema: Mapping[str, Any] | None = field(default=None, repr=False)
    timeout: float | None = None
    source: str = "python"
