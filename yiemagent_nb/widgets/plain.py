"""PlainAgentWidget: the conversation with the widgets that every Jupyter program has."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, cast

import ipywidgets

from yiemagent_nb.core.errors import YiemAgentError
from yiemagent_nb.core.events import (
    AgentEnd,
    AgentError,
    AgentStart,
    ApprovalRequested,
    ApprovalResolved,
    Event,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    QuestionAnswered,
    QuestionAsked,
)
from yiemagent_nb.core.messages import new_id
from yiemagent_nb.core.runtime import running_loop
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.widgets.plain_cards import approval_card, button, close_tree, question_card
from yiemagent_nb.widgets.static_transcript import StaticTranscript
from yiemagent_nb.widgets.transcript_output import REST, in_kernel, publish

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["PlainAgentWidget", "default_agent"]

FRAME = 0.5
"""Seconds between two renewals of the text: each one sends the whole of it."""

TIME_TO_LOOK = 0.5
"""Seconds before a card that takes the place of another can be answered."""

_AT_ONCE = (AgentStart, AgentEnd, ApprovalRequested, ApprovalResolved, QuestionAsked, QuestionAnswered)
_WIDE = {"width": "auto"}  # a Layout made here would be a widget of every kernel


def default_agent() -> Agent:
    """The agent of a widget that was given none."""
    from yiemagent_nb import Agent  # noqa: PLC0415 - the package's own, which has a default backend

    return Agent()


class PlainAgentWidget(ipywidgets.VBox):
    """The conversation, a text field, buttons and what waits for a person, of ``ipywidgets`` alone.

    For programs that cannot load the front end of ``AgentWidget``. Unlike there, what was said is
    part of the widget's state, and so of a notebook that is saved with it. It keeps its agent, and the
    agent its MCP servers, until ``close``, even when its cell runs again.

    Args:
        agent: The agent; without one, ``Agent()``.
    """

    def __init__(self, agent: Agent | None = None) -> None:
        agent = default_agent() if agent is None else agent
        self.agent = agent
        self._said = ipywidgets.HTML(layout=_WIDE)
        self._live = ipywidgets.HTML(layout=_WIDE)
        self._asked = ipywidgets.VBox()
        self._problem = ipywidgets.HTML()
        self._text = ipywidgets.Textarea(placeholder="Ask anything", layout=_WIDE)
        self._output_name = new_id("yna-widget")
        self._is_shown = False
        self._is_frozen = False
        self._cards: dict[str, ipywidgets.Box] = {}
        self._last_gone = float("-inf")
        self._pieces: list[str] = []
        self._transcript = StaticTranscript()
        self._pause = FRAME
        self._timer: asyncio.TimerHandle | None = None
        self._stop = button("Stop", agent.abort)
        buttons = ipywidgets.HBox(
            [
                button("Send", lambda: self._put(agent.input_channel.put_nowait)),
                button("Queue", lambda: self._put(agent.follow_up_channel.put_nowait)),
                self._stop,
            ]
        )
        cast("Any", super()).__init__([self._said, self._live, self._asked, self._problem, self._text, buttons])
        self._unsubscribe = agent.subscribe(self._observe)
        self._leave = agent.attend()
        self._refresh()

    def show(self) -> None:
        """Display the widget in the cell that runs."""
        data = cast("dict[str, Any] | None", cast("Any", self)._repr_mimebundle_())
        if data is not None:
            publish(data, name=self._output_name)
            self._is_shown = True

    def freeze(self) -> None:
        """Replace the widget, wherever it is shown, by the conversation as it is now: see ``AgentWidget.freeze``."""
        if self._is_frozen:
            return
        if in_kernel():
            bundle = self._transcript.bundle(self.agent.state.messages)
            publish(bundle, name=self._output_name, update=self._is_shown)
        self._is_frozen = True  # only now: where something failed, it can be tried again
        self.close()

    def close(self) -> None:
        """Let go of the agent and take the widget out of the page. The agent goes on."""
        self._unsubscribe()
        self._leave()
        if self._timer is not None:
            self._timer.cancel()
        close_tree(self)

    def __repr__(self) -> str:
        """The backend, not the conversation."""
        return f"PlainAgentWidget({self.agent.backend_label})"

    def _ipython_display_(self) -> None:
        self.show()

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
        if loop is None or isinstance(event, _AT_ONCE):
            self._refresh()
        elif self._timer is None:
            self._timer = loop.call_later(self._pause, self._refresh)

    def _refresh(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        start = time.monotonic()
        cast("Any", self._said).value = self._transcript.html(self.agent.state.messages)
        self._pause = max(FRAME, REST * (time.monotonic() - start))
        cast("Any", self._live).value = f"<pre style='white-space:pre-wrap'>{escape(''.join(self._pieces))}</pre>"
        cast("Any", self._stop).disabled = not self.agent.is_running
        self._show_cards()

    def _show_cards(self) -> None:
        """Show what waits for a person; a card stays the same while it waits, with what was entered in it."""
        agent, complain = self.agent, self._complain
        not_before = self._last_gone + TIME_TO_LOOK
        makers: dict[str, Callable[[], ipywidgets.Box]] = {
            **{
                each.request_id: partial(approval_card, agent, each, complain, not_before)
                for each in agent.approvals.pending
            },
            **{each.request_id: partial(question_card, agent, each, complain) for each in agent.questions.pending},
        }
        if makers.keys() == self._cards.keys():
            return
        gone = [card for name, card in self._cards.items() if name not in makers]
        self._cards = {name: self._cards[name] if name in self._cards else make() for name, make in makers.items()}
        cast("Any", self._asked).children = list(self._cards.values())
        if gone:
            self._last_gone = time.monotonic()
        for card in gone:
            close_tree(card)
