"""JsonlSink: events as lines of JSON in a file."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from yiemagent_nb.core.events import Event, MessageUpdate, ToolExecutionUpdate, Trace, dump_event

__all__ = ["JsonlSink"]


class JsonlSink:
    """Appends each event to a file: its JSON form, with ``time`` in milliseconds since 1970.

    The file is opened at the first event. Deltas and steps are buffered; any other event flushes,
    so that what happened stands in the file when the agent goes on.

    Args:
        path: The file; its folder must be there.

    Example::

        with JsonlSink("events.jsonl") as sink:
            agent = Agent(backend, event_sink=sink)
            await agent.prompt("hello")
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file: TextIO | None = None

    def __call__(self, event: Event) -> None:
        """Write one event.

        Raises:
            OSError: The file cannot be written.
        """
        if self._file is None:
            self._file = self.path.open("a", encoding="utf-8")
        line = json.dumps({"time": time.time_ns() // 1_000_000, **dump_event(event)}, ensure_ascii=False)
        self._file.write(line + "\n")
        if not isinstance(event, MessageUpdate | ToolExecutionUpdate | Trace):
            self._file.flush()

    def close(self) -> None:
        """Write what is buffered and close the file; a later event opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        """The sink itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()
