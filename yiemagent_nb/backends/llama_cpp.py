"""llama.cpp's server.

Source: the README of llama.cpp's ``tools/server``.
"""

from __future__ import annotations

from typing import ClassVar

from yiemagent_nb.backends.habits import ALL_EFFORTS, Habits
from yiemagent_nb.core.errors import BackendError, ContextLengthError

__all__ = ["LlamaCppHabits"]


class LlamaCppHabits(Habits):
    """What llama.cpp's server takes. An effort goes to the model's chat template as it is."""

    provider = "llamacpp"
    title: ClassVar[str] = "llama.cpp"
    base_url: ClassVar[str] = "http://127.0.0.1:9931/v1"
    start_hint: ClassVar[str] = "Start it with `llama-server -m model.gguf --jinja`, or check host and port."
    key_hint: ClassVar[str] = "The server was started with --api-key: give that key as api_key."
    tool_choices: ClassVar[frozenset[str]] = frozenset({"auto", "none", "required"})
    efforts = ALL_EFFORTS
    switches = ("enable_thinking",)

    def hint(self, error: BackendError, model: str) -> str:
        """The option that gives more context."""
        if isinstance(error, ContextLengthError):
            return "Shorten the conversation, or start the server with more context: --ctx-size 16384, say."
        return super().hint(error, model)
