"""Walking over the pages of a server's lists, which may be wrong in every way."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from yiemagent_nb.core.errors import McpError, describe_error
from yiemagent_nb.core.validation import cut, shorten

__all__ = ["Listing", "walk_pages"]

MAX_PAGES = 1_000
MAX_ITEMS = 10_000
MAX_PROBLEMS = 100
MAX_SECONDS = 120.0

_IDENTITIES = {"resources": "uri", "resourceTemplates": "uriTemplate"}
"""The field by which the items of a list differ; it is ``name`` where none stands here."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server lists.

    Args:
        items: The usable items as the server sent them, each another.
        problems: What was wrong and therefore left out, a sentence each.
        complete: Whether the walk came to the server's last page.
    """

    items: tuple[dict[str, Any], ...] = ()
    problems: tuple[str, ...] = ()
    complete: bool = True


async def walk_pages(
    request: Callable[[str, dict[str, Any]], Awaitable[Mapping[str, Any]]],
    method: str,
    key: str,
    *,
    max_pages: int = MAX_PAGES,
    max_items: int = MAX_ITEMS,
    max_seconds: float = MAX_SECONDS,
) -> Listing:
    """Follow ``nextCursor`` to the end of a list.

    The walk stops early at a cursor that was there before, at a page that is none, at an error
    behind the first page, and at the limits; what was found until then counts, and a problem says
    why. Items that are no objects, have no name or one that was there before are left out.

    Args:
        request: Sends a request and gives its raw result.
        method: Such as ``tools/list``.
        key: The field of a page that holds its items, such as ``tools``.
        max_pages: How many pages are asked for.
        max_items: How many items are taken.
        max_seconds: No further page is asked for after this time.

    Raises:
        McpError: The first page could not be had.
    """
    walk = _Walk(method, key, max_items)
    started = time.monotonic()
    cursor: str | None = None
    for number in range(1, max_pages + 1):
        if number > 1 and time.monotonic() - started > max_seconds:
            return walk.stopped(f"it was not at its end after {number - 1} pages and {max_seconds:g} s")
        try:
            page = await request(method, {} if cursor is None else {"cursor": cursor})
        except McpError as error:
            if number == 1:
                raise
            return walk.stopped(f"page {number} failed: {cut(describe_error(error))}")
        cursor = walk.read(page)
        if cursor is None:
            return walk.listing
    return walk.stopped(f"it was not at its end after {max_pages} pages")


class _Walk:
    """What was found so far."""

    def __init__(self, method: str, key: str, max_items: int) -> None:
        self._method = method
        self._key = key
        self._identity = _IDENTITIES.get(key, "name")
        self._max_items = max_items
        self._items: dict[str, dict[str, Any]] = {}
        self._problems: list[str] = []
        self._unsaid = 0
        self._cursors: set[str] = set()
        self._complete = True

    @property
    def listing(self) -> Listing:
        unsaid = (f"{self._unsaid} further problems are not listed.",) if self._unsaid else ()
        return Listing(tuple(self._items.values()), (*self._problems, *unsaid), self._complete)

    def stopped(self, why: str) -> Listing:
        """End before the last page."""
        self._complete = False
        self._problems.append(f"{self._method} was not read to its end: {why}.")
        return self.listing

    def read(self, page: object) -> str | None:
        """Take a page; returns the cursor of the next one, None at the end."""
        items = cast("Mapping[str, Any]", page).get(self._key) if isinstance(page, Mapping) else None
        if not isinstance(items, list):
            self.stopped(f"a page has no list of {self._key}, but {shorten(cast('object', page))}")
            return None
        for item in cast("list[object]", items):
            if len(self._items) >= self._max_items:
                self.stopped(f"it has more than {self._max_items} items")
                return None
            self._take(item)
        return self._next(cast("Mapping[str, Any]", page).get("nextCursor"))

    def _take(self, item: object) -> None:
        if not isinstance(item, Mapping):
            self._note(f"{self._method} has an item that is no object, but {shorten(item)}; it was left out.")
            return
        fields = dict(cast("Mapping[str, Any]", item))
        identity = fields.get(self._identity)
        if not isinstance(identity, str) or not identity:
            self._note(
                f"{self._method} has an item whose {self._identity} is {shorten(identity)}, "
                "where a text was expected; it was left out."
            )
        elif identity in self._items:
            self._note(f"{self._method} has {shorten(identity)} more than once; only the first counts.")
        else:
            self._items[identity] = fields

    def _next(self, cursor: object) -> str | None:
        if cursor is None or cursor == "":
            return None
        if not isinstance(cursor, str):
            self.stopped(f"the next page's cursor is {shorten(cursor)}, where a text was expected")
            return None
        if cursor in self._cursors:
            self.stopped(f"the cursor {shorten(cursor)} came a second time")
            return None
        self._cursors.add(cursor)
        return cursor

    def _note(self, problem: str) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem)
        else:
            self._unsaid += 1
