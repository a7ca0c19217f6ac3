"""Ready hooks to start from: each is a module whose text the editor loads, and which works as it stands."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from yiemagent_nb.hooks.kinds import HookName, OnError

__all__ = ["READY_HOOKS", "ReadyHook"]


@dataclass(frozen=True, slots=True)
class ReadyHook:
    """A hook of the library.

    Args:
        name: The name of its module here.
        title: What a person reads.
        hook: Which hook it is.
        tells: What it does.
        on_error: What a run should do when it fails.
    """

    name: str
    title: str
    hook: HookName
    tells: str
    on_error: OnError = "go_on"

    @property
    def code(self) -> str:
        """Its text."""
        return _text(self.name)

    def form(self) -> dict[str, Any]:
        """As a page gets it."""
        return {**asdict(self), "code": self.code}


@cache
def _text(name: str) -> str:
    return resources.files(__name__).joinpath(f"{name}.py").read_text("utf-8")


READY_HOOKS: Final = (
    ReadyHook(
        "ask_first", "Ask first", "before_tool_call", "Asks a person before a tool runs that may change something."
    ),
    ReadyHook("deny_by_pattern", "Deny by pattern", "before_tool_call", "Refuses calls by what their arguments hold."),
    ReadyHook("cap_result", "Cap the result", "after_tool_call", "Cuts long results in the middle."),
    ReadyHook("log_calls", "Log calls", "after_tool_call", "Prints each call with its arguments and its result."),
    ReadyHook("keep_last", "Keep the last messages", "prepare_context", "Sends only the newest messages."),
    ReadyHook("redact", "Redact", "prepare_context", "Leaves keys and e-mail addresses out of what is sent.", "end"),
    ReadyHook(
        "time_and_tokens", "Time and tokens", "around_llm_call", "Prints how long each answer took, and its tokens."
    ),
    ReadyHook("fall_back", "Fall back", "around_llm_call", "Asks another backend where the first one fails."),
)
