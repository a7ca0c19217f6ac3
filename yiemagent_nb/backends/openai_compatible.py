"""Any server that speaks OpenAI's chat completions, with presets for those whose habits are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, Unpack

from yiemagent_nb.backends.habits import Api, Habits
from yiemagent_nb.backends.http import split_url
from yiemagent_nb.backends.llama_cpp import LlamaCppHabits
from yiemagent_nb.backends.model_server import Health, ModelServer
from yiemagent_nb.backends.ollama import OllamaHabits
from yiemagent_nb.backends.openrouter import OpenRouterHabits
from yiemagent_nb.backends.options import ServerOptions
from yiemagent_nb.backends.sglang import SGLangHabits
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.models import LlmModel

__all__ = ["Health", "OpenAICompatible", "Preset"]

Preset = Literal["ollama", "llamacpp", "openrouter", "sglang"]

_PRESETS: Final[Mapping[str, Callable[[], Habits]]] = {
    "ollama": OllamaHabits,
    "llamacpp": LlamaCppHabits,
    "openrouter": OpenRouterHabits,
    "sglang": SGLangHabits,
}
_OPENAI_HOST = "api.openai.com"
_OLLAMA_PORT = 11434


class OpenAICompatible(ModelServer):
    """A backend for any server with OpenAI's chat completions.

    Args:
        base_url: The server's address, such as ``http://localhost:8000/v1``. Without a path,
            ``/v1`` is added. With a preset it may be left out for the server's usual address.
        model: The model that answers when the agent names none; None takes the first that the
            server lists.
        preset: The server's kind, whose habits are then known: ``ollama``, ``llamacpp``,
            ``openrouter``, ``sglang``. Default: told by the address where that names OpenRouter or
            Ollama's port, else nothing is taken for granted.
        provider: The name that stands in messages; reasoning goes back only where it is the same.
        api: ``chat-completions`` or, where the server has it, ``responses``.
        **options: See ``ServerOptions``. OpenAI's own address uses ``OPENAI_API_KEY`` by itself and
            OpenRouter ``OPENROUTER_API_KEY``; no other server is given a key that was not named.

    Example::

        agent = Agent(OpenAICompatible("http://localhost:9000/v1", "my-model"))
        agent.set_llm_call(OpenAICompatible(preset="ollama", model="qwen3:8b"))

    Raises:
        InvalidParametersError: ``base_url`` is no web address, ``preset`` none of the known ones, or
            ``http_client`` no async client.
    """

    def __init__(
        self,
        base_url: str | None = None,
        model: str | LlmModel | None = None,
        *,
        preset: Preset | None = None,
        provider: str | None = None,
        api: Api | Literal["auto"] = "auto",
        **options: Unpack[ServerOptions],
    ) -> None:
        if preset is not None and preset not in _PRESETS:
            raise InvalidParametersError(
                f"preset {preset!r} is none of {', '.join(_PRESETS)}.",
                "Leave it out for other servers; OpenAI, LMStudio and VLLM have classes of their own.",
            )
        habits = _habits(base_url or "", preset)
        if provider is not None:
            habits.provider = provider
        address = habits.base_url if base_url is None else base_url
        if base_url is None and not address:
            raise InvalidParametersError(
                "OpenAICompatible needs the server's address.",
                'Give base_url="http://host:port/v1", or a preset such as preset="ollama".',
            )
        if _host(address) == _OPENAI_HOST and not options.get("api_key") and not options.get("api_key_env"):
            options["api_key_env"] = "OPENAI_API_KEY"
        super().__init__(model, base_url=address, habits=habits, api=api, **options)


def _habits(base_url: str, preset: str | None) -> Habits:
    if preset is None:
        host = _host(base_url)
        if host == "openrouter.ai" or host.endswith(".openrouter.ai"):
            preset = "openrouter"
        elif base_url and split_url(base_url).port == _OLLAMA_PORT:
            preset = "ollama"
    return Habits() if preset is None else _PRESETS[preset]()


def _host(url: str) -> str:
    return split_url(url).hostname or "" if url else ""
