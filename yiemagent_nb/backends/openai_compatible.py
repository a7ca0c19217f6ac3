"""Any server that speaks OpenAI's chat completions: Ollama, llama.cpp, OpenRouter, SGLang, ….

Source of the form: OpenAI's API reference, "Create chat completion" and "Streaming".
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlsplit

from pydantic import SecretStr

from yiemagent_nb.backends.chat_request import ChatRequest, read_tool_choice
from yiemagent_nb.backends.chat_stream import ChatStreamReader
from yiemagent_nb.backends.http import AsyncHttpClient, HttpConnection, Timeouts
from yiemagent_nb.backends.model_list import read_models
from yiemagent_nb.backends.retry import Attempts, RetryPolicy
from yiemagent_nb.core.backend import OpenAIMessages
from yiemagent_nb.core.errors import (
    AuthenticationError,
    BackendError,
    BackendNotFoundError,
    MalformedResponseError,
    StreamInterruptedError,
)
from yiemagent_nb.core.models import LlmModel, ThinkingLevel, nearest_thinking_level
from yiemagent_nb.core.reading.fields import as_mapping
from yiemagent_nb.core.reading.server_errors import error_body, server_error
from yiemagent_nb.core.signal import AbortSignal

__all__ = ["THINKING_EFFORTS", "Health", "OpenAICompatible"]

THINKING_EFFORTS: Final[Mapping[ThinkingLevel, str]] = {"low": "low", "medium": "medium", "high": "high"}
"""The levels that servers in general know, and the ``reasoning_effort`` that asks for each.

Any other level becomes the next higher of these, else the next lower; ``off`` sends nothing.
"""

_PATH = "/chat/completions"
_OPENAI_HOST = "https://api.openai.com/"
_EVENTS_PER_BREATH = 128
"""So many events may come without a pause before others on the event loop have their turn."""


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a server can be used, in a plain sentence, and what it serves."""

    ok: bool
    message: str
    models: tuple[LlmModel, ...] = ()


