"""Refuse calls whose arguments hold something that must not be touched."""

import json
import re

from yiemagent_nb.core.hooks import BeforeToolCallContext, BeforeToolCallResult
from yiemagent_nb.core.signal import AbortSignal

PATTERNS = [
    re.compile(r"\brm\s+-\w*[rf]", re.IGNORECASE),
    re.compile(r"\bdrop\s+(table|database)\b", re.IGNORECASE),
    re.compile(r"\.(ssh|aws|env)\b"),
]


def before_tool_call(context: BeforeToolCallContext, _signal: AbortSignal) -> BeforeToolCallResult | None:
    """Refuse a call, and tell the model what it may not do."""
    text = json.dumps(context.arguments, ensure_ascii=False)
    for pattern in PATTERNS:
        if found := pattern.search(text):
            return BeforeToolCallResult(block=True, reason=f"Calls with {found[0]!r} are not allowed here.")
    return None
