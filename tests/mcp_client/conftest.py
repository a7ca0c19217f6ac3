"""Servers that no one here wrote, installed once a machine."""

from __future__ import annotations

import base64
import functools
import shutil
import subprocess
import threading
import wave
from collections.abc import Generator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from mcp_client.installing import NODE, npm_ci, python_environment
from mcp_client.third_party_servers import Place

THIRD_PARTY = Path(__file__).with_name("third_party")

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""One pixel."""


@pytest.fixture(scope="session")
def node() -> Path:
    """The program of Node.js, at least version 22."""
    return NODE


@pytest.fixture(scope="session")
def node_servers() -> Path:
    """The ``node_modules`` with the servers and the conformance suite."""
    return npm_ci(THIRD_PARTY)


@pytest.fixture(scope="session")
def python_servers() -> Path:
    """The folder with the programs of the servers in Python."""
    return python_environment(THIRD_PARTY / "requirements.txt")


@pytest.fixture(scope="session")
def older_python_servers() -> Path:
    """The folder with the programs of those on the first major version of the official SDK."""
    return python_environment(THIRD_PARTY / "requirements-older.txt")


@pytest.fixture
def site(tmp_path: Path) -> Generator[str]:
    """The address of a small web site."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "robots.txt").write_text("User-agent: *\nDisallow: /private.html\n")
    page = "<html><head><title>Tides</title></head><body><article><h1>Tides</h1><p>{}</p></article></body></html>"
    (folder / "index.html").write_text(page.format("The tide comes twice a day, nearly everywhere."))
    (folder / "private.html").write_text(page.format("Nobody should read this."))
    handler = functools.partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Say nothing."""


@pytest.fixture(scope="session")
def installed(
    node: Path, node_servers: Path, python_servers: Path, older_python_servers: Path
) -> tuple[Path, Path, Path, Path]:
    return node, node_servers, python_servers, older_python_servers


@pytest.fixture
def place(installed: tuple[Path, Path, Path, Path], tmp_path: Path, site: str) -> Place:
    files = tmp_path / "files"
    files.mkdir()
    (files / "notes.txt").write_text("the first line\nthe second line\n")
    (files / "picture.png").write_bytes(PICTURE)
    with wave.open(str(files / "sound.wav"), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(8000)
        sound.writeframes(bytes(80))
    _make_repository(tmp_path / "repository")
    return Place(*installed, tmp_path, site)


def _make_repository(folder: Path) -> None:
    """A repository with one commit, and a change that is not committed."""
    folder.mkdir()
    poem = folder / "poem.txt"
    git = (shutil.which("git") or "git", "-C", str(folder))
    poem.write_text("a line\n")
    for command in (
        ("init", "-q", "-b", "main"),
        ("config", "user.name", "A Poet"),
        ("config", "user.email", "poet@example.org"),
        ("add", "."),
        ("commit", "-q", "-m", "A poem"),
    ):
        subprocess.run([*git, *command], check=True, capture_output=True)
    poem.write_text("a line\na second line\n")