class OpenAICompatible:
    """A backend for any server with OpenAI's chat completions.

    Args:
        base_url: The server's address, such as ``http://localhost:8000/v1``. Without a path,
            ``/v1`` is added.
        model: The model that answers when the agent names none; None takes the first that the
            server lists.
        api_key: The key. Never shown, logged or kept in plain text.
        api_key_env: The environment variable that holds the key, read at each request. OpenAI's
            own address uses ``OPENAI_API_KEY`` by itself, no other does.
        stream: Whether answers come in pieces.
        provider: The name that stands in messages; reasoning goes back only where it is the same.
        timeout: Seconds for each phase of a request, or one number for all that wait for the server.
        retries: How often a request is repeated after errors that may pass, never after something
            of the answer was shown.
        headers: Sent with each request.
        extra_body: Fields added to each request, as the server names them.
        temperature: Sent if given, as are ``seed``, ``stop``, ``response_format``, ``max_tokens``.
        tool_choice: ``auto``, ``none``, ``required``, or a tool's name; sent only with tools.
        include_usage: Whether to ask for token counts in streams. A server that refuses the
            question is not asked again.
        text_tool_calls: Whether calls that the model writes as text, because its server has no parser
            for them, are understood.
        http_client: An ``httpx.AsyncClient`` or ``httpx2.AsyncClient`` of your own. Its timeouts
            count, and closing it is yours.

    Example::

        backend = OpenAICompatible("http://localhost:11434/v1", "qwen3:8b")
        agent = Agent(backend)

    Raises:
        InvalidParametersError: ``base_url`` is no web address, or ``http_client`` no async client.
    """

    def __init__(
        self,
        base_url: str,
        model: str | LlmModel | None = None,
        *,
        api_key: str | SecretStr | None = None,
        api_key_env: str | None = None,
        stream: bool = True,
        provider: str = "openai-compatible",
        timeout: float | Timeouts | None = None,
        retries: int | RetryPolicy | None = None,
        headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, Any] | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        stop: str | Sequence[str] | None = None,
        tool_choice: str | Mapping[str, Any] | None = None,
        response_format: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        include_usage: bool = True,
        text_tool_calls: bool = False,
        http_client: AsyncHttpClient | None = None,
    ) -> None:
        self.base_url: Final = _normalised(base_url)
        self.stream = stream
        self._provider = provider
        self._key = SecretStr(api_key) if isinstance(api_key, str) else api_key
        if api_key_env is None and self.base_url.startswith(_OPENAI_HOST):
            api_key_env = "OPENAI_API_KEY"
        self._key_env = api_key_env
        self._model = _as_model(model, provider, self.base_url)
        self._include_usage = include_usage
        self._text_tool_calls = text_tool_calls
        self._options: dict[str, Any] = {
            "temperature": temperature,
            "seed": seed,
            "stop": stop,
            "tool_choice": tool_choice,
            "response_format": response_format,
            "max_tokens": max_tokens,
            **(extra_body or {}),
        }
        self._request = ChatRequest()
        self._http = HttpConnection(
            self.base_url,
            headers=headers or {},
            key=self._read_key,
            timeouts=_as_timeouts(timeout),
            retries=RetryPolicy(retries) if isinstance(retries, int) else retries or RetryPolicy(),
            client=http_client,
        )

    def __repr__(self) -> str:
        """The address and the model, never the key."""
        model = "" if self._model is None else f", {self._model.id!r}"
        return f"{type(self).__name__}({self._http.shown!r}{model})"

    @property
    def provider(self) -> str:
        """The server's kind, as it stands in messages."""
        return self._provider

    @property
    def model(self) -> LlmModel | None:
        """The model that answers when the agent names none."""
        return self._model

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
        """Ask the server.

        Args:
            messages: The conversation, in OpenAI's chat form.
            tools: What the model may call, in OpenAI's form.
            model: Which model answers, in place of this backend's.
            thinking_level: How much it should think.
            signal: Ends the answer when it is set.
            **options: Fields of the request, in place of this backend's: ``temperature=0``, …;
                ``stream`` says whether the answer comes in pieces.

        Returns:
            An async iterator of chunks as the server sends them, the first with ``api``,
            ``provider``, ``model`` and ``thinking_sent``; or, without streaming, a coroutine that
            gives the whole response with these. Closing the iterator ends the request.

        Raises:
            BackendError: While iterating or awaiting; its subclass says what went wrong.
        """
        stream = bool(options.pop("stream", self.stream))
        ask = _Question(messages, tools or None, model, thinking_level, signal, options)
        return self._streamed(ask) if stream else self._whole(ask)

    async def models(self) -> list[LlmModel]:
        """The models that the server lists, with their context length where it tells.

        Raises:
            BackendError: It could not be asked.
        """
        return read_models(await self._http.read_json("/models"), self._provider, self.base_url)

    async def health(self) -> Health:
        """Ask the server whether it can be used. Never raises."""
        try:
            models = tuple(await self.models())
        except BackendError as error:
            return Health(ok=False, message=f"{error.message} {error.hint}".rstrip())
        where = self._http.shown
        if not models:
            return Health(ok=False, message=f"{where} answers, but has no model. Load one on the server first.")
        names = ", ".join(model.id for model in models[:5]) + (", …" if len(models) > 5 else "")  # noqa: PLR2004
        if self._model is not None and self._model.id not in {model.id for model in models}:
            return Health(False, f"{where} answers, but lists no model {self._model.id!r}; it has {names}.", models)
        return Health(ok=True, message=f"{where} is ready and serves {names}.", models=models)

    async def aclose(self) -> None:
        """Close the connections of this event loop. The backend can be used again."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        """The backend itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections of this event loop."""
        await self.aclose()

    def thinking_fields(self, level: ThinkingLevel, model: LlmModel) -> tuple[Mapping[str, Any], str]:
        """What asks for a thinking level: the request's fields, and the word that was sent."""
        nearest = (
            nearest_thinking_level(level, THINKING_EFFORTS, reasoning=model.reasoning) if level != "off" else level
        )
        effort = THINKING_EFFORTS.get(nearest)
        return ({"reasoning_effort": effort}, effort) if effort else ({}, "off")

    def _read_key(self) -> str | None:
        if self._key is not None:
            return self._key.get_secret_value()
        if self._key_env is None:
            return None
        key = os.environ.get(self._key_env)
        if not key:
            raise AuthenticationError(
                f"There is no API key: the environment variable {self._key_env} is not set.",
                "Set it before the notebook starts, or give api_key.",
            )
        return key

    async def _whole(self, ask: _Question) -> Mapping[str, Any]:
        body, extras = await self._prepare(ask, stream=False)
        response = as_mapping(await self._http.read_json(_PATH, body))
        if response is None:
            raise MalformedResponseError(
                "The server's answer is JSON, but no object; expected a chat completion.",
                "Check the base URL: it usually ends in /v1.",
            )
        if (said := error_body(response)) is not None:
            error = server_error(said)
            self._http.redact(error)
            raise error
        return {"model": extras["model"], **response, **{key: extras[key] for key in extras if key != "model"}}

    async def _streamed(self, ask: _Question) -> AsyncGenerator[Mapping[str, Any], None]:
        body, extras = await self._prepare(ask, stream=True)
        yield extras
        attempts = self._http.attempts()
        while True:
            reader = ChatStreamReader()
            try:
                async with await self._http.open(_PATH, body, attempts) as answer:
                    reader.begin(answer.media_type)
                    count = 0
                    while not reader.over and not (ask.signal is not None and ask.signal.aborted):
                        for piece in reader.feed(b"" if reader.error else await answer.chunk()):
                            yield piece
                            count += 1
                            if not count % _EVENTS_PER_BREATH:
                                await asyncio.sleep(0)
                    if reader.done:
                        await answer.drain()
            except BackendError as error:
                self._http.redact(error)
                if reader.ended and isinstance(error, StreamInterruptedError):
                    return  # all was there; only the connection did not end as it should
                if reader.shown or not await self._again(error, attempts):
                    raise
                body, _ = await self._prepare(ask, stream=True)
            else:
                return

    async def _again(self, error: BackendError, attempts: Attempts) -> bool:
        """Whether to ask again after an error before anything was shown."""
        if self._include_usage and "stream_options" in error.message:
            self._include_usage = False
            return True
        return await attempts.again(error)

    async def _prepare(self, ask: _Question, *, stream: bool) -> tuple[bytes, dict[str, Any]]:
        """The body of a request, and what is known of the answer beforehand."""
        model = _as_model(ask.model, self._provider, self.base_url) or self._model or await self._first_model()
        thinking, sent = self.thinking_fields(ask.thinking_level, model)
        fields: dict[str, Any] = {"model": model.id, "stream": stream}
        if stream and self._include_usage:
            fields["stream_options"] = {"include_usage": True}
        for key, value in {**self._options, **thinking, **ask.options}.items():
            if value is None or (key == "tool_choice" and not ask.tools):
                continue
            fields[key] = read_tool_choice(value) if key == "tool_choice" else value
        extras: dict[str, Any] = {
            "api": "chat-completions",
            "provider": self._provider,
            "model": model.id,
            "thinking_sent": sent,
        }
        if self._text_tool_calls:
            extras["text_tool_calls"] = True
        return self._request.encode(ask.messages, ask.tools, fields), extras

    async def _first_model(self) -> LlmModel:
        models = await self.models()
        if not models:
            raise BackendNotFoundError(
                f"{self._http.shown} lists no model.", "Load one on the server, or give the model's name."
            )
        self._model = models[0]
        return models[0]


@dataclass(frozen=True, slots=True)
class _Question:
    """What one call asks."""

    messages: OpenAIMessages
    tools: Sequence[Mapping[str, Any]] | None
    model: LlmModel | str | None
    thinking_level: ThinkingLevel
    signal: AbortSignal | None
    options: Mapping[str, Any]


def _normalised(base_url: str) -> str:
    url = base_url.strip().rstrip("/").removesuffix(_PATH)
    parts = urlsplit(url)
    return f"{url}/v1" if parts.scheme and parts.netloc and not parts.path else url


def _as_model(model: str | LlmModel | None, provider: str, base_url: str) -> LlmModel | None:
    """A model by its name. Whether it can think is not known, so the server is asked for it."""
    if isinstance(model, str):
        return LlmModel(id=model, provider=provider, base_url=base_url, reasoning=True)
    return model


def _as_timeouts(timeout: float | Timeouts | None) -> Timeouts:
    if isinstance(timeout, int | float):
        return Timeouts(min(timeout, 5.0), timeout, timeout, timeout)
    return timeout or Timeouts()
