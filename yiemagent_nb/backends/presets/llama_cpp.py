"""llama.cpp's server.

Source: the README of llama.cpp's ``tools/server``.
"""

from __future__ import annotations

from typing import Any, ClassVar

from yiemagent_nb.backends.engine.habits import ALL_EFFORTS, Habits, RequestPlan
from yiemagent_nb.backends.kinds import LLAMA_CPP
from yiemagent_nb.core.errors import BackendError, ContextLengthError
from yiemagent_nb.core.reading.fields import as_mapping

__all__ = ["LlamaCppHabits"]


class LlamaCppHabits(Habits, kind=LLAMA_CPP):
    """What llama.cpp's server takes. An effort goes to the model's chat template as it is."""

    start_hint: ClassVar[str] = "Start it with `llama-server -m model.gguf --jinja`, or check host and port."
    key_hint: ClassVar[str] = "The server was started with --api-key: give that key as api_key."
    tool_choices: ClassVar[frozenset[str]] = frozenset({"auto", "none", "required"})
    efforts = ALL_EFFORTS
    switches = ("enable_thinking",)

    def fields(self, fields: dict[str, Any], plan: RequestPlan) -> dict[str, Any]:
        """Over the Responses API a schema counts only under this server's own name for it."""
        output = as_mapping(fields.get("response_format"))
        if plan.api == "responses" and output is not None and output.get("type") == "json_schema":
            inner = as_mapping(output.get("json_schema")) or {}
            fields.setdefault("json_schema", inner.get("schema"))
        return super().fields(fields, plan)

    def hint(self, error: BackendError, model: str) -> str:
        """The option that gives more context."""
        if isinstance(error, ContextLengthError):
            return "Shorten the conversation, or start the server with more context: --ctx-size 16384, say."
        return super().hint(error, model)
