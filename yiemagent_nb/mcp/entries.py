"""A server's entry in a configuration file, as an ``McpServer``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic import SecretStr

from yiemagent_nb.core.errors import InvalidParametersError, YiemAgentError
from yiemagent_nb.core.validation import format_names, shorten
from yiemagent_nb.mcp.server import McpServer
from yiemagent_nb.mcp.variables import Expanded, Variables

__all__ = ["make_server"]

LONGEST_SECONDS = 3600
"""A time limit above this is milliseconds: hosts that count seconds take an hour at most."""

_KINDS = {
    **dict.fromkeys(("stdio", "local"), "stdio"),
    **dict.fromkeys(("http", "streamablehttp", "remote", "httpstream"), "http"),
    "sse": "sse",
    "nats": "nats",
}
"""By what hosts call a transport, in lower case without ``-`` and ``_``."""

_OTHER_NAMES = {
    **dict.fromkeys(("transport", "transportType", "transport_type"), "type"),
    **dict.fromkeys(("serverUrl", "server_url", "uri"), "url"),
    **dict.fromkeys(("environment", "envs"), "env"),
    **dict.fromkeys(("env_file",), "envFile"),
    **dict.fromkeys(("http_headers", "requestInit"), "headers"),
    **dict.fromkeys(("workingDirectory", "working_directory"), "cwd"),
    **dict.fromkeys(("allowedTools", "allowed_tools", "enabledTools", "enabled_tools", "includeTools"), "allow"),
    **dict.fromkeys(("disabledTools", "disabled_tools", "disallowedTools", "excludeTools"), "deny"),
    **dict.fromkeys(("tool_timeout_sec", "toolTimeout", "request_timeout"), "timeout"),
    **dict.fromkeys(("connectTimeout", "initTimeout", "startup_timeout_sec", "startupTimeout"), "connect_timeout"),
    **dict.fromkeys(("isActive",), "enabled"),
}

_NOT_OURS = frozenset(
    {
        *("alwaysAllow", "autoApprove", "trust", "alwaysLoad"),
        *("name", "displayName", "title", "description", "icon", "icons", "iconUrl", "logoUrl", "tags", "version"),
        *("gallery", "source", "provider", "providerUrl", "id", "scope", "note", "notes", "comment", "settings"),
        *("dev", "watchPaths", "keep_alive", "longRunning", "registryUrl"),
    }
)
"""What concerns other hosts alone: their approvals, their looks, their ways to restart a server."""

_BY_KIND = {
    "stdio": ("command", "args", "env", "envFile", "cwd"),
    "http": ("url", "headers", "auth", "oauth"),
    "sse": ("url", "headers", "auth", "oauth"),
    "nats": ("url", "topic", "sender_id", "binding"),
}
_OAUTH = {
    "clientid": "client_id",
    "clientsecret": "client_secret",
    **dict.fromkeys(("scope", "scopes"), "scopes"),
    **dict.fromkeys(("callbackport", "redirectport"), "redirect_port"),
}
"""By what hosts call them, in lower case without ``_``."""
_OPTIONS = ("timeout", "connect_timeout", "allow", "deny", "roots", "max_result_characters")


def make_server(name: str | None, entry: object, variables: Variables) -> tuple[McpServer, list[str]]:
    """A server of its entry, and the keys of the entry that are not understood.

    Args:
        name: The server's name; None leaves it to the transport.
        entry: What the file says of it.
        variables: What stands for the variables in it.

    Raises:
        InvalidParametersError: Something is wrong with it; the message names the server and everything wrong.
    """
    whose = "the server" if name is None else f"the server {shorten(name)}"
    if not isinstance(entry, Mapping):
        raise InvalidParametersError(f"{whose}: its entry must be an object")
    reader = _Reader(variables)
    fields, enabled = _in_our_words(cast("Mapping[str, Any]", entry))
    kind = reader.kind(fields)
    known = {"type", *_BY_KIND.get(kind, ()), *_OPTIONS, *_NOT_OURS}
    reader.unknown += [
        key
        for key, value in fields.items()
        if key not in known and value not in ("", [], {}) and not key.startswith(("_", "$", "//", "x-"))
    ]
    options: dict[str, Any] = {"enabled": enabled, **({} if name is None else {"name": name})}
    options.update(reader.options(fields))
    make = reader.maker(kind, fields)
    if reader.problems and enabled:
        raise InvalidParametersError(f"{whose}: {'; '.join(reader.problems)}")
    if make is None:  # it is switched off, and wrong besides
        make = _switched_off
    try:
        return make(options), reader.unknown
    except YiemAgentError as error:
        raise InvalidParametersError(f"{whose}: {error.message.rstrip('.')}") from None


def _switched_off(options: Mapping[str, Any]) -> McpServer:
    def unusable(*_: object) -> None:
        raise InvalidParametersError("The entry of this server in the configuration is wrong.")

    return McpServer(unusable, **options)


def _in_our_words(entry: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The fields of an entry by our names, those of nested objects among them; and whether it is switched on."""
    fields: dict[str, Any] = {}
    for key, value in entry.items():
        if key in ("transport", "nats") and isinstance(value, Mapping):
            nested = cast("Mapping[str, Any]", value)
            fields.update({_OTHER_NAMES.get(each, each): item for each, item in nested.items()})
            if key == "nats":
                fields["type"] = "nats"
        elif key == "command" and isinstance(value, Mapping):  # as Zed had it
            nested = cast("Mapping[str, Any]", value)
            fields.update({"command" if each == "path" else each: item for each, item in nested.items()})
        elif key == "requestInit" and isinstance(value, Mapping):
            fields["headers"] = cast("Mapping[str, Any]", value).get("headers")
        elif key == "httpUrl":  # Gemini CLI tells its two transports apart by the key
            fields.update({"url": value, "type": "http"})
        elif key == "tools":
            fields.update(_tool_lists(value))
        else:
            fields[_OTHER_NAMES.get(key, key)] = value
    enabled = fields.pop("enabled", True) is not False and fields.pop("disabled", False) is not True
    return {key: value for key, value in fields.items() if value is not None and key != "disabled"}, enabled


