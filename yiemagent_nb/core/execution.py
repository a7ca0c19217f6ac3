"""How a Python function runs as a tool: its context, its progress, and its value as a result."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

from yiemagent_nb.core.errors import ExecutionAbortedError
from yiemagent_nb.core.results import ToolResult, to_tool_result
from yiemagent_nb.core.schema import FunctionSchema
from yiemagent_nb.core.signal import AbortSignal

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["Execute", "ToolContext", "ToolUpdate", "current_agent", "function_executor", "is_async_callable"]

current_agent: ContextVar[Any] = ContextVar("current_agent", default=None)
"""The agent whose run this is; the loop sets it, and ``ToolContext.agent`` reads it."""

ToolUpdate = Callable[[Any], None]
"""Reports progress; takes what a tool may return. From any thread."""


class Execute(Protocol):
    """The signature of ``Tool.execute``; a coroutine function runs on the loop, any other in a thread."""

    def __call__(
        self, tool_call_id: str, arguments: dict[str, Any], signal: AbortSignal, on_update: ToolUpdate, /
    ) -> Any | Awaitable[Any]:
        """Run the call. What comes back becomes a ``ToolResult``; an awaitable is awaited on the loop."""
        ...


def _report_to_nobody(_: Any) -> None:
    pass


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool's function may know of its call: annotate a parameter with it.

    The parameter is filled in and hidden from the model. ``ToolContext()`` makes one to call such
    a function by hand.

    Args:
        tool_call_id: The call's id.
        signal: Says when to stop; a function in a thread has to look at it by itself.
        on_update: Takes progress; use ``update``.
        agent: The agent that runs the call; None where the function is called by hand.

    Example::

        @tool
        def copy(files: list[str], context: ToolContext) -> str:
            "Copy files."
            for number, file in enumerate(files):
                if context.signal.aborted:
                    return f"stopped after {number} files"
                context.update(f"copying {file}")
                ...
            return "all copied"
    """

    tool_call_id: str = ""
    signal: AbortSignal = field(default_factory=AbortSignal)
    on_update: ToolUpdate = field(default=_report_to_nobody, repr=False)
    agent: Agent | None = field(default_factory=current_agent.get, repr=False)

    def update(self, value: Any) -> None:
        """Report progress, from any thread: anything that a tool may return."""
        self.on_update(to_tool_result(value))


def is_async_callable(function: Callable[..., Any]) -> bool:
    """Whether calling gives a coroutine or an async generator, so that it belongs on the event loop."""
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    tests = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(test(function) or test(type(function).__call__) for test in tests)


def function_executor(function: Callable[..., Any], schema: FunctionSchema) -> Execute:
    """``execute`` for a function: a coroutine function for an async one, a plain one for any other.

    Each value that a generator yields, async or not, is a progress update, and the last one is
    also the result, unless the generator returns one. A generator is left at the first yield
    after an abort.
    """

    def call(tool_call_id: str, arguments: dict[str, Any], signal: AbortSignal, on_update: ToolUpdate) -> Any:
        positional, keywords = schema.bind(arguments, lambda: ToolContext(tool_call_id, signal, on_update))
        return function(*positional, **keywords)

    def execute(tool_call_id: str, arguments: dict[str, Any], signal: AbortSignal, on_update: ToolUpdate, /) -> Any:
        value = call(tool_call_id, arguments, signal, on_update)
        if inspect.isgenerator(value):
            value = _drain(cast("Generator[Any, Any, Any]", value), signal, on_update)
        if inspect.isasyncgen(value) or inspect.isawaitable(value):  # an async function behind a decorator
            return _finish(value, signal, on_update)
        return to_tool_result(value)

    async def execute_async(
        tool_call_id: str, arguments: dict[str, Any], signal: AbortSignal, on_update: ToolUpdate, /
    ) -> ToolResult:
        return await _finish(call(tool_call_id, arguments, signal, on_update), signal, on_update)

    return execute_async if is_async_callable(function) else execute


async def _finish(value: Any, signal: AbortSignal, on_update: ToolUpdate) -> ToolResult:
    if inspect.isawaitable(value):
        value = await value
    if inspect.isasyncgen(value):
        value = await _drain_async(cast("AsyncGenerator[Any, Any]", value), signal, on_update)
    elif inspect.isgenerator(value):
        value = _drain(cast("Generator[Any, Any, Any]", value), signal, on_update)
    return to_tool_result(value)


def _drain(generator: Generator[Any, Any, Any], signal: AbortSignal, on_update: ToolUpdate) -> Any:
    last: Any = None
    with contextlib.closing(generator):
        while True:
            try:
                value = next(generator)
            except StopIteration as end:
                return last if end.value is None else end.value
            last = _report(value, signal, on_update)


async def _drain_async(generator: AsyncGenerator[Any, Any], signal: AbortSignal, on_update: ToolUpdate) -> Any:
    last: Any = None
    async with contextlib.aclosing(generator):
        async for value in generator:
            last = _report(value, signal, on_update)
    return last


def _report(value: Any, signal: AbortSignal, on_update: ToolUpdate) -> ToolResult:
    """Report a yielded value, read once, so that a value changed afterwards does no harm."""
    if signal.aborted:
        raise ExecutionAbortedError("the tool was stopped between two steps, because its run was aborted.")
    result = to_tool_result(value)
    on_update(result)
    return result
