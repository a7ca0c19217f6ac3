"""Any GGUF model, run by llama.cpp in a child process on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self, cast

from pydantic import SecretStr

from yiemagent_nb.backends.http.connection import HttpConnection, Timeouts
from yiemagent_nb.backends.http.retry import RetryPolicy
from yiemagent_nb.backends.local.forced_call import call_chunk, choose_tools, forced_call_request
from yiemagent_nb.backends.local.server import LocalServer
from yiemagent_nb.backends.openai_compatible import Health, OpenAICompatible
from yiemagent_nb.core.backend import OpenAIMessages
from yiemagent_nb.core.errors import (
    BackendConnectionError,
    BackendError,
    InvalidParametersError,
    MalformedResponseError,
    StreamInterruptedError,
)
from yiemagent_nb.core.models import LlmModel, ThinkingLevel
from yiemagent_nb.core.reading.fields import as_mapping
from yiemagent_nb.core.signal import AbortSignal

__all__ = ["Local"]

_MAGIC = b"GGUF"
_FREE_CHOICES = frozenset({"auto", "none"})
_RETRY_ONCE = RetryPolicy(retries=1, first_delay=0.05)
"""The child closes an idle connection without a word, just when the next request may be on its way."""


class Local:
    """A backend that runs a GGUF file, with its chat template, streaming and tools.

    The model runs in a child process behind an HTTP server on the loopback address, a free port and
    a random key; the process starts at the first call, or with ``await local.start()``, and ends
    with this one, however this one ends. One that died is started again at the next call.

    Args:
        path: The GGUF file.
        context_window: How many tokens a conversation may have; more needs more memory.
        threads: Processor threads; one less than there are cores leaves one for the notebook.
        gpu_layers: Layers that run on a GPU; -1 as many as fit.
        parallel: How many answers at once; they share ``context_window``.
        max_tokens: How long an answer may be.
        tool_choice: ``auto``, ``none``; or ``required`` or a tool's name, which forces a call in
            answer to a person's message. Small models fill in a call well that they would not
            choose by themselves. Once there are results, the model answers freely.
        text_tool_calls: Whether calls that the model writes as text are understood.
        start_timeout: Seconds that loading may take.
        timeout: Seconds for each phase of a request.
        **options: Fields sent with each request: ``temperature=0``, ``seed=1``, ….

    Example::

        agent = Agent(Local("SmolLM2-135M-Instruct.Q4_1.gguf"))

    Raises:
        InvalidParametersError: There is no such file, or it is no GGUF file.
        BackendError: The extra ``local`` is not installed.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        context_window: int = 8192,
        threads: int | None = None,
        gpu_layers: int = -1,
        parallel: int = 1,
        max_tokens: int = 1024,
        tool_choice: str = "auto",
        text_tool_calls: bool = False,
        start_timeout: float = 120.0,
        timeout: Timeouts | None = None,
        **options: Any,
    ) -> None:
        self.as_code: Final = f"{type(self).__name__}({str(path)!r}, context_window={context_window!r})"
        """The Python that builds it anew."""
        self.path = _checked(Path(path).expanduser())
        if importlib.util.find_spec("xllamacpp") is None:
            raise BackendError(
                "Local runs models with the package xllamacpp, which is not installed.",
                'Run: pip install "yiemagent_nb[local]"',
            )
        name = self.path.stem
        self._model = LlmModel(
            id=name, provider=self.provider, reasoning=True, context_window=context_window, max_tokens=max_tokens
        )
        self._server = LocalServer(
            {
                "path": str(self.path),
                "name": name,
                "context_window": context_window,
                "threads": max(1, (os.cpu_count() or 2) - 1) if threads is None else threads,
                "gpu_layers": gpu_layers,
                "parallel": parallel,
            },
            start_timeout,
        )
        self._timeouts = timeout or Timeouts()
        self._text_tool_calls = text_tool_calls
        self._options = {"max_tokens": max_tokens, "tool_choice": tool_choice, **options}
        self._wire: _Wire | None = None

    def __repr__(self) -> str:
        """The file's name."""
        return f"Local({self.path.name!r})"

    @property
    def provider(self) -> str:
        """The server's kind, as it stands in messages."""
        return "local"

    @property
    def model(self) -> LlmModel | None:
        """The model in the file."""
        return self._model

    @property
    def pid(self) -> int | None:
        """The child's process id while it runs."""
        return self._server.pid

    def __call__(
        self,
        messages: OpenAIMessages,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        model: LlmModel | str | None = None,
        thinking_level: ThinkingLevel = "off",
        signal: AbortSignal | None = None,
        **options: Any,
    ) -> AsyncIterator[Mapping[str, Any]] | Coroutine[Any, Any, Mapping[str, Any]]:
        """Ask the model; as ``OpenAICompatible`` does. ``model`` is left out: the file is the model.

        Raises:
            BackendError: While iterating or awaiting; its subclass says what went wrong.
        """
        del model
        options = {**self._options, **options}
        stream = bool(options.pop("stream", True))
        choice: object = options.get("tool_choice")
        if (named := as_mapping(choice)) is not None:
            choice = (as_mapping(named.get("function")) or {}).get("name")
        if isinstance(choice, str) and choice not in _FREE_CHOICES:
            options["tool_choice"] = "auto"
            if tools and messages and messages[-1].get("role") == "user":
                force = self._forced_stream if stream else self._forced
                return force(messages, tools, choice, options)
        options |= {"tools": tools, "thinking_level": thinking_level, "signal": signal}
        return self._streamed(messages, options) if stream else self._whole(messages, options)

    async def start(self) -> None:
        """Load the model now, instead of at the first call.

        Raises:
            ServerError: The model cannot be loaded; the error has the engine's last words.
            BackendTimeoutError: Loading took too long.
        """
        await self._started()

    async def models(self) -> list[LlmModel]:
        """The one model."""
        return [self._model]

    async def health(self) -> Health:
        """Start the model if need be, and say whether it answers. Never raises."""
        try:
            wire = await self._started()
        except BackendError as error:
            return Health(ok=False, message=f"{error.message} {error.hint}".rstrip())
        return await wire.chat.health()

    def close(self) -> None:
        """End the child process. A later call starts it again."""
        self._server.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop and end the child process."""
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.aclose()
        await asyncio.to_thread(self._server.close)

    async def __aenter__(self) -> Self:
        """The backend, its model loaded."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all."""
        await self.aclose()

    async def _started(self) -> _Wire:
        """The connection to the running child, which is started if need be."""
        if self._wire is None or not self._server.alive:
            old, self._wire = self._wire, None
            if old is not None:
                await old.aclose()
            address = await asyncio.to_thread(self._server.start)
            if self._wire is None or self._wire.address != address:
                self._wire = _Wire(address, self._server.key, self._model, self._timeouts, self._text_tool_calls)
        return self._wire

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncGenerator[_Wire, None]:
        """The connection, for one request; a child that ends within it is known to be gone after it."""
        wire = await self._started()
        try:
            yield wire
        except (BackendConnectionError, StreamInterruptedError):
            await asyncio.to_thread(self._server.await_end)
            raise

    async def _streamed(
        self, messages: OpenAIMessages, options: Mapping[str, Any]
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        async with self._connected() as wire:
            pieces = cast("AsyncGenerator[Mapping[str, Any], None]", wire.chat(messages, stream=True, **options))
            async with contextlib.aclosing(pieces):
                async for piece in pieces:
                    yield piece

    async def _whole(self, messages: OpenAIMessages, options: Mapping[str, Any]) -> Mapping[str, Any]:
        async with self._connected() as wire:
            return await cast("Coroutine[Any, Any, Mapping[str, Any]]", wire.chat(messages, stream=False, **options))

    async def _forced(
        self, messages: OpenAIMessages, tools: Sequence[Mapping[str, Any]], choice: str, options: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        functions = choose_tools(tools, choice)
        body = json.dumps(forced_call_request(messages, functions, options["max_tokens"])).encode()
        async with self._connected() as wire:
            completion = as_mapping(await wire.http.read_json("/completions", body))
        if completion is None or not completion.get("choices"):
            raise MalformedResponseError("The model's server answered without choices; expected a completion.")
        extras = {"api": "chat-completions", "provider": self.provider, "model": self._model.id, "thinking_sent": "off"}
        return {**call_chunk(completion), **extras}

    async def _forced_stream(
        self, messages: OpenAIMessages, tools: Sequence[Mapping[str, Any]], choice: str, options: Mapping[str, Any]
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        yield await self._forced(messages, tools, choice, options)


class _Wire:
    """The connections to one running child."""

    def __init__(
        self, address: str, key: SecretStr, model: LlmModel, timeouts: Timeouts, text_tool_calls: bool
    ) -> None:
        self.address = address
        base_url = f"{address}/v1"
        self.chat = OpenAICompatible(
            base_url,
            model,
            api_key=key,
            preset="llamacpp",
            provider="local",
            timeout=timeouts,
            retries=_RETRY_ONCE,
            text_tool_calls=text_tool_calls,
        )
        self.http = HttpConnection(
            base_url, headers={}, key=key.get_secret_value, timeouts=timeouts, retries=_RETRY_ONCE
        )

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self.chat.aclose()
        await self.http.aclose()


def _checked(path: Path) -> Path:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise InvalidParametersError(f"{path.name!r} {what}; expected a GGUF file.", f"Looked at {path}.")
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise InvalidParametersError(
                f"{path.name!r} is no GGUF file: it does not begin with {_MAGIC.decode()}.",
                "Download the model's .gguf file again, whole.",
            )
    return path
