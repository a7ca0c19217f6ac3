"""The code of a hook: compiled, run once, and its function found. Where it is no good, it says at which line."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, MutableMapping
from dataclasses import asdict, dataclass
from types import CodeType
from typing import Any, Literal, cast

from yiemagent_nb.core.errors import describe_error
from yiemagent_nb.hooks.kinds import KINDS, HookName
from yiemagent_nb.hooks.limited import LimitedCall, line_of
from yiemagent_nb.hooks.static import is_a

__all__ = [
    "LOAD_SECONDS",
    "HookCodeError",
    "Problem",
    "check_code",
    "forget_source",
    "load_hook",
    "notebook_namespace",
    "remember_source",
]

LONGEST_MESSAGE = 500
LOAD_SECONDS = 30.0
"""How long code may take to define a hook: it may import much."""

_compiling = threading.Lock()
_naming = threading.Lock()
_named: Counter[str] = Counter()


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and where. Lines and columns count from 1."""

    line: int
    column: int
    message: str
    severity: Literal["error", "warning"] = "error"

    def form(self) -> dict[str, Any]:
        """As a page gets it."""
        return asdict(self)


class HookCodeError(Exception):
    """Code that gives no hook.

    Args:
        problem: What is wrong.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def notebook_namespace() -> MutableMapping[str, Any]:
    """Where the cells of the notebook run; without one, the names of the main program."""
    shell = notebook_shell()
    if shell is not None:
        return cast("MutableMapping[str, Any]", shell.user_ns)
    return sys.modules["__main__"].__dict__


def notebook_shell() -> Any:
    """IPython's shell; None where there is none. IPython is not imported for this."""
    ipython: Any = sys.modules.get("IPython.core.getipython")
    return None if ipython is None else ipython.get_ipython()


def check_code(code: str) -> list[Problem]:
    """Where a text is no Python, or Python warns of it. Nothing of it runs."""
    try:
        _, _, problems = _compile(code, "<hook>")
    except HookCodeError as error:
        return [error.problem]
    return problems


def remember_source(name: str, code: str) -> str:
    """Let tracebacks and ``inspect.getsource`` find code by its name; returns the name under which they do.

    No two get the same one, so that who forgets one takes the source of no other.
    """
    with _naming:
        _named[name] += 1
        number = _named[name]
    unique = f"<{name}>" if number == 1 else f"<{name} ({number})>"
    linecache.cache[unique] = len(code), None, code.splitlines(keepends=True), unique
    return unique


def forget_source(filename: str) -> None:
    """Forget code that nothing uses any more."""
    linecache.cache.pop(filename, None)


async def load_hook(
    hook: HookName, code: str, filename: str, namespace: MutableMapping[str, Any], seconds: float = LOAD_SECONDS
) -> Callable[..., Any]:
    """Run code as a cell runs, in a thread, and give the function that it defines.

    Args:
        hook: Which hook it is to be.
        code: Python.
        filename: Its name, from ``remember_source``.
        namespace: Where it runs.
        seconds: How long it may take.

    Raises:
        HookCodeError: It is no Python, it raised, it took too long, or it has no such function.
    """
    tree, compiled, _ = _compile(code, filename)
    call = LimitedCall(seconds, filename)
    try:
        await call.run(exec, compiled, namespace)
    except Exception as error:
        raise HookCodeError(_problem_of(error, call, filename)) from error
    except BaseException as error:
        if not is_a(error, SystemExit, KeyboardInterrupt):
            raise
        raise HookCodeError(_problem_of(error, call, filename)) from error
    return _find_function(hook, tree, namespace)


def _problem_of(error: BaseException, call: LimitedCall, filename: str) -> Problem:
    return Problem(line_of(error, filename) or 1, 1, call.describe(error)[:LONGEST_MESSAGE])


def _compile(code: str, filename: str) -> tuple[ast.Module, CodeType, list[Problem]]:
    """The code, and of what Python warns; warnings of others, from threads that warn meanwhile, are passed on."""
    with _compiling, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            tree = ast.parse(code, filename)
            compiled = compile(tree, filename, "exec", dont_inherit=True)
        except SyntaxError as error:
            message = error.msg or "this is no Python"
            raise HookCodeError(Problem(max(error.lineno or 1, 1), max(error.offset or 1, 1), message)) from error
        except (ValueError, RecursionError, MemoryError, OverflowError) as error:
            raise HookCodeError(Problem(1, 1, f"Python cannot read this: {describe_error(error)}")) from error
    own: dict[Problem, None] = {}
    for each in caught:
        if each.filename == filename:
            own[Problem(max(each.lineno, 1), 1, str(each.message), "warning")] = None
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return tree, compiled, list(own)


def _find_function(hook: HookName, tree: ast.Module, namespace: MutableMapping[str, Any]) -> Callable[..., Any]:
    """What stands under the hook's name where the code binds that, else the last function that it defines."""
    kind = KINDS[hook]
    bound = _bound_names(tree)
    line = bound.get(hook)
    name: str = hook
    if line is None:
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        if not functions:
            last = max(bound.values(), default=1)
            raise HookCodeError(Problem(last, 1, f"this defines no hook; expected `{kind.signature}:`"))
        name, line = functions[-1].name, functions[-1].lineno
    function = namespace.get(name)
    if not callable(function):
        raise HookCodeError(Problem(line, 1, f"{name} is no function; expected `{kind.signature}:`"))
    try:
        inspect.signature(function).bind(*kind.takes)
    except TypeError:
        message = f"{name} is called with {', '.join(kind.takes)}; expected `{kind.signature}:`"
        raise HookCodeError(Problem(line, 1, message)) from None
    except ValueError:
        pass  # a builtin without a signature
    return function


def _bound_names(tree: ast.Module) -> dict[str, int]:
    """The names that a module binds by itself, and the line at which it last does."""
    found: dict[str, int] = {}
    waiting: list[ast.AST] = [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    found[node.name] = max(node.lineno, found.get(node.name, 0))
                case ast.Name(ctx=ast.Store()):
                    found[node.id] = max(node.lineno, found.get(node.id, 0))
                case ast.alias():
                    found[node.asname or node.name] = max(node.lineno, found.get(node.asname or node.name, 0))
                case ast.Lambda():
                    pass
                case _:
                    waiting.append(node)
    return found
