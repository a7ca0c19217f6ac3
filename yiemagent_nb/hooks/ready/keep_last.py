"""Send only the newest messages, and never a result without its call."""

from yiemagent_nb.core.hooks import AgentContext
from yiemagent_nb.core.messages import ToolResultMessage
from yiemagent_nb.core.state import AgentState

KEPT = 20


def prepare_context(state: AgentState) -> AgentContext:
    """Leave out what is older; the history itself keeps everything."""
    messages = state.messages
    start = max(0, len(messages) - KEPT)
    while start and isinstance(messages[start], ToolResultMessage):
        start -= 1  # back to the answer that made the call
    return AgentContext(state.system_prompt, messages[start:], state.tools)
