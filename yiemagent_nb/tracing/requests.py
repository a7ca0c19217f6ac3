"""What was sent, request by request. Requests that begin alike share their messages."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, cast

from yiemagent_nb.core.json_values import json_form
from yiemagent_nb.core.read_only import ReadOnlyDict

__all__ = ["RequestStore", "StoredRequest", "common_beginning", "length_of", "size_of"]


class StoredRequest:
    """The messages of one request: so many of the request before, and the rest. Read from any thread.

    Args:
        before: The request before it in the store; None where it begins by itself.
        shared: So many messages are the same as there, from the first on.
        rest: Those behind them.
        sizes: About how many bytes each of ``rest`` has.
    """

    __slots__ = ("following", "parts", "size", "sizes")

    def __init__(self, before: StoredRequest | None, shared: int, rest: list[Any], sizes: list[int]) -> None:
        self.parts = (before, shared, rest)
        """The request before, how many messages are shared with it, and the rest."""
        self.following: StoredRequest | None = None
        self.sizes = sizes
        self.size = sum(sizes)

    def __len__(self) -> int:
        """How many messages it has."""
        _, shared, rest = self.parts
        return shared + len(rest)

    @property
    def shared(self) -> int:
        """How many messages are those of the request before."""
        return self.parts[1]

    @property
    def rest(self) -> list[Mapping[str, Any]]:
        """The others."""
        return self.parts[2]

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """All of them."""
        request, wanted, rest = self.parts
        pieces = [rest]
        while wanted and request is not None:
            request, shared, rest = request.parts
            if wanted > shared:
                pieces.append(rest[: wanted - shared])
                wanted = shared
        return [message for piece in reversed(pieces) for message in piece]

    def stand_alone(self, beginning: list[Any], sizes: list[int]) -> int:
        """Have the shared messages itself; returns how many bytes these are."""
        self.parts = (None, 0, [*beginning, *self.rest])  # at once: others may be reading
        self.sizes = [*sizes, *self.sizes]
        moved = sum(sizes)
        self.size += moved
        return moved


class RequestStore:
    """Keeps requests. One that goes on where the last one ended costs what is new in it.

    The look for what two requests share compares pointers, in C: a few nanoseconds a message.
    """

    def __init__(self) -> None:
        self._last: StoredRequest | None = None
        self._messages: list[Any] = []

    def add(self, messages: Sequence[Mapping[str, Any]]) -> StoredRequest:
        """Keep a request. Messages that may be changed later are copied."""
        last, known = self._last, self._messages
        messages = messages if isinstance(messages, list) else list(messages)
        shared = common_beginning(known, messages) if last is not None else 0
        rest = [_kept(message) for message in messages[shared:]]
        stored = StoredRequest(last if shared else None, shared, rest, [size_of(message) for message in rest])
        if last is not None and shared:
            last.following = stored
        self._last = stored
        if shared < len(known):
            self._messages = known = known[:shared]
        known += rest
        return stored

    def drop(self, request: StoredRequest) -> int:
        """Let a request go, the oldest; what the one after it shares becomes its own.

        Returns:
            How many bytes are free now.
        """
        freed = request.size
        following, request.following = request.following, None
        if following is not None:
            kept = following.shared
            freed -= following.stand_alone(request.rest[:kept], request.sizes[:kept])
        if self._last is request:
            self.forget()
        return freed

    def forget(self) -> None:
        """Let the next request begin by itself."""
        self._last = None
        self._messages = []


def common_beginning(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many elements two sequences have in common, from the first on."""
    low, high = 0, min(len(one), len(other))
    if _same(one if high == len(one) else one[:high], other[:high]):
        return high
    while low < high:  # the first ``low`` are the same, and of the first ``high + 1`` not all
        middle = (low + high + 1) // 2
        if _same(one[low:middle], other[low:middle]):
            low = middle
        else:
            high = middle - 1
    return low


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    try:
        return bool(one == other)  # what is the same object is not looked into
    except Exception:  # what a user's hook made may hold anything, such as an array
        return False


def _kept(message: object) -> object:
    if isinstance(message, ReadOnlyDict):
        return message
    try:
        return copy.deepcopy(message)
    except Exception:  # a generator, a lock, …
        return json_form(message)


def size_of(message: object) -> int:
    """About how many bytes a message has."""
    encoded = getattr(message, "encoded", None)
    return len(encoded) if isinstance(encoded, bytes) else length_of(message)


def length_of(value: object) -> int:
    """About how many bytes a JSON value holds."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, int | float | None):  # before the look for a Mapping, which takes longer
        return 8
    if isinstance(value, Mapping):
        fields = cast("Mapping[object, object]", value)
        return 16 + sum(len(str(name)) + length_of(each) for name, each in fields.items())
    if isinstance(value, list | tuple):
        return 8 + sum(map(length_of, cast("Sequence[object]", value)))
    return 8
