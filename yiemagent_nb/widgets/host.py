"""WidgetHost: what stands behind a widget, whatever draws it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from yiemagent_nb.core.errors import InvalidParametersError, YiemAgentError
from yiemagent_nb.core.events import BackendChanged, Event, ToolsChanged
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.widgets import assets
from yiemagent_nb.widgets.audience import Audience
from yiemagent_nb.widgets.backend_picker import BackendPicker
from yiemagent_nb.widgets.frames import FrameQueue
from yiemagent_nb.widgets.panel import Panel
from yiemagent_nb.widgets.protocol import (
    Bye,
    Heartbeat,
    Hello,
    LoadPart,
    PageEvent,
    PageMessage,
    SetBackend,
    SetThinking,
    read_page_message,
)
from yiemagent_nb.widgets.suggestions import suggestions
from yiemagent_nb.widgets.texts import one_line
from yiemagent_nb.widgets.thinking import thinking_form

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["WidgetHost"]

REMEMBERED_TICKETS = 256
LONGEST_LABEL = 80


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
        self.picker = BackendPicker(agent, self._post_backend)
        self._tickets: deque[str] = deque(maxlen=REMEMBERED_TICKETS)
        self._tickets_lock = threading.Lock()
        self._unsubscribe = agent.subscribe(self._observe)
        self._leave = agent.attend()

    def close(self) -> None:
        """Let go of the agent, and send nothing more."""
        self._unsubscribe()
        self._leave()
        self.picker.close()
        self.frames.close()

    def receive(self, content: object) -> None:
        """Take what the page sent. From any thread; never raises for what the page did wrong."""
        ticket = _ticket(content)
        try:
            message = read_page_message(content)
            with self._tickets_lock:
                repeated = bool(ticket) and ticket in self._tickets
                if ticket:
                    self._tickets.append(ticket)
            if not repeated:
                self._handle(message)
        except ValidationError as error:
            self._refuse(ticket, InvalidParametersError(f"The page sent something malformed: {_summary(error)}."))
        except YiemAgentError as error:
            with self._tickets_lock:
                if ticket in self._tickets:
                    self._tickets.remove(ticket)
            self._refuse(ticket, error)
        else:
            if ticket:
                self.post([{"type": "accepted", "ticket": ticket}])

    def post(self, events: Iterable[PageEvent]) -> None:
        """Send events to the page with the next batch."""
        self.frames.post(events)

    def _observe(self, event: Event, _signal: AbortSignal) -> None:
        self.frames.bind()
        with self.frames.lock:
            for panel in self.panels:
                self.post(panel.observe(event))
            match event:
                case ToolsChanged():
                    self.post([{"type": "tools", **self._tools()}])
                case BackendChanged():
                    self._post_backend()
                case _:
                    pass

    def _snapshot(self) -> dict[str, Any]:
        parts = {panel.name: panel.snapshot() for panel in self.panels}
        return {**parts, "tools": self._tools(), "backend": self._backend()}

    def _backend(self) -> dict[str, Any]:
        return {**self.picker.form(), "thinking": thinking_form(self.agent)}

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
            "suggestions": [*suggestions(tools), *self.picker.suggestions()],
        }

    def _post_backend(self) -> None:
        self.post([{"type": "backend", **self._backend()}, {"type": "tools", **self._tools()}])

    def _handle(self, message: PageMessage) -> None:
        match message:
            case Hello() | Heartbeat():
                greet = isinstance(message, Hello)
                self.audience.hear(message.page)
                if greet:
                    self.picker.look()
                self.frames.wake(message.last_seq, greet=greet)
                self.post([{"type": "alive", "total": len(self.agent.state.messages)}])
            case Bye():
                self.audience.miss(message.page)
                self.frames.sleep()
            case LoadPart():
                self.post([{"type": "part", "name": message.name, "text": assets.part(message.name)}])
            case SetBackend():
                self.picker.choose(message.key)
            case SetThinking():
                self.agent.set_thinking_level(message.level)
            case _:
                if not any(panel.handle(message, self.post) for panel in self.panels):
                    raise InvalidParametersError(f"No panel of this widget takes {message.type!r}.")

    def _refuse(self, ticket: str, error: YiemAgentError) -> None:
        self.post(
            [{"type": "refused", "ticket": ticket, "code": error.code, "message": error.message, "hint": error.hint}]
        )


def _ticket(content: object) -> str:
    if not isinstance(content, dict):
        return ""
    ticket = cast("dict[str, Any]", content).get("ticket", "")
    return ticket if isinstance(ticket, str) else ""


def _summary(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'message'}: {first['msg']}"
