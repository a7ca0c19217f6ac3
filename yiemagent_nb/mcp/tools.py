"""A server's tool as a ``Tool`` that an agent calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from pydantic_core import from_json, to_json

from yiemagent_nb.core.errors import (
    ExecutionTimeoutError,
    InvalidParametersError,
    McpConnectionError,
    McpError,
    McpTimeoutError,
    ToolNotFoundError,
)
from yiemagent_nb.core.execution import ToolUpdate
from yiemagent_nb.core.json_schema import CheckedSchema, check_schema, compile_schema
from yiemagent_nb.core.json_values import read_json
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import Tool, ToolAnnotations
from yiemagent_nb.core.validation import invalid_arguments, printable, shorten
from yiemagent_nb.mcp.link import NOT_DELIVERED, OnProgress
from yiemagent_nb.mcp.plain_text import cut_plain, plain_descriptions, plain_text
from yiemagent_nb.mcp.progress import ProgressReporter
from yiemagent_nb.mcp.results import MAX_CHARACTERS, ResultReader

__all__ = ["CallsTools", "ToolDefinition", "read_definition"]

MAX_DESCRIPTION = 20_000
"""How many characters of a description a model is given."""

MAX_TITLE = 200
MAX_WORDS = 2_000
"""How many characters of an error's text a model is given."""

_FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_HINTS = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}
_TEXTS = ("title", "description")
_SCHEMAS = ("inputSchema", "outputSchema")
_METHOD_NOT_FOUND = -32601
_INVALID_PARAMS = -32602


