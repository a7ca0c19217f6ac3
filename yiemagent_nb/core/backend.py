"""What a backend is: any callable that takes OpenAI-form messages and answers.

A backend is called as ``llm_call(messages, *, tools, model, thinking_level, signal, **options)``
and is given those of the keywords that it declares, so ``def llm_call(messages): …`` works. It
may be sync (it then runs in a worker thread) or async. Where a run wants structured output, there
is also ``response_format``, in OpenAI's chat form: ``{"type": "json_schema", "json_schema": {"name":
…, "schema": …}}``; a backend that does not declare it is told in the system prompt instead. It gives
back

- a whole response: a string or any mapping that ``extract`` reads, or
- an iterator, async or not, of pieces that ``Assembler.feed`` reads: strings (text), OpenAI
  chunks, or mappings with ``content``, ``reasoning`` or ``tool_calls``.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, Self, cast, runtime_checkable

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.models import LlmModel

__all__ = [
    "Calling",
    "DescribedBackend",
    "DescribesModels",
    "LlmCall",
    "LlmResponse",
    "OpenAIMessages",
    "attribute_of",
    "default_backend",
    "describe_backend",
    "is_described",
    "model_of",
    "provider_of",
    "set_default_backend",
]

_log = logging.getLogger(__name__)

OpenAIMessages = Sequence[Mapping[str, Any]]
"""Messages in OpenAI's chat form, the system prompt first. Read-only: copy what you change."""

LlmResponse = str | Mapping[str, Any] | AsyncIterable[Any]

LlmCall = Callable[..., LlmResponse | Awaitable[LlmResponse] | Any]


@runtime_checkable
class DescribedBackend(Protocol):
    """A backend that says what it is.

    Its call returns at once, with an awaitable or an async iterator, and what it awaits ends soon
    after it is cancelled; other callables are watched, and left behind where they do not.
    """

    @property
    def provider(self) -> str:
        """The server's kind, as it stands in messages: ``openai``, ``demo``, …."""
        ...

    @property
    def model(self) -> LlmModel | None:
        """The model that answers when the agent names none."""
        ...


@runtime_checkable
class DescribesModels(Protocol):
    """A backend that knows something of models by their names."""

    def describe_model(self, model: str) -> LlmModel:
        """What is known of a model: whether it can think, its context, its price."""
        ...


_default_factories: list[Callable[[], LlmCall]] = []


def set_default_backend(factory: Callable[[], LlmCall]) -> None:
    """Say what answers when an agent is built without a backend. The package does so at import."""
    _default_factories[:] = [factory]


def default_backend() -> LlmCall:
    """What answers when an agent is built without a backend.

    Raises:
        InvalidParametersError: Nothing was set.
    """
    if not _default_factories:
        raise InvalidParametersError("An agent needs a backend.", "Pass llm_call, a function (messages) -> answer.")
    return _default_factories[0]()


def describe_backend(llm_call: LlmCall) -> str:
    """A short name to show: the provider and the model, or the function's name."""
    return _label(llm_call, described=is_described(llm_call))


def _label(llm_call: LlmCall, *, described: bool) -> str:
    if described:
        provider, model = _provider(llm_call), _model(llm_call)
        return f"{provider}: {model.name or model.id}" if model is not None else provider
    name = attribute_of(llm_call, "__name__")
    return name if isinstance(name, str) else type(llm_call).__name__


def attribute_of(thing: object, name: str) -> object:
    """An attribute of an object of a user's own; None where it has none, or fails to give it, which is logged once."""
    try:
        return getattr(thing, name, None)
    except Exception:
        _log_failing(type(thing), name)
        return None


@lru_cache(maxsize=100)
def _log_failing(kind: type, name: str) -> None:
    _log.warning("%s.%s cannot be read; the backend is used without it", kind.__name__, name, exc_info=True)


def is_described(backend: object) -> bool:
    """Whether a backend says what it is."""
    try:
        return isinstance(backend, DescribedBackend)
    except Exception:  # Python 3.11 reads the attributes to tell
        _log_failing(type(backend), "provider or model")
        return False


def provider_of(backend: object) -> str:
    """A backend's kind, as it stands in messages; empty where it does not say."""
    return _provider(backend) if is_described(backend) else ""


def _provider(backend: object) -> str:
    provider = attribute_of(backend, "provider")
    return provider if isinstance(provider, str) else ""


def model_of(backend: object) -> LlmModel | None:
    """The model that answers when nobody names one; None where the backend does not say. A name will do."""
    return _model(backend) if is_described(backend) else None


def _model(backend: object) -> LlmModel | None:
    model = attribute_of(backend, "model")
    if isinstance(model, str) and model:
        return LlmModel(id=model)
    return model if isinstance(model, LlmModel) else None


@dataclass(frozen=True, slots=True)
class Calling:
    """How a backend is called, found out once.

    Args:
        llm_call: The backend.
        described: It says what it is, so its calls neither block nor ignore their cancellation.
        on_loop: Call it on the event loop; otherwise, since it may block, in a thread.
        keywords: Those that it declares; None where it takes all.
    """

    llm_call: LlmCall
    described: bool
    on_loop: bool
    keywords: frozenset[str] | None

    @classmethod
    def of(cls, llm_call: LlmCall) -> Self:
        """Look at a backend: one that is async or says what it is does not block."""
        described = is_described(llm_call)
        function = llm_call if inspect.isroutine(llm_call) else getattr(llm_call, "__call__", llm_call)  # noqa: B004
        is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        return cls(llm_call, described, described or is_async, _declared_keywords(cast("LlmCall", llm_call)))

    def takes(self, keyword: str) -> bool:
        """Whether the backend declares a keyword, or takes all."""
        return self.keywords is None or keyword in self.keywords

    @property
    def provider(self) -> str:
        """Whom requests go to, as it is known by now; empty where the backend does not say."""
        return _provider(self.llm_call) if self.described else ""

    @property
    def label(self) -> str:
        """A short name to show, as ``describe_backend`` gives it."""
        return _label(self.llm_call, described=self.described)

    def model(self, chosen: LlmModel | None) -> LlmModel | None:
        """The model that answers: the chosen one, else the backend's own, with what is known of it by now."""
        if chosen is not None:
            return chosen
        return _model(self.llm_call) if self.described else None

    def accepted(self, offered: Mapping[str, Any]) -> Mapping[str, Any]:
        """Those of ``offered`` that the backend takes."""
        if self.keywords is None:
            return offered
        return {name: value for name, value in offered.items() if name in self.keywords}


def _declared_keywords(function: Callable[..., Any]) -> frozenset[str] | None:
    """The parameters after the first, which takes the messages; None for ``**options``."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        return frozenset()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(p.name for p in parameters[1:] if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD))
