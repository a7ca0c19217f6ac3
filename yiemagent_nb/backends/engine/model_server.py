"""The engine of all backends over HTTP: from a question to the pieces of its answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, Unpack

from pydantic import SecretStr

from yiemagent_nb.backends.engine.diagnosis import diagnose, unknown_model
from yiemagent_nb.backends.engine.habits import AGAIN, Api, Habits, Lessons
from yiemagent_nb.backends.engine.model_list import shown_names
from yiemagent_nb.backends.engine.options import ServerOptions, checked, explained, normalised_url, spelled_out
from yiemagent_nb.backends.engine.request_writer import OPTIONS_OF_REQUESTS, Question, Request, RequestWriter
from yiemagent_nb.backends.engine.served_models import ServedModels
from yiemagent_nb.backends.engine.stream_reader import StreamReader
from yiemagent_nb.backends.engine.written import FALLBACK_VARIABLE, shown_options, written
from yiemagent_nb.backends.http.bodies import read_response
from yiemagent_nb.backends.http.connection import HttpConnection, Timeouts
from yiemagent_nb.backends.http.retry import Attempts, RetryPolicy
from yiemagent_nb.backends.http.urls import split_url, without_login
from yiemagent_nb.backends.prices import PriceTable
from yiemagent_nb.core.backend import OpenAIMessages
from yiemagent_nb.core.errors import (
    AuthenticationError,
    BackendError,
    BackendNotFoundError,
    InvalidParametersError,
    StreamInterruptedError,
)
from yiemagent_nb.core.models import LlmModel, ThinkingLevel
from yiemagent_nb.core.signal import AbortSignal

__all__ = ["Health", "ModelServer"]

_PATHS: Final[Mapping[Api, str]] = {"chat-completions": "/chat/completions", "responses": "/responses"}
_EVENTS_PER_BREATH = 128
"""So many events may come without a pause before others on the event loop have their turn."""
_MAX_REWRITES = 8
"""So often a question is put otherwise, whatever its server goes on to refuse."""
_HEALTH_SECONDS = 10.0
"""A server that takes longer to list its models cannot be used just now."""
_NOT_OF_A_REQUEST = ServerOptions.__annotations__.keys() - {*OPTIONS_OF_REQUESTS, "stream", "extra_body"}
_KEY_HEADERS = frozenset({"authorization", "api-key", "x-api-key"})


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a server can be used, in a plain sentence, and what it serves."""

    ok: bool
    message: str
    models: tuple[LlmModel, ...] = ()


