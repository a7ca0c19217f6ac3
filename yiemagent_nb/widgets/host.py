"""WidgetHost: what stands behind a widget, whatever draws it."""

from __future__ import annotations

import logging
import secrets
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic import ValidationError

from yiemagent_nb.core.errors import InvalidParametersError, YiemAgentError, describe_error
from yiemagent_nb.core.events import Event, ToolsChanged
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.widgets import assets
from yiemagent_nb.widgets.audience import Audience
from yiemagent_nb.widgets.backend_header import BackendHeader
from yiemagent_nb.widgets.frames import FrameQueue
from yiemagent_nb.widgets.in_thread import in_thread
from yiemagent_nb.widgets.page_message import Acting
from yiemagent_nb.widgets.panel import Panel
from yiemagent_nb.widgets.protocol import (
    Bye,
    Heartbeat,
    Hello,
    LoadPart,
    PageEvent,
    PageMessage,
    read_page_message,
)
from yiemagent_nb.widgets.suggestions import suggestions
from yiemagent_nb.widgets.texts import one_line

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["WidgetHost"]

REMEMBERED_TICKETS = 256
LONGEST_LABEL = 80
LONGEST_ERROR = 300

_log = logging.getLogger(__name__)


_Start = Callable[[Callable[[], Coroutine[Any, Any, object]]], None]


class _Later(NamedTuple):
    """Work that is to be done before a request is answered, and what starts it."""

    work: Coroutine[Any, Any, None]
    start: _Start


