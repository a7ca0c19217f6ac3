"""HandCalls: the calls that a person makes by hand, the newest hundred, and what became of them."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections import OrderedDict
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol
from weakref import WeakKeyDictionary, WeakSet

from yiemagent_nb.core.call_stages import CallStage
from yiemagent_nb.core.errors import (
    AgentClosedError,
    ExecutionAbortedError,
    InvalidParametersError,
    ToolNotFoundError,
    YiemAgentError,
    describe_error,
)
from yiemagent_nb.core.events import ApprovalRequested, ApprovalResolved
from yiemagent_nb.core.lifecycle import error_result
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import Tool
from yiemagent_nb.core.validation import shorten
from yiemagent_nb.widgets.inspector.call_forms import Outcome, outcome_of
from yiemagent_nb.widgets.inspector.json_texts import read_arguments
from yiemagent_nb.widgets.inspector.throttle import Throttle
from yiemagent_nb.widgets.page_forms import AudioShelf, approval_form, audio_shelf, form_size, progress_form
from yiemagent_nb.widgets.panel_protocol import CallTool
from yiemagent_nb.widgets.texts import one_line

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["HandCalls", "hand_calls"]

MOST_CALLS = 100
MOST_AT_ONCE = 20
TELL_SECONDS = 0.1
"""How often a call that goes on is told of."""

LONGEST_TOLD_ARGUMENTS = 2_000
"""Characters of a call's arguments in lists; its details have all of them."""

MOST_KEPT = 20_000_000
"""Characters that the kept results have together, about."""

LONGEST_PROGRESS = 300

CallState = Literal["running", "waiting", "done", "failed", "cancelled"]


@dataclass(slots=True, eq=False)
class _HandCall:
    call: str
    name: str
    arguments_text: str
    hooks: bool
    started: float
    tool: Tool | None
    state: CallState = "running"
    duration: float | None = None
    waited: float = 0.0
    progress: float | None = None
    progress_text: str = ""
    approval: dict[str, Any] | None = None
    outcome: Outcome | None = None
    signal: AbortSignal = field(default_factory=AbortSignal)
    size: int = 0

    @property
    def is_over(self) -> bool:
        return self.state not in ("running", "waiting")

    def form(self) -> dict[str, Any]:
        return {
            "call": self.call,
            "name": self.name,
            "arguments_text": self.arguments_text,
            "hooks": self.hooks,
            "state": self.state,
            "started": self.started,
            "duration": self.duration,
            "waited": self.waited,
            "progress": self.progress,
            "progress_text": self.progress_text,
            "summary": "" if self.outcome is None else self.outcome.summary,
            "approval": self.approval,
        }


_current: ContextVar[_HandCall | None] = ContextVar("_current", default=None)
"""The call by hand in whose task this runs: what it asks a person is asked for it."""


class Teller(Protocol):
    """A panel that shows calls by hand."""

    def tell(self, event: dict[str, Any], *, whole: bool = False) -> None:
        """Tell the page of it."""
        ...


_histories: WeakKeyDictionary[object, HandCalls] = WeakKeyDictionary()


def hand_calls(agent: Agent) -> HandCalls:
    """The calls by hand of an agent, which all its panels share."""
    return _histories.get(agent) or _histories.setdefault(agent, HandCalls(agent, audio_shelf(agent)))


