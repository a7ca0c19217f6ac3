"""Servers are installed once, and what cannot be installed is told in the installer's words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mcp_client.installing import npm_ci


@pytest.fixture
def pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with pins of nothing, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "pins"
    folder.mkdir()
    (folder / "package.json").write_text('{"name": "nothing", "version": "1.0.0"}')
    lock = {"name": "nothing", "version": "1.0.0", "lockfileVersion": 3, "packages": {"": {"version": "1.0.0"}}}
    (folder / "package-lock.json").write_text(json.dumps(lock))
    return folder


def test_the_same_pins_are_installed_once_and_others_anew(pins: Path) -> None:
    first = npm_ci(pins)
    stamp = (first.parent / "complete").stat().st_mtime_ns
    assert npm_ci(pins) == first
    assert (first.parent / "complete").stat().st_mtime_ns == stamp
    (pins / "package-lock.json").write_text((pins / "package-lock.json").read_text() + "\n")
    assert npm_ci(pins) != first


def test_pins_that_cannot_be_installed_are_an_error_with_all_that_npm_said_each_time(pins: Path) -> None:
    (pins / "package.json").write_text("{")
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"(?s)npm-cli.js ci .*EJSONPARSE"):
            npm_ci(pins)
