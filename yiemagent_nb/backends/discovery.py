"""What answers when nobody chose a backend.

The first that is there of: a model server on this machine, a key in the environment, ``Demo``.
Looking asks loopback ports only; no key leaves this process, and nothing is sent anywhere else,
before a person writes.

The environment:

- ``YIEMAGENT_BACKEND``: ``demo``, or the base URL of a server with OpenAI's chat completions;
  then nothing else is looked at. ``YIEMAGENT_MODEL`` names the model there, and
  ``YIEMAGENT_API_KEY`` is the key, if it needs one.
- ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``, with ``OPENAI_MODEL`` for the model.
- ``OPENROUTER_API_KEY``, with ``OPENROUTER_MODEL``.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any
from urllib.parse import urlsplit

from yiemagent_nb.backends.engine.probing import LocalServer, find_local_servers
from yiemagent_nb.backends.kinds import OPENAI, OPENROUTER, USUAL_PORTS, kind_at
from yiemagent_nb.core.backend import Calling, DescribesModels, LlmCall, OpenAIMessages, model_of, provider_of
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.models import LlmModel

__all__ = ["DEMO_TITLE", "Candidate", "DefaultBackend", "Found", "find_backend"]

DEMO_TITLE = "Demo (built-in script)"

_CHOICE = "YIEMAGENT_BACKEND"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A backend that could answer.

    Args:
        provider: The server's kind.
        label: What to show: the kind and the model.
        reason: Why it is offered, in a sentence.
        base_url: Where it is; empty for ``Demo``, which is here.
        models: The names of its models, the one that would be taken first; empty where unknown.
        key_variable: The environment variable with its key, empty where it needs none.
    """

    provider: str
    label: str
    reason: str
    base_url: str = field(default="", repr=False)
    models: tuple[str, ...] = ()
    key_variable: str = ""

    def build(self, model: str | None = None) -> LlmCall:
        """The backend itself.

        Args:
            model: Another of its models.
        """
        if not self.base_url:
            from yiemagent_nb.backends.demo import Demo  # noqa: PLC0415 - only what is chosen is loaded

            return Demo()
        from yiemagent_nb.backends.connecting import backend_for  # noqa: PLC0415

        model = model or next(iter(self.models), None)
        return backend_for(self.provider, self.base_url, model, api_key_env=self.key_variable or None)


@dataclass(frozen=True, slots=True)
class Found:
    """What was chosen, and what else is there.

    Args:
        backend: What answers.
        label: What to show of it.
        reason: Why it was chosen, in a sentence.
        alternatives: What else could answer, the best first.
        choice: The candidate that was chosen.
    """

    backend: LlmCall = field(repr=False)
    label: str
    reason: str
    alternatives: tuple[Candidate, ...] = ()
    choice: Candidate = field(kw_only=True, repr=False)


async def find_backend(
    *,
    timeout: float = 1.0,  # noqa: ASYNC109 - a deadline after which what was found counts
    ports: Sequence[int] = USUAL_PORTS,
    environment: Mapping[str, str] | None = None,
) -> Found:
    """Look what could answer, and choose the first of it.

    Args:
        timeout: Seconds that looking may take in all.
        ports: Where model servers may listen on this machine.
        environment: Where keys and choices stand. Default: the process's.

    Raises:
        InvalidParametersError: ``YIEMAGENT_BACKEND`` or ``OPENAI_BASE_URL`` has no known form.
    """
    values = os.environ if environment is None else environment
    chosen = _chosen(values)
    if chosen is not None:
        candidates = [chosen] if chosen.provider == "demo" else [chosen, _demo("It is always there.")]
    else:
        keys = _from_keys(values)
        servers = [_from_server(server) for server in await find_local_servers(ports, timeout)]
        last = (
            "It is always there." if servers or keys else "No model server answers on this machine, and no key is set."
        )
        candidates = [*servers, *keys, _demo(last)]
    first, *rest = candidates
    return Found(first.build(), first.label, first.reason, tuple(rest), choice=first)


def _demo(reason: str) -> Candidate:
    return Candidate("demo", DEMO_TITLE, reason)


def _from_server(server: LocalServer) -> Candidate:
    return Candidate(
        server.provider,
        f"{server.name}: {_shown(server.models[0])}",
        f"{server.name} answers on port {server.port} of this machine.",
        server.base_url,
        server.models,
    )


def _shown(model: str) -> str:
    """A model's name; of a file's path, which llama.cpp takes for one, the file's name."""
    is_path = model.endswith(".gguf") or model.startswith("/")
    return re.split(r"[/\\]", model)[-1] if is_path else model


