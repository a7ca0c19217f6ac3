"""An MCP server that a person adds in the page: an address, a command line, or an MCP configuration.

All of them become entries of a configuration, so that each is read as ``read_mcp_config`` reads it, with
its variables. A token comes beside the message; it is one of the configuration's inputs, and stands in no text.
"""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from pydantic import SecretStr

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.validation import format_names

if TYPE_CHECKING:
    from yiemagent_nb.mcp.server import McpServer

__all__ = ["read_servers"]

_EXPECTED = (
    "Expected an address (https://host/mcp, nats://host:4222/topic), a command line (uvx mcp-server-time), or an MCP "
    'configuration ({"mcpServers": {…}}).'
)

_TOKEN = "token"  # noqa: S105 - the name of an input, not its value
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HOST = re.compile(
    r"(?:localhost|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:]+\])(?::\d+)?(?:/\S*)?|[\w-]+(?:\.[\w-]+)+(?::\d+(?:/\S*)?|/\S*)"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_OF_A_SHELL = frozenset({"|", "||", "&&", "&", ";", ">", ">>", "<", "2>", "2>&1"})
_INPUT = re.compile(r"\$\{input:([^{}]+)\}")
_FRAGMENT = re.compile(r'"[^"\\]*"\s*:\s*\{')


def read_servers(text: str, name: str, token: SecretStr | None) -> tuple[list[McpServer], list[str]]:
    """The servers that a person named; nothing is started.

    Args:
        text: What they wrote.
        name: What the server should be called; empty leaves that to its entry, its command or its address.
        token: The bearer token of a server at an address, or what stands for ``${input:…}`` in the entry.

    Returns:
        The servers, and what of their entries is not understood, in sentences.

    Raises:
        InvalidParametersError: It is none of what is expected; the error says what is wrong.
    """
    from yiemagent_nb.mcp.config import read_mcp_config  # noqa: PLC0415 - slow to import, and rarely needed

    source = _configuration(text.strip(), name.strip(), token)
    asked = {_TOKEN, *_INPUT.findall(text)}
    inputs: Mapping[str, Any] = {} if token is None else dict.fromkeys(asked, token)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        servers = read_mcp_config(source, inputs=inputs)
    return servers, [str(each.message) for each in caught]


def _configuration(text: str, name: str, token: SecretStr | None) -> Mapping[str, Any]:
    if not text:
        raise InvalidParametersError("Nothing was written.", _EXPECTED)
    if text.startswith(("{", "//", "/*")) or _FRAGMENT.match(text):
        data = _parsed(text if text.startswith(("{", "/")) else f"{{{text.rstrip(',')}}}")
        return _named(_with_token(data, token, text), name)
    if _ADDRESS.match(text):
        entry = _address_entry(text, token)
    elif _HOST.fullmatch(text):
        raise InvalidParametersError("The address does not say how it is reached.", "Write https:// or http:// before.")
    elif text.endswith((".json", ".jsonc")) and len(text.split()) == 1:
        return _named(_with_token(_parsed(_file_text(text)), token, text), name)
    else:
        entry = _command_entry(text)
        if token is not None and not _INPUT.search(text):
            raise InvalidParametersError(
                "A token goes with an address, and this is a command.",
                "Give it to the program by a variable: TOKEN=${input:token} before the command.",
            )
    return {"mcpServers": {name: entry}} if name else entry


def _parsed(text: str) -> Mapping[str, Any]:
    from yiemagent_nb.mcp.jsonc import read_jsonc  # noqa: PLC0415

    try:
        data: object = read_jsonc(text)
    except ValueError as error:
        raise InvalidParametersError(f"The configuration is no JSON: {error}.", _EXPECTED) from None
    if not isinstance(data, Mapping):
        raise InvalidParametersError("The configuration is no JSON object.", _EXPECTED)
    return cast("Mapping[str, Any]", data)


def _file_text(path: str) -> str:
    try:
        return Path(path).expanduser().read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidParametersError(f"The file {path} cannot be read ({type(error).__name__}).", _EXPECTED) from None


def _address_entry(text: str, token: SecretStr | None) -> dict[str, Any]:
    scheme = text.partition("://")[0].lower()
    if any(character.isspace() for character in text):
        raise InvalidParametersError("An address holds no spaces.", _EXPECTED)
    if scheme in ("http", "https"):
        return {"url": text, **({} if token is None else {"auth": f"${{input:{_TOKEN}}}"})}
    if scheme in ("nats", "tls"):
        if token is not None:
            raise InvalidParametersError(
                "A token goes with an HTTP address, and this is one of NATS.",
                "Connect in code: McpServer.nats(url, topic, connect_options={'token': …}).",
            )
        parts = urlsplit(text)
        topic = parts.path.strip("/")
        if not topic:
            raise InvalidParametersError(
                "An address of NATS needs the topic on which the server listens.", "Write nats://host:4222/topic."
            )
        return {"nats": {"url": f"{parts.scheme}://{parts.netloc}", "topic": topic}}
    raise InvalidParametersError(f"MCP servers are not reached by {scheme}://.", _EXPECTED)


def _command_entry(text: str) -> dict[str, Any]:
    try:
        words = shlex.split(re.sub(r"\\\r?\n", " ", text).removeprefix("$ "))
    except ValueError as error:
        raise InvalidParametersError(f"The command line is not complete: {str(error).lower()}.", _EXPECTED) from None
    env: dict[str, str] = {}
    while words and _ASSIGNMENT.match(words[0]):
        variable, _, value = words.pop(0).partition("=")
        env[variable] = value
    if not words:
        raise InvalidParametersError("The command line names no program.", _EXPECTED)
    if shell := [word for word in words if word in _OF_A_SHELL]:
        raise InvalidParametersError(
            f"The command line holds {format_names(shell)}, and no shell reads it.",
            "Write the program and its arguments alone.",
        )
    if words[0] in ("claude", "gemini", "codex") and words[1:3] == ["mcp", "add"]:
        raise InvalidParametersError("This command adds a server to another program.", "Write what stands behind --.")
    return {"command": words[0], "args": words[1:], "env": env}


def _with_token(data: Mapping[str, Any], token: SecretStr | None, text: str) -> Mapping[str, Any]:
    """A configuration whose only server gets the token, unless the configuration says itself where it goes."""
    if token is None or _INPUT.search(text):
        return data
    entry = _only_entry(data)
    if entry is None or not any(isinstance(entry.get(key), str) for key in ("url", "serverUrl", "httpUrl")):
        raise InvalidParametersError(
            "It is not clear to which server of the configuration the token belongs.",
            'Write "${input:token}" where it goes, such as in "headers": {"Authorization": "Bearer ${input:token}"}.',
        )
    entry["auth"] = f"${{input:{_TOKEN}}}"
    return data


def _only_entry(data: Mapping[str, Any]) -> dict[str, Any] | None:
    """The entry of a configuration that has one."""
    if any(key in data for key in ("command", "url", "serverUrl", "httpUrl", "nats")):
        return cast("dict[str, Any]", data)
    inner = [cast("Mapping[str, Any]", each) for each in data.values() if isinstance(each, dict)]
    return _only_entry(inner[0]) if len(inner) == 1 else None


def _named(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A configuration whose only server has this name."""
    if not name:
        return data
    entry = _only_entry(data)
    if entry is None:
        raise InvalidParametersError(
            "The configuration has several servers, and one name was given.", "Leave the name empty."
        )
    named: dict[str, Any] = {"mcpServers": {name: dict(entry)}}
    return {**named, "inputs": data["inputs"]} if "inputs" in data else named
