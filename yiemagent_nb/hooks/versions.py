"""HookBench: the hooks of one agent on which people work, in however many editors."""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, cast

from yiemagent_nb.core.backend import provider_of
from yiemagent_nb.core.errors import AgentClosedError, InvalidParametersError
from yiemagent_nb.core.events import AgentEnd, Event, HooksChanged, TurnStart
from yiemagent_nb.core.hooks import as_hooks
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.hooks.code import forget_source, load_hook, notebook_namespace, remember_source
from yiemagent_nb.hooks.failures import Failure, Failures
from yiemagent_nb.hooks.guard import DEFAULT_SECONDS, GuardedHook, HookSource
from yiemagent_nb.hooks.installed import InstalledHook, describe_installed
from yiemagent_nb.hooks.kinds import KINDS, HookName, OnError

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["HookBench", "HookVersion"]

MOST_VERSIONS = 100
"""How many versions of a hook are kept."""

Installed = tuple[Callable[..., Any], ...]


@dataclass(frozen=True, slots=True)
class HookVersion:
    """Code that was applied.

    Args:
        version: Its number, from 1.
        time: When it was applied, in ms since 1970.
        hook: What acts.
    """

    version: int
    time: int
    hook: GuardedHook

    @property
    def code(self) -> str:
        """Its text."""
        return self.hook.source.code

    def form(self) -> dict[str, Any]:
        """As a page gets it."""
        lines = self.code.count("\n") + 1
        note = next((line.strip() for line in self.code.splitlines() if line.strip()), "")[:80]
        return {
            "version": self.version,
            "time": self.time,
            "lines": lines,
            "note": note,
            "on_error": self.hook.on_error,
        }


@dataclass(slots=True)
class _Desk:
    """What is known of one of the hooks."""

    draft: str | None = None
    versions: list[HookVersion] = field(default_factory=list[HookVersion])
    count: int = 0
    before: Installed | None = None
    """What was installed before the first change that was made here."""
    made: Installed = ()
    """What the newest such change installed."""
    waits: bool = False


