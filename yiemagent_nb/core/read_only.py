"""Dicts and lists that cannot be changed: what stands in them was turned into JSON already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, cast

__all__ = ["ReadOnlyDict", "ReadOnlyList", "freeze"]


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError(
        "messages and tools of a request are read-only: copy one to change it, {**message, 'content': …} or "
        "[*messages, …]; copy.deepcopy(…) copies what is in it too"
    )


class ReadOnlyDict(dict[str, Any]):
    """A dict that cannot be changed. Copies, deep ones and pickled ones too, are plain dicts."""

    __slots__ = ()

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        """A plain dict."""
        return dict, (dict(self),)

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse  # type: ignore[assignment]


class ReadOnlyList(list[Any]):
    """A list that cannot be changed. Copies, deep ones and pickled ones too, are plain lists."""

    __slots__ = ()

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[Any]]]:
        """A plain list."""
        return list, (list(self),)

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse  # type: ignore[assignment]
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse  # type: ignore[assignment]


def freeze(value: object) -> Any:
    """A value in which no dict and no list can be changed, however deep it stands."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return ReadOnlyDict({name: freeze(each) for name, each in fields.items()})
    if isinstance(value, list | tuple):
        return ReadOnlyList(map(freeze, cast("list[object]", value)))
    return value
