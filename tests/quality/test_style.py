"""The checks of style and types, as tests, so that one command runs everything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str) -> str:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_ruff_finds_nothing() -> None:
    assert run("ruff", "check", "--output-format=concise") == ""


def test_every_file_is_formatted() -> None:
    assert run("ruff", "format", "--check") == ""


@pytest.mark.timeout(600)
def test_pyright_strict_finds_nothing() -> None:
    assert run("pyright", "--pythonpath", sys.executable) == ""
