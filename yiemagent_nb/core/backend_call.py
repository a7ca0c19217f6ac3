"""How a run calls its backend: through the hook around it, and observed where somebody looks."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, cast

from yiemagent_nb.core.backend import Calling, OpenAIMessages
from yiemagent_nb.core.concurrency import Interrupted, run_in_thread
from yiemagent_nb.core.config import AroundLlmCall
from yiemagent_nb.core.errors import HookError, describe_error
from yiemagent_nb.core.exchange import Exchange, current_exchange
from yiemagent_nb.core.hooks import hook_name
from yiemagent_nb.core.observed import failed, observed
from yiemagent_nb.core.redaction import with_hidden_keys
from yiemagent_nb.core.run import Run

__all__ = ["BackendCall"]


class BackendCall:
    """One request to the backend.

    Args:
        run: The run.
        calling: How the backend is called.
        message_id: The id of the answer.
    """

    def __init__(self, run: Run, calling: Calling, message_id: str) -> None:
        self._run = run
        self._calling = calling
        self._message_id = message_id

    async def ask(self, messages: OpenAIMessages, offered: Mapping[str, Any]) -> object:
        """Ask the backend; returns what it gave, or what the hook around it made of that.

        Args:
            messages: What is sent.
            offered: The keywords that the backend may take.

        Raises:
            HookError: ``around_llm_call`` failed.
            Exception: Whatever the backend raises.
        """
        hook = self._run.config.around_llm_call
        return await (self._call(messages, offered) if hook is None else self._ask_through(hook, messages, offered))

    async def _ask_through(self, hook: AroundLlmCall, messages: OpenAIMessages, offered: Mapping[str, Any]) -> object:
        fixed = {"signal": offered["signal"]}
        failures: list[Exception] = []

        async def call(messages: OpenAIMessages, /, **options: Any) -> object:
            if self._run.signal.aborted:
                raise Interrupted
            try:
                return await self._call(messages, {**options, **fixed})
            except Exception as error:
                failures.append(error)
                raise

        options = {name: value for name, value in offered.items() if name not in fixed}
        try:
            response = hook(call, messages, options)
            while inspect.isawaitable(response):  # an async hook may return the call of another backend
                response = await response
        except (Interrupted, HookError):
            raise
        except (Exception, SystemExit) as error:
            if any(error is failure for failure in failures):  # the backend's own, which the hook let through
                raise
            raise HookError(f"The hook {hook_name(hook)} raised {describe_error(error)}") from error
        if response is None:
            raise HookError(
                f"The hook {hook_name(hook)} returned None; expected an answer.", "Return what `await call(…)` gave."
            )
        return cast("object", response)

    async def _call(self, messages: OpenAIMessages, offered: Mapping[str, Any]) -> object:
        exchange = self._observe(messages, offered)
        if exchange is None:
            return await self._give(messages, offered)
        before = current_exchange.get()
        current_exchange.set(exchange)
        try:
            return observed(exchange, await self._give(messages, offered))
        except BaseException as error:
            failed(exchange, error)
            raise
        finally:
            current_exchange.set(before)

    async def _give(self, messages: OpenAIMessages, offered: Mapping[str, Any]) -> object:
        calling = self._calling
        keywords = calling.accepted(offered)
        if calling.on_loop:
            response = calling.llm_call(messages, **keywords)
        else:
            response = await run_in_thread(lambda: calling.llm_call(messages, **keywords))
        return cast("object", await response if inspect.isawaitable(response) else response)

    def _observe(self, messages: OpenAIMessages, offered: Mapping[str, Any]) -> Exchange | None:
        run, llm_call = self._run, self._calling.llm_call
        observer = run.observer
        if observer is None:
            return None
        told = {name: value for name, value in offered.items() if name != "signal"}
        exchange = Exchange(self._message_id, llm_call, self._calling.label, messages, with_hidden_keys(told))
        run.exchanges.append(exchange)
        observer(exchange)
        return exchange
