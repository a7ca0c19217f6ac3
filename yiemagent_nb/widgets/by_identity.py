"""ByIdentity: what is known of messages beside what they say."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

__all__ = ["ByIdentity"]

V = TypeVar("V")


class ByIdentity(Generic[V]):
    """Values of objects, by the identity of these, each kept no longer than its object.

    By identity, since two messages may say the same.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[object], V]] = {}

    def __len__(self) -> int:
        """How many objects of these are still there."""
        return len(self._kept)

    def get(self, key: object) -> V | None:
        """The value of an object; None where it has none."""
        known = self._kept.get(id(key))
        return None if known is None else known[1]

    def put(self, key: object, value: V) -> None:
        """Keep a value for an object, in place of one that it has."""
        kept, identity = self._kept, id(key)
        kept[identity] = (weakref.ref(key, lambda _gone: kept.pop(identity, None)), value)
