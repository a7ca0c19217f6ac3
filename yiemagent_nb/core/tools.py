"""Tool: something that a model can call. ``@tool`` makes one of a Python function."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypedDict, Unpack, cast, get_args, overload

from yiemagent_nb.core.arguments import validate_arguments, validate_required_args, validate_tool_arguments
from yiemagent_nb.core.errors import InvalidParametersError, ToolNotSupportedError
from yiemagent_nb.core.execution import (
    Execute,
    ToolContext,
    ToolUpdate,
    current_agent,
    function_executor,
    is_async_callable,
)
from yiemagent_nb.core.json_schema import SchemaCheck, check_schema, compile_schema
from yiemagent_nb.core.schema import FunctionSchema, underlying_function
from yiemagent_nb.core.validation import shorten

__all__ = [
    "Execute",
    "ExecutionMode",
    "Tool",
    "ToolAnnotations",
    "ToolContext",
    "ToolOptions",
    "ToolUpdate",
    "as_tools",
    "current_agent",
    "tool",
    "validate_arguments",
    "validate_required_args",
    "validate_tool_arguments",
]

TOOL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
MAX_NAME_LENGTH = 64

ExecutionMode = Literal["sequential", "parallel"]

PrepareArguments = Callable[[dict[str, Any]], Mapping[str, Any]]
ValidateRequiredArgs = Callable[[dict[str, Any]], str | None]


@dataclass(frozen=True, slots=True)
class ToolAnnotations:
    """Hints on what a tool does, as MCP has them; None is unknown.

    Args:
        read_only: It changes nothing.
        destructive: What it changes may be lost.
        idempotent: A second call with the same arguments changes nothing more.
        open_world: It deals with things outside, such as the web.
    """

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Tool:
    """Something that a model can call. Made of a function by ``@tool``, or field by field.

    A tool made of a function can be called like that function. Tools are compared by identity;
    ``dataclasses.replace`` makes a changed copy.

    Args:
        name: How the model calls it: a letter or ``_``, then letters, digits and ``_``, at most 64.
        description: What it does, for the model; not empty.
        execute: ``execute(tool_call_id, arguments, signal, on_update)``, sync (it runs in a worker
            thread) or async (on the event loop).
        label: A name for people; made of ``name`` if not given.
        input_schema: A JSON Schema of type ``object``; the tool keeps a copy.
        prepare_arguments: Changes arguments before they are checked.
        validate_required_args: Checks them instead of ``validate_required_args``, and returns what
            is wrong, or None.
        execution_mode: ``sequential`` or ``parallel``; None is the agent's.
        annotations: What it does to the world.
        output_schema: A JSON Schema of the structured result, for people; the tool keeps a copy.
        timeout: Seconds that a call may take; None is without end.
        source: Where it came from: ``python``, or an MCP server's name.
        original_name: Its name at the source; with ``source`` it is what approvals are keyed by.
        validator: Checks whole arguments instead of ``input_schema``: returns them, perhaps
            coerced, or raises ``InvalidParametersError``.
        function: The function that it was made of.

    Raises:
        InvalidParametersError: A field is wrong; the error names it and the tool.
        ToolNotSupportedError: ``execute`` cannot be called.
    """

    name: str
    description: str
    execute: Execute
    label: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    prepare_arguments: PrepareArguments | None = None
    validate_required_args: ValidateRequiredArgs | None = None
    execution_mode: ExecutionMode | None = None
    annotations: ToolAnnotations = ToolAnnotations()
    output_schema: Mapping[str, Any] | None = None
    timeout: float | None = None
    source: str = "python"
    original_name: str = ""
    validator: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    function: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        """Check every field, and fill in those that follow from others."""
        _check_name(self.name)
        whose = f"of tool {self.name!r}"
        _check_fields(vars(self), whose)
        schema = check_schema(self.input_schema, f"the input_schema {whose}", of_object=True)
        self._set("input_schema", schema)
        if self.output_schema is not None:
            self._set("output_schema", check_schema(self.output_schema, f"the output_schema {whose}"))
        self._set("label", self.label or _readable(self.name))
        self._set("original_name", self.original_name or self.name)
        if self.function is not None:
            # So that help, `?` and inspect.signature tell of the function.
            self._set("__wrapped__", self.function)
            self._set("__doc__", self.function.__doc__)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)  # a frozen dataclass fills itself in this way

    def __repr__(self) -> str:
        """Its name and where it came from."""
        return f"Tool(name={self.name!r}, source={self.source!r})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function that the tool was made of, with nothing around it.

        Raises:
            ToolNotSupportedError: It was made of none.
        """
        if self.function is None:
            raise ToolNotSupportedError(
                f"tool {self.name!r} was not made of a Python function, so it cannot be called like one.",
                "Let an agent call it, or use its execute.",
            )
        return self.function(*args, **kwargs)

    @cached_property
    def is_async(self) -> bool:
        """Whether ``execute`` belongs on the event loop; if not, in a worker thread."""
        return is_async_callable(self.execute)

    @cached_property
    def schema_check(self) -> SchemaCheck:
        """The check against ``input_schema``, compiled on first use."""
        return compile_schema(self.input_schema)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
        raise InvalidParametersError(
            f"the name of tool {shorten(name)} is not valid: expected a letter or '_', then letters, digits and '_'.",
            "Give another with `name=`.",
        )
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidParametersError(
            f"the name of tool {name!r} has {len(name)} characters: expected at most {MAX_NAME_LENGTH}.",
            "Give a shorter one with `name=`.",
        )


