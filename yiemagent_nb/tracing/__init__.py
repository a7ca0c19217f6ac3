"""The trace of an agent: its runs, turns, model calls and tools, with what was sent and what came back.

``TraceRecorder.of(agent)`` records; see there.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yiemagent_nb.tracing.asking import ask
    from yiemagent_nb.tracing.recorder import TraceRecorder

__all__ = ["TraceRecorder", "ask"]

_HOMES = {"TraceRecorder": "recorder", "ask": "asking"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"yiemagent_nb.tracing.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
