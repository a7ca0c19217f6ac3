"""A backend as the Python that names it or builds it anew."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from yiemagent_nb.core.backend import LlmCall, attribute_of, describe_backend
from yiemagent_nb.core.errors import InvalidParametersError

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["BackendCode", "code_of"]

_PACKAGE = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True)
class BackendCode:
    """Imports, the expression that gives the backend, and the variable that holds its key, or none."""

    imports: tuple[str, ...]
    expression: str
    key_variable: str = ""


def code_of(llm_call: LlmCall, agent: Agent | None) -> BackendCode:
    """The Python that gives a backend in a notebook's next cell.

    Raises:
        InvalidParametersError: It has no name there, and cannot be built anew.
    """
    written = attribute_of(llm_call, "as_code")
    if isinstance(written, str):
        variable = attribute_of(llm_call, "key_variable")
        imports = _import_of(type(llm_call).__module__, type(llm_call).__name__)
        if "os.environ" in written:
            imports = ("import os", *imports)
        return BackendCode(imports, written, variable if isinstance(variable, str) else "")
    module, name = attribute_of(llm_call, "__module__"), attribute_of(llm_call, "__qualname__")
    if isinstance(module, str) and isinstance(name, str) and _found(module, name) is llm_call:
        return BackendCode(_import_of(module, name), name)
    if (name := _name_of(llm_call)) is not None:
        return BackendCode((), name)
    if agent is not None and agent.llm_call is llm_call and (name := _name_of(agent)) is not None:
        return BackendCode((), f"{name}.llm_call")
    kind = type(llm_call)
    if kind.__module__.partition(".")[0] == _PACKAGE and _builds_alone(kind):
        return BackendCode(_import_of(kind.__module__, kind.__name__), f"{kind.__name__}()")
    raise InvalidParametersError(
        f"The backend {describe_backend(llm_call)} cannot be named in a cell: it is no function of a module, "
        "and no variable of the notebook holds it or its agent.",
        "Assign it to a variable in the notebook, and copy again.",
    )


def _import_of(module: str, name: str) -> tuple[str, ...]:
    if module == "__main__":
        return ()
    package = sys.modules.get(_PACKAGE)
    if module.partition(".")[0] == _PACKAGE and name in _names_of(package):
        return (f"from {_PACKAGE} import {name}",)
    return (f"from {module} import {name.partition('.')[0]}",)


def _names_of(module: object) -> frozenset[str]:
    """The public names of a module."""
    names = attribute_of(module, "__all__")
    return frozenset(map(str, cast("list[object]", names))) if isinstance(names, list | tuple) else frozenset()


def _found(module: str, name: str) -> object:
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = attribute_of(found, part)
    return found


def _name_of(thing: object) -> str | None:
    """The variable of the notebook that holds it."""
    names = vars(sys.modules["__main__"]) if "__main__" in sys.modules else {}
    for name, value in tuple(names.items()):
        if value is thing and name.isidentifier() and not name.startswith("_"):
            return name
    return None


def _builds_alone(kind: type) -> bool:
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        return False
    optional = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    return all(each.default is not each.empty or each.kind in optional for each in parameters)