def _check_fields(fields: Mapping[str, Any], whose: str) -> None:
    description = fields["description"]
    if not isinstance(description, str) or not description.strip():
        raise InvalidParametersError(
            f"the description {whose} is empty: a model would not know when to call it.",
            "Write a docstring, or give `description=`.",
        )
    if not callable(fields["execute"]):
        raise ToolNotSupportedError(
            f"execute {whose} must be a function, not {shorten(fields['execute'])}.",
            "Its arguments are (tool_call_id, arguments, signal, on_update).",
        )
    for name in ("prepare_arguments", "validate_required_args", "validator", "function"):
        if fields[name] is not None and not callable(fields[name]):
            raise InvalidParametersError(f"{name} {whose} must be a function or None, not {shorten(fields[name])}.")
    for name in ("label", "source", "original_name"):
        if not isinstance(fields[name], str):
            raise InvalidParametersError(f"{name} {whose} must be a string, not {shorten(fields[name])}.")
    mode = fields["execution_mode"]
    if mode not in (None, *get_args(ExecutionMode)):
        raise InvalidParametersError(
            f"execution_mode {whose} must be 'sequential', 'parallel' or None, not {shorten(mode)}."
        )
    annotations = fields["annotations"]
    if not isinstance(annotations, ToolAnnotations):
        raise InvalidParametersError(f"annotations {whose} must be ToolAnnotations, not {shorten(annotations)}.")
    _check_timeout(fields["timeout"], whose)


def _check_timeout(timeout: object, whose: str) -> None:
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
        raise InvalidParametersError(
            f"timeout {whose} must be a number of seconds above 0, not {shorten(timeout)}.", "None means no limit."
        )


