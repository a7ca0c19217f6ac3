"""What is installed as a hook, as a person reads it: its source where there is one, and where it comes from."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import textwrap
from dataclasses import asdict, dataclass
from types import FunctionType, MethodType
from typing import Any, cast

from yiemagent_nb.core.approval import Approval
from yiemagent_nb.hooks.code import notebook_namespace, notebook_shell
from yiemagent_nb.hooks.guard import GuardedHook
from yiemagent_nb.hooks.static import MISSING, class_names, find, own_names, type_name

__all__ = ["InstalledHook", "describe_installed"]

LONGEST_SOURCE = 200_000
LONGEST_ORIGIN = 200
MOST_WRAPPERS = 20


@dataclass(frozen=True, slots=True)
class InstalledHook:
    """A hook that acts. ``version`` and ``on_error`` are those of the editor, for its own; else None.

    ``editable`` says that its source, run in the notebook, makes the same hook.
    """

    name: str
    source: str
    origin: str
    editable: bool = False
    version: int | None = None
    on_error: str | None = None

    def form(self) -> dict[str, Any]:
        """As a page gets it."""
        return asdict(self)


def describe_installed(hook: object) -> InstalledHook:
    """Describe a hook. It runs no code of the hook, and so never waits for it."""
    if type(hook) is GuardedHook:
        source = hook.source
        origin = f"version {source.version} of this editor"
        return InstalledHook(hook.__name__, source.code, origin, True, source.version, hook.on_error)
    if type(hook) is Approval:
        return InstalledHook(hook.__name__, repr(hook)[:LONGEST_SOURCE], _about_type(hook))
    function = _unwrapped(hook)
    if function is None:
        return InstalledHook(type_name(hook), "", _about_type(hook))
    source = _source(function)
    editable = function is hook and _stands_alone(function, source)
    return InstalledHook(function.__name__, source, _origin(function), editable)


def _unwrapped(hook: object) -> FunctionType | None:
    """The function that a person wrote, below methods, ``partial`` and what ``functools.wraps`` notes."""
    for _ in range(MOST_WRAPPERS):
        below = find(own_names(hook), "__wrapped__")
        if below is MISSING:
            if type(hook) is MethodType:
                below = MethodType.__dict__["__func__"].__get__(hook)
            elif type(hook) is functools.partial:
                below = cast("functools.partial[Any]", hook).func
            else:
                break
        hook = below
    return hook if type(hook) is FunctionType else None


def _about_type(hook: object) -> str:
    documentation = find(class_names(type(hook))[0], "__doc__")
    first = inspect.cleandoc(documentation).partition("\n")[0] if type(documentation) is str else ""
    return (first or f"an object of type {type_name(hook)}")[:LONGEST_ORIGIN]


def _source(function: FunctionType) -> str:
    code = function.__code__
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    try:
        return textwrap.dedent("".join(inspect.getblock(lines)))[:LONGEST_SOURCE]
    except (SyntaxError, IndexError):
        return ""


def _origin(function: FunctionType) -> str:
    """Such as "cell 3"; the names of files stay out of it, since they may be anywhere."""
    shell = notebook_shell()
    name = shell.compile.format_code_name(function.__code__.co_filename) if shell is not None else None
    if name is not None:
        return f"{name[0].lower()} {str(name[1]).removeprefix('In[').removesuffix(']')}"
    module = find(function.__globals__, "__name__")
    if type(module) is not str:
        return "no module"
    if module == "__main__":
        return "the notebook" if shell is not None else "the main program"
    return f"the module {module}"[:LONGEST_ORIGIN]


def _stands_alone(function: FunctionType, source: str) -> bool:
    if function.__globals__ is not notebook_namespace() or function.__code__.co_freevars:
        return False
    try:
        (node,) = ast.parse(source).body
    except (SyntaxError, ValueError):
        return False
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list