class HandCalls:
    """Makes calls, and keeps them.

    Args:
        agent: Whose tools are called.
        shelf: Keeps recordings that results have.
    """

    def __init__(self, agent: Agent, shelf: AudioShelf) -> None:
        self._held = weakref.ref(agent)
        self._shelf = shelf
        self._tellers: WeakSet[Teller] = WeakSet()
        self._lock = threading.Lock()
        self._calls: OrderedDict[str, _HandCall] = OrderedDict()

    @property
    def _agent(self) -> Agent:
        agent = self._held()
        if agent is None:
            raise AgentClosedError("The agent of this call is gone.", "Make another one.")
        return agent

    def tell(self, teller: Teller) -> None:
        """Let a panel tell, from any thread, what becomes of calls, as long as it lives."""
        self._tellers.add(teller)

    def _tell(self, form: dict[str, Any]) -> None:
        for teller in tuple(self._tellers):
            teller.tell({"type": "call", **form})

    def forms(self) -> list[dict[str, Any]]:
        """All calls, oldest first; long arguments are cut."""
        with self._lock:
            calls = list(self._calls.values())
        return [_in_list(call.form()) for call in calls]

    def details(self, name: str) -> dict[str, Any]:
        """A call with its arguments and its result, whole.

        Raises:
            InvalidParametersError: It is not kept, or not any more.
        """
        call = self._find(name)
        outcome = call.outcome
        return {
            **call.form(),
            "arguments_cut": False,
            "content": [] if outcome is None else outcome.content,
            "details": None if outcome is None else outcome.details,
            "raw": "" if outcome is None else outcome.raw,
            "problems": [] if outcome is None else list(outcome.problems),
            "fits": None if outcome is None else outcome.fits,
        }

    def begin(self, message: CallTool) -> None:
        """Make a call, and wait for nothing. From any thread.

        Raises:
            InvalidParametersError: The arguments are no JSON object, there is a call of that name, or too
                many go on.
            ToolNotFoundError: There is no such tool.
            AgentClosedError: The agent has no event loop to work on.
        """
        arguments = read_arguments(message.arguments_text)
        tool = self._agent.registered_tools.get(message.name)
        if tool is None:
            raise ToolNotFoundError(f"There is no tool named {shorten(message.name)} any more.", "Choose another.")
        call = _HandCall(
            call=message.call,
            name=message.name,
            arguments_text=message.arguments_text,
            hooks=message.hooks,
            started=time.time() * 1000,
            tool=tool,
        )
        self._keep(call)
        try:
            self._agent.start(lambda: self._make(call, arguments))
        except YiemAgentError:
            with self._lock:
                self._calls.pop(call.call, None)
            raise
        self._tell(_in_list(call.form()))

    def cancel(self, name: str) -> None:
        """Stop a call; one that is over stays as it is. From any thread.

        Raises:
            InvalidParametersError: It is not kept.
        """
        self._find(name).signal.abort("the person stopped the call")

    def observe(self, event: object) -> None:
        """Hear of approvals: those that calls by hand ask for belong to them."""
        match event:
            case ApprovalRequested() if (call := _current.get()) is not None and self._keeps(call):
                call.approval = approval_form(event)
                call.state = "waiting"
                self._tell(_in_list(call.form()))
            case ApprovalResolved():
                self._resolved(event.request_id)
            case _:
                pass

    def asks(self, request: ApprovalRequested) -> bool:
        """Whether a request stands at a call by hand."""
        with self._lock:
            approvals = [call.approval for call in self._calls.values() if call.approval is not None]
        return any(approval["request_id"] == request.request_id for approval in approvals)

    def _resolved(self, request_id: str) -> None:
        with self._lock:
            calls = list(self._calls.values())
        asked = [call for call in calls if call.approval is not None and call.approval["request_id"] == request_id]
        for call in asked:
            call.approval = None
            if not call.is_over:
                call.state = "running"
            self._tell(_in_list(call.form()))

    def _keeps(self, call: _HandCall) -> bool:
        return self._calls.get(call.call) is call

    def _find(self, name: str) -> _HandCall:
        call = self._calls.get(name)
        if call is None:
            raise InvalidParametersError("This call is not kept any more.", f"The newest {MOST_CALLS} are.")
        return call

    def _keep(self, call: _HandCall) -> None:
        with self._lock:
            if call.call in self._calls:
                raise InvalidParametersError("There is a call of this name already.", "Reload the page.")
            if sum(not each.is_over for each in self._calls.values()) >= MOST_AT_ONCE:
                raise InvalidParametersError(
                    f"{MOST_AT_ONCE} calls by hand go on already.", "Wait for one of them, or cancel it."
                )
            self._calls[call.call] = call
            self._drop()

    def _drop(self) -> None:
        """Forget old calls that are over, where there are too many, or their results too large."""
        kept = sum(call.size for call in self._calls.values())
        for name, call in list(self._calls.items())[:-1]:
            if len(self._calls) <= MOST_CALLS and kept <= MOST_KEPT:
                return
            if call.is_over:
                kept -= call.size
                del self._calls[name]

    async def _make(self, call: _HandCall, arguments: dict[str, Any]) -> None:
        _current.set(call)  # in this task alone
        told = Throttle(lambda: self._tell(_in_list(call.form())), TELL_SECONDS)
        began = time.perf_counter()
        ran: list[float] = []

        def got_on(stage: CallStage) -> None:
            if stage.stage == "runs" and stage.by_hand and _current.get() is call and not ran:
                ran.append(time.perf_counter())
                call.waited = ran[0] - began
                told.poke()

        def take(update: ToolResult) -> None:
            call.progress = progress_form(update)
            call.progress_text = one_line(update.text, LONGEST_PROGRESS)
            told.poke()

        state: CallState = "cancelled"  # where this task is
        leave = self._agent.observe_calls(got_on)
        try:
            try:
                result = await self._agent.call_tool(
                    call.name, arguments, hooks=call.hooks, on_update=take, signal=call.signal
                )
            except Exception as error:  # such as of an agent that was shut down meanwhile
                known = error if isinstance(error, YiemAgentError) else YiemAgentError(describe_error(error))
                result = error_result(known)
            finally:
                leave()
                ended = time.perf_counter()
                call.duration = ended - (ran[0] if ran else began)
            if call.signal.aborted and result.is_error:
                result = error_result(ExecutionAbortedError(f"{call.name} was stopped: you stopped it."))
            # In a thread, since a result may have megabytes.
            call.outcome = await asyncio.to_thread(outcome_of, call.tool, result, self._shelf)
            state = "done" if not result.is_error else "cancelled" if call.signal.aborted else "failed"
        finally:
            self._over(call, state)

    def _over(self, call: _HandCall, state: CallState) -> None:
        call.size = len(call.arguments_text)
        if (outcome := call.outcome) is not None:
            call.size += len(outcome.raw) + form_size({"content": outcome.content, "details": outcome.details})
        call.tool = None
        call.approval = None
        call.state = state
        with self._lock:
            self._drop()
        self._tell(_in_list(call.form()))


def _in_list(form: dict[str, Any]) -> dict[str, Any]:
    """A call as lists have it."""
    text: str = form["arguments_text"]
    cut = len(text) > LONGEST_TOLD_ARGUMENTS
    return {**form, "arguments_text": text[:LONGEST_TOLD_ARGUMENTS], "arguments_cut": cut}
