"""StdioTransport: a server that is started as a process and spoken to over its standard streams."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, cast

from pydantic import SecretStr

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.redaction import Redactor
from yiemagent_nb.mcp.link import Inbox, Link
from yiemagent_nb.mcp.links.command_line import default_name, inherited_environment, logins, masked, names_secret

if TYPE_CHECKING:
    from yiemagent_nb.mcp.links.sdk import Streams

__all__ = ["LONGEST_LINE", "StdioTransport"]

LONGEST_LINE = 256 << 20
"""The bytes of the longest message that is taken from a server."""


class StdioTransport:
    """Starts a server as a process, in a session of its own, and ends it with all that it started.

    The server gets little of this process's environment, since that may hold keys: see
    ``command_line.inherited_environment``.

    Args:
        command: The program, looked for on the ``PATH`` of the server's environment.
        args: Its arguments; one that is a key may be a ``SecretStr``, though other processes of this machine
            can read it.
        env: Further environment variables; the place for keys. Never shown.
        cwd: The working directory.
        longest_line: The bytes of the longest message that is taken; a longer one is dropped.

    Raises:
        InvalidParametersError: One of these is of another type, or cannot be passed to a program.
    """

    def __init__(
        self,
        command: str | os.PathLike[str],
        args: Sequence[str | os.PathLike[str] | SecretStr] = (),
        env: Mapping[str, str | SecretStr] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        *,
        longest_line: int = LONGEST_LINE,
    ) -> None:
        self._command = _text("command", command)
        if not self._command.strip():
            raise InvalidParametersError("command is empty.", 'Name a program, such as "uvx" or sys.executable.')
        if isinstance(args, str):
            raise InvalidParametersError(
                f"args must be a list of texts, not {args!r}.", "Give each argument by itself: the shell is not asked."
            )
        self._args = [_text(f"args[{position}]", argument) for position, argument in enumerate(args)]
        self._env = {_name(name): _text(f"env[{name!r}]", value) for name, value in (env or {}).items()}
        self._cwd = None if cwd is None else _text("cwd", cwd)
        self._longest_line = longest_line
        self._redactor = Redactor()
        for argument in args:
            if isinstance(argument, SecretStr):
                self._redactor.add(argument.get_secret_value())
        for name, value in (env or {}).items():
            if isinstance(value, SecretStr) or names_secret(name):
                self._redactor.add(self._env[name])
            for login in logins(self._env[name]):
                self._redactor.add_login(login)
        self._target = masked([self._command, *self._args], self._redactor)

    def __repr__(self) -> str:
        return f"StdioTransport({self._target!r})"

    @property
    def kind(self) -> str:
        """``stdio``."""
        return "stdio"

    @property
    def target(self) -> str:
        """The command line, shortened, with what may be a secret masked."""
        return self._target

    @property
    def default_name(self) -> str:
        """The name of the server's package, script or program."""
        return default_name(self._command, self._args)

    @property
    def modules(self) -> tuple[str, ...]:
        """The SDK, and the streams of this system."""
        streams = "stdio_by_sdk" if sys.platform == "win32" else "stdio_streams"
        return "yiemagent_nb.mcp.links.sdk", f"yiemagent_nb.mcp.links.{streams}"

    @property
    def patience(self) -> float:
        """None."""
        return 0.0

    def open(self, inbox: Inbox) -> AbstractAsyncContextManager[Link]:
        """Start the server and shake hands with it. See ``Transport``.

        Leaving closes its standard input and waits a second for its end; then all that it started gets
        SIGTERM, and after 2 more seconds SIGKILL.
        """
        from yiemagent_nb.mcp.links.sdk import open_sdk_link  # noqa: PLC0415 - loads the SDK

        return open_sdk_link(self.streams(inbox), inbox, mask=self._redactor)

    def streams(self, inbox: Inbox) -> Streams:
        """The SDK's pair of streams, to be entered once; the last thing to read is a ``McpConnectionError``."""
        environment = {**inherited_environment(os.environ), **self._env}
        options: dict[str, Any] = {"redactor": self._redactor}
        if sys.platform == "win32":
            from yiemagent_nb.mcp.links.stdio_by_sdk import SdkStreams as Kind  # noqa: PLC0415
        else:
            from yiemagent_nb.mcp.links.stdio_streams import ServerStreams as Kind  # noqa: PLC0415

            options["longest_line"] = self._longest_line
        return Kind([self._command, *self._args], environment, self._cwd, inbox, **options)


def _text(what: str, value: str | os.PathLike[str] | SecretStr) -> str:
    """A text that can be passed to a program. The errors do not show it: it may be a key."""
    if not isinstance(cast("object", value), str | SecretStr | os.PathLike):
        raise InvalidParametersError(f"{what} must be a text, not {type(value).__name__}.", "Convert it with str().")
    text = value.get_secret_value() if isinstance(value, SecretStr) else os.fsdecode(value)
    if "\0" in text:
        raise InvalidParametersError(f"{what} must be a text without NUL characters.", "Take them out.")
    return text


def _name(name: object) -> str:
    if not isinstance(name, str) or not name or "=" in name or "\0" in name:
        raise InvalidParametersError(f"env has {name!r} where the name of a variable is expected.", "Rename it.")
    return name
