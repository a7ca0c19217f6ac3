"""Looking at objects of others without running any of their code.

``isinstance``, ``getattr``, ``vars`` and even ``name in names`` may run properties, metaclasses and ``__eq__``
of whoever made an object. What stands here reads only what Python itself keeps, by the slots of ``type``.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, cast

__all__ = ["MISSING", "class_names", "find", "is_a", "look_up", "own_names", "texts_in", "type_name"]

MISSING: object = object()
"""There is nothing of that name."""

_bases = type.__dict__["__mro__"].__get__
_names = type.__dict__["__dict__"].__get__
_name = type.__dict__["__name__"].__get__
_SLOTS = (types.GetSetDescriptorType, types.MemberDescriptorType)


def is_a(thing: object, *kinds: type) -> bool:
    """Whether the type of a thing, not what it says of itself, is one of these or derived from one."""
    return issubclass(type(thing), kinds)


def type_name(thing: object) -> str:
    """The name of a thing's type."""
    return str(_name(type(thing)))


def find(names: Mapping[Any, Any], name: str) -> object:
    """What stands under a name, else ``MISSING``. No key is compared that is not plainly a text."""
    return next((value for key, value in tuple(names.items()) if type(key) is str and key == name), MISSING)


def texts_in(names: Mapping[Any, Any]) -> list[str]:
    """The keys that are plainly texts."""
    return [name for name in tuple(names) if type(name) is str]


def class_names(kind: type) -> list[Mapping[str, Any]]:
    """The names that a class and its bases hold, in the order in which Python looks there."""
    return [_names(base) for base in _bases(kind)]


def own_names(thing: object) -> Mapping[str, Any]:
    """The names that an object itself holds, where Python keeps them and its class defines nothing else for that."""
    for names in class_names(type(thing)):
        slot = find(names, "__dict__")
        if slot is not MISSING:
            if type(slot) not in _SLOTS:
                return {}
            try:
                found: object = cast("Any", slot).__get__(thing)
            except (AttributeError, TypeError):  # the slot of another class
                return {}
            return cast("Mapping[str, Any]", found) if type(found) is dict else {}
    return {}


def look_up(thing: object, name: str) -> object:
    """What Python keeps under a name, not what it would give: ``inspect.getattr_static`` asks metaclasses."""
    holders = [own_names(thing)]
    if is_a(thing, type):
        holders.extend(class_names(cast("type", thing)))
    holders.extend(class_names(type(thing)))
    return next((found for holder in holders if (found := find(holder, name)) is not MISSING), MISSING)
