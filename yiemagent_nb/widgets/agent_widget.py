"""AgentWidget: an agent in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import traitlets
from anywidget import AnyWidget

from yiemagent_nb.core.messages import new_id
from yiemagent_nb.widgets import assets
from yiemagent_nb.widgets.chat_panel import ChatPanel
from yiemagent_nb.widgets.host import WidgetHost
from yiemagent_nb.widgets.panel import Panel
from yiemagent_nb.widgets.plain import PlainAgentWidget, default_agent
from yiemagent_nb.widgets.transcript_output import TranscriptOutput, in_kernel, publish

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["AgentWidget"]

_NO_WIDGETS = "This program cannot show the widget. AgentWidget(agent, plain=True) may do; agent.ask(...) always does."


class AgentWidget(AnyWidget):
    """An agent in a notebook: a header with its backend, and panels.

    Any number of views, and of widgets on one agent, stay in step. In a saved notebook the
    conversation stands as an output of its own below the widget; a live widget hides it.

    Args:
        agent: The agent; without one, ``Agent()``, which looks for a model server, a key, and
            else takes the embedded demo.
        panels: What it holds. Default: a ``ChatPanel``.
        height: The greatest height, as CSS has it.
        header: Show the backend and how things stand.
        transcript: Keep the conversation in the notebook's file.
        plain: Build a ``PlainAgentWidget`` instead, for programs that cannot load this front end.

    Example::

        AgentWidget(agent)
    """

    _esm = assets.SCRIPT
    _css = assets.STYLE

    height = traitlets.Unicode().tag(sync=True)
    _panel_names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _header = traitlets.Bool().tag(sync=True)
    _transcript_name = traitlets.Unicode().tag(sync=True)

    _host: WidgetHost | None = None  # until the widget is built, which may fail
    _transcript: TranscriptOutput | None = None

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """The widget, or its plain stand-in, which has the same methods."""
        if options.get("plain"):
            return cast(
                "Self", PlainAgentWidget(*args, **{name: options[name] for name in ("agent",) if name in options})
            )
        return super().__new__(cls, *args, **options)

    def __init__(
        self,
        agent: Agent | None = None,
        *,
        panels: Sequence[Panel] | None = None,
        height: str = "600px",
        header: bool = True,
        transcript: bool = True,
        plain: bool = False,  # noqa: ARG002 - __new__ reads it
    ) -> None:
        agent = default_agent() if agent is None else agent
        name = new_id("yna-transcript").replace("_", "-")
        self.agent = agent
        self.panels: tuple[Panel, ...] = tuple(panels) if panels is not None else (ChatPanel(agent),)
        super().__init__(
            height=height,
            _panel_names=[panel.name for panel in self.panels],
            _header=header,
            _transcript_name=name,
        )
        base = cast("Any", self)  # ipywidgets has no types
        host = WidgetHost(agent, self.panels, cast("Callable[[dict[str, Any]], None]", base.send))
        self._host = host
        self._transcript = TranscriptOutput(agent, name) if transcript else None

        def receive(_widget: object, content: object, _buffers: object) -> None:
            host.receive(content)

        base.on_msg(receive)

    def show(self) -> None:
        """Display the widget, and the transcript that the notebook's file keeps, in the cell that runs."""
        bundle = cast("tuple[Mapping[str, Any], Mapping[str, Any]] | None", cast("Any", self)._repr_mimebundle_())
        if bundle is None:
            return
        data, metadata = bundle
        publish({**data, "text/plain": f"{self!r}\n{_NO_WIDGETS}"}, metadata)
        if self._transcript is not None and in_kernel():
            self._transcript.show()

    def close(self) -> None:
        """Let go of the agent and take the widget out of the page. The agent goes on."""
        if self._host is not None:
            self._host.close()
        if self._transcript is not None:
            self._transcript.close()
        super().close()

    def __repr__(self) -> str:
        """The backend, not the conversation."""
        return f"AgentWidget({self.agent.backend_label})"

    def _ipython_display_(self) -> None:
        self.show()