def _readable(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").split()
    if not words:
        return name
    first, *others = words
    lowered = (word if word.isupper() and len(word) > 1 else word.lower() for word in others)
    return " ".join([first[0].upper() + first[1:], *lowered])


# --- Tools from functions ----------------------------------------------------------------------


class ToolOptions(TypedDict, total=False):
    """What ``@tool`` takes; the fields of ``Tool`` that a function does not say itself."""

    name: str
    label: str
    description: str
    prepare_arguments: PrepareArguments | None
    validate_required_args: ValidateRequiredArgs | None
    execution_mode: ExecutionMode | None
    annotations: ToolAnnotations
    output_schema: Mapping[str, Any] | None
    timeout: float | None
    source: str
    original_name: str


@overload
def tool(function: Callable[..., Any], /, **options: Unpack[ToolOptions]) -> Tool: ...


@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a Python function; a decorator, with and without options, and a plain call.

    The schema comes from the type hints, through pydantic; descriptions from ``Annotated`` and the
    docstring (Google's, NumPy's or reST's style). Arguments are checked and coerced before the
    call, so that models, dataclasses, enums and dates arrive as such. A parameter annotated
    ``ToolContext`` is filled in and hidden from the model. What the function returns becomes a
    ``ToolResult``; each value that a generator yields is progress, and the last one is also the
    result.

    Args:
        function: A function, sync or async, a bound method, a ``functools.partial``, or an object
            with ``__call__``. A ``Tool`` is taken too, and changed by the options.
        **options: ``name`` (the function's), ``description`` (the docstring's prose), ``label``,
            ``timeout`` in seconds, ``execution_mode``, ``annotations``, and the other fields of
            ``Tool`` that ``ToolOptions`` lists.

    Raises:
        ToolNotSupportedError: It cannot be a tool: the error says why and what to do.
        InvalidParametersError: The name does not fit, the description is missing, or an option is wrong.

    Example::

        @tool
        def add(a: float, b: float) -> float:
            "Add two numbers."
            return a + b

        assert add(1, 2) == 3
    """
    unknown = sorted(options.keys() - ToolOptions.__annotations__.keys())
    if unknown:
        raise InvalidParametersError(
            f"@tool has no option {', '.join(unknown)}; it takes {', '.join(ToolOptions.__annotations__)}."
        )
    if function is None:

        def decorate(function: Callable[..., Any]) -> Tool:
            return tool(function, **options)

        return decorate
    if isinstance(function, Tool):
        return replace(function, **options)
    return _tool_from(function, options)


def _tool_from(function: object, options: ToolOptions) -> Tool:
    if isinstance(function, staticmethod):
        function = cast("staticmethod[..., Any]", function).__func__
    source = underlying_function(function) if callable(function) else None
    if not callable(function) or inspect.isclass(source):
        what = f"the class {source.__name__}" if inspect.isclass(source) else shorten(function)
        raise ToolNotSupportedError(
            f"{what} cannot be a tool: expected a function, a bound method or a Tool.",
            "Write a function with a docstring and type hints, and pass it without calling it.",
        )
    name = options.get("name") or _name_of(function, source)
    _check_name(name)
    schema = FunctionSchema(function, tool_name=name, injected=ToolContext)
    fields: dict[str, Any] = {"description": schema.description, **options, "name": name}
    return Tool(
        **fields,
        execute=function_executor(function, schema),
        input_schema=schema.input_schema,
        validator=schema.check,
        function=function,
    )


def _name_of(function: object, source: object) -> str:
    """A function's own name; an object's is that of its class, in snake case."""
    name: str = getattr(source, "__name__", type(function).__name__)
    if name == "__call__":
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(function).__name__).lower()
    return name


def as_tools(tools: Iterable[Tool | Callable[..., Any]] | Mapping[str, Tool]) -> dict[str, Tool]:
    """Tools by name, in their order. A plain function becomes a tool by ``tool(function)``.

    Raises:
        InvalidParametersError: Two have one name; the error names it.
        ToolNotSupportedError: One cannot be a tool.
    """
    given = cast("object", tools)
    if isinstance(given, Tool | str) or not isinstance(given, Iterable):
        raise ToolNotSupportedError(
            f"tools must be a list of tools and functions, not {shorten(given)}.", "Write tools=[…] around it."
        )
    found: dict[str, Tool] = {}
    named = cast("Mapping[str, Tool]", given).values() if isinstance(given, Mapping) else None
    for item in named or cast("Iterable[Callable[..., Any]]", given):
        made = item if isinstance(item, Tool) else _tool_from(item, {})
        if made.name in found:
            raise InvalidParametersError(
                f"two tools have the name {made.name!r}, and a model could not tell them apart.",
                f"Give one another name: tool(function, name={made.name + '_2'!r}).",
            )
        found[made.name] = made
    return found
