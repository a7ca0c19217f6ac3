"""One LLM call: what is sent, and the answer as it streams in."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any, cast

from yiemagent_nb.core.backend import Calling, OpenAIMessages
from yiemagent_nb.core.backend_call import BackendCall
from yiemagent_nb.core.concurrency import (
    Interrupted,
    Outcome,
    iterate_in_thread,
    run_abortable,
    run_cancellable,
)
from yiemagent_nb.core.errors import BackendError, HookError, YiemAgentError, describe_error
from yiemagent_nb.core.events import AgentError, MessageStart, MessageUpdate
from yiemagent_nb.core.exchange import current_exchange
from yiemagent_nb.core.hooks import AgentContext, hook_name
from yiemagent_nb.core.messages import AssistantMessage, new_id
from yiemagent_nb.core.models import LlmModel, ModelCost
from yiemagent_nb.core.observed import ObservedPieces, ObservedSyncPieces
from yiemagent_nb.core.reading.assemble import Assembler
from yiemagent_nb.core.reading.extract import extract
from yiemagent_nb.core.run import Run

__all__ = ["answer"]

PIECES_PER_BREATH = 64
"""So many pieces may come without a pause before others on the event loop have their turn."""


async def answer(run: Run) -> AssistantMessage:
    """Ask the model once and append its answer, whole, aborted or failed. Never raises.

    Tells ``MessageStart``, a ``MessageUpdate`` for each delta, and ``MessageEnd``.
    """
    message_id = new_id("msg")
    assembler = Assembler(tool_names=run.context.tools.keys(), text_tool_calls=run.config.text_tool_calls)
    run.assembler = assembler
    calling = run.calling  # others may be set before the answer is there
    model = calling.model(run.config.model)
    run.emit(MessageStart(message_id, AssistantMessage()))
    error: YiemAgentError | None = None
    try:
        wait = run_cancellable if calling.described else run_abortable
        message = await wait(_ask(run, calling, assembler, message_id), run.signal)
    except Exception as raised:
        failure: BaseException = raised.args[0] if isinstance(raised, Outcome) else raised
        if isinstance(failure, KeyboardInterrupt):
            run.signal.abort("interrupted from the keyboard")
        if run.signal.aborted:  # whatever a backend raises then is the abort's doing
            run.step("llm.interrupted", error=describe_error(failure))
            message = assembler.partial("aborted", run.signal.reason)
        else:
            error = _wrap(calling, failure)
            message = assembler.partial("error", str(error))
    except BaseException:  # the task is cancelled, or a person interrupts: keep what has come
        run.assembler = None
        message = assembler.partial("aborted", "the event loop was stopped")
        message = _complete(run, calling, model, message)
        _close_exchange(run, message)
        run.add(message, message_id)
        raise
    if message.stop_reason == "error" and error is None:
        error = BackendError(message.error_message or "The server ended its answer with an error.")
    run.assembler = None
    run.error_message = None if error is None else str(error)
    message = _complete(run, calling, model, message)
    _close_exchange(run, message)
    run.step("llm.answered", stop_reason=message.stop_reason, calls=len(message.tool_calls))
    run.add(message, message_id)
    if error is not None:
        run.emit(AgentError(error.code, str(error)))
    return message


async def _ask(run: Run, calling: Calling, assembler: Assembler, message_id: str) -> AssistantMessage:
    config = run.config
    context = run.context
    if config.prepare_context is not None:
        context = await _call_hook(config.prepare_context, AgentContext, run.state())
        run.step("context.prepared", messages=len(context.messages))
    output = run.output
    if output is not None and not calling.takes("response_format"):
        context = AgentContext(output.instruct(context.system_prompt), context.messages, context.tools)
    if config.format_messages is None:
        messages: OpenAIMessages = config.request_builder.build(
            context.system_prompt, context.messages, calling.provider
        )
    else:
        messages = await _call_hook(config.format_messages, Sequence, context)
    run.step("messages.formatted", messages=len(messages))
    if run.signal.aborted:
        raise Interrupted
    offered: dict[str, Any] = {
        **config.options,
        "tools": config.request_builder.build_tools(context.tools),
        "model": config.model,
        "thinking_level": config.thinking_level,
        "signal": run.signal,
    }
    if output is not None:
        offered["response_format"] = output.response_format
    run.step("llm.called", messages=len(messages), tools=len(context.tools))
    response = await BackendCall(run, calling, message_id).ask(messages, offered)
    if isinstance(response, ObservedPieces | ObservedSyncPieces):
        run.used = response.exchange
    if isinstance(response, AsyncIterable):
        pieces = aiter(cast("AsyncIterable[Any]", response))
    elif isinstance(response, Iterator):
        pieces: AsyncIterator[Any] = iterate_in_thread(cast("Iterator[Any]", response), run.signal)
    else:
        run.used = next((each for each in reversed(run.exchanges) if each.response is response), None)
        return extract(response, tool_names=context.tools.keys(), text_tool_calls=config.text_tool_calls)
    return await _assemble(run, pieces, assembler, message_id)


async def _assemble(run: Run, pieces: AsyncIterator[Any], assembler: Assembler, message_id: str) -> AssistantMessage:
    emit = run.emit
    count = 0
    watched = pieces if isinstance(pieces, ObservedPieces) else None
    before = current_exchange.get()
    if watched is not None:
        current_exchange.set(watched.exchange)  # once, and not for each piece
    try:
        async for piece in pieces if watched is None else watched.plain:
            if run.signal.aborted:
                raise Interrupted
            if watched is not None:
                if count:
                    watched.append(piece)
                else:
                    watched.take(piece)
            for delta in assembler.feed(piece):
                emit(
                    MessageUpdate(
                        message_id,
                        delta.kind,
                        delta.text,
                        delta.offset,
                        delta.block,
                        delta.tool_call_id,
                        delta.tool_name,
                    )
                )
            count += 1
            if not count % PIECES_PER_BREATH:
                await asyncio.sleep(0)
    finally:
        current_exchange.set(before)
        if callable(close := getattr(pieces, "aclose", None)):
            await cast("Callable[[], Awaitable[None]]", close)()
    return assembler.finish()


async def _call_hook(hook: Callable[[Any], Any], expected: type, argument: object) -> Any:
    try:
        value = hook(argument)
        if inspect.isawaitable(value):
            value = await value
    except HookError:
        raise
    except (Exception, SystemExit) as error:
        raise HookError(f"The hook {hook_name(hook)} raised {describe_error(error)}") from error
    if not isinstance(value, expected):
        raise HookError(f"The hook {hook_name(hook)} returned {type(value).__name__}; expected {expected.__name__}.")
    return value


def _wrap(calling: Calling, error: BaseException) -> YiemAgentError:
    if isinstance(error, YiemAgentError):
        return error
    name = hook_name(calling.llm_call)
    what = describe_error(error).rstrip(".")
    return BackendError(f"llm_call {name} raised {what}.", "Nothing was lost: prompt again.")


def _complete(run: Run, calling: Calling, model: LlmModel | None, message: AssistantMessage) -> AssistantMessage:
    """Fill in what the backend left out: who answered, and what it cost."""
    update: dict[str, Any] = {}
    if not message.provider and calling.provider:
        update["provider"] = calling.provider
    if model is not None:
        if not message.model:
            update["model"] = model.id
        if message.usage is not None and message.usage.cost is None and model.cost != ModelCost():
            update["usage"] = message.usage.model_copy(update={"cost": model.cost.of(message.usage)})
    if update:
        message = message.model_copy(update=update)
    if message.usage is not None and message.usage.cost is not None:
        run.spent += message.usage.cost.total
    return message


def _close_exchange(run: Run, message: AssistantMessage) -> None:
    """Those who observe the exchange know its answer when they hear of it."""
    exchanges, run.exchanges = run.exchanges, []
    used, run.used = run.used, None
    if not exchanges:
        return
    now = time.perf_counter()
    used = used or exchanges[-1]
    used.answer = message
    used.error = used.error or message.error_message or ""
    for exchange in exchanges:
        exchange.ended = exchange.ended or now