def _chosen(values: Mapping[str, str]) -> Candidate | None:
    """What ``YIEMAGENT_BACKEND`` says."""
    value = values.get(_CHOICE, "").strip()
    if not value:
        return None
    if value.lower() == "demo":
        return _demo(f"{_CHOICE} says so.")
    model = values.get("YIEMAGENT_MODEL", "").strip()
    key = "YIEMAGENT_API_KEY" if values.get("YIEMAGENT_API_KEY") else ""
    return _remote("openai-compatible", _CHOICE, value, model, key)


def _from_keys(values: Mapping[str, str]) -> list[Candidate]:
    found: list[Candidate] = []
    key = OPENAI.key_variable if values.get(OPENAI.key_variable) else ""
    base_url = values.get("OPENAI_BASE_URL", "").strip()
    model = values.get("OPENAI_MODEL", "").strip()
    if base_url:
        found.append(_remote("openai-compatible", "OPENAI_BASE_URL", base_url, model, key))
    elif key:
        found.append(_remote(OPENAI.provider, key, OPENAI.base_url, model or OPENAI.model, key))
    key = OPENROUTER.key_variable
    if values.get(key):
        model = values.get("OPENROUTER_MODEL", "").strip() or OPENROUTER.model
        found.append(_remote(OPENROUTER.provider, key, OPENROUTER.base_url, model, key))
    return found


def _remote(provider: str, variable: str, base_url: str, model: str, key: str) -> Candidate:
    """A candidate at an address; the address may hold a secret, so only its host is shown."""
    try:
        parts = urlsplit(base_url)
        host = parts.hostname if parts.scheme in {"http", "https"} else None
    except ValueError:
        host = None
    if not host:
        also = "'demo' or " if variable == _CHOICE else ""
        raise InvalidParametersError(
            f"The environment variable {variable} holds no web address.",
            f"Expected {also}a base URL such as http://localhost:8000/v1; set it anew, or unset it.",
        )
    label = f"{host}: {model}" if model else host
    reason = f"The environment variable {variable} is set."
    kind = kind_at(host)
    return Candidate(
        provider if kind is None else kind.provider, label, reason, base_url, (model,) if model else (), key
    )


class DefaultBackend:
    """A backend that decides at its first request which one it is.

    ``Agent()`` makes one. It may be decided earlier, so that a header can show what answers:
    ``await backend.resolve()``.

    Args:
        find: Looks and chooses. Default: ``find_backend``.

    Example::

        backend = DefaultBackend()
        found = await backend.resolve()
        print(found.label, "-", found.reason)
    """

    def __init__(self, find: Callable[[], Any] = find_backend) -> None:
        self._find = find
        self._found: Found | None = None
        self._listeners: list[Callable[[Found], object]] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        """What was chosen."""
        return f"DefaultBackend({self.label})"

    @property
    def found(self) -> Found | None:
        """What was chosen; None as long as nobody asked."""
        return self._found

    @property
    def label(self) -> str:
        """What to show: of the chosen one, or that it is still open."""
        return "chosen at the first message" if self._found is None else self._found.label

    @property
    def provider(self) -> str:
        """The chosen backend's provider; ``default`` before."""
        return "default" if self._found is None else provider_of(self._found.backend) or "default"

    @property
    def model(self) -> LlmModel | None:
        """The chosen backend's model; None before."""
        return None if self._found is None else model_of(self._found.backend)

    def describe_model(self, model: str) -> LlmModel:
        """What the chosen backend knows of a model; before, its name alone."""
        backend = None if self._found is None else self._found.backend
        return backend.describe_model(model) if isinstance(backend, DescribesModels) else LlmModel(id=model)

    def on_resolved(self, listener: Callable[[Found], object]) -> Callable[[], None]:
        """Call ``listener`` with what is chosen, at once if it is; returns what takes it back.

        It runs in the thread in which the choice was made, and must not raise.
        """
        with self._lock:
            found = self._found
            if found is None:
                self._listeners.append(listener)
        if found is not None:
            listener(found)

        def forget() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return forget

    async def look(self) -> Found:
        """Look what is there now, and leave the choice as it is.

        Raises:
            InvalidParametersError: The environment says something that is not understood.
        """
        return await self._find()

    async def resolve(self) -> Found:
        """Choose, unless it was done. Requests at the same time all get the same backend.

        Raises:
            InvalidParametersError: The environment says something that is not understood.
        """
        if self._found is not None:
            return self._found
        found: Found = await self._find()
        with self._lock:
            if self._found is not None:  # another thread or task was faster
                return self._found
            self._found = found
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener(found)
        return found

    async def __call__(self, messages: OpenAIMessages, **options: Any) -> Any:
        """Let the chosen backend answer."""
        found = await self.resolve()
        answer = found.backend(messages, **Calling.of(found.backend).accepted(options))
        return await answer if isawaitable(answer) else answer

    async def aclose(self) -> None:
        """Close the chosen backend's connections, if it has any."""
        close = getattr(None if self._found is None else self._found.backend, "aclose", None)
        if close is not None:
            await close()
