"""Ask a person before a tool runs that may change something."""

from typing import Any

from yiemagent_nb.core.approval import Verdict, approve
from yiemagent_nb.core.tools import Tool

ALWAYS_ALLOWED = {"add", "search"}


def policy(tool: Tool, arguments: dict[str, Any]) -> Verdict:
    """Say "ask", "allow" or "deny" for a call."""
    if "delete" in tool.name and arguments.get("path") == "/":
        return "deny"
    return "allow" if tool.annotations.read_only or tool.name in ALWAYS_ALLOWED else "ask"


before_tool_call = approve(policy)