class HookBench:
    """Applies, removes and reverts the hooks of one agent, and keeps their drafts, versions and failures.

    ``HookBench.of(agent)`` is the same for all editors of an agent. It does not keep the agent alive.

    Args:
        agent: The agent.
        seconds: How long a hook may take.
    """

    _benches: ClassVar[weakref.WeakKeyDictionary[Agent, weakref.ref[HookBench]]] = weakref.WeakKeyDictionary()
    _benches_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, agent: Agent, seconds: float = DEFAULT_SECONDS) -> None:
        self.set_seconds(seconds)
        self.failures = Failures(self._tell_failure)
        self._agent = weakref.ref(agent)
        self._desks: Mapping[HookName, _Desk] = {name: _Desk() for name in KINDS}
        self._lock = threading.RLock()
        self._listeners: tuple[weakref.WeakMethod[Callable[[HookName, Failure | None], None]], ...] = ()
        agent.subscribe(self._observe)

    @classmethod
    def of(cls, agent: Agent) -> HookBench:
        """The bench of an agent."""
        with cls._benches_lock:
            kept = cls._benches.get(agent)
            bench = None if kept is None else kept()
            if bench is None:
                bench = cls(agent)
                cls._benches[agent] = weakref.ref(bench)  # the agent holds it, as a listener
            return bench

    @property
    def seconds(self) -> float:
        """How long a hook may take that is applied from now on."""
        return self._seconds

    def set_seconds(self, seconds: float) -> None:
        """Give hooks that are applied from now on another time.

        Raises:
            InvalidParametersError: It is no number above 0.
        """
        if isinstance(seconds, bool) or not 0 < seconds < math.inf:
            raise InvalidParametersError(f"seconds is a number above 0, not {seconds!r}.")
        self._seconds = seconds

    @property
    def agent(self) -> Agent:
        """The agent.

        Raises:
            AgentClosedError: It is no more.
        """
        agent = self._agent()
        if agent is None:
            raise AgentClosedError("The agent is no more.", "Build a new one.")
        return agent

    def subscribe(self, listener: Callable[[HookName, Failure | None], None]) -> None:
        """Call a method when something of a hook changed, or it failed; for as long as its object lives."""
        living = (each for each in self._listeners if each() is not None)
        self._listeners = (*living, weakref.WeakMethod(listener))

    def installed(self, hook: HookName) -> Installed:
        """What acts from the next turn on."""
        return as_hooks(hook, getattr(self.agent.hooks, hook))

    def describe(self, hook: HookName) -> list[InstalledHook]:
        """The same, in words and with its source."""
        return [describe_installed(each) for each in self.installed(hook)]

    def draft(self, hook: HookName, code: str) -> None:
        """Keep what stands in an editor."""
        self._desks[hook].draft = code
        self._tell(hook)

    def version(self, hook: HookName, number: int) -> HookVersion:
        """A version.

        Raises:
            InvalidParametersError: There is none of this number, or none any more.
        """
        for version in self._desks[hook].versions:
            if version.version == number:
                return version
        raise InvalidParametersError(
            f"There is no version {number} of {hook}.", f"The newest {MOST_VERSIONS} are kept."
        )

    async def apply(
        self, hook: HookName, code: str, *, replaces: int | None = None, on_error: OnError = "go_on"
    ) -> int:
        """Let code act as a hook from the next turn on; returns the number of its version.

        Args:
            hook: Which hook.
            code: Python that defines a function of the hook's name; it runs in the notebook's namespace.
            replaces: The index of what it replaces; None replaces the newest version of the editor, or
                what there may be only one of, and else adds it; the number of those installed adds it.
            on_error: What a run does when it fails.

        Raises:
            HookCodeError: The code gives no hook; nothing was changed.
            InvalidParametersError: There is nothing at that index.
        """
        desk = self._desks[hook]
        with self._lock:
            self._place(hook, replaces)  # before anything runs
            desk.count += 1
            number = desk.count
        filename = remember_source(f"{hook}, version {number}", code)
        try:
            function = await load_hook(hook, code, filename, notebook_namespace())
        except BaseException:
            forget_source(filename)
            with self._lock:
                if desk.count == number:
                    desk.count -= 1
            raise
        made = GuardedHook(
            KINDS[hook],
            function,
            HookSource(code, filename, number),
            report=self.failures.add,
            provider=self._provider,
            on_error=on_error,
            seconds=self.seconds,
        )
        with self._lock:
            installed = self.installed(hook)
            place = self._place(hook, replaces)
            desk.versions.append(HookVersion(number, int(time.time() * 1000), made))
            desk.draft = code
            self._drop_old(hook)
            self._install(hook, (*installed[:place], made, *installed[place + 1 :]))
        return number

    def remove(self, hook: HookName, index: int) -> None:
        """Take a hook away.

        Raises:
            InvalidParametersError: There is nothing at that index.
        """
        with self._lock:
            installed = self.installed(hook)
            if index >= len(installed):
                raise InvalidParametersError("This hook is not installed any more.", "Look at what is installed now.")
            self._install(hook, (*installed[:index], *installed[index + 1 :]))

    def revert(self, hook: HookName) -> None:
        """Install what was there before the first change.

        Raises:
            InvalidParametersError: Nothing was changed here.
        """
        with self._lock:
            before = self._desks[hook].before
            if before is None:
                raise InvalidParametersError("There is nothing to revert.", "Nothing was applied here.")
            self._install(hook, before)
            self._desks[hook].before = None
            self.failures.clear(hook)
        self._tell(hook)

    def form(self, hook: HookName) -> dict[str, Any]:
        """All about a hook, as a page gets it."""
        kind, desk = KINDS[hook], self._desks[hook]
        return {
            "name": kind.name,
            "title": kind.title,
            "takes": list(kind.takes),
            "tells": kind.tells,
            "template": kind.template,
            "several": kind.several,
            "installed": [each.form() for each in self.describe(hook)],
            "draft": desk.draft,
            "versions": [version.form() for version in tuple(desk.versions)],
            "failures": [failure.form() for failure in self.failures.of(hook)],
            "waits": desk.waits,
            "revertible": desk.before is not None,
        }

    def _place(self, hook: HookName, replaces: int | None) -> int:
        """Where a hook goes among those installed."""
        installed = self.installed(hook)
        if replaces is None:
            if not KINDS[hook].several:
                return 0
            for version in reversed(self._desks[hook].versions):
                for index, each in enumerate(installed):
                    if each is version.hook:
                        return index
            return len(installed)
        if replaces > len(installed) or (replaces and not KINDS[hook].several):
            raise InvalidParametersError(
                "What this was to replace is not there any more.", "Look at what is installed."
            )
        return replaces

    def _install(self, hook: HookName, hooks: Installed) -> None:
        desk = self._desks[hook]
        if desk.before is None:
            desk.before = self.installed(hook)
        desk.made = hooks
        desk.waits = self.agent.is_running
        value: Any = hooks if KINDS[hook].several else next(iter(hooks), None)
        self.agent.set_hooks(**{hook: value or None})

    def _drop_old(self, hook: HookName) -> None:
        versions = self._desks[hook].versions
        installed = self.installed(hook)
        for old in versions[:-MOST_VERSIONS]:
            if all(old.hook is not each for each in installed):
                forget_source(old.hook.source.filename)
        del versions[:-MOST_VERSIONS]

    def _observe(self, event: Event, _signal: AbortSignal) -> None:
        if isinstance(event, HooksChanged):
            for name in event.names:
                hook = cast("HookName", name)
                if hook in KINDS:
                    self._forget_before(hook)
                    self._tell(hook)
        elif isinstance(event, TurnStart | AgentEnd):
            for hook, desk in self._desks.items():
                if desk.waits or (isinstance(event, AgentEnd) and self.failures.of(hook)):
                    desk.waits = False
                    self._tell(hook)

    def _forget_before(self, hook: HookName) -> None:
        """Code that replaced everything which was made here begins anew."""
        with self._lock:
            desk = self._desks[hook]
            installed = self.installed(hook)
            by_code = [id(each) for each in installed] != [id(each) for each in desk.made]
            if by_code and not any(isinstance(each, GuardedHook) for each in installed):
                desk.before = None

    def _provider(self) -> str:
        agent = self._agent()
        return "" if agent is None else provider_of(agent.llm_call)

    def _tell_failure(self, failure: Failure) -> None:
        self._tell(failure.hook, failure)

    def _tell(self, hook: HookName, failure: Failure | None = None) -> None:
        for listener in self._listeners:
            if (method := listener()) is not None:
                method(hook, failure)
