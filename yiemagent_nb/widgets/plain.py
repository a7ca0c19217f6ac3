"""PlainAgentWidget: the conversation with the widgets that every Jupyter program has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any, cast

import ipywidgets

from yiemagent_nb.core.errors import YiemAgentError
from yiemagent_nb.core.events import (
    AgentEnd,
    AgentError,
    AgentStart,
    ApprovalChoice,
    ApprovalRequested,
    Event,
    MessageEnd,
    MessageStart,
    MessageUpdate,
)
from yiemagent_nb.core.runtime import running_loop
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.widgets.static_transcript import transcript_bundle

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["PlainAgentWidget", "default_agent"]

FRAME = 0.5
"""Seconds between two renewals of the text: each one sends the whole of it."""

_WIDE = ipywidgets.Layout(width="auto")


def default_agent() -> Agent:
    """The agent of a widget that was given none."""
    from yiemagent_nb import Agent  # noqa: PLC0415 - the package's own, which has a default backend

    return Agent()


class PlainAgentWidget(ipywidgets.VBox):
    """The conversation, a text field and buttons, of ``ipywidgets`` alone.

    For programs that cannot load the front end of ``AgentWidget``. Unlike there, what was said is
    part of the widget's state, and so of a notebook that is saved with it.

    Args:
        agent: The agent; without one, ``Agent()``.
    """

    def __init__(self, agent: Agent | None = None) -> None:
        agent = default_agent() if agent is None else agent
        self.agent = agent
        self._said = ipywidgets.HTML(layout=_WIDE)
        self._live = ipywidgets.HTML(layout=_WIDE)
        self._approvals = ipywidgets.VBox()
        self._problem = ipywidgets.HTML()
        self._text = ipywidgets.Textarea(placeholder="Ask anything", layout=_WIDE)
        self._pieces: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._stop = _button("Stop", agent.abort)
        buttons = ipywidgets.HBox(
            [
                _button("Send", lambda: self._put(agent.input_channel.put_nowait)),
                _button("Queue", lambda: self._put(agent.follow_up_channel.put_nowait)),
                self._stop,
            ]
        )
        cast("Any", super()).__init__([self._said, self._live, self._approvals, self._problem, self._text, buttons])
        self._unsubscribe = agent.subscribe(self._observe)
        self._refresh()

    def show(self) -> None:
        """Display the widget in the cell that runs."""
        from IPython.display import display  # noqa: PLC0415  # pyright: ignore[reportUnknownVariableType]

        display(self)

    def close(self) -> None:
        """Let go of the agent and take the widget out of the page. The agent goes on."""
        self._unsubscribe()
        if self._timer is not None:
            self._timer.cancel()
        super().close()

    def __repr__(self) -> str:
        """The backend, not the conversation."""
        return f"PlainAgentWidget({self.agent.backend_label})"

    def _put(self, put: Callable[[str], None]) -> None:
        text = str(cast("Any", self._text).value)
        if not text.strip():
            return
        try:
            put(text)
        except YiemAgentError as error:
            self._complain(str(error))
        else:
            cast("Any", self._text).value = ""
            self._complain("")

    def _complain(self, text: str) -> None:
        cast("Any", self._problem).value = f"<b>{escape(text)}</b>" if text else ""

    def _observe(self, event: Event, _signal: AbortSignal) -> None:
        match event:
            case MessageStart() | MessageEnd():
                self._pieces.clear()
            case MessageUpdate(kind="text"):
                self._pieces.append(event.delta)
            case AgentError():
                self._complain(event.message)
            case _:
                pass
        loop = running_loop()
        if loop is None or isinstance(event, AgentStart | AgentEnd | ApprovalRequested):
            self._refresh()
        elif self._timer is None:
            self._timer = loop.call_later(FRAME, self._refresh)

    def _refresh(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        cast("Any", self._said).value = transcript_bundle(self.agent.state.messages)["text/html"]
        cast("Any", self._live).value = f"<pre style='white-space:pre-wrap'>{escape(''.join(self._pieces))}</pre>"
        cast("Any", self._stop).disabled = not self.agent.is_running
        cast("Any", self._approvals).children = [self._approval(each) for each in self.agent.approvals.pending]

    def _approval(self, request: ApprovalRequested) -> ipywidgets.HBox:
        def answer(choice: ApprovalChoice) -> None:
            try:
                self.agent.approvals.resolve(request.request_id, choice)
            except YiemAgentError as error:
                self._complain(str(error))

        call = ipywidgets.HTML(f"Allow <code>{escape(request.tool_name)}({escape(str(dict(request.args)))})</code>?")
        return ipywidgets.HBox(
            [
                call,
                _button("Allow once", lambda: answer("allow_once")),
                _button("Allow for this session", lambda: answer("allow_session")),
                _button("Deny", lambda: answer("deny")),
            ]
        )


def _button(text: str, action: Callable[[], None]) -> ipywidgets.Button:
    def click(_button: object) -> None:
        action()

    button = ipywidgets.Button(description=text, layout=ipywidgets.Layout(width="auto"))
    cast("Any", button).on_click(click)
    return button
