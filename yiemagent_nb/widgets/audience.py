"""Audience: the pages that look at a widget, as far as they have told."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

__all__ = ["Audience"]

LONGEST_SILENCE = 90.0
"""Seconds after which a silent page is thought gone. Browsers let a hidden page speak once a minute."""

MOST_PAGES = 100


class Audience:
    """Pages by the names that they gave themselves. From any thread.

    Args:
        clock: Tells the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heard: OrderedDict[str, float] = OrderedDict()

    def __bool__(self) -> bool:
        """Whether some page looks."""
        newest = next(reversed(tuple(self._heard.values())), float("-inf"))
        return self._clock() - newest < LONGEST_SILENCE

    def hear(self, page: str) -> None:
        """A page says that it is there."""
        self._heard[page] = self._clock()
        self._heard.move_to_end(page)
        if len(self._heard) > MOST_PAGES:
            self._heard.popitem(last=False)

    def miss(self, page: str) -> None:
        """A page says that it looks no more."""
        self._heard.pop(page, None)