def _tool_lists(value: object) -> dict[str, Any]:
    """``tools``: a list of those that are allowed, or an object of lists; anything else is told as unknown."""
    if isinstance(value, list):
        return {"allow": value}
    lists: Mapping[str, Any] = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
    names = {"include": "allow", "allow": "allow", "exclude": "deny", "deny": "deny"}
    if lists and names.keys() >= lists.keys():
        return {names[key]: item for key, item in lists.items()}
    return {"tools": value}


class _Reader:
    """Reads fields, and keeps what is wrong with them. No sentence shows a value that could be a secret."""

    def __init__(self, variables: Variables) -> None:
        self._variables = variables
        self.problems: list[str] = []
        self.unknown: list[str] = []

    def kind(self, fields: Mapping[str, Any]) -> str:
        """How the server is reached."""
        said = fields.get("type")
        if said is not None:
            kind = _KINDS.get(re.sub(r"[-_ ]", "", said).lower()) if isinstance(said, str) else None
            if kind is None:
                self.problems.append(f"its type is {shorten(said)}; expected stdio, http, sse or nats")
            return kind or ""
        if "command" in fields:
            return "stdio"
        url = fields.get("url")
        if isinstance(url, str):
            return "sse" if re.search(r"/sse/?(?:[?#]|$)", url) else "http"
        self.problems.append("it has neither a command nor a url")
        return ""

    def maker(self, kind: str, fields: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], McpServer] | None:
        """What makes the server of its options; None where something is wrong."""
        arguments = {"stdio": self._stdio, "http": self._http, "sse": self._http, "nats": self._nats}.get(kind)
        if arguments is None:
            return None
        positional, keywords = arguments(fields)
        if self.problems:
            return None
        method = cast("Callable[..., McpServer]", getattr(McpServer, kind))
        return lambda options: method(*positional, **keywords, **options)

    def options(self, fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """The options that all kinds of servers share."""
        for key in ("timeout", "connect_timeout"):
            value = fields.get(key)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                self.problems.append(f"{key} must be a number above 0")
            else:
                yield key, value / 1000 if value > LONGEST_SECONDS else value
        for key in ("allow", "deny", "roots"):
            if key in fields:
                yield key, self._texts(key, fields[key])
        if "max_result_characters" in fields:
            yield "max_result_characters", fields["max_result_characters"]

    def _stdio(self, fields: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        command: object = fields.get("command")
        before: list[object] = []
        if isinstance(command, list) and command:
            command, *before = cast("list[object]", command)
        words: list[str | SecretStr] = [self._text("command", cast("object", command), home=True)]
        words += [each.kept for each in self._items("args", before, home=True)]
        words += [each.kept for each in self._items("args", fields.get("args", []), home=True)]
        folder = self._path("cwd", fields["cwd"]) if "cwd" in fields else None
        return tuple(words), {"env": self._environment(fields) or None, "cwd": folder}

    def _environment(self, fields: Mapping[str, Any]) -> dict[str, str | SecretStr]:
        values: dict[str, str | SecretStr] = {}
        if "envFile" in fields:
            path = self._path("envFile", fields["envFile"])
            try:
                values = {name: SecretStr(value) for name, value in _read_env_file(path.read_text("utf-8-sig"))}
            except (OSError, UnicodeDecodeError) as error:
                self.problems.append(f"its envFile {path} cannot be read ({type(error).__name__})")
        own = self._named("env", fields.get("env", {}))
        return {**values, **{name: value.kept for name, value in own.items()}}

    def _http(self, fields: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        url = self._text("url", fields.get("url"))
        if not self.problems and urlsplit(url).scheme not in ("http", "https"):
            self.problems.append("url must begin with http:// or https://")
        headers = self._named("headers", fields.get("headers", {}))
        keywords: dict[str, Any] = {"headers": {name: SecretStr(value.text) for name, value in headers.items()} or None}
        auth: object = fields.get("auth")
        login: object = fields.get("oauth", auth)
        if isinstance(login, Mapping) or login is True or str(login).lower() == "oauth":
            keywords["auth"] = self._oauth(cast("Mapping[str, object]", login) if isinstance(login, Mapping) else {})
        elif auth is not None:
            keywords["auth"] = SecretStr(self._text("auth", auth))
        return (url,), keywords

    def _oauth(self, fields: Mapping[str, object]) -> Any:
        """A login by OAuth, with what hosts say of a client that was registered by hand."""
        options: dict[str, Any] = {}
        for key, value in fields.items():
            option = _OAUTH.get(re.sub(r"[-_]", "", key).lower())
            if option == "redirect_port":
                options[option] = value
            elif option == "scopes" and isinstance(value, list):
                options[option] = self._texts(f"oauth.{key}", cast("list[object]", value))
            elif option is not None:
                text = self._text(f"oauth.{key}", value)
                options[option] = SecretStr(text) if option == "client_secret" else text
            else:
                self.unknown.append(f"oauth.{key}")
        if self.problems:
            return None
        from yiemagent_nb.mcp.oauth import OAuth  # noqa: PLC0415 - only where it is asked for

        try:
            return OAuth(**options)
        except InvalidParametersError as error:
            self.problems.append(f"oauth: {error.message}")
            return None

    def _nats(self, fields: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        url = cast("object", fields.get("url", "nats://127.0.0.1:4222"))
        read = self._texts if isinstance(url, list) else self._text
        urls = read("url", cast("object", url))
        topic = self._text("topic", fields.get("topic"))
        keywords = {key: self._text(key, fields[key]) for key in ("sender_id", "binding") if key in fields}
        return (urls, topic), keywords

    def _text(self, where: str, value: object, *, home: bool = False) -> str:
        return self._expand(where, value, home=home).text

    def _expand(self, where: str, value: object, *, home: bool = False) -> Expanded:
        if isinstance(value, bool):
            value = "true" if value else "false"
        if isinstance(value, int | float):
            value = str(value)
        if not isinstance(value, str) or not (value or where.startswith(("env", "headers", "args"))):
            self.problems.append(f"{where} is missing" if value in (None, "") else f"{where} must be a text")
            return Expanded("")
        expanded = self._variables.expand(value, lambda problem: self.problems.append(f"{where}: {problem}"))
        if home and re.match(r"~(/|$)", expanded.text):
            return Expanded(str(Path(expanded.text).expanduser()), expanded.secret)
        return expanded

    def _texts(self, where: str, value: object) -> list[str]:
        return [item.text for item in self._items(where, value)]

    def _items(self, where: str, value: object, *, home: bool = False) -> list[Expanded]:
        if not isinstance(value, list | tuple):
            self.problems.append(f"{where} must be a list of texts")
            return []
        items = cast("list[object]", value)
        return [self._expand(f"{where}[{number}]", item, home=home) for number, item in enumerate(items)]

    def _named(self, where: str, value: object) -> dict[str, Expanded]:
        if not isinstance(value, Mapping):
            self.problems.append(f"{where} must be an object of texts")
            return {}
        items = cast("Mapping[str, object]", value).items()
        named = ((name, f"{where}.{format_names([name])}", item) for name, item in items if item is not None)
        return {name: self._expand(place, item) for name, place, item in named}

    def _path(self, where: str, value: object) -> Path:
        return self._variables.folder / self._text(where, value, home=True)


_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(.*)")


def _read_env_file(text: str) -> Iterator[tuple[str, str]]:
    """The variables of a ``.env`` file; quotes are taken off, and comments left out."""
    for line in text.splitlines():
        found = _ASSIGNMENT.fullmatch(line)
        if found is None:
            continue
        name, value = found[1], found[2].strip()
        quoted = re.fullmatch(r"(['\"])(.*)\1(?:\s+#.*)?", value)
        if quoted is not None:
            value = quoted[2]
            if quoted[1] == '"':
                value = value.replace("\\n", "\n").replace('\\"', '"')
        else:
            value = re.split(r"\s+#", value, maxsplit=1)[0].strip()
        yield name, value
