"""Connecting: the backend whose habits fit a server, told by its kind or by its address."""

from __future__ import annotations

from typing import Unpack

from yiemagent_nb.backends.engine.model_server import ModelServer
from yiemagent_nb.backends.engine.options import ServerOptions, explained, spelled_out
from yiemagent_nb.backends.engine.probing import recognise
from yiemagent_nb.backends.http.urls import split_url
from yiemagent_nb.backends.kinds import kind_at
from yiemagent_nb.backends.lm_studio import LMStudio
from yiemagent_nb.backends.openai import OpenAI
from yiemagent_nb.backends.openai_compatible import OpenAICompatible
from yiemagent_nb.backends.vllm import VLLM

__all__ = ["backend_for", "connect"]


async def connect(base_url: str, model: str | None = None, **options: Unpack[ServerOptions]) -> ModelServer:
    """The backend for the server at an address, whatever kind it is.

    The server is asked what it is, for a second at most and with nothing but GET. One that does not
    answer, or says nothing that tells, is taken for one that speaks OpenAI's chat completions.

    Args:
        base_url: The server's address, such as ``http://localhost:1234``. Without a path, ``/v1`` is
            added.
        model: The model that answers when the agent names none; None takes the server's first.
        **options: See ``ServerOptions``.

    Returns:
        ``OpenAI``, ``LMStudio``, ``VLLM`` or ``OpenAICompatible``, the latter with the preset for
        Ollama, llama.cpp, OpenRouter and SGLang.

    Example::

        agent = Agent(await connect("http://gpu-server:8000"))

    Raises:
        InvalidParametersError: ``base_url`` is no web address, or an option has no known form.
    """
    plain = OpenAICompatible(base_url, model, **options)
    known = kind_at(split_url(plain.base_url).hostname or "")
    provider = await recognise(plain.connection) if known is None else known.provider
    return plain if provider is None else backend_for(provider, base_url, model, **options)


def backend_for(
    provider: str, base_url: str, model: str | None = None, **options: Unpack[ServerOptions]
) -> ModelServer:
    """The backend for a kind of server; one for any server where the kind is not known.

    Args:
        provider: The kind, as ``recognise`` tells it, or ``openai`` or ``openrouter``.
        base_url: The server's address.
        model: The model that answers when the agent names none; None takes the server's first.
        **options: See ``ServerOptions``.

    Raises:
        InvalidParametersError: As in ``connect``.
    """
    match provider:
        case "openai":
            return (
                OpenAI(base_url=base_url, **options) if model is None else OpenAI(model, base_url=base_url, **options)
            )
        case "lmstudio":
            return LMStudio(model, base_url=base_url, **options)
        case "vllm":
            return VLLM(model, base_url=base_url, **options)
        case "ollama" | "llamacpp" | "openrouter" | "sglang":
            return OpenAICompatible(base_url, model, preset=provider, **options)
        case _:
            return OpenAICompatible(base_url, model, **options)


connect.__doc__ = explained(connect.__doc__)
vars(connect)["__signature__"] = spelled_out(connect)
