"""ProtocolLog: what crossed the connection to one server, message by message, in both directions.

What is kept is bounded, in entries and in bytes. Secrets are masked when an entry is read, so that those
that became known later are too. ``log_writer`` fills it.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, islice
from typing import Final, Literal, NamedTuple

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.redaction import mask_keys

__all__ = ["MAX_MESSAGE_BYTES", "Direction", "Kept", "LogEntry", "ProtocolLog"]

Direction = Literal["out", "in", "stderr", "rubbish", "state"]
"""``out``: to the server, ``in``: from it, ``stderr``: a line that its process wrote to its standard error,
``rubbish``: something that came and is no message, ``state``: what became of the connection."""

MAX_ENTRIES: Final = 1_000
MAX_BYTES: Final = 2 << 20
"""How much a log keeps; the oldest entries go first."""

MAX_MESSAGE_BYTES: Final = 64 << 10
"""Of a longer message the beginning is kept."""

ENTRY_BYTES = 400
"""What an entry takes beside its text."""

MAX_LATE = 250
LOOKED_AT = 4
"""So many times what is shown of a text is masked, so that no secret stands at its end in part."""

_log = logging.getLogger("yiemagent_nb")


class Kept(NamedTuple):
    """What is kept of an entry beside its number; the fields are those of ``LogEntry``."""

    time: float
    direction: Direction
    method: str
    id: str | int | None
    size: int
    seconds: float | None
    is_error: bool
    content: bytes


@dataclass(frozen=True, slots=True)
class LogEntry:
    """Something that crossed the connection to a server. All that came from there is untrusted.

    Args:
        number: Grows by one from entry to entry, from 1; none is used twice.
        time: When it crossed, in seconds since 1970.
        direction: Which way it went; see ``Direction``.
        method: The method of a request, of a notification, or of the request that is answered; the new state
            of a ``state`` entry. Empty where it is not known.
        id: The JSON-RPC id of a request or an answer.
        size: The bytes of the whole message. Where it was no text on its way and is large, they are estimated.
        seconds: For an answer, what passed since its request.
        is_error: Whether it is an error, or a result that says so (``isError``).
        content: What is kept of the message, secrets and all: ``text`` is for reading.
    """

    number: int
    time: float
    direction: Direction
    method: str
    id: str | int | None
    size: int
    seconds: float | None
    is_error: bool
    content: bytes

    def __repr__(self) -> str:
        """All but the text."""
        return f"<LogEntry {self.number} {self.direction} {self.method or 'no method'} {self.size} bytes>"

    @property
    def left_out(self) -> int:
        """How many bytes at the end are not kept."""
        return max(0, self.size - len(self.content))

    @property
    def text(self) -> str:
        """The message: JSON, a line, or words. Without secrets; a long one ends with how much is left out."""
        text = mask_keys(_decoded(self.content, cut=self.left_out > 0))
        return f"{text}… ({self.left_out:,} bytes left out)" if self.left_out else text

    def beginning(self, characters: int = 200) -> str:
        """The first characters of ``text``, in less time where it is long."""
        looked_at = LOOKED_AT * characters
        text = mask_keys(_decoded(self.content[:looked_at], cut=True))
        return text if len(text) <= characters and looked_at >= self.size else f"{text[: characters - 1]}…"


class ProtocolLog:
    """Keeps the newest entries of one server: 1,000 at most, of 2 MiB together, over all its connections.

    All of it may be used from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: deque[tuple[int, Kept]] = deque()
        self._late: deque[Callable[[], Kept]] = deque()
        self._bytes = 0
        self._numbers = count(1)
        self._listeners: tuple[Callable[[LogEntry], None], ...] = ()

    def __len__(self) -> int:
        """How many entries are kept."""
        self.settle()
        return len(self._entries)

    def __repr__(self) -> str:
        """How many entries there are."""
        return f"<ProtocolLog of {len(self)} entries>"

    def entries(self, before: int | None = None, limit: int = 200) -> list[LogEntry]:
        """The newest entries, oldest first.

        Args:
            before: Only those before the entry of this number. Default: all.
            limit: How many at most.
        """
        with self._lock:
            self._settle()
            kept = (each for each in reversed(self._entries) if before is None or each[0] < before)
            newest = list(islice(kept, max(0, limit)))
        return [LogEntry(number, *entry) for number, entry in reversed(newest)]

    def entry(self, number: int) -> str:
        """The whole text of an entry, as far as it is kept.

        Raises:
            InvalidParametersError: There is no such entry, or not any more.
        """
        found = next(iter(self.entries(before=number + 1, limit=1)), None)
        if found is None or found.number != number:
            raise InvalidParametersError(
                f"The protocol log has no entry {number}.", "It keeps the newest: ask entries() which there are."
            )
        return found.text

    def subscribe(self, listener: Callable[[LogEntry], None]) -> Callable[[], None]:
        """Call ``listener(entry)`` for each further entry, on the server's event loop; returns what takes it back."""
        with self._lock:
            self._settle()
            self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            with self._lock:
                self._listeners = tuple(each for each in self._listeners if each is not listener)

        return unsubscribe

    def clear(self) -> None:
        """Forget all entries. Numbers go on."""
        with self._lock:
            self._settle()
            self._entries.clear()
            self._bytes = 0

    # For who writes

    def add(self, entry: Kept) -> None:
        """Keep a further entry, and tell the listeners."""
        with self._lock:
            self._settle()
            number = self._keep(entry)
            listeners = self._listeners
        self._tell(number, entry, listeners)

    def add_late(self, make: Callable[[], Kept]) -> bool:
        """Keep a further entry that is made when somebody reads or listens, or ``settle`` is called.

        Returns:
            Whether it is the first that waits, so that somebody has to see that ``settle`` is called soon.
        """
        if self._listeners:
            self.add(make())
            return False
        self._late.append(make)
        if len(self._late) > MAX_LATE:
            self.settle()
        return len(self._late) == 1

    def settle(self) -> None:
        """Make the entries that were added late."""
        if self._late:
            with self._lock:
                self._settle()

    def _settle(self) -> None:
        while self._late:  # nobody listened when they came
            self._keep(self._late.popleft()())

    def _keep(self, entry: Kept) -> int:
        number = next(self._numbers)
        self._entries.append((number, entry))
        self._bytes += len(entry.content) + ENTRY_BYTES
        while len(self._entries) > MAX_ENTRIES or self._bytes > MAX_BYTES:
            self._bytes -= len(self._entries.popleft()[1].content) + ENTRY_BYTES
        return number

    def _tell(self, number: int, entry: Kept, listeners: tuple[Callable[[LogEntry], None], ...]) -> None:
        if not listeners:
            return
        told = LogEntry(number, *entry)
        for listener in listeners:
            try:
                listener(told)
            except Exception:  # of one listener: the others must hear of it all the same
                _log.exception("a listener of a protocol log raised")


def _decoded(content: bytes, *, cut: bool) -> str:
    text = content.decode("utf-8", "replace")
    return text.rstrip("\ufffd") if cut else text
