"""Names that fit at a cursor, found without running anything.

Nothing of the text is evaluated. What stands before the cursor is read as names with dots between them;
the first is looked up among the names of the text and in the notebook's namespace, each further one where
Python keeps attributes, so that no property, no ``__getattr__`` and no ``__dir__`` of a person's objects
runs. The parameters of a hook are completed by their types.
"""

from __future__ import annotations

import builtins
import keyword
import re
import sys
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from yiemagent_nb.core.approval import Approvals
from yiemagent_nb.hooks.kinds import KINDS
from yiemagent_nb.hooks.static import MISSING, class_names, find, is_a, look_up, own_names, texts_in

__all__ = ["Completions", "complete_code"]

MOST_ITEMS = 200
LONGEST_LOOK = 100_000
"""Characters before and behind the cursor among which names are looked for."""
LONGEST_STATEMENT = 500
"""Characters before the cursor that are read as an import, or as names with dots between them."""

_AT_CURSOR = re.compile(r"(?:[^\W\d]\w*\s?\.\s?)*(?:[^\W\d]\w*)?\Z")
_NAME = re.compile(r"[^\W\d]\w*")
_FROM = re.compile(r"^\s*from\s+([\w.]+)\s+import\s[\w\s,(]*\Z")
_IMPORT = re.compile(r"^\s*(?:from|import)\s+[\w.]*\Z")
_DEF = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)[ \t]*\(([^)]*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Completions:
    """Names, each of which takes the place of what stands from ``start`` (in characters) to the cursor."""

    items: list[str]
    start: int

    def form(self) -> dict[str, Any]:
        """As a page gets it."""
        return {"items": self.items, "start": self.start}


def complete_code(code: str, cursor: int, namespace: Mapping[str, Any]) -> Completions:
    """Names that fit at a cursor.

    Args:
        code: What stands in the editor.
        cursor: Where, in characters.
        namespace: The names that the notebook knows.
    """
    cursor = min(cursor, len(code))
    before = code[max(0, cursor - LONGEST_LOOK) : cursor]
    path = _path_before(before)
    *steps, begun = re.split(r"\s?\.\s?", path)
    line = before[before.rfind("\n") + 1 :][-LONGEST_STATEMENT:]
    if (module := _FROM.match(line)) is not None:
        names = _attributes(find(sys.modules, module[1]))
    elif _IMPORT.match(line) is not None:
        names = _modules_below(".".join(steps))
    elif steps:
        names = _attributes(_resolve(steps, before, namespace))
    elif before[: len(before) - len(path)].endswith("."):
        names = []  # an attribute of something that would have to run
    else:
        near = before + code[cursor : cursor + LONGEST_LOOK]
        names = [*_NAME.findall(near), *keyword.kwlist, *texts_in(namespace), *texts_in(vars(builtins))]
    return Completions(_fitting(names, begun), cursor - len(begun))


def _path_before(text: str) -> str:
    """Names with dots between them, right before the end of a text. Looks back over as few characters as it can."""
    found = _AT_CURSOR.search(text[-LONGEST_STATEMENT:])
    return found[0] if found is not None else ""


def _fitting(names: Iterable[str], begun: str) -> list[str]:
    lowered = begun.lower()
    private = begun.startswith("_")
    fitting = {name for name in names if name.lower().startswith(lowered) and (private or not name.startswith("_"))} - (
        {begun} if begun else set()
    )
    return sorted(fitting, key=lambda name: (not name.startswith(begun), name.lower()))[:MOST_ITEMS]


@dataclass(frozen=True, slots=True)
class _Instance:
    """Something of which only the type is known."""

    type: Any


def _resolve(steps: list[str], before: str, namespace: Mapping[str, Any]) -> object:
    first, *rest = steps
    found: object = _parameter(first, before)
    for names in (namespace, vars(builtins)):
        if found is MISSING:
            found = find(names, first)
    for step in rest:
        if found is MISSING:
            break
        found = _attribute(found, step)
    return found


def _parameter(name: str, before: str) -> object:
    """What the parameter of the function around the cursor is, if that is a hook."""
    functions = _DEF.findall(before)
    if not functions or functions[-1][0] not in KINDS:
        return MISSING
    hook, listed = functions[-1]
    kind = KINDS[hook]
    parameters = [part.partition(":")[0].partition("=")[0].strip() for part in listed.split(",")]
    types_of = dict(zip(parameters, kind.takes.values(), strict=False))
    found = types_of.get(name)
    return MISSING if found is None else _Instance(found)


def _attribute(thing: object, name: str) -> object:
    if type(thing) is _Instance:
        return _attribute_of_instance(thing.type, name)
    found = look_up(thing, name)
    if type(found) is property:
        return _returned_by(found.fget)
    # A descriptor would give something else, and may run code to do so.
    descriptors = (types.MemberDescriptorType, types.GetSetDescriptorType, staticmethod, classmethod, property)
    return MISSING if is_a(found, *descriptors) else found


def _attribute_of_instance(kind: Any, name: str) -> object:
    found = look_up(kind, name)
    if type(found) is property:
        return _returned_by(found.fget)
    hints = _hints(kind)
    return _as_instance(hints[name]) if name in hints else MISSING


def _returned_by(function: object) -> object:
    hints = _hints(function)
    return _as_instance(hints["return"]) if "return" in hints else MISSING


def _hints(thing: object) -> Mapping[str, Any]:
    """The types that this package's own classes and functions declare. Those of others may be text that would run."""
    if not _is_of_this_package(thing):
        return {}
    try:
        return get_type_hints(thing, localns={"Approvals": Approvals})
    except (NameError, TypeError):  # a name that is there for type checkers alone
        return {}


def _is_of_this_package(thing: object) -> bool:
    """Whether a module of this package holds it; what it says of itself anybody can write."""
    if type(thing) is types.FunctionType:
        name: object = find(thing.__globals__, "__name__")
    else:
        name = look_up(thing, "__module__") if is_a(thing, type) else MISSING
    if type(name) is not str or not name.startswith("yiemagent_nb."):
        return False
    held = own_names(find(sys.modules, name))
    return (
        held is thing.__globals__ if type(thing) is types.FunctionType else any(thing is each for each in held.values())
    )


def _as_instance(hint: Any) -> object:
    if get_origin(hint) in (types.UnionType, Union, Annotated):
        found = (_as_instance(each) for each in get_args(hint) if each is not type(None))
        return next((each for each in found if each is not MISSING), MISSING)
    kind = get_origin(hint) or hint
    return _Instance(kind) if is_a(kind, type) else MISSING


def _attributes(thing: object) -> list[str]:
    """The names that an object, its class and their bases hold."""
    if thing is MISSING:
        return []
    if type(thing) is _Instance:
        return [*_names_of_class(thing.type), *_hints(thing.type)]
    return [*texts_in(own_names(thing)), *_names_of_class(cast("type", thing) if is_a(thing, type) else type(thing))]


def _names_of_class(kind: type) -> list[str]:
    return [name for names in class_names(kind) for name in texts_in(names)]


def _modules_below(parent: str) -> list[str]:
    """Modules that are loaded, by the next part of their names."""
    start = f"{parent}." if parent else ""
    return [name[len(start) :].partition(".")[0] for name in texts_in(sys.modules) if name.startswith(start)]