class ModelServer:
    """A backend that asks a model server over HTTP.

    Args:
        model: The model that answers when the agent names none; None takes the first that the
            server lists.
        base_url: The server's address, such as ``http://localhost:8000/v1``. Without a path,
            ``/v1`` is added.
        habits: What the server wants in a way of its own.
        api: The endpoint; ``auto`` leaves it to the model.
        **options: See ``ServerOptions``.

    Raises:
        InvalidParametersError: ``base_url`` is no web address, ``http_client`` no async client, or
            ``prices`` no table of prices.
    """

    def __init__(
        self,
        model: str | LlmModel | None,
        *,
        base_url: str,
        habits: Habits,
        api: Api | Literal["auto"] = "auto",
        **options: Unpack[ServerOptions],
    ) -> None:
        options = checked(options, type(self), model=model, api=api)
        address = normalised_url(base_url)
        self.base_url: Final = without_login(address)
        if habits.provider == Habits.provider:
            habits.provider = split_url(self.base_url).netloc
        self.stream = options.get("stream", True)
        self._habits = habits
        key = options.get("api_key")
        self._key = SecretStr(key) if isinstance(key, str) else key
        self._key_env = options.get("api_key_env") or habits.key_variable
        headers, client = dict(options.get("headers") or {}), options.get("http_client")
        has_login = not _KEY_HEADERS.isdisjoint(name.lower() for name in headers) or address != self.base_url
        self._proves_itself = has_login or getattr(client, "auth", None) is not None
        """Whether requests prove who asks without a key."""
        self._key_is_needed = options.get("api_key_env") is not None and not self._proves_itself
        prices = options.get("prices")
        table = None if prices is None else PriceTable.of(prices)
        self._models = ServedModels(habits, self.base_url, table, model)
        self._lessons: dict[str, Lessons] = {}
        """What refusals taught, by the model's id."""
        retries = options.get("retries")
        self._http = HttpConnection(
            address,
            headers=headers,
            key=self._read_key,
            timeouts=_as_timeouts(options.get("timeout")),
            retries=RetryPolicy(retries) if isinstance(retries, int) else retries or RetryPolicy(),
            client=client,
        )
        self._written = {"base_url": self.base_url, **({} if api == "auto" else {"api": api})}
        self._written |= shown_options(options, self._http.redacted, has_login=address != self.base_url)
        self._writer = RequestWriter(habits, None if api == "auto" else api, options, self._http.redacted.add_fields)

    def __init_subclass__(cls) -> None:
        # Of __init__, not of the class: what is of the class is taken for its instances' calls too.
        vars(cls.__init__)["__signature__"] = spelled_out(cls.__init__)
        cls.__doc__ = explained(cls.__doc__)

    def __repr__(self) -> str:
        """The address and the model, never the key."""
        model = "" if self.model is None else f", {self.model.id!r}"
        return f"{type(self).__name__}({self._http.shown!r}{model})"

    @property
    def provider(self) -> str:
        """The server's kind, as it stands in messages."""
        return self._habits.provider

    @property
    def model(self) -> LlmModel | None:
        """The model that answers when the agent names none, with what is known of it by now."""
        return self._models.default

    @property
    def connection(self) -> HttpConnection:
        """How it reaches its server."""
        return self._http

    @property
    def key_variable(self) -> str:
        """The environment variable that holds its key, or would; empty where it needs none."""
        return self._key_env or ("" if self._key is None else FALLBACK_VARIABLE)

    @property
    def as_code(self) -> str:
        """The Python that builds it anew, with its class's name and ``os``; its key comes from ``key_variable``."""
        return written(type(self), self._arguments())

    def _arguments(self) -> dict[str, Any]:
        """What it is built with anew."""
        model = {} if self.model is None else {"model": self.model.id}
        key = {"api_key_env": self.key_variable} if self._key is not None or self._key_is_needed else {}
        return {**model, **self._written, **key}

    def describe_model(self, model: str) -> LlmModel:
        """What is known of a model by its name, its price included."""
        return self._models.describe(model)

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
            signal: Looked at between the pieces of an answer. To end it at once, close the iterator
                or cancel the coroutine, as an agent does.
            **options: Fields of the request, in place of this backend's: ``temperature=0``, …;
                ``stream`` says whether the answer comes in pieces.

        Returns:
            An async iterator of chunks as the server sends them, the first with ``api``,
            ``provider``, ``model``, ``thinking_sent`` and, where they are known, ``prices``; or,
            without streaming, a coroutine that gives the whole response with these. Closing the
            iterator ends the request.

        Raises:
            BackendError: While iterating or awaiting; its subclass says what went wrong.
        """
        if misplaced := _NOT_OF_A_REQUEST & options.keys():
            raise InvalidParametersError(
                f"{', '.join(sorted(misplaced))} cannot be set for one request.",
                f"Give it to {type(self).__name__}(…) itself.",
            )
        stream = bool(options.pop("stream", self.stream))
        options |= options.pop("extra_body", {})
        question = Question(messages, tools or None, model, thinking_level, signal, options)
        return self._streamed(question) if stream else self._whole(question)

    async def models(self) -> list[LlmModel]:
        """The models that the server lists, with their context length where it tells.

        Raises:
            BackendError: It could not be asked.
        """
        try:
            return await self._listed(self._http)
        except BackendError as error:
            raise self._explained(error, "") from None

    async def health(self) -> Health:
        """Ask the server whether it can be used, and say in a sentence what is wrong. Never raises."""
        wanted = None if self._models.chosen is None else self._models.chosen.id
        connection = self._http.at(self.base_url, _HEALTH_SECONDS)
        try:
            models = tuple(await self._listed(connection))
        except BackendError as error:
            return Health(ok=False, message=await diagnose(self._http, self._habits, self._explained(error, "")))
        finally:
            await connection.aclose()
        where = self._http.shown
        if not models:
            return Health(ok=False, message=f"{where} answers, but has no model. Load one on the server first.")
        chosen = next((model for model in models if wanted in {None, model.id}), None)
        if chosen is None:
            return Health(False, unknown_model(where, wanted or "", models), models)
        return Health(True, f"{where} is ready and serves {shown_names(models)}.{_state_of(chosen)}", models)

    async def _listed(self, http: HttpConnection) -> list[LlmModel]:
        return await self._models.list(http)

    async def aclose(self) -> None:
        """Close the connections of this event loop. The backend can be used again."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        """The backend itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections of this event loop."""
        await self.aclose()

    def _read_key(self) -> str | None:
        if self._key is not None:
            return self._key.get_secret_value().strip() or None
        if not self._key_env or self._proves_itself:
            return None
        key = os.environ.get(self._key_env, "").strip()
        if not key and self._key_is_needed:
            raise AuthenticationError(
                f"There is no API key: the environment variable {self._key_env} is not set.",
                "Set it before the notebook starts, or give api_key.",
            )
        return key or None

    async def _whole(self, question: Question) -> Mapping[str, Any]:
        attempts = self._http.attempts()
        request = await self._write(question, {}, stream=False)
        while True:
            first = request.first_piece
            try:
                async with await self._http.open(_PATHS[request.plan.api], request.body) as answer:
                    response = read_response(await answer.read(), answer.media_type, self._http.redacted)
            except BackendError as error:
                request = await self._next_request(error, question, request, attempts, stream=False)
            else:
                self._keep_lessons(request)
                return {"model": first["model"], **response, **{key: first[key] for key in first if key != "model"}}

    async def _streamed(self, question: Question) -> AsyncGenerator[Mapping[str, Any], None]:
        attempts = self._http.attempts()
        request = await self._write(question, {}, stream=True)
        told: dict[str, Any] | None = None
        signal = question.signal
        while True:
            if request.first_piece != told:
                yield request.first_piece
                told = request.first_piece
            reader = StreamReader(self._http.redacted)
            try:
                async with await self._http.open(_PATHS[request.plan.api], request.body) as answer:
                    reader.begin(answer.media_type)
                    count = 0
                    while not reader.over and not (signal is not None and signal.aborted):
                        for piece in reader.feed(b"" if reader.error else await answer.chunk_or_failure()):
                            yield piece
                            count += 1
                            if not count % _EVENTS_PER_BREATH:
                                await asyncio.sleep(0)
                    if reader.done:
                        await answer.drain()
            except BackendError as error:
                if reader.ended and isinstance(error, StreamInterruptedError):
                    return  # all was there; only the connection did not end as it should
                request = await self._next_request(error, question, request, attempts, stream=True, shown=reader.shown)
            else:
                self._keep_lessons(request)
                return

    async def _next_request(
        self,
        error: BackendError,
        question: Question,
        refused: Request,
        attempts: Attempts,
        *,
        stream: bool,
        shown: bool = False,
    ) -> Request:
        """What to ask with after an error, or raise the error where nothing is gained by asking again."""
        model, lessons = refused.plan.model, refused.plan.lessons
        more: Lessons = {} if shown else self._habits.learn(error, refused.plan)
        if isinstance(error, BackendNotFoundError) and AGAIN not in lessons and self._models.forget_first(model):
            more = {**more, AGAIN: True}
        if refused.rewrites < _MAX_REWRITES and not more.items() <= lessons.items():
            if AGAIN in more:
                self._models.forget(model)
            rewritten = await self._write(question, {**lessons, **more}, stream=stream)
            if AGAIN in more or rewritten.body != refused.body:
                return rewritten._replace(rewrites=refused.rewrites + 1)
        if shown or not await attempts.again(error):
            raise self._explained(error, model.id) from None
        return refused

    def _keep_lessons(self, request: Request) -> None:
        """Heed from now on what led to an answer."""
        lessons = {name: value for name, value in request.plan.lessons.items() if name != AGAIN}
        if lessons:
            self._lessons[request.plan.model.id] = lessons

    async def _write(self, question: Question, lessons: Lessons, *, stream: bool) -> Request:
        try:
            model = await self._models.ready(question.model, self._http)
        except BackendError as error:
            raise self._explained(error, _name_of(question.model or self._models.chosen)) from None
        kept = self._lessons.get(model.id)
        if kept:
            lessons = {**kept, **lessons}
        return self._writer.write(question, model, self._models.cost_of(model), lessons, stream=stream)

    def _explained(self, error: BackendError, model: str) -> BackendError:
        """An error as it leaves: without keys, and with what helps at this server."""
        error.hint = self._habits.hint(error, model) or error.hint
        self._http.redact(error)
        return error


def _name_of(model: LlmModel | str | None) -> str:
    return model.id if isinstance(model, LlmModel) else model or ""


def _state_of(model: LlmModel) -> str:
    """A sentence on whether a model is in memory, and with how much context; empty where nobody says."""
    context = f"{model.context_window:,} tokens of context" if model.context_window else ""
    if model.loaded is None:
        return f" {model.id} has {context}." if context else ""
    if model.loaded:
        return f" {model.id} is loaded{context and f' with {context}'}."
    return f" {model.id} is not loaded yet{context and f' (it can have {context})'}; the first message loads it."


def _as_timeouts(timeout: float | Timeouts | None) -> Timeouts:
    if isinstance(timeout, int | float):
        return Timeouts(min(timeout, 5.0), timeout, timeout, timeout)
    return timeout or Timeouts()
