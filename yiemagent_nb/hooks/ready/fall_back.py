"""Ask another backend when the first one cannot answer."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from yiemagent_nb.core.errors import BackendError

OTHER: Callable[..., Any] | None = None
"""Any backend, such as ``OpenAICompatible("http://localhost:1234/v1")``."""


async def around_llm_call(
    call: Callable[..., Awaitable[Any]], messages: Sequence[Mapping[str, Any]], options: dict[str, Any]
) -> Any:
    """Ask the agent's backend, and where that fails before its first words, the other one."""
    try:
        return await begun(await call(messages, **options))
    except BackendError:
        if OTHER is None:
            raise
        answer = OTHER(messages, tools=options["tools"])
        return await answer if inspect.isawaitable(answer) else answer


async def begun(answer: Any) -> Any:
    """An answer, of which the first piece is there if it comes in pieces: a server that fails does so there."""
    if not hasattr(answer, "__aiter__"):
        return answer
    pieces: AsyncIterator[Any] = aiter(answer)
    first = await anext(pieces, None)
    return answer if first is None else chained(first, pieces)


async def chained(first: Any, rest: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """The first piece, and then the others."""
    yield first
    async for piece in rest:
        yield piece
