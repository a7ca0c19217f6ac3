"""The arguments of a call, checked in one order before anything runs.

They are JSON until the tool's function gets them: hooks, events and approvals all see plain
dicts, lists and scalars, which share nothing with the call in history.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from yiemagent_nb.core.errors import HookError, InvalidParametersError
from yiemagent_nb.core.messages import ToolCall
from yiemagent_nb.core.validation import invalid_arguments, json_copy, printable, shorten

if TYPE_CHECKING:
    from yiemagent_nb.core.tools import Tool

__all__ = ["validate_arguments", "validate_required_args", "validate_tool_arguments"]


def validate_required_args(arguments: Mapping[str, Any], input_schema: Mapping[str, Any]) -> str | None:
    """Check that every required argument is there: the first check of a call.

    Returns:
        ``Missing required arguments: a, b`` in the schema's order, or None where none is missing.
    """
    missing = [name for name in input_schema.get("required", ()) if name not in arguments]
    return f"Missing required arguments: {', '.join(missing)}" if missing else None


def validate_tool_arguments(tool: Tool, call: ToolCall) -> dict[str, Any]:
    """Prepare and check the arguments of a call.

    Returns:
        The arguments as hooks and the tool get them: JSON, and nothing of it shared with the call.

    Raises:
        InvalidParametersError: They do not fit; the error says which, what was expected, what came.
        HookError: ``prepare_arguments`` or ``validate_required_args`` failed; the error names it.
    """
    if call.raw_arguments is not None:
        raise InvalidParametersError(
            f"The arguments of {tool.name} are not valid JSON: {shorten(call.raw_arguments, 300)}.",
            "Call it again with a complete JSON object.",
        )
    arguments = call.arguments
    if tool.prepare_arguments is not None:
        arguments = _ask(tool, "prepare_arguments", tool.prepare_arguments, json_copy(arguments), _as_arguments)
    return validate_arguments(tool, arguments)


def validate_arguments(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Check arguments that are prepared already, such as those that a hook gives.

    Returns:
        A deep copy, coerced where the tool was made of a function.

    Raises:
        InvalidParametersError: They do not fit; the error says which, what was expected, what came.
        HookError: ``validate_required_args`` failed.
    """
    checked: dict[str, Any] = json_copy(arguments)
    if tool.validate_required_args is not None:
        problem = _ask(tool, "validate_required_args", tool.validate_required_args, json_copy(arguments), _as_problem)
    else:
        problem = validate_required_args(checked, tool.input_schema)
    if problem is not None:
        raise InvalidParametersError(printable(problem))
    if tool.validator is not None:
        return tool.validator(checked)
    failures = tool.schema_check(checked)
    if failures:
        raise invalid_arguments(tool.name, failures)
    return checked


def _ask(
    tool: Tool,
    name: str,
    hook: Callable[[dict[str, Any]], Any],
    arguments: dict[str, Any],
    read: Callable[[object], Any],
) -> Any:
    try:
        return read(hook(arguments))
    except Exception as error:
        raise HookError(
            f"{name} of tool {tool.name!r} failed with {type(error).__name__}: {shorten(error, 300)}.",
            "The call did not run.",
        ) from error


def _as_arguments(answer: object) -> dict[str, Any]:
    if not isinstance(answer, Mapping):
        _close(answer)
        raise TypeError(f"it returned {shorten(answer)} where a mapping of arguments was expected")
    copied: dict[str, Any] = json_copy(cast("object", answer))
    return copied


def _as_problem(answer: object) -> str | None:
    if answer is not None and not isinstance(answer, str):
        _close(answer)
        raise TypeError(f"it returned {shorten(answer)} where a message or None was expected")
    return answer


def _close(answer: object) -> None:
    if inspect.iscoroutine(answer):  # of an async hook, which cannot be used here
        answer.close()
