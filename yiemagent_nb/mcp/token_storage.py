"""Where the logins at MCP servers are kept: in memory, or in a file of this user's."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from yiemagent_nb.core.errors import InvalidParametersError

__all__ = ["FileTokenStorage", "MemoryTokenStorage", "TokenStorage"]


class TokenStorage(Protocol):
    """Keeps what a login brought, for each server by its address."""

    def load(self, server: str) -> Mapping[str, Any] | None:
        """What was saved for a server; None where nothing was."""
        ...

    def save(self, server: str, login: Mapping[str, Any]) -> None:
        """Keep what a login brought: JSON with ``tokens`` and ``client``. It is secret."""
        ...


class MemoryTokenStorage:
    """Keeps logins until the kernel ends."""

    def __init__(self) -> None:
        self._logins: dict[str, Mapping[str, Any]] = {}

    def load(self, server: str) -> Mapping[str, Any] | None:
        """See ``TokenStorage``."""
        return self._logins.get(server)

    def save(self, server: str, login: Mapping[str, Any]) -> None:
        """See ``TokenStorage``."""
        self._logins[server] = login


class FileTokenStorage:
    """Keeps logins in a file that only this user may read.

    Args:
        path: The file, such as ``~/.config/yiemagent_nb/logins.json``. Keep it out of shared folders and
            repositories: whoever has it is you, for these servers.

    Raises:
        InvalidParametersError: The file is there and holds something else.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self._read()

    def load(self, server: str) -> Mapping[str, Any] | None:
        """See ``TokenStorage``."""
        return self._read().get(server)

    def save(self, server: str, login: Mapping[str, Any]) -> None:
        """See ``TokenStorage``. The file is replaced as a whole, or stays as it was."""
        logins = {**self._read(), server: login}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")  # made with mode 0600
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(logins, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def __repr__(self) -> str:
        """Where it is, without what is in it."""
        return f"FileTokenStorage({str(self.path)!r})"

    def _read(self) -> dict[str, Mapping[str, Any]]:
        try:
            with self.path.open(encoding="utf-8") as file:
                if os.name == "posix" and os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                    os.fchmod(file.fileno(), stat.S_IRUSR | stat.S_IWUSR)
                logins: object = json.load(file)
        except FileNotFoundError:
            return {}
        except ValueError:
            logins = None
        if not isinstance(logins, dict):
            raise InvalidParametersError(
                f"{self.path} holds no logins, and is left as it is.", "Give another path, or delete it."
            )
        return cast("dict[str, Mapping[str, Any]]", logins)
