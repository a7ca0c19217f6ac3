"""Any server that speaks OpenAI's chat completions, with presets for those whose habits are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, Unpack, get_args

from yiemagent_nb.backends.engine.habits import Api, Habits
from yiemagent_nb.backends.engine.model_server import Health, ModelServer
from yiemagent_nb.backends.engine.options import ServerOptions, normalised_url
from yiemagent_nb.backends.http.urls import split_url
from yiemagent_nb.backends.kinds import OLLAMA, OPENAI, kind_at
from yiemagent_nb.backends.openai import OpenAIHabits
from yiemagent_nb.backends.presets.llama_cpp import LlamaCppHabits
from yiemagent_nb.backends.presets.ollama import OllamaHabits
from yiemagent_nb.backends.presets.openrouter import OpenRouterHabits
from yiemagent_nb.backends.presets.sglang import SGLangHabits
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.models import LlmModel

__all__ = ["Health", "OpenAICompatible", "Preset"]

Preset = Literal["ollama", "llamacpp", "openrouter", "sglang"]

_HABITS: Final[Mapping[str, type[Habits]]] = {
    habits.provider: habits for habits in (OllamaHabits, LlamaCppHabits, OpenRouterHabits, SGLangHabits, OpenAIHabits)
}


class OpenAICompatible(ModelServer):
    """A backend for any server with OpenAI's chat completions.

    Args:
        base_url: The server's address, such as ``http://localhost:8000/v1``. Without a path,
            ``/v1`` is added. With a preset it may be left out for the server's usual address.
        model: The model that answers when the agent names none; None takes the first that the
            server lists.
        preset: The server's kind, whose habits are then known: ``ollama``, ``llamacpp``,
            ``openrouter``, ``sglang``. Default: told by the address where that names OpenAI,
            OpenRouter or Ollama's port, else nothing is taken for granted.
        provider: The name that stands in messages; reasoning goes back only where it is the same.
        api: ``chat-completions`` or, where the server has it, ``responses``.
        **options: See ``ServerOptions``. OpenAI's own address uses ``OPENAI_API_KEY`` by itself and
            OpenRouter ``OPENROUTER_API_KEY``; no other server is given a key that was not named.

    Example::

        agent = Agent(OpenAICompatible("http://localhost:9000/v1", "my-model"))
        agent.set_llm_call(OpenAICompatible(preset="ollama", model="qwen3:8b"))

    Raises:
        InvalidParametersError: ``base_url`` is no web address, ``preset`` none of the known ones, or an
            option unknown or of another form.
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
        presets = get_args(Preset)
        if preset is not None and preset not in presets:
            raise InvalidParametersError(
                f"preset {preset!r} is none of {', '.join(presets)}.",
                "Leave it out for other servers; OpenAI, LMStudio and VLLM have classes of their own.",
            )
        if base_url is None:
            if preset is None:
                raise InvalidParametersError(
                    "OpenAICompatible needs the server's address.",
                    'Give base_url="http://host:port/v1", or a preset such as preset="ollama".',
                )
            base_url = _HABITS[preset].base_url
        address = normalised_url(base_url)
        kind = preset or _kind_at(address)
        habits = _HABITS.get(kind, Habits)()
        if provider is not None:
            habits.provider = provider
        if kind == OPENAI.provider and options.get("api_key") is None and options.get("api_key_env") is None:
            options["api_key_env"] = OPENAI.key_variable
        super().__init__(model, base_url=address, habits=habits, api=api, **options)
        named = {"preset": preset, "provider": provider}
        self._written |= {name: value for name, value in named.items() if value is not None}


def _kind_at(address: str) -> str:
    """The kind of server that an address names; empty where it names none."""
    parts = split_url(address)
    kind = kind_at(parts.hostname or "") or (OLLAMA if parts.port in OLLAMA.ports else None)
    return "" if kind is None else kind.provider
