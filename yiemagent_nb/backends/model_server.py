"""The engine of all backends over HTTP: from a question to the pieces of its answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Self, Unpack, cast

from pydantic import SecretStr

from yiemagent_nb.backends.bodies import read_response
from yiemagent_nb.backends.chat_request import ChatRequest, chat_fields
from yiemagent_nb.backends.chat_stream import ChatStreamReader
from yiemagent_nb.backends.diagnosis import diagnose, unknown_model
from yiemagent_nb.backends.habits import Api, Habits, RequestPlan
from yiemagent_nb.backends.http import HttpConnection, RequestBody, Timeouts, is_loopback, split_url, without_login
from yiemagent_nb.backends.options import ServerOptions, spelled_out
from yiemagent_nb.backends.prices import PriceTable
from yiemagent_nb.backends.responses_request import ResponsesRequest, responses_fields
from yiemagent_nb.backends.retry import Attempts, RetryPolicy
from yiemagent_nb.backends.tool_choice import apply_tool_choice
from yiemagent_nb.core.backend import OpenAIMessages
from yiemagent_nb.core.errors import (
    AuthenticationError,
    BackendError,
    BackendNotFoundError,
    InvalidParametersError,
    StreamInterruptedError,
)
from yiemagent_nb.core.models import LlmModel, ModelCost, ThinkingLevel
from yiemagent_nb.core.signal import AbortSignal

__all__ = ["Health", "ModelServer"]

_PATHS: Final[Mapping[Api, str]] = {"chat-completions": "/chat/completions", "responses": "/responses"}
_EVENTS_PER_BREATH = 128
"""So many events may come without a pause before others on the event loop have their turn."""
_SHOWN_MODELS = 5
_HEALTH_SECONDS = 10.0
"""A server that takes longer to list its models cannot be used just now."""
_OPTIONS_OF_REQUESTS = ("temperature", "top_p", "seed", "stop", "max_tokens", "response_format", "tool_choice")


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a server can be used, in a plain sentence, and what it serves."""

    ok: bool
    message: str
    models: tuple[LlmModel, ...] = ()


@dataclass(frozen=True, slots=True)
class _Question:
    """What one call asks."""

    messages: OpenAIMessages
    tools: Sequence[Mapping[str, Any]] | None
    model: LlmModel | str | None
    thinking_level: ThinkingLevel
    signal: AbortSignal | None
    options: Mapping[str, Any] = field(repr=False)


