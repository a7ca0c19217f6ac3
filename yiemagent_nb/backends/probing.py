"""Probing: which model servers run on this machine.

Only loopback addresses are asked, only with GET, and nothing of a conversation is sent. What a
port answers is untrusted: a server counts only if it lists a model in OpenAI's form.

Sources: the servers' own API references: LM Studio "List your models" (``/api/v1/models``),
llama.cpp server "GET /props", Ollama "Version", vLLM "OpenAI-compatible server" (``/version``).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from yiemagent_nb.core.errors import BackendError

if TYPE_CHECKING:
    from yiemagent_nb.backends.http import HttpConnection

__all__ = ["USUAL_PORTS", "LocalServer", "find_local_servers", "probe"]

USUAL_PORTS: Final = (1234, 8000, 8080, 11434)
"""LM Studio, vLLM, llama.cpp, Ollama; the order in which they are preferred."""

_HOST = "127.0.0.1"
_MAX_ANSWER = 4_000_000
"""Bytes of an answer that are read; a longer one is no list of models."""
_MAX_MODELS = 100
_MAX_NAME = 200
_NO_CHAT = ("embed", "rerank", "whisper", "tts-")
_PATHS = ("/v1/models", "/api/v1/models", "/props", "/api/version", "/version")

_NAMES = {
    "lmstudio": "LM Studio",
    "llamacpp": "llama.cpp",
    "ollama": "Ollama",
    "vllm": "vLLM",
    "openai-compatible": "A model server",
}


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A model server on this machine.

    ``provider`` is its kind, or ``openai-compatible`` where the kind is unknown; ``models`` are the
    names of those that can chat, what is loaded first.
    """

    provider: str
    port: int
    models: tuple[str, ...]

    @property
    def name(self) -> str:
        """What people call its kind."""
        return _NAMES[self.provider]

    @property
    def base_url(self) -> str:
        """Where it speaks OpenAI's form."""
        return f"http://{_HOST}:{self.port}/v1"


async def find_local_servers(ports: Sequence[int] = USUAL_PORTS, patience: float = 1.0) -> list[LocalServer]:
    """The model servers at these ports, in the order of the ports.

    Args:
        ports: Where to look.
        patience: Seconds for all of it; who has not answered by then is not there.
    """
    end = time.monotonic() + patience
    tasks = [asyncio.ensure_future(probe(port, patience)) for port in dict.fromkeys(ports)]
    if not tasks:
        return []
    try:
        await asyncio.wait(tasks, timeout=end - time.monotonic())
    finally:
        for task in tasks:
            task.cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
    return [answer for answer in answers if isinstance(answer, LocalServer)]


async def probe(port: int, patience: float = 1.0) -> LocalServer | None:
    """The model server at a port of this machine; None where there is none."""
    if not await _is_open(port):
        return None
    connection = await asyncio.to_thread(_connect, port, patience)
    try:
        answers = await asyncio.gather(*(_get(connection, path) for path in _PATHS))
    finally:
        await connection.aclose()
    served, *rest = answers
    native, props, ollama, vllm = rest
    names = _chat_models(_entries(served, "data"), "id")
    if not names:
        return None
    provider = "openai-compatible"
    if loaded := _entries(native, "models"):
        provider, names = "lmstudio", _loaded_first(names, loaded)
    elif {"default_generation_settings", "total_slots", "model_path"}.intersection(props):
        provider = "llamacpp"
    elif isinstance(ollama.get("version"), str):
        provider = "ollama"
    elif isinstance(vllm.get("version"), str):
        provider = "vllm"
    return LocalServer(provider, port, tuple(names))


async def _is_open(port: int) -> bool:
    """Whether anything listens, which costs far less to see than a request."""
    try:
        _, writer = await asyncio.open_connection(_HOST, port)
    except OSError:
        return False
    writer.close()
    return True


def _connect(port: int, patience: float) -> HttpConnection:
    # The HTTP library takes long to load, and is needed only where something listens.
    from yiemagent_nb.backends.http import HttpConnection, Timeouts  # noqa: PLC0415
    from yiemagent_nb.backends.retry import RetryPolicy  # noqa: PLC0415

    timeouts = Timeouts(connect=patience, first_byte=patience, between_bytes=patience, write=patience)
    return HttpConnection(f"http://{_HOST}:{port}", headers={}, timeouts=timeouts, retries=RetryPolicy(0))


async def _get(connection: HttpConnection, path: str) -> Mapping[str, Any]:
    """A JSON object at a path; empty for anything else, as that is what every other server answers."""
    try:
        async with await connection.open(path, None, connection.attempts()) as answer:
            body = await answer.read(_MAX_ANSWER)
        value: object = json.loads(body)
    except (BackendError, ValueError, RecursionError):
        return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _entries(answer: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    listed = answer.get(key)
    if not isinstance(listed, list):
        return []
    items = cast("list[object]", listed)[:_MAX_MODELS]
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, dict)]


def _chat_models(entries: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    names = [name for entry in entries if isinstance(name := entry.get(key), str)]
    fitting = [name for name in names if 0 < len(name) <= _MAX_NAME and name.isprintable()]
    return [name for name in fitting if not any(word in name.lower() for word in _NO_CHAT)]


def _loaded_first(names: Sequence[str], entries: Sequence[Mapping[str, Any]]) -> list[str]:
    loaded = {str(entry.get("key")) for entry in entries if entry.get("loaded_instances")}
    return sorted(names, key=lambda name: name not in loaded)
