"""A backend that a person adds in the page: its address, and where its key comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from pydantic import SecretStr

from yiemagent_nb.backends.connecting import connect
from yiemagent_nb.backends.engine.model_server import ModelServer
from yiemagent_nb.backends.http.urls import split_url
from yiemagent_nb.backends.state import BackendState, ask_state
from yiemagent_nb.core.errors import BackendError, InvalidParametersError
from yiemagent_nb.core.redaction import checked_key
from yiemagent_nb.widgets.apps import refuse_in_apps
from yiemagent_nb.widgets.protocol import AddBackend

__all__ = ["connect_added", "read_key"]

LONGEST_KEY = 10_000
SHORTEST_KEY = 8


def read_key(buffers: Sequence[Any]) -> SecretStr | None:
    """The key that came beside a message; None where none came.

    Raises:
        AuthenticationError: It can be no key; the error does not repeat it.
        InvalidParametersError: There is more than one, it is too long, or no buffer.
    """
    if not buffers:
        return None
    try:
        raw = memoryview(buffers[0]).tobytes()
    except TypeError as error:
        raise InvalidParametersError("The page sent a key that is no buffer.", "Reload the page.") from error
    if len(buffers) > 1 or len(raw) > LONGEST_KEY:
        raise InvalidParametersError("A server takes one key, of at most 10,000 characters.", "Copy the key alone.")
    key = checked_key(raw.decode("utf-8", "replace"))
    return key if key.get_secret_value() else None


async def connect_added(message: AddBackend, key: SecretStr | None) -> tuple[ModelServer, BackendState]:
    """The backend for the server that a person named, and how it is.

    Raises:
        InvalidParametersError: The address is none, or nothing may be added here.
        BackendError: The server cannot be used; the error says why in a sentence.
    """
    refuse_in_apps("Servers cannot be added")
    if "@" in split_url(message.base_url).netloc:
        raise InvalidParametersError(
            "The address holds a name or a password.",
            "Put a key into its own field; for a login, build the backend in code.",
        )
    model = message.model.strip() or None
    variable = message.key_env.strip() or None
    if key is not None:
        backend = await connect(message.base_url, model, api_key=key)
    else:
        backend = await connect(message.base_url, model, api_key_env=variable)
    state = await ask_state(backend)
    if state.state != "ok":
        raise BackendError(_without_path(state.message, backend), _without_path(state.hint, backend))
    return backend, state


def _without_path(words: str, backend: ModelServer) -> str:
    """What is said of a server, without what may be a key in the path of its address."""
    parts = split_url(backend.base_url)
    words = words.replace(backend.base_url, f"{parts.scheme}://{parts.netloc}")
    for segment in parts.path.split("/"):
        if len(segment) >= SHORTEST_KEY:
            for form in {segment, unquote(segment)}:
                words = words.replace(form, "…")
    return words
