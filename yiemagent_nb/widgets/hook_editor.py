"""HookEditor: the agent's hooks in a Python editor, tried on what was said and applied while it runs."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from yiemagent_nb.core.events import AgentEnd, Event
from yiemagent_nb.hooks.code import HookCodeError, check_code, notebook_namespace, notebook_shell
from yiemagent_nb.hooks.completion import complete_code
from yiemagent_nb.hooks.failures import Failure
from yiemagent_nb.hooks.kinds import KINDS, HookName
from yiemagent_nb.hooks.ready import READY_HOOKS
from yiemagent_nb.hooks.recorded import Recording
from yiemagent_nb.hooks.trial import try_hook
from yiemagent_nb.hooks.versions import HookBench
from yiemagent_nb.widgets.apps import refuse_in_apps
from yiemagent_nb.widgets.panel import Buffers, Post, SidePanel, reply
from yiemagent_nb.widgets.panel_protocol import (
    ApplyHook,
    CheckCode,
    CompleteCode,
    DraftHook,
    LoadVersion,
    RemoveHook,
    RevertHook,
)
from yiemagent_nb.widgets.protocol import PageEvent, PageMessage, json_safe

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["HookEditor"]


class HookEditor(SidePanel):
    """Shows an agent's hooks with their sources, tries others on the conversation, and applies them.

    Code runs when a person presses Try or Apply in a page that belongs to this kernel, and at no other
    time. Several editors of one agent stay in step.

    Args:
        agent: The agent.
        seconds: How long a hook may take from now on, in all editors of the agent; default: as it is, 10.

    Raises:
        InvalidParametersError: ``seconds`` is no number above 0.

    Example::

        HookEditor(agent)
    """

    name: ClassVar[str] = "hooks"

    def __init__(self, agent: Agent, *, seconds: float | None = None) -> None:
        super().__init__(agent)
        self._bench = HookBench.of(agent)
        if seconds is not None:
            self._bench.set_seconds(seconds)
        self._bench.subscribe(self._changed)

    def state(self) -> dict[str, Any]:
        """See ``SidePanel``."""
        return {
            "hooks": [json_safe(self._bench.form(hook)) for hook in KINDS],
            "library": [ready.form() for ready in READY_HOOKS],
            "recorded": self._count(),
            "namespace": "the notebook" if notebook_shell() is not None else "the main program",
        }

    def observe(self, event: Event) -> Iterable[PageEvent]:
        """See ``SidePanel``. After a run there is more to try hooks on."""
        if self.is_open and isinstance(event, AgentEnd):
            self.tell({"type": "recorded", "recorded": self._count()}, whole=True)
        return ()

    def ask(self, message: PageMessage, post: Post, buffers: Buffers) -> bool | Coroutine[Any, Any, None]:
        """See ``SidePanel``. Only ``ApplyHook`` has code that runs."""
        del buffers
        match message:
            case ApplyHook():
                refuse_in_apps("Code is not run")
                return self._try(message, post) if message.action == "try" else self._apply(message, post)
            case RemoveHook():
                refuse_in_apps("Hooks are not removed")
                self._bench.remove(message.hook, message.index)
            case RevertHook():
                refuse_in_apps("Hooks are not reverted")
                self._bench.revert(message.hook)
            case DraftHook():
                self._bench.draft(message.hook, message.code)
            case CheckCode():
                reply(message, {"problems": [problem.form() for problem in check_code(message.code)]}, post)
            case CompleteCode():
                found = complete_code(message.code, message.cursor, notebook_namespace())
                reply(message, json_safe(found.form()), post)
            case LoadVersion():
                reply(message, {"code": self._bench.version(message.hook, message.version).code}, post)
            case _:
                return False
        return True

    def _count(self) -> dict[str, int]:
        recording = Recording(self.agent)
        return {hook: recording.count(hook) for hook in KINDS}

    async def _try(self, message: ApplyHook, post: Post) -> None:
        recording = Recording(self.agent)
        trial = await try_hook(recording, message.hook, message.code, self._bench.seconds)
        reply(message, json_safe(trial.form()), post)

    async def _apply(self, message: ApplyHook, post: Post) -> None:
        version: int | None = None
        problems: list[dict[str, Any]] = []
        try:
            version = await self._bench.apply(
                message.hook, message.code, replaces=message.replaces, on_error=message.on_error
            )
        except HookCodeError as error:
            problems.append(error.problem.form())
        reply(message, json_safe({"version": version, "problems": problems}), post)

    def _changed(self, hook: HookName, failure: Failure | None) -> None:
        """From any thread."""
        if failure is not None:
            self.tell({"type": "failures", **json_safe(failure.form())})
        elif self.is_open:
            self.tell({"type": "hook", **json_safe(self._bench.form(hook))})
