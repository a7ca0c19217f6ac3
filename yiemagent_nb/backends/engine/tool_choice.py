"""A choice of tools, made with what a server knows of choices."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.reading.fields import as_mapping

__all__ = ["TOOL_CHOICES", "apply_tool_choice", "named_tool"]

Tools = Sequence[Mapping[str, Any]]

TOOL_CHOICES = frozenset({"auto", "none", "required"})
"""OpenAI's words for a choice of tools; any other is a tool's name."""


def named_tool(choice: object) -> str | None:
    """The name of the tool that must be called, given as it is or in OpenAI's object; None for none."""
    if isinstance(choice, str):
        return None if choice in TOOL_CHOICES else choice
    fields = as_mapping(choice) or {}
    name = (as_mapping(fields.get("function")) or fields).get("name")
    return name if isinstance(name, str) else None


def apply_tool_choice(tools: Tools, choice: object, known: Collection[str]) -> tuple[Tools | None, object]:
    """The tools to offer and the choice to send, so that a server follows it which knows few choices.

    One tool that must be called is offered alone where it cannot be named; where tools cannot be
    forbidden, none are offered.

    Args:
        tools: In OpenAI's chat form.
        choice: One of OpenAI's words, a tool's name, or OpenAI's object for one.
        known: What the server knows, of ``auto``, ``none``, ``required``, ``name``.

    Returns:
        Both; each None where it is not sent.

    Raises:
        InvalidParametersError: It names a tool that is not offered.
    """
    name = named_tool(choice)
    if name is not None:
        offered = [tool for tool in tools if named_tool(tool) == name]
        if not offered:
            raise InvalidParametersError(
                f"tool_choice names {name!r}, which is not among the tools.",
                "Give auto, none, required or a tool's name.",
            )
        if "name" in known:
            return tools, choice
        return offered, "required" if "required" in known else None
    if not isinstance(choice, str) or choice in known:
        return tools, choice
    return (None if choice == "none" else tools), None
