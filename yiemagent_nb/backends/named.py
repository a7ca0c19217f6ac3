"""Backends by a short name, as a person types it: ``ollama``, ``openai``, ``demo``, or a server's address."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Unpack

from yiemagent_nb.backends.engine.probing import find_local_servers
from yiemagent_nb.backends.kinds import KINDS, OPENAI, Kind
from yiemagent_nb.core.backend import LlmCall
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.reading.server_errors import quote

if TYPE_CHECKING:
    from yiemagent_nb.backends.engine.options import ServerOptions

__all__ = ["NAMES", "is_address", "kind_named", "name_of_kind", "named_backend"]

_SPOKEN = {"lmstudio": "lm_studio"}
"""What people type, where it is not the kind's own name."""

NAMES: Final = (*(_SPOKEN.get(kind.provider, kind.provider) for kind in KINDS), "demo")
"""The names, beside addresses."""

_ADDRESS = re.compile(r"https?://", re.IGNORECASE)


def is_address(name: str) -> bool:
    """Whether a name is a web address."""
    return _ADDRESS.match(name) is not None


def name_of_kind(provider: str) -> str:
    """The name to type for a kind of server; empty where it has none."""
    return _SPOKEN.get(provider, provider) if provider == "demo" or kind_named(provider) is not None else ""


def kind_named(name: str) -> Kind | None:
    """The kind of server that a name means, with or without ``_`` and ``-`` in it."""
    plain = re.sub(r"[_\-. ]", "", name).lower()
    return next((kind for kind in KINDS if kind.provider == plain), None)


async def named_backend(name: str, model: str | None = None, **options: Unpack[ServerOptions]) -> LlmCall:
    """The backend that a name or an address means.

    Of a kind of server that runs on people's own machines, this machine's usual ports are looked at.

    Args:
        name: One of ``NAMES``, or a server's address.
        model: The model that answers; None takes the usual one, or the server's first.
        **options: As for ``connect``.

    Raises:
        InvalidParametersError: No backend is called so, or an option does not fit.
    """
    # Loaded with the first backend, not with the magics: they bring the HTTP library along.
    from yiemagent_nb.backends.connecting import backend_for, connect  # noqa: PLC0415
    from yiemagent_nb.backends.demo import Demo  # noqa: PLC0415
    from yiemagent_nb.backends.openai import OpenAI  # noqa: PLC0415

    if is_address(name):
        return await connect(name, model, **options)
    if name.lower() == "demo":
        if model is not None or options:
            raise InvalidParametersError("The demo is a script: it takes no model, no key and no options.")
        return Demo()
    kind = kind_named(name)
    if kind is None:
        raise InvalidParametersError(
            f"No backend is called {quote(name, 50)!r}.", f"There are {', '.join(NAMES)}, or give a base URL."
        )
    if kind is OPENAI:
        return OpenAI(model or OPENAI.model, **options)
    servers = await find_local_servers(kind.ports) if kind.ports else []
    found = next((server.base_url for server in servers if server.provider == kind.provider), kind.base_url)
    return backend_for(kind.provider, found, model or kind.model or None, **options)
