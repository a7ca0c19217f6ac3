"""Print how long the model took, and how many tokens it read and wrote."""

import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from yiemagent_nb.core.messages import AssistantMessage
from yiemagent_nb.core.reading.assemble import Assembler
from yiemagent_nb.core.reading.extract import extract


async def around_llm_call(
    call: Callable[..., Awaitable[Any]], messages: Sequence[Mapping[str, Any]], options: dict[str, Any]
) -> Any:
    """Pass the answer on as it comes, and read it on the way."""
    began = time.perf_counter()
    answer = await call(messages, **options)
    if hasattr(answer, "__aiter__"):
        return watched(answer, began)
    report(extract(answer), began)
    return answer


async def watched(pieces: AsyncIterable[Any], began: float) -> AsyncIterator[Any]:
    """The pieces of an answer, read on the way."""
    assembler = Assembler()
    async for piece in pieces:
        assembler.feed(piece)
        yield piece
    report(assembler.finish(), began)


def report(message: AssistantMessage, began: float) -> None:
    """Print one line an answer."""
    usage = message.usage
    tokens = f"{usage.input_tokens} tokens in, {usage.output_tokens} out" if usage else "tokens were not told"
    print(f"{time.perf_counter() - began:.2f} s, {tokens}")
