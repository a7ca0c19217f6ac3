"""Asking a backend once, outside of any agent."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Iterator
from typing import Any, cast

from yiemagent_nb.core.backend import Calling, LlmCall, OpenAIMessages
from yiemagent_nb.core.concurrency import iterate_in_thread, run_in_thread
from yiemagent_nb.core.messages import AssistantMessage
from yiemagent_nb.core.reading.assemble import Assembler
from yiemagent_nb.core.reading.extract import extract
from yiemagent_nb.core.signal import AbortSignal

__all__ = ["ask"]


async def ask(llm_call: LlmCall, messages: OpenAIMessages, **options: Any) -> AssistantMessage:
    """Ask a backend with these messages, just as they are, and read its answer.

    Args:
        llm_call: Any backend.
        messages: In OpenAI's form.
        **options: tools, model, thinking_level and further keywords; the backend is given those that it takes.

    Raises:
        Exception: Whatever the backend raises.

    Example::

        answer = await ask(OpenAI("gpt-5"), [{"role": "user", "content": "Hello"}])
        print(answer.text)
    """
    calling = Calling.of(llm_call)
    keywords = calling.accepted({name: value for name, value in options.items() if value is not None})
    names = [tool["function"]["name"] for tool in options.get("tools") or ()]
    if calling.on_loop:
        response: object = calling.llm_call(messages, **keywords)
    else:
        response = await run_in_thread(lambda: calling.llm_call(messages, **keywords))
    if inspect.isawaitable(response):
        response = await response
    if isinstance(response, Iterator):
        response = iterate_in_thread(cast("Iterator[Any]", response), AbortSignal())
    if not isinstance(response, AsyncIterable):
        return extract(response, tool_names=names)
    assembler = Assembler(tool_names=names)
    async for piece in cast("AsyncIterable[Any]", response):
        assembler.feed(piece)
    return assembler.finish()
