"""SGLang.

Source: the request classes of SGLang's OpenAI-compatible server (0.5).
"""

from __future__ import annotations

from typing import ClassVar

from yiemagent_nb.backends.engine.habits import ALL_EFFORTS, Habits
from yiemagent_nb.backends.kinds import SGLANG
from yiemagent_nb.core.errors import BackendError

__all__ = ["SGLangHabits"]


class SGLangHabits(Habits, kind=SGLANG):
    """What SGLang takes. Chat templates there have one switch for thinking or the other."""

    start_hint: ClassVar[str] = "Start it with `sglang serve --model-path MODEL`, or check host and port."
    key_hint: ClassVar[str] = "The server was started with --api-key: give that key as api_key."
    efforts = ALL_EFFORTS
    switches = ("enable_thinking", "thinking")

    def hint(self, error: BackendError, model: str) -> str:
        """The option that a model's calls need."""
        if "tool-call-parser" in error.message or "tool_call_parser" in error.message:
            return "Start SGLang with --tool-call-parser and the model's family, or set text_tool_calls=True."
        return super().hint(error, model)
