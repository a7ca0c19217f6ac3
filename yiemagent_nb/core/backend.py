"""What a backend is: any callable that takes OpenAI-form messages and answers.

A backend is called as ``llm_call(messages, *, tools, model, thinking_level, signal, **options)``
and is given those of the keywords that it declares, so ``def llm_call(messages): …`` works. It
may be sync (it then runs in a worker thread) or async, and gives back

- a whole response: a string or any mapping that ``extract`` reads, or
- an iterator, async or not, of pieces that ``Assembler.feed`` reads: strings (text), OpenAI
  chunks, or mappings with ``content``, ``reasoning`` or ``tool_calls``.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.models import LlmModel

__all__ = [
    "DescribedBackend",
    "LlmCall",
    "LlmResponse",
    "OpenAIMessages",
    "accepted_keywords",
    "default_backend",
    "describe_backend",
    "set_default_backend",
]

OpenAIMessages = Sequence[Mapping[str, Any]]
"""Messages in OpenAI's chat form, the system prompt first. Read-only: copy what you change."""

LlmResponse = str | Mapping[str, Any] | AsyncIterable[Any]

LlmCall = Callable[..., LlmResponse | Awaitable[LlmResponse] | Any]


@runtime_checkable
class DescribedBackend(Protocol):
    """A backend that says what it is."""

    @property
    def provider(self) -> str:
        """The server's kind, as it stands in messages: ``openai``, ``demo``, …."""
        ...

    @property
    def model(self) -> LlmModel | None:
        """The model that answers when the agent names none."""
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
    if isinstance(llm_call, DescribedBackend):
        model = llm_call.model
        return f"{llm_call.provider}: {model.name or model.id}" if model is not None else llm_call.provider
    name: str = getattr(llm_call, "__name__", type(llm_call).__name__)
    return name


def accepted_keywords(function: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Those of ``offered`` that ``function`` declares; all where it takes ``**options``.

    The first parameter is left out: it takes the messages.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        return {}
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return dict(offered)
    named = {p.name for p in parameters[1:] if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    return {name: value for name, value in offered.items() if name in named}
