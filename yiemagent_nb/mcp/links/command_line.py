"""The command that starts a server: how it is named and shown, and what environment it gets."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import PurePosixPath, PureWindowsPath

from yiemagent_nb.core.redaction import Redactor

__all__ = ["default_name", "inherited_environment", "logins", "masked", "names_secret"]

_MASK = "[key]"

_INHERITED = frozenset(
    {
        # What the official SDK passes on.
        *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"),
        *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
        *("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
        # The language and the time zone that its answers are in, and where its files go.
        *("LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP"),
        # Without these an installer or a server reaches nothing on many a company's network.
        *("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
        *("CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE"),
        # Without these an interpreter that was built as a shared library may not start.
        *("DYLD_FALLBACK_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH"),
    }
)
_INHERITED_PREFIXES = ("LC_", "XDG_")


def inherited_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What a server gets of this process's environment, which may hold keys that are none of its business.

    Beside what the official SDK passes on, that is the language, folders, certificates and proxies; not
    a proxy whose address has a login, which is to be named in the server's own ``env``.
    """
    return {
        name: value
        for name, value in environment.items()
        if (name.upper() in _INHERITED or name.startswith(_INHERITED_PREFIXES))
        and not value.startswith("()")  # a shell's function
        and not (name.upper().endswith("_PROXY") and "@" in value)
    }


# Masking

_SENSITIVE = (
    r"[\w.-]*(?:key|token|secret|passw|passphrase|passcode|(?<![a-z])(?:pg)?pass(?![a-z-])|pwd|(?<![a-z])pw(?![a-z])"
    r"|credential|cookie|bearer|auth(?!or))[\w.-]*"
)
_SENSITIVE_NAME = re.compile(_SENSITIVE, re.IGNORECASE)
_SECRET_FLAG = re.compile(rf"--?{_SENSITIVE}", re.IGNORECASE)
_SECRET_SETTING = re.compile(rf"(-*{_SENSITIVE}\s*[=:]\s*).+", re.IGNORECASE | re.DOTALL)
_SECRET_INSIDE = re.compile(rf"({_SENSITIVE}[\"']?\s*[=:]\s*[\"']?)[^\s\"'&,}}]+", re.IGNORECASE)
_LOGIN = re.compile(r"(?<=://)[^/\s]+(?=@)")
_PACKAGE = r"(?:npm|jsr|node|file|git)\b"
_PASSWORD_BEFORE_HOST = re.compile(
    rf"(?<![\w/.+%-])((?!{_PACKAGE})[\w.+%-]+:)(?![/\\])[^\s/]+(?=@(?!sha\d|latest\b)[\w.\[])"
)
"""``name:password@host`` without the beginning of an address; not an image or a package with its version."""
_SHORT_FLAG = re.compile(r"-p")
_NO_PASSWORD = re.compile(r"[\d.:-]+(?:/(?:tcp|udp))?|python[\d.]*")
"""What else follows ``-p``: ports and versions."""
_USER = r"(?:-u|-U|--?(?:proxy-|http-|db-)?(?:user|username|login))"
_USER_FLAG = re.compile(_USER)
_USER_AND_PASSWORD = re.compile(rf"((?:{_USER}=)?[^\s:/=]+:)(?!\d+$).+")
_WELL_KNOWN = re.compile(
    r"\b(?:sk-|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|AKIA|AIza|hf_|npm_|pypi-|eyJ)[\w.-]{8,}|\bBearer\s+\S+"
)
_LONGEST_TARGET = 200


def masked(arguments: Iterable[str], redactor: Redactor) -> str:
    """A command line to show, with what may be a secret masked, cut to 200 characters."""
    shown: list[str] = []
    flag = ""
    for argument in arguments:
        if _holds_secret(flag, argument):
            shown.append(_MASK)
        elif login := _login_of_user(flag, argument):
            shown.append(login + _MASK)
        else:
            shown.append(redactor(_mask(argument[: 2 * _LONGEST_TARGET])))
        flag = argument
    line = " ".join(argument if _MASK in argument else shlex.quote(argument) for argument in shown)
    return line if len(line) <= _LONGEST_TARGET else f"{line[: _LONGEST_TARGET - 1]}…"


def logins(value: str) -> list[str]:
    """The names with passwords that stand in addresses, such as ``me:secret`` in ``https://me:secret@host``."""
    return [login for login in _LOGIN.findall(value) if ":" in login]


def _holds_secret(flag: str, argument: str) -> bool:
    """Whether an argument is a secret, as the one before it says."""
    if argument.startswith("-"):
        return False
    if _SHORT_FLAG.fullmatch(flag):
        return _NO_PASSWORD.fullmatch(argument) is None
    return _SECRET_FLAG.fullmatch(flag) is not None


def _login_of_user(flag: str, argument: str) -> str:
    """What stands before the password in the argument ``name:password`` of a flag; empty where it is none."""
    login = _USER_AND_PASSWORD.fullmatch(argument)
    return login[1] if login and (_USER_FLAG.fullmatch(flag) or "=" in login[1]) else ""