class CallsTools(Protocol):
    """A server, as far as its tools need it."""

    @property
    def name(self) -> str:
        """Its name, which is the ``source`` of its tools."""
        ...

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, on_progress: OnProgress | None = None
    ) -> Mapping[str, Any]:
        """Call a tool; gives the raw result.

        Raises:
            McpError: There is none.
        """
        ...


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool's definition, read and found usable.

    Args:
        name: The tool's own name at the server.
        fields: The definition's fields that count here.
        problems: What was wrong in it and left aside, a sentence each.
    """

    name: str
    fields: Mapping[str, Any]
    problems: tuple[str, ...]

    def says_the_same(self, other: ToolDefinition) -> bool:
        """Whether both define the same tool, in whatever order."""
        if self is other:
            return True
        mine, theirs = self.fields, other.fields
        if any(mine[field] != theirs[field] for field in _TEXTS):  # these may be long, and need no common form
            return False
        return _canonical(mine) == _canonical(theirs)

    def make_tool(
        self,
        server: CallsTools,
        name: str,
        *,
        max_characters: int = MAX_CHARACTERS,
    ) -> Tool:
        """The tool, to be called by ``name``. It has no time of its own: its server watches that.

        Args:
            server: Where it is called.
            name: From ``ToolNames``.
            max_characters: How much text of one result the model is given.
        """
        annotations: Mapping[str, Any] = self.fields["annotations"]
        hints = ToolAnnotations(**{ours: _flag(annotations.get(theirs)) for ours, theirs in _HINTS.items()})
        output_schema: Mapping[str, Any] | None = self.fields["outputSchema"]
        input_schema: Mapping[str, Any] = self.fields["inputSchema"]
        check = None if output_schema is None else _checker(output_schema)
        return Tool(
            name=name,
            description=self.fields["description"]
            or f"{plain_text(printable(self.name))}, a tool of the server {printable(server.name)}",
            execute=_Call(server, self.name, hints, ResultReader(server.name, self.name, check, max_characters)),
            label=self.fields["title"] or plain_text(_text(annotations.get("title"))[:MAX_TITLE]),
            input_schema=input_schema,
            validator=_validator(name, input_schema),
            annotations=hints,
            output_schema=output_schema,
            source=server.name,
            original_name=self.name,
        )


def read_definition(raw: Mapping[str, Any]) -> ToolDefinition:
    """Read a tool's raw definition, as ``tools/list`` gives it.

    An ``outputSchema`` that is none, and other optional fields that do not have their form, are left
    aside with a problem.

    Raises:
        InvalidParametersError: It cannot be a tool: its name or its ``inputSchema`` is wrong.
    """
    name = raw.get("name")
    if not isinstance(name, str):
        raise InvalidParametersError(f"A tool's name must be a text, not {shorten(name)}.")
    whose = f"of the tool {shorten(name)}"
    if _only_as_task(raw.get("execution")):
        raise InvalidParametersError(
            f"The tool {shorten(name)} runs only as a task, which this client does not ask for."
        )
    problems: list[str] = []
    try:
        fields = _json_copy({field: raw[field] for field in _FIELDS if raw.get(field) is not None})
    except ValueError as error:
        raise InvalidParametersError(f"The definition {whose} is no JSON: {error}.") from error
    if "inputSchema" not in fields:
        problems.append(f"The inputSchema {whose} is missing; any arguments are passed on.")
    schema = check_schema(fields.get("inputSchema", {}), f"The inputSchema {whose}", of_object=True, trusted=False)
    description = _text_field(fields, "description", whose, problems).strip()
    if len(description) > MAX_DESCRIPTION:
        problems.append(
            f"The description {whose} has {len(description):,} characters; the first {MAX_DESCRIPTION:,} count."
        )
        description = description[:MAX_DESCRIPTION]
    if not isinstance(fields.get("annotations", {}), dict):
        problems.append(f"The annotations {whose} are {shorten(fields['annotations'])}, where an object was expected.")
        del fields["annotations"]
    usable: dict[str, Any] = {
        "title": _text_field(fields, "title", whose, problems)[:MAX_TITLE],
        "description": description,
        "inputSchema": CheckedSchema(schema),
        "outputSchema": _output_schema(fields.get("outputSchema"), whose, problems),
        "annotations": fields.get("annotations", {}),
    }
    return ToolDefinition(name, usable, tuple(problems))


def _canonical(fields: Mapping[str, Any]) -> str:
    """One text for all that says the same; ``1`` and ``true``, which are equal in Python, differ in it."""
    return json.dumps({name: value for name, value in fields.items() if name not in _TEXTS}, sort_keys=True)


def _json_copy(fields: dict[str, Any]) -> dict[str, Any]:
    """A deep copy that holds nothing but JSON and text that UTF-8 can hold, and no control characters in prose.

    Raises:
        ValueError: It is no JSON, or nested too deeply.
    """
    try:
        written = to_json(fields)
        copied = from_json(written)  # by far the quicker way, for hundreds of definitions at once
        has_controls = _may_have_controls(written)
    except ValueError:  # such as lone surrogates
        copied, has_controls = read_json(fields), True
    if has_controls:
        copied |= {name: plain_text(copied[name]) for name in _TEXTS if isinstance(copied.get(name), str)}
        copied |= {name: plain_descriptions(copied[name]) for name in _SCHEMAS if name in copied}
    return copied


def _may_have_controls(written: bytes) -> bool:
    """Whether a JSON text in UTF-8 may hold control characters: those below U+0020, U+007F, U+0080 to U+009F."""
    return b"\\u00" in written or b"\x7f" in written or b"\xc2" in written


def _only_as_task(execution: object) -> bool:
    return isinstance(execution, Mapping) and cast("Mapping[str, Any]", execution).get("taskSupport") == "required"


def _text_field(fields: Mapping[str, Any], name: str, whose: str, problems: list[str]) -> str:
    value = fields.get(name, "")
    if isinstance(value, str):
        return value
    problems.append(f"The {name} {whose} is {shorten(value)}, where a text was expected.")
    return ""


def _output_schema(schema: object, whose: str, problems: list[str]) -> dict[str, Any] | None:
    if schema is None:
        return None
    try:
        return CheckedSchema(check_schema(schema, f"The outputSchema {whose}", trusted=False))
    except InvalidParametersError as error:
        problems.append(f"{error.message} Its results are not checked.")
        return None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _checker(schema: Mapping[str, Any]) -> Callable[[Any], list[str]]:
    """A check against a schema that is compiled on first use, since that is slow and often not needed."""
    compiled: list[Callable[[Any], list[str]]] = []

    def check(value: Any) -> list[str]:
        if not compiled:
            compiled.append(compile_schema(schema, trusted=False))
        return compiled[0](value)

    return check


def _validator(name: str, schema: Mapping[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    check = _checker(schema)

    def validate(arguments: dict[str, Any]) -> dict[str, Any]:
        problems = check(arguments)
        if problems:
            raise invalid_arguments(name, [plain_text(problem) for problem in problems])
        return arguments

    return validate


class _Call:
    """Calls one tool of a server: the ``execute`` of its ``Tool``."""

    def __init__(self, server: CallsTools, tool: str, hints: ToolAnnotations, reader: ResultReader) -> None:
        self._server = server
        self._tool = tool
        self._repeatable = bool(hints.read_only or hints.idempotent)
        self._reader = reader

    async def __call__(
        self, _tool_call_id: str, arguments: dict[str, Any], _signal: AbortSignal, on_update: ToolUpdate
    ) -> ToolResult:
        """Call it. An abort cancels this coroutine, and thereby the call at the server."""
        with ProgressReporter(on_update) as report:
            raw = await self._result(arguments, report)
        return self._reader.read(raw)

    async def _result(self, arguments: dict[str, Any], report: OnProgress) -> Mapping[str, Any]:
        try:
            try:
                return await self._server.call_tool(self._tool, arguments, on_progress=report)
            except McpConnectionError:
                if not self._repeatable:
                    raise
                return await self._server.call_tool(self._tool, arguments, on_progress=report)
        except McpError as error:
            raise self._explained(error) from error

    def _explained(self, error: McpError) -> Exception:
        """The error as a model can act on it; the advice in ``error`` is for the person."""
        what = f"{plain_text(shorten(self._tool))} of the server {shorten(self._server.name)}"
        words = cut_plain(error.message, MAX_WORDS)
        if isinstance(error, McpTimeoutError):
            return ExecutionTimeoutError(
                f"{what} gave no result in time: {words}.",
                "It is not known whether it was carried out. Ask for less at once, or go on without it.",
            )
        if isinstance(error, McpConnectionError):
            return McpConnectionError(
                f"{what} gave no result, since the connection failed: {words}.",
                "It was not carried out."
                if error.data == NOT_DELIVERED
                else "It is not known whether the request was carried out. Before you call it again, "
                "check whether it did something.",
                rpc_code=error.rpc_code,
                data=error.data,
            )
        if error.rpc_code == _INVALID_PARAMS:
            return InvalidParametersError(
                f"{what} refused the call: {words}.", "Call it again with arguments that fit its parameters."
            )
        if error.rpc_code == _METHOD_NOT_FOUND:
            return ToolNotFoundError(f"{what} is not there: {words}.", "Call list_tools to see what is.")
        return McpError(f"{what} failed: {words}.", rpc_code=error.rpc_code, data=error.data)