class _Request(NamedTuple):
    """A request as it is sent, and what is known of its answer beforehand."""

    plan: RequestPlan
    body: bytes
    extras: dict[str, Any]


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
        address = _normalised(base_url)
        self.base_url: Final = without_login(address)
        self.stream = options.get("stream", True)
        self._habits = habits
        self._api: Api | None = None if api == "auto" else api
        key = options.get("api_key")
        self._key = SecretStr(key) if isinstance(key, str) else key
        self._key_env = options.get("api_key_env") or habits.key_variable
        self._key_is_needed = options.get("api_key_env") is not None
        prices = options.get("prices")
        self._prices = None if prices is None else PriceTable.of(prices)
        self._model = None if model is None else self._described(model)
        self._ready: dict[str, LlmModel] = {}
        """Models that were made ready, by their ids."""
        self._costs: dict[str, ModelCost | None] = {}
        """What they cost."""
        self._include_usage = options.get("include_usage", True)
        self._text_tool_calls = options.get("text_tool_calls", False)
        self._options = {name: options.get(name) for name in _OPTIONS_OF_REQUESTS}
        self._extra_body = dict(options.get("extra_body") or {})
        self._chat = ChatRequest()
        self._responses = ResponsesRequest(habits.provider)
        self._sends_reasoning = True
        retries = options.get("retries")
        self._http = HttpConnection(
            address,
            headers=options.get("headers") or {},
            key=self._read_key,
            timeouts=_as_timeouts(options.get("timeout")),
            retries=RetryPolicy(retries) if isinstance(retries, int) else retries or RetryPolicy(),
            client=options.get("http_client"),
        )

    def __init_subclass__(cls) -> None:
        # Of __init__, not of the class: what is of the class is taken for its instances' calls too.
        vars(cls.__init__)["__signature__"] = spelled_out(cls.__init__)

    def __repr__(self) -> str:
        """The address and the model, never the key."""
        model = "" if self._model is None else f", {self._model.id!r}"
        return f"{type(self).__name__}({self._http.shown!r}{model})"

    @property
    def provider(self) -> str:
        """The server's kind, as it stands in messages."""
        return self._habits.provider

    @property
    def model(self) -> LlmModel | None:
        """The model that answers when the agent names none."""
        return self._model

    @property
    def connection(self) -> HttpConnection:
        """How it reaches its server."""
        return self._http

    def describe_model(self, model: str) -> LlmModel:
        """What is known of a model by its name, its price included."""
        return self._described(model)

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
            ``provider``, ``model``, ``thinking_sent`` and, where they are known, ``prices``; or,
            without streaming, a coroutine that gives the whole response with these. Closing the
            iterator ends the request.

        Raises:
            BackendError: While iterating or awaiting; its subclass says what went wrong.
        """
        if options.pop("api_key", None) is not None:
            raise InvalidParametersError(
                "api_key is no option of a request.", f"Give it to {type(self).__name__}(…) itself, as api_key or api_key_env."
            )
        stream = bool(options.pop("stream", self.stream))
        ask = _Question(messages, tools or None, model, thinking_level, signal, options)
        return self._streamed(ask) if stream else self._whole(ask)

    async def models(self) -> list[LlmModel]:
        """The models that the server lists, with their context length where it tells.

        Raises:
            BackendError: It could not be asked.
        """
        try:
            return await self._listed(self._http)
        except BackendError as error:
            raise self._told(error, "") from None

    async def health(self) -> Health:
        """Ask the server whether it can be used, and say in a sentence what is wrong. Never raises."""
        wanted = None if self._model is None else self._model.id
        connection = self._http.at(self.base_url, _HEALTH_SECONDS)
        try:
            models = tuple(await self._listed(connection))
        except BackendError as error:
            return Health(ok=False, message=await diagnose(self._http, self._habits, self._told(error, "")))
        finally:
            await connection.aclose()
        where = self._http.shown
        if not models:
            return Health(ok=False, message=f"{where} answers, but has no model. Load one on the server first.")
        names = ", ".join(model.id for model in models[:_SHOWN_MODELS]) + (", …" if len(models) > _SHOWN_MODELS else "")
        chosen = next((model for model in models if wanted in {None, model.id}), None)
        if chosen is None:
            return Health(False, unknown_model(where, wanted or "", models), models)
        return Health(True, f"{where} is ready and serves {names}.{_state_of(chosen)}", models)

    async def _listed(self, http: HttpConnection) -> list[LlmModel]:
        return [self._priced(model) for model in await self._habits.models(http)]

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
        if not self._key_env:
            return None
        key = os.environ.get(self._key_env, "").strip()
        if not key and self._key_is_needed:
            raise AuthenticationError(
                f"There is no API key: the environment variable {self._key_env} is not set.",
                "Set it before the notebook starts, or give api_key.",
            )
        return key or None

    async def _whole(self, ask: _Question) -> Mapping[str, Any]:
        attempts = self._http.attempts()
        while True:
            request = await self._write(ask, attempts.lessons, stream=False)
            plan, extras = request.plan, request.extras
            try:
                async with await self._http.open(_PATHS[plan.api], request.body, attempts) as answer:
                    response = read_response(await answer.read(), answer.media_type, self._http.redacted)
            except BackendError as error:
                await self._ask_again(error, attempts, plan)
            else:
                return {"model": extras["model"], **response, **{key: extras[key] for key in extras if key != "model"}}

    async def _streamed(self, ask: _Question) -> AsyncGenerator[Mapping[str, Any], None]:
        attempts = self._http.attempts()
        told: dict[str, Any] | None = None
        while True:
            request = await self._write(ask, attempts.lessons, stream=True)
            plan = request.plan
            if request.extras != told:
                yield request.extras
                told = request.extras
            reader = ChatStreamReader(self._http.redacted)
            try:
                async with await self._http.open(_PATHS[plan.api], request.body, attempts) as answer:
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
                if reader.ended and isinstance(error, StreamInterruptedError):
                    return  # all was there; only the connection did not end as it should
                await self._ask_again(error, attempts, plan, shown=reader.shown)
            else:
                return

    async def _ask_again(
        self, error: BackendError, attempts: Attempts, plan: RequestPlan, *, shown: bool = False
    ) -> None:
        """Return when the question may be asked again, or raise the error where nothing is gained by it."""
        if not shown and self._has_learned(error, plan):
            attempts.lessons += 1
        elif shown or not await attempts.again(error):
            raise self._told(error, plan.model.id) from None

    def _has_learned(self, error: BackendError, plan: RequestPlan) -> bool:
        """Whether the next request is another one, since the server refused something of this one."""
        if self._include_usage and "stream_options" in error.message:
            self._include_usage = False
            return True
        if self._sends_reasoning and plan.api == "responses" and "encrypted" in error.message:
            self._sends_reasoning = False  # it was made for another account or model
            return True
        if self._habits.learn(error, plan):
            self._ready.pop(plan.model.id, None)
            return True
        return False

    def _told(self, error: BackendError, model: str) -> BackendError:
        """An error as it leaves: without keys, and with what helps at this server."""
        error.hint = self._habits.hint(error, model) or error.hint
        self._http.redact(error)
        return error

    async def _write(self, ask: _Question, lessons: int, *, stream: bool) -> _Request:
        habits = self._habits
        model = await self._ready_model(ask.model)
        thinking = habits.thinking(ask.thinking_level, model)
        thinks = thinking.sent != "off"
        has_tools = ask.tools is not None
        api = self._api or habits.api_of(model, thinks=thinks, has_tools=has_tools)
        plan = RequestPlan(model, api, self._api is not None, thinks, has_tools, lessons)
        fields: dict[str, Any] = {"model": model.id, "stream": stream}
        if stream and self._include_usage and api == "chat-completions":
            fields["stream_options"] = {"include_usage": True}
        for more in (self._options, thinking.fields, self._extra_body, ask.options):
            _lay_over(fields, more)
        self._http.redacted.add_fields(fields)
        tools, choice = ask.tools, fields.pop("tool_choice", None)
        if tools is not None and choice is not None:
            tools, fields["tool_choice"] = apply_tool_choice(tools, choice, habits.tool_choices)
        fields = habits.fields({name: value for name, value in fields.items() if value is not None}, plan)
        if api == "responses":
            body = self._responses.encode(
                ask.messages, tools, responses_fields(fields), with_reasoning=self._sends_reasoning
            )
        else:
            body = self._chat.encode(ask.messages, tools, chat_fields(fields))
        extras: dict[str, Any] = {
            "api": api,
            "provider": habits.provider,
            "model": model.id,
            "thinking_sent": thinking.sent,
        }
        if (cost := self._costs[model.id]) is not None:
            extras["prices"] = cost
        if self._text_tool_calls:
            extras["text_tool_calls"] = True
        return _Request(plan, RequestBody(body), extras)

    async def _ready_model(self, asked: LlmModel | str | None) -> LlmModel:
        model = self._described(asked) if asked is not None else self._model or await self._first_model()
        ready = self._ready.get(model.id)
        if ready is None:
            try:
                ready = self._ready[model.id] = await self._habits.prepare(model, self._http)
            except BackendError as error:
                raise self._told(error, model.id) from None
            self._costs[model.id] = self._cost_of(ready)
        return ready

    def _described(self, model: LlmModel | str) -> LlmModel:
        """A model with what its name tells; what the user says of it goes before."""
        if isinstance(model, LlmModel):
            if model.provider == self.provider:
                return model
            said = {name: getattr(model, name) for name in model.model_fields_set}
            return self._habits.describe(model.id, self.base_url).model_copy(update=said)
        return self._priced(self._habits.describe(model, self.base_url))

    def _priced(self, model: LlmModel) -> LlmModel:
        cost = self._cost_of(model)
        return model if cost is None or cost == model.cost else model.model_copy(update={"cost": cost})

    def _cost_of(self, model: LlmModel) -> ModelCost | None:
        """The prices of a model; none at all for one on this machine, None where they are unknown."""
        if self._prices is not None and (cost := self._prices.get(model.id)) is not None:
            return cost
        if model.cost != ModelCost() or is_loopback(self.base_url):
            return model.cost
        return PriceTable.shipped().get(model.id)

    async def _first_model(self) -> LlmModel:
        models = await self.models()
        if not models:
            raise BackendNotFoundError(
                f"{self._http.shown} lists no model.", "Load one on the server, or give the model's name."
            )
        self._model = models[0]
        return models[0]


def _state_of(model: LlmModel) -> str:
    """A sentence on whether a model is in memory, and with how much context; empty where nobody says."""
    context = f"{model.context_window:,} tokens of context" if model.context_window else ""
    if model.loaded is None:
        return f" {model.id} has {context}." if context else ""
    if model.loaded:
        return f" {model.id} is loaded{context and f' with {context}'}."
    return f" {model.id} is not loaded yet{context and f' (it can have {context})'}; the first message loads it."


def _lay_over(fields: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Put ``more`` over ``fields``; objects that stand in both are joined."""
    for name, value in more.items():
        old = fields.get(name)
        both = isinstance(value, Mapping) and isinstance(old, Mapping)
        fields[name] = {**cast("Mapping[str, Any]", old), **cast("Mapping[str, Any]", value)} if both else value


def _normalised(base_url: str) -> str:
    url = base_url.strip().rstrip("/")
    for path in _PATHS.values():
        url = url.removesuffix(path)
    return url if split_url(url).path else f"{url}/v1"


def _as_timeouts(timeout: float | Timeouts | None) -> Timeouts:
    if isinstance(timeout, int | float):
        return Timeouts(min(timeout, 5.0), timeout, timeout, timeout)
    return timeout or Timeouts()
