"""vLLM.

Source: the request classes of vLLM's OpenAI-compatible server (0.33), and its guides "Reasoning
outputs", "Structured outputs" and "Tool calling".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, Unpack

from yiemagent_nb.backends.engine.habits import ALL_EFFORTS, Api, Habits, Lessons, RequestPlan, Thinking, is_refusal
from yiemagent_nb.backends.engine.model_server import ModelServer
from yiemagent_nb.backends.engine.options import ServerOptions, with_fields
from yiemagent_nb.backends.kinds import VLLM as VLLM_KIND
from yiemagent_nb.core.errors import BackendError, ContextLengthError
from yiemagent_nb.core.models import LlmModel, ThinkingLevel

__all__ = ["VLLM", "VLLMHabits"]

_OLDER: Final[Mapping[ThinkingLevel, str]] = {"low": "low", "medium": "medium", "high": "high"}
"""What older versions know."""

_PARSERS: Final[Mapping[str, str]] = {
    "qwen3-coder": "qwen3_coder",
    "qwen": "hermes",
    "hermes": "hermes",
    "llama-4": "llama4_pythonic",
    "llama": "llama3_json",
    "mistral": "mistral",
    "devstral": "mistral",
    "deepseek-v3.1": "deepseek_v31",
    "deepseek": "deepseek_v3",
    "gpt-oss": "openai",
    "granite": "granite",
    "kimi": "kimi_k2",
    "glm": "glm45",
    "phi-4": "phi4_mini_json",
    "minimax": "minimax",
}
"""The tool parser of each family of models, by a part of the model's name; the first that fits."""


class VLLMHabits(Habits, kind=VLLM_KIND):
    """What vLLM takes."""

    start_hint: ClassVar[str] = "Start it with `vllm serve MODEL`, or check host and port."
    key_hint: ClassVar[str] = "The server was started with --api-key: give that key as api_key."
    efforts = ALL_EFFORTS
    switches = ("enable_thinking", "thinking")

    def fields(self, fields: dict[str, Any], plan: RequestPlan) -> dict[str, Any]:
        """A format of the answer stands back where the user gave a constraint of vLLM's own."""
        if "structured_outputs" in fields:
            fields.pop("response_format", None)
        return super().fields(fields, plan)

    def thinking(self, level: ThinkingLevel, model: LlmModel, lessons: Lessons) -> Thinking:
        """An effort and the chat template's switches, unless this server refused them."""
        efforts = _OLDER if "older_efforts" in lessons else self.efforts
        return self.ask_for(level, model, efforts, () if "no_switches" in lessons else self.switches)

    def learn(self, error: BackendError, plan: RequestPlan) -> Lessons:
        """Older versions know fewer efforts; models with a tokenizer of Mistral's have no template to switch."""
        if is_refusal(error) and "chat_template" in error.message and "no_switches" not in plan.lessons:
            return {"no_switches": True}
        if is_refusal(error) and "reasoning_effort" in error.message:
            return {"older_efforts": True}
        return super().learn(error, plan)

    def hint(self, error: BackendError, model: str) -> str:
        """The flags that vLLM wants, for this model where its family is known."""
        words = error.message
        if "tool-call-parser" in words or "enable-auto-tool-choice" in words:
            name = model.lower()
            parser = next((parser for part, parser in _PARSERS.items() if part in name), None)
            shown = parser or "PARSER"
            which = "" if parser else " (PARSER by the model's family: hermes, llama3_json, mistral, …)"
            return (
                f"Start vLLM with --enable-auto-tool-choice --tool-call-parser {shown}{which}, "
                "or set text_tool_calls=True."
            )
        if isinstance(error, ContextLengthError):
            return "Shorten the conversation, ask for fewer max_tokens, or start vLLM with a larger --max-model-len."
        return super().hint(error, model)


class VLLM(ModelServer):
    """A server of vLLM's.

    Args:
        model: The model that answers when the agent names none; None takes the one that is served.
        base_url: Its address.
        api: ``chat-completions`` or ``responses``.
        chat_template_kwargs: Given to the model's chat template: ``{"enable_thinking": False}``, ….
            What stands here goes before what the thinking level sets.
        structured_outputs: What the answer must be, one of vLLM's own constraints: ``{"choice":
            ["yes", "no"]}``, ``{"regex": …}``, ``{"grammar": …}``, ``{"json": …}``. It takes the
            place of ``response_format``.
        **options: See ``ServerOptions``.

    Example::

        agent = Agent(VLLM(base_url="http://gpu-server:8000/v1"), thinking_level="high")
    """

    def __init__(
        self,
        model: str | LlmModel | None = None,
        *,
        base_url: str = VLLMHabits.base_url,
        api: Api | Literal["auto"] = "auto",
        chat_template_kwargs: Mapping[str, Any] | None = None,
        structured_outputs: Mapping[str, Any] | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        given = {"chat_template_kwargs": chat_template_kwargs, "structured_outputs": structured_outputs}
        with_fields(options, "extra_body", {name: value for name, value in given.items() if value is not None})
        super().__init__(model, base_url=base_url, habits=VLLMHabits(), api=api, **options)
