"""What can be said of any backend: its title, whether it is on this machine, how it is, its models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable, iscoroutinefunction
from itertools import islice
from typing import Any, Literal, cast

from yiemagent_nb.backends.discovery import DEMO_TITLE, Candidate, DefaultBackend
from yiemagent_nb.backends.http.urls import origin_of, split_url, without_login
from yiemagent_nb.backends.kinds import KINDS
from yiemagent_nb.core.backend import LlmCall, attribute_of, describe_backend, provider_of
from yiemagent_nb.core.concurrency import Outcome, run_abortable, run_in_thread
from yiemagent_nb.core.errors import InvalidParametersError, YiemAgentError, describe_error
from yiemagent_nb.core.models import LlmModel
from yiemagent_nb.core.proxies import is_loopback
from yiemagent_nb.core.signal import AbortSignal

__all__ = [
    "LONGEST_ASKING",
    "BackendState",
    "State",
    "address_of",
    "ask_state",
    "is_candidate",
    "is_on_this_machine",
    "model_name",
    "title_of_backend",
    "unwrapped",
]

State = Literal["unknown", "checking", "ok", "bad"]

LONGEST_ASKING = 20.0
"""Seconds after which a backend that says nothing of itself is given up."""
MOST_MODELS = 1000
LONGEST_NAME = 300


@dataclass(frozen=True, slots=True)
class BackendState:
    """How a backend is.

    Args:
        state: ``unknown`` where it was not asked, or cannot be.
        message: What is the matter, in a sentence.
        hint: What to do next; empty where the message says it.
        models: The names of its models, as far as it lists them.
        windows: How many tokens of context they take, by name, where it tells.
    """

    state: State = "unknown"
    message: str = ""
    hint: str = ""
    models: tuple[str, ...] = ()
    windows: Mapping[str, int] = field(default_factory=dict[str, int])


def unwrapped(backend: LlmCall) -> LlmCall:
    """What answers: of a ``DefaultBackend`` that has chosen, what it chose."""
    return backend.found.backend if isinstance(backend, DefaultBackend) and backend.found is not None else backend


def title_of_backend(backend: LlmCall) -> str:
    """What to call a backend: its kind, and where it is unless that is its usual place; without its model."""
    backend = unwrapped(backend)
    provider = provider_of(backend)
    if isinstance(backend, DefaultBackend) or not provider:
        return describe_backend(backend)
    kind = next((kind for kind in KINDS if kind.provider == provider), None)
    address = address_of(backend)
    if kind is None:
        return {"demo": DEMO_TITLE, "local": "Local"}.get(provider, provider)
    if not address or origin_of(address) == origin_of(kind.base_url) or (kind.ports and _is_usual(address, kind.ports)):
        return kind.title
    return f"{kind.title} at {split_url(address).netloc}"


def is_on_this_machine(backend: LlmCall) -> bool:
    """Whether asking a backend sends nothing over the network, and starts nothing."""
    backend = unwrapped(backend)
    address = address_of(backend)
    return is_loopback(address) if address else provider_of(backend) == "demo"


def is_candidate(backend: LlmCall, candidate: Candidate) -> bool:
    """Whether a backend is what was found: of its kind, and at its address."""
    backend = unwrapped(backend)
    return provider_of(backend) == candidate.provider and address_of(backend) == candidate.base_url.rstrip("/")


async def ask_state(backend: LlmCall, seconds: float = LONGEST_ASKING) -> BackendState:
    """Ask a backend how it is and what models it has. Never raises.

    Any object with ``health`` or ``models``, async or not, can be asked.

    Args:
        backend: The backend.
        seconds: How long it may take. What goes on for longer is left behind.
    """
    backend = unwrapped(backend)
    try:
        return await run_abortable(_ask(backend), AbortSignal(), seconds)
    except TimeoutError:
        return BackendState("bad", f"{title_of_backend(backend)} did not say within {seconds:g} seconds how it is.")
    except Outcome as outcome:  # it raised what would end the kernel
        return _cannot_be_asked(backend, outcome.args[0])


def _cannot_be_asked(backend: LlmCall, error: BaseException) -> BackendState:
    return BackendState("bad", f"{title_of_backend(backend)} cannot be asked: {describe_error(error)}")


async def _ask(backend: LlmCall) -> BackendState:
    try:
        return await _told_by(backend)
    except YiemAgentError as error:
        return BackendState("bad", error.message, error.hint)
    except Outcome:
        raise
    except Exception as error:  # a backend of the user's own may raise anything
        return _cannot_be_asked(backend, error)


async def _told_by(backend: LlmCall) -> BackendState:
    title = title_of_backend(backend)
    if callable(health := attribute_of(backend, "health")):
        told = await _answer(health)
        state: State = "ok" if getattr(told, "ok", False) else "bad"
        listed = _listed(getattr(told, "models", ()))
        return BackendState(state, str(getattr(told, "message", "")), "", names_of(listed), _windows_of(listed))
    if callable(models := attribute_of(backend, "models")):
        listed = _listed(await _answer(models))
        names = names_of(listed)
        if not names:
            return BackendState("bad", f"{title} lists no models.")
        return BackendState(
            "ok", f"{title} has {len(names)} model{'' if len(names) == 1 else 's'}.", "", names, _windows_of(listed)
        )
    if provider_of(backend) == "demo":
        return BackendState("ok", "The demo runs here, offline. It is a script, and no model.")
    return BackendState("unknown", f"Whether {title} works shows when it answers: it cannot be asked how it is.")


def model_name(backend: LlmCall, model: LlmModel | None, listed: Sequence[str]) -> str:
    """The name of the model that answers: the one of an agent's state, else the first that a server lists."""
    if model is not None:
        return model.id
    return listed[0] if listed and provider_of(unwrapped(backend)) else ""


def names_of(models: Iterable[object]) -> tuple[str, ...]:
    """The names in a list of models, those left out that cannot be shown."""
    ids = (model.id if isinstance(model, LlmModel) else model for model in models)
    names = (name for name in ids if isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable())
    return tuple(dict.fromkeys(names))[:MOST_MODELS]


def _listed(models: object) -> list[object]:
    """A list of what may be listed only once, or without end."""
    if not isinstance(models, Iterable) or isinstance(models, str):
        return []
    return [*islice(cast("Iterable[object]", models), 10 * MOST_MODELS)]


def _windows_of(models: Iterable[object]) -> dict[str, int]:
    return {model.id: model.context_window for model in models if isinstance(model, LlmModel) and model.context_window}


async def _answer(question: Callable[[], Any]) -> Any:
    """What a function of a backend answers; one that may block runs in a thread."""
    answer = question() if iscoroutinefunction(question) else await run_in_thread(question)
    return await answer if isawaitable(answer) else answer


def address_of(backend: LlmCall) -> str:
    """A backend's web address; empty where it has none, as far as one can tell."""
    address = attribute_of(backend, "base_url")
    try:
        return without_login(address).rstrip("/") if isinstance(address, str) and address else ""
    except InvalidParametersError:
        return ""


def _is_usual(address: str, ports: Sequence[int]) -> bool:
    return is_loopback(address) and split_url(address).port in ports