def _mask(argument: str) -> str:
    setting = _SECRET_SETTING.fullmatch(argument)
    if setting is not None:
        return setting[1] + _MASK
    argument = _PASSWORD_BEFORE_HOST.sub(rf"\1{_MASK}", _LOGIN.sub(_MASK, argument))
    return _WELL_KNOWN.sub(_MASK, _SECRET_INSIDE.sub(rf"\1{_MASK}", argument))


def names_secret(name: str) -> bool:
    """Whether the name of a variable is one of a secret."""
    return _SENSITIVE_NAME.fullmatch(name) is not None


# Naming

_PACKAGE_RUNNERS = frozenset({"npx", "bunx", "pnpx", "uvx", "pipx", "npm", "pnpm", "yarn", "bun", "uv", "deno"})
_RUNNERS = _PACKAGE_RUNNERS | {"mcp", "fastmcp"}
_INTERPRETERS = frozenset({"node", "tsx", "ts-node", "ruby", "php", "perl", "bash", "sh", "java"})
_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*|py")
_SUBCOMMANDS = frozenset({"run", "exec", "dlx", "tool", "x", "container"})
_VALUED_WORDS = (
    "from with with-editable with-requirements python package directory project index index-url extra-index-url "
    "default-index spec extra group prefix cwd dir env-file require import loader class-path"
)
_VALUED = frozenset(
    {
        *(f"--{word}" for word in _VALUED_WORDS.split()),
        *("-p", "-C", "-r", "-cp", "-classpath", "-c", "-X", "-W"),
    }
)
_VALUED_BY_CONTAINERS = frozenset(
    {
        *("-e", "--env", "--env-file", "-v", "--volume", "--mount", "--name", "--network", "--net", "-u", "--user"),
        *("-w", "--workdir", "--platform", "--entrypoint", "-l", "--label", "--add-host", "--memory", "-m", "--pull"),
        *("-p", "--publish", "--gpus", "--cpus", "--shm-size"),
    }
)
_ENDINGS = (".exe", ".cmd", ".bat", ".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".mts", ".rb", ".sh", ".jar", ".git")
_SAY_NOTHING = frozenset({"index", "main", "__main__", "cli", "build", "dist", "lib", "src", "bin", "out", "target"})
_LONGEST_NAME = 64


def default_name(command: str, arguments: Iterable[str]) -> str:
    """A readable name for a server: that of its package, module, script, image or program.

    ``npx -y @modelcontextprotocol/server-everything`` gives ``server-everything``, ``python weather.py``
    gives ``weather``, ``node weather/build/index.js`` gives ``weather``.
    """
    program = _last_part(command)
    name = re.sub(r"[^\w.-]+", "-", _name(program, list(arguments)) or program).strip("-.")
    return name[:_LONGEST_NAME] or "server"


def _name(program: str, words: list[str]) -> str:
    """What a program runs, as its arguments say; empty where they do not."""
    operand, rest = _first_operand(words, _VALUED_BY_CONTAINERS if program in _CONTAINERS else _VALUED)
    inner = _last_part(operand)
    is_python = _PYTHON.fullmatch(program) is not None
    if program == "cmd" and operand.lower() == "/c" and rest:  # of Windows, which needs it for npx
        return default_name(rest[0], rest[1:])
    if program in _RUNNERS and (inner in _RUNNERS | _INTERPRETERS or _PYTHON.fullmatch(inner)):
        return default_name(operand, rest)
    if program in _RUNNERS or is_python:
        return _module(words) or (inner if is_python else _package(operand))
    if program in _CONTAINERS:
        return re.split("[:@]", inner)[0]
    return inner if program in _INTERPRETERS else ""


def _module(words: list[str]) -> str:
    """The module after ``-m``, unless a script or a program comes first."""
    for word, following in pairwise([*words, ""]):
        if word in ("-m", "--module"):
            return following
        if word == "-c" or (not word.startswith("-") and word not in _SUBCOMMANDS):
            return ""
    return ""


def _package(word: str) -> str:
    """The name in ``@scope/name@1.0``, ``name==1.0``, ``name[extra]``, ``git+https://host/name.git@main``."""
    word = word.partition("#")[0].rstrip("/")
    folder, slash, last = word.rpartition("/")
    last = re.split(r"@|[=<>!~]=|[<>\[:]", last)[0]
    return _last_part(f"{folder}{slash}{last}") if last else ""


def _first_operand(words: list[str], valued: frozenset[str]) -> tuple[str, list[str]]:
    """The first word that is no option, no option's value and no subcommand, and what follows it."""
    is_value = False
    for position, word in enumerate(words):
        if is_value:
            is_value = False
        elif word.startswith("-"):
            is_value = word in valued
        elif word not in _SUBCOMMANDS:
            return word, words[position + 1 :]
    return "", []


def _last_part(path: str) -> str:
    """The last part of a path that says something, without the ending of a program."""
    pure = PureWindowsPath(path) if "\\" in path or os.name == "nt" else PurePosixPath(path)
    names = [_without_ending(part) for part in reversed(pure.parts) if part not in ("..", pure.anchor)]
    return next((name for name in names if name.lower() not in _SAY_NOTHING), names[0] if names else "")


def _without_ending(name: str) -> str:
    return next((name[: -len(end)] for end in _ENDINGS if name.lower().endswith(end)), name)
