"""An agent in a notebook: ``AgentWidget``, and the panels that it holds."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from yiemagent_nb.widgets.chat_panel import ChatPanel
from yiemagent_nb.widgets.panel import Panel
from yiemagent_nb.widgets.plain import PlainAgentWidget

if TYPE_CHECKING or find_spec("anywidget") is not None:
    from yiemagent_nb.widgets.agent_widget import AgentWidget
else:
    AgentWidget = PlainAgentWidget

__all__ = ["AgentWidget", "ChatPanel", "Panel", "PlainAgentWidget"]
