"""The kinds of model servers: what people call each, where it usually is, what its key is called.

What a kind takes and says in a way of its own stands in its habits, which name their kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

__all__ = [
    "KINDS",
    "LLAMA_CPP",
    "LM_STUDIO",
    "OLLAMA",
    "OPENAI",
    "OPENROUTER",
    "SGLANG",
    "USUAL_PORTS",
    "VLLM",
    "Kind",
    "kind_at",
    "title_of",
]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of model server.

    Args:
        provider: The name that stands in messages.
        title: What people call it.
        base_url: Where it usually is.
        ports: Where it may listen on this machine, the likeliest last; none for one in the internet.
        key_variable: The environment variable that holds its key; empty where it usually needs none.
        model: The model there where nobody names one; empty where the server's first is taken.
    """

    provider: str
    title: str
    base_url: str
    ports: tuple[int, ...] = ()
    key_variable: str = ""
    model: str = ""

    @property
    def host(self) -> str:
        """The host of its usual address."""
        return urlsplit(self.base_url).hostname or ""


def _local(provider: str, title: str, *ports: int, key_variable: str = "") -> Kind:
    return Kind(provider, title, f"http://127.0.0.1:{ports[-1]}/v1", ports, key_variable)


LM_STUDIO: Final = _local("lmstudio", "LM Studio", 1234, key_variable="LM_API_TOKEN")
VLLM: Final = _local("vllm", "vLLM", 8000)
LLAMA_CPP: Final = _local("llamacpp", "llama.cpp", 8080, 9931)  # 8080 before it moved
OLLAMA: Final = _local("ollama", "Ollama", 11434)
SGLANG: Final = _local("sglang", "SGLang", 30000)
OPENAI: Final = Kind(
    "openai", "OpenAI", "https://api.openai.com/v1", key_variable="OPENAI_API_KEY", model="gpt-6.1-terra"
)
OPENROUTER: Final = Kind(
    "openrouter",
    "OpenRouter",
    "https://openrouter.ai/api/v1",
    key_variable="OPENROUTER_API_KEY",
    model="openai/gpt-6.1-terra",
)

_LOCAL: Final = (LM_STUDIO, VLLM, LLAMA_CPP, OLLAMA, SGLANG)
"""In the order in which they are preferred."""
_REMOTE: Final = (OPENAI, OPENROUTER)

KINDS: Final = (*_REMOTE, *_LOCAL)
"""All of them, in the order in which they are offered."""

USUAL_PORTS: Final = tuple(port for kind in _LOCAL for port in kind.ports)
"""Where model servers listen on this machine, in the order of preference."""


def kind_at(host: str) -> Kind | None:
    """The kind that everyone knows by its host or a part of it (``eu.api.openai.com``); None for all others."""
    return next((kind for kind in _REMOTE if host == kind.host or host.endswith(f".{kind.host}")), None)


def title_of(provider: str) -> str:
    """What people call a kind of server."""
    return next((kind.title for kind in KINDS if kind.provider == provider), "A model server")