class WidgetHost:
    """Carries events from an agent to a page and requests from the page to the agent.

    Args:
        agent: The agent.
        panels: What the page shows.
        send: Sends one batch to the page; called in order, from any thread.
    """

    def __init__(self, agent: Agent, panels: Sequence[Panel], send: Callable[[dict[str, Any]], None]) -> None:
        self.agent = agent
        self.panels = tuple(panels)
        self.audience = Audience()
        self.frames = FrameQueue(send, self._snapshot)
        self.frames.bind()  # most likely the agent's loop; its events will tell
        self.backend = BackendHeader(agent, self._post_backend)
        self._tickets: deque[str] = deque(maxlen=REMEMBERED_TICKETS)
        self._in_work: set[str] = set()
        """Tickets that are answered later."""
        self._tickets_lock = threading.Lock()
        self._session = secrets.token_urlsafe(16)
        """What a page must bring back with what acts: one that was saved does not know it."""
        self._disconnect = [panel.connect(self.post) for panel in self.panels]
        self._unsubscribe = agent.subscribe(self._observe)
        self._leave = agent.attend()

    def close(self) -> None:
        """Let go of the agent, and send nothing more."""
        self._unsubscribe()
        self._leave()
        for disconnect in self._disconnect:
            disconnect()
        self.backend.close()
        self.frames.close()

    def receive(self, content: object, buffers: Sequence[Any] = ()) -> None:
        """Take what the page sent. From any thread; never raises for what the page did wrong."""
        ticket = _ticket(content)
        later: _Later | None = None
        try:
            message = read_page_message(content)
        except ValidationError as error:
            self._refuse(ticket, InvalidParametersError(f"The page sent something malformed: {_summary(error)}."))
            return
        try:
            with self._tickets_lock:
                if ticket in self._in_work:
                    return
                repeated = bool(ticket) and ticket in self._tickets
                if ticket:
                    self._tickets.append(ticket)
            if not repeated:
                later = self._handle(message, buffers)
        except Exception as error:
            self._take_back(ticket)
            self._refuse(ticket, _sayable(error))
        else:
            if later is not None:
                self._answer_after(later, ticket)
            elif ticket:
                self.post([{"type": "accepted", "ticket": ticket}])

    def post(self, events: Iterable[PageEvent]) -> None:
        """Send events to the page with the next batch."""
        self.frames.post(events)

    def _answer_after(self, later: _Later, ticket: str) -> None:
        """Answer a request when its work is done."""
        with self._tickets_lock:
            self._in_work.add(ticket)

        async def run() -> None:
            answer: PageEvent = {"type": "accepted", "ticket": ticket}
            try:
                await later.work
            except Exception as error:
                self._take_back(ticket)
                answer = _refusal(ticket, _sayable(error))
            finally:
                with self._tickets_lock:
                    self._in_work.discard(ticket)
            self.post([answer])

        try:
            later.start(run)
        except Exception as error:  # such as of an agent that has no event loop any more
            later.work.close()
            with self._tickets_lock:
                self._in_work.discard(ticket)
            self._take_back(ticket)
            self._refuse(ticket, _sayable(error))

    def _take_back(self, ticket: str) -> None:
        """A request that was refused may be made again."""
        with self._tickets_lock:
            if ticket in self._tickets:
                self._tickets.remove(ticket)

    def _observe(self, event: Event, _signal: AbortSignal) -> None:
        self.frames.bind()
        with self.frames.lock:
            for panel in self.panels:
                self.post(panel.observe(event))
            self.backend.observe(event)
            if isinstance(event, ToolsChanged):
                self.post([{"type": "tools", **self._tools()}])

    def _snapshot(self) -> dict[str, Any]:
        parts = {panel.name: panel.snapshot() for panel in self.panels}
        return {**parts, "session": self._session, "tools": self._tools(), "backend": self.backend.form()}

    def _tools(self) -> dict[str, Any]:
        tools = self.agent.state.tools.values()
        return {
            "tools": [
                {
                    "name": tool.name,
                    "label": one_line(tool.label, LONGEST_LABEL),
                    "source": one_line(tool.source, LONGEST_LABEL),
                }
                for tool in tools
            ],
            "suggestions": [*suggestions(tools), *self.backend.picker.suggestions()],
        }

    def _post_backend(self) -> None:
        with self.frames.lock:  # what is built later goes over later
            self.post([{"type": "backend", **self.backend.form()}, {"type": "tools", **self._tools()}])

    def _handle(self, message: PageMessage, buffers: Sequence[Any]) -> _Later | None:
        """Do what the page asks; returns what is to be awaited before it is answered."""
        match message:
            case Hello() | Heartbeat():
                greet = isinstance(message, Hello)
                self.audience.hear(message.page)
                self.frames.wake(message.last_seq, greet=greet)
                self.post([{"type": "alive", "total": len(self.agent.state.messages)}])
                if greet:
                    self.backend.greet()
            case Bye():
                self.audience.miss(message.page)
                if not self.audience:
                    self.frames.sleep()
            case LoadPart():
                self.post([{"type": "part", "name": message.name, "text": assets.part(message.name)}])
            case _:
                return self._offer(message, buffers)
        return None

    def _offer(self, message: PageMessage, buffers: Sequence[Any]) -> _Later | None:
        """Let the header or a panel do what the page asks."""
        if isinstance(message, Acting) and not secrets.compare_digest(
            message.session.encode("utf-8", "replace"), self._session.encode()
        ):
            raise InvalidParametersError(
                "The page does not belong to this session of the kernel, so nothing was done.", "Run the cell again."
            )
        taken = self.backend.handle(message, buffers)
        start: _Start = in_thread
        for panel in self.panels:
            if taken is not False:
                break
            taken = panel.handle(message, self.post, buffers)
            start = self.agent.start
        if taken is False:
            raise InvalidParametersError(f"No panel of this widget takes {message.type!r}.")
        return None if taken is True else _Later(taken, start)

    def _refuse(self, ticket: str, error: YiemAgentError) -> None:
        self.post([_refusal(ticket, error)])


def _sayable(error: Exception) -> YiemAgentError:
    """An error as the page may say it. One that nobody foresaw, such as of a user's own code, is logged whole."""
    if isinstance(error, YiemAgentError):
        return error
    _log.error("what a page asked for failed", exc_info=error)
    return YiemAgentError(
        f"It failed with {one_line(describe_error(error), LONGEST_ERROR)}.", "The kernel's log has more of it."
    )


def _refusal(ticket: str, error: YiemAgentError) -> PageEvent:
    return {"type": "refused", "ticket": ticket, "code": error.code, "message": error.message, "hint": error.hint}


def _ticket(content: object) -> str:
    if not isinstance(content, dict):
        return ""
    ticket = cast("dict[str, Any]", content).get("ticket", "")
    return ticket if isinstance(ticket, str) else ""


def _summary(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'message'}: {first['msg']}"
