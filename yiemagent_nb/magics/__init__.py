"""``%agent``, ``%%agent``, ``%agent_backend``, ``%agent_tools`` and ``%agent_trace``: an agent from a cell.

``%%agent`` is an input transformer that turns its cell into an ``await``, so that the kernel stays
responsive while the agent works: Stop, Steer and approvals reach it; so does ``%agent_backend`` with
its line, for as long as it looks for servers. They are registered magics too, for help, completion,
and callers that run magics themselves.
"""

# IPython has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from yiemagent_nb.magics.agent_magics import AgentMagics, await_agent
from yiemagent_nb.magics.backend_completion import BackendCompleter
from yiemagent_nb.magics.backend_magics import AwaitBackend, BackendMagics
from yiemagent_nb.magics.interrupts import wake_on_interrupt
from yiemagent_nb.magics.tool_magics import ToolMagics
from yiemagent_nb.magics.trace_magics import TraceMagics

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["AgentMagics", "BackendMagics", "ToolMagics", "TraceMagics", "load", "unload"]

_MAGICS = (AgentMagics, BackendMagics, ToolMagics, TraceMagics)
_NAMES = ("agent", "agent_backend", "agent_tools", "agent_trace")

_undo: list[Callable[[], None]] = []


def load(shell: InteractiveShell) -> None:
    """Register the magics and their transformer, and let interrupts wake the event loop."""
    unload(shell)
    shell.register_magics(*_MAGICS)
    registry = shell.magics_manager.registry
    tokens = cast("list[Any]", shell.input_transformer_manager.token_transformers)
    tokens.append(AwaitBackend)
    matchers = cast("list[Any]", shell.Completer.custom_matchers)
    completer = BackendCompleter(registry[BackendMagics.__name__], shell.user_ns).complete
    matchers.append(completer)
    transforms = cast("list[Any]", shell.input_transformer_manager.cleanup_transforms)
    transforms.insert(_before_cell_magics(transforms), await_agent)

    def forget() -> None:
        for added, where in ((await_agent, transforms), (AwaitBackend, tokens), (completer, matchers)):
            with contextlib.suppress(ValueError):
                where.remove(added)
        for magics in _MAGICS:
            registry.pop(magics.__name__, None)
        for kind in ("line", "cell"):
            for name in _NAMES:
                shell.magics_manager.magics[kind].pop(name, None)

    _undo.append(forget)
    _undo.append(wake_on_interrupt())


def unload(_shell: InteractiveShell) -> None:
    """Take everything back."""
    while _undo:
        _undo.pop()()


def _before_cell_magics(transforms: list[Any]) -> int:
    names = [getattr(transform, "__name__", "") for transform in transforms]
    return names.index("cell_magic") if "cell_magic" in names else len(names)
