"""Print each call of a tool, with its arguments and its result."""

import json

from yiemagent_nb.core.hooks import AfterToolCallContext


def after_tool_call(context: AfterToolCallContext) -> None:
    """Print one line a call, and change nothing."""
    arguments = json.dumps(context.arguments, ensure_ascii=False)
    outcome = "failed" if context.is_error else "gave"
    print(f"{context.tool.name}({arguments}) {outcome} {context.result.text[:200]}")
