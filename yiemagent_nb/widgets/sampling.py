"""Sampling parameters as the header shows them: those that the backend takes, and why others are not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from yiemagent_nb.backends.state import title_of_backend, unwrapped
from yiemagent_nb.core.backend import Calling, LlmCall, provider_of
from yiemagent_nb.core.errors import InvalidParametersError

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["SAMPLING", "sampling_form", "set_sampling"]

SAMPLING = ("temperature", "top_p", "max_tokens", "seed")
"""What can be set, by its name in requests."""

_SCRIPTS = frozenset({"demo", "scripted"})
_WHOLE = frozenset({"max_tokens", "seed"})


def sampling_form(agent: Agent) -> dict[str, Any]:
    """What the page shows: ``options`` by name, None where the server decides, and an ``options_note``."""
    backend = unwrapped(agent.llm_call)
    names = _taken(backend)
    given = agent.options
    options = {name: given.get(name) if _is_number(given.get(name)) else None for name in names}
    return {"options": options, "options_note": _note(agent, backend, names)}


def set_sampling(agent: Agent, changes: Mapping[str, float | None]) -> None:
    """Change sampling parameters from the next turn on; None takes one away.

    Raises:
        InvalidParametersError: One is unknown or out of range; nothing was changed.
    """
    from yiemagent_nb.backends.engine.options import checked  # noqa: PLC0415 - loads the HTTP library

    backend = unwrapped(agent.llm_call)
    unknown = changes.keys() - set(_taken(backend))
    if unknown:
        raise InvalidParametersError(f"{title_of_backend(backend)} takes no {', '.join(sorted(unknown))}.")
    wanted = {name: _as_given(name, value) for name, value in changes.items() if value is not None}
    checked(wanted, type(backend))
    kept = {name: value for name, value in agent.options.items() if name not in changes}
    agent.set_options({**kept, **wanted})


def _taken(backend: LlmCall) -> tuple[str, ...]:
    """Those that a backend does something with."""
    if provider_of(backend) in _SCRIPTS:
        return ()
    calling = Calling.of(backend)
    return tuple(name for name in SAMPLING if calling.takes(name))


def _note(agent: Agent, backend: LlmCall, names: tuple[str, ...]) -> str:
    title = title_of_backend(backend)
    if provider_of(backend) in _SCRIPTS:
        return f"{title} takes no sampling parameters: nothing in it is left to chance."
    if not names:
        return f"{title} takes none: it declares no such keywords."
    if len(names) < len(SAMPLING):
        missing = [name for name in SAMPLING if name not in names]
        return f"{title} takes no {' and no '.join(missing)}."
    model = agent.state.model
    if provider_of(backend) == "openai" and model is not None and model.reasoning:
        name = model.name or model.id
        return f"{name} takes no seed, and no temperature and no top_p while it thinks: these are then left out."
    return ""


def _as_given(name: str, value: float) -> float | int:
    """A number as a person meant it: the page's numbers are all floats."""
    return int(value) if name in _WHOLE and value.is_integer() else value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
