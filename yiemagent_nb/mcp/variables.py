"""Variables in configuration files: ``${NAME}``, ``${NAME:-default}``, ``${env:NAME}``, ``${input:id}`` and others.

Sources: Claude Code's documentation, "Environment variable expansion"; VS Code's "Variables reference".
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from yiemagent_nb.core.validation import shorten
from yiemagent_nb.mcp.links.command_line import names_secret

__all__ = ["Expanded", "Variables"]

_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_ENVIRONMENT = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Expanded:
    """A text without variables. It is ``secret`` if it holds a password, or a variable with the name of one."""

    text: str = field(repr=False)
    secret: bool = False

    @property
    def kept(self) -> str | SecretStr:
        """The text, as a ``SecretStr`` where it is secret."""
        return SecretStr(self.text) if self.secret else self.text


@dataclass(frozen=True)
class Variables:
    """What stands for the variables of one file.

    Args:
        environment: The environment variables.
        inputs: What a person gave for ``${input:id}``.
        asked: The definitions of inputs that the file has, by id.
        folder: ``${workspaceFolder}``.
    """

    environment: Mapping[str, str]
    inputs: Mapping[str, Any]
    asked: Mapping[str, Mapping[str, Any]]
    folder: Path
    _known: Mapping[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Name the variables that are always there."""
        folder = str(self.folder)
        known = {
            **dict.fromkeys(("workspaceFolder", "workspaceRoot", "cwd"), folder),
            "workspaceFolderBasename": self.folder.name,
            "userHome": str(Path.home()),
            **dict.fromkeys(("pathSeparator", "/"), os.sep),
        }
        object.__setattr__(self, "_known", known)

    def expand(self, text: str, report: Callable[[str], None]) -> Expanded:
        """A text with its variables replaced; one that has no value stays, and is reported in a sentence."""
        secret = False

        def value_of(match: re.Match[str]) -> str:
            nonlocal secret
            found = self._value(match[1], report)
            if found is None:
                return match[0]
            secret = secret or found.secret
            return found.text

        expanded = _VARIABLE.sub(value_of, text)
        return Expanded(expanded, secret)

    def _value(self, name: str, report: Callable[[str], None]) -> Expanded | None:
        if name in self._known:
            return Expanded(self._known[name])
        if name.startswith("input:"):
            return self._input(name.removeprefix("input:"), report)
        found = _ENVIRONMENT.fullmatch(name)
        if found is None:
            report(f"${{{shorten(name)[1:-1]}}} is no variable that is known here")
            return None
        variable, default = found[1], found[2]
        value = self.environment.get(variable)
        if value is None or (not value and default is not None):  # as in a shell, empty counts as unset
            value = default
        if value is None:
            report(f"the environment variable {variable} is not set")
            return None
        return Expanded(value, names_secret(variable))

    def _input(self, name: str, report: Callable[[str], None]) -> Expanded | None:
        asked = self.asked.get(name, {})
        value: object = self.inputs.get(name)
        if value is None:
            value = asked.get("default")
        if value is None:
            about = f" ({shorten(asked['description'])})" if asked.get("description") else ""
            report(f"the input {shorten(name)}{about} was not given: pass inputs={{{shorten(name)}: …}}")
            return None
        if isinstance(value, SecretStr):
            return Expanded(value.get_secret_value(), secret=True)
        return Expanded(str(value), asked.get("password") is True)
