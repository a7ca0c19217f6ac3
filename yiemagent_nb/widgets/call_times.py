"""CallTimes: how long calls took, which the history does not say."""

from __future__ import annotations

from yiemagent_nb.core.events import AgentEnd, Event, HistoryChanged, MessageEnd, ToolExecutionEnd
from yiemagent_nb.core.messages import ToolResultMessage
from yiemagent_nb.widgets.by_identity import ByIdentity

__all__ = ["CallTimes"]


class CallTimes:
    """Learns from an agent's events; called with a result, gives the seconds of its call, or None.

    A call that never ran has 0.0.
    """

    def __init__(self) -> None:
        self._ended: dict[str, float] = {}
        self._took = ByIdentity[float]()  # the ids of calls come again in other answers

    def __call__(self, result: ToolResultMessage) -> float | None:
        """How many seconds the call of a result took, where it ended while this listened."""
        return self._took.get(result)

    def __len__(self) -> int:
        """Of how many results it knows."""
        return len(self._took)

    def observe(self, event: Event) -> None:
        """Take what an event tells of calls."""
        match event:
            case ToolExecutionEnd():
                self._ended[event.tool_call_id] = event.duration
            case MessageEnd(message=ToolResultMessage() as result):
                seconds = self._ended.pop(result.tool_call_id, None)
                if seconds is not None:
                    self._took.put(result, seconds)
            case AgentEnd() | HistoryChanged():
                self._ended.clear()
            case _:
                pass
