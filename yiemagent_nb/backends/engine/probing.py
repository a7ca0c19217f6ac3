"""Probing: which model servers run on this machine, and what kind of server is at an address.

Only GET is used, and nothing of a conversation is sent. What a server answers is untrusted: on this
machine it counts only if it lists a model in OpenAI's form, and its kind only decides which habits
are taken for granted.

Sources: the servers' own API references: LM Studio "List your models" (``/api/v1/models``),
llama.cpp server "GET /props", Ollama "Version", vLLM "OpenAI-compatible server" (``/version``),
SGLang ``/model_info``; and the ``owned_by`` that vLLM, SGLang and llama.cpp write into their lists.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from yiemagent_nb.backends.engine.model_list import can_chat
from yiemagent_nb.backends.kinds import USUAL_PORTS, title_of
from yiemagent_nb.core.errors import BackendError

if TYPE_CHECKING:
    from yiemagent_nb.backends.http.connection import HttpConnection

__all__ = ["LocalServer", "find_local_servers", "probe", "recognise"]

_HOST = "127.0.0.1"
_MAX_ANSWER = 4_000_000
"""Bytes of an answer that are read; a longer one is no list of models."""
_MAX_MODELS = 100
_MAX_NAME = 200
_API_PATHS = ("/api/v1", "/v1")
"""How base URLs end; what tells a server's kind stands beside these."""

_PATHS = ("/v1/models", "/api/v1/models", "/props", "/model_info", "/api/version", "/version")


class _Answers(NamedTuple):
    """What a server says at each of the paths; empty where it says nothing."""

    served: Mapping[str, Any]
    lmstudio: Mapping[str, Any]
    llamacpp: Mapping[str, Any]
    sglang: Mapping[str, Any]
    ollama: Mapping[str, Any]
    vllm: Mapping[str, Any]

    @property
    def models(self) -> list[Mapping[str, Any]]:
        """The models that are listed in OpenAI's form."""
        return _entries(self.served, "data")


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
        return title_of(self.provider)

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
    answers = await _ask(connection)
    names = _chat_models(answers.models)
    if not names:
        return None
    kind = _kind(answers)
    if kind == "lmstudio":
        names = _loaded_first(names, _entries(answers.lmstudio, "models"))
    return LocalServer(kind or "openai-compatible", port, tuple(names))


async def recognise(http: HttpConnection, patience: float = 1.0) -> str | None:
    """The kind of server behind a connection, by what it answers; None where that does not tell.

    The connection's key goes along, as it does with every request to that address.

    Args:
        http: The connection; its base URL may end in ``/v1``.
        patience: Seconds that each answer may take.

    Returns:
        ``lmstudio``, ``llamacpp``, ``ollama``, ``sglang`` or ``vllm``.
    """
    root = next((http.base_url.removesuffix(end) for end in _API_PATHS if http.base_url.endswith(end)), http.base_url)
    return _kind(await _ask(http.at(root, patience), patience))


async def _ask(connection: HttpConnection, patience: float | None = None) -> _Answers:
    """What a server says of itself. The connection is closed afterwards."""
    try:
        return _Answers(*await asyncio.gather(*(_get(connection, path, patience) for path in _PATHS)))
    finally:
        await connection.aclose()


def _kind(answers: _Answers) -> str | None:
    """The kind of server that gives these answers; what only one kind says goes before what several say."""
    said = " ".join(str(answer.get("error", "")) for answer in answers).lower()
    owners = {str(model.get("owned_by")) for model in answers.models}
    keys = [model.get("key") for model in _entries(answers.lmstudio, "models")]
    if any(isinstance(key, str) for key in keys) or "lm studio" in said or "unexpected endpoint or method" in said:
        return "lmstudio"
    if not answers.llamacpp.keys().isdisjoint({"default_generation_settings", "total_slots", "model_path"}):
        return "llamacpp"
    if not answers.sglang.keys().isdisjoint({"tokenizer_path", "is_generation"}):
        return "sglang"
    if kind := next((kind for kind in ("llamacpp", "sglang", "vllm") if kind in owners), None):
        return kind
    if isinstance(answers.ollama.get("version"), str):
        return "ollama"
    # Others say their version there too, but what they list has no such length.
    lists_otherwise = answers.models and not any("max_model_len" in model for model in answers.models)
    return "vllm" if isinstance(answers.vllm.get("version"), str) and not lists_otherwise else None


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
    from yiemagent_nb.backends.http.connection import HttpConnection, Timeouts  # noqa: PLC0415
    from yiemagent_nb.backends.http.retry import RetryPolicy  # noqa: PLC0415

    timeouts = Timeouts(connect=patience, first_byte=patience, between_bytes=patience, write=patience)
    return HttpConnection(f"http://{_HOST}:{port}", headers={}, timeouts=timeouts, retries=RetryPolicy(0))


async def _get(connection: HttpConnection, path: str, patience: float | None) -> Mapping[str, Any]:
    """A JSON object at a path, or an object with the ``error`` that came; else an empty one."""
    try:
        async with asyncio.timeout(patience), await connection.open(path) as answer:
            body = await answer.read(_MAX_ANSWER)
        value: object = json.loads(body)
    except BackendError as error:
        return {"error": error.message}
    except (TimeoutError, ValueError, RecursionError):
        return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _entries(answer: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    listed = answer.get(key)
    if not isinstance(listed, list):
        return []
    items = cast("list[object]", listed)[:_MAX_MODELS]
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, dict)]


def _chat_models(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    names = [name for entry in entries if isinstance(name := entry.get("id"), str)]
    fitting = [name for name in names if 0 < len(name) <= _MAX_NAME and name.isprintable()]
    return [name for name in fitting if can_chat(name)]


def _loaded_first(names: Sequence[str], entries: Sequence[Mapping[str, Any]]) -> list[str]:
    loaded = {str(entry.get("key")) for entry in entries if entry.get("loaded_instances")}
    return sorted(names, key=lambda name: name not in loaded)
