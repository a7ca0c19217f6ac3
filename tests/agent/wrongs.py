"""Things that go wrong, for tests of what happens then."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Unreadable", "Unshowable", "good", "raiser"]


class Unshowable:
    """A value that cannot even be looked at."""

    def __repr__(self) -> str:
        raise RuntimeError("do not look at me")


class Unreadable(Exception):  # noqa: N818 - its point is that it tells nothing
    """An error that cannot even be read."""

    def __str__(self) -> str:
        raise RuntimeError("do not read me")


def raiser(error: BaseException) -> Callable[[], object]:
    """A function that raises."""

    def fail() -> object:
        raise error

    return fail


def good() -> str:
    """Work well."""
    return "good"
