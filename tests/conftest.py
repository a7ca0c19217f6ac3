"""What all tests share: hypothesis's profile, the front end's sources, the listing of the requirements covered."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from hypothesis import settings
from widgets.front_end import install
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

settings.register_profile("ci", deadline=None, print_blob=True, max_examples=200)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=50)
settings.load_profile("ci")

_COVERED = pytest.StashKey[dict[str, list[str]]]()


@pytest.fixture(scope="session")
def front_end(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the front end's sources with what the lock file names."""
    return install(tmp_path_factory.mktemp("sources") / "frontend")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--requirements",
        action="store_true",
        help="print each requirement with the tests that cover it; use it with --collect-only -q",
    )


class _ByFile(LoadFileScheduling):
    """A file's tests share a worker, and so do those of a browser folder, with one JupyterLab and one Chromium."""

    def _split_scope(self, nodeid: str) -> str:
        folder = nodeid.rpartition("/")[0]
        return folder if folder.startswith("tests/browser") else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    return _ByFile(config, log)


def pytest_collection_finish(session: pytest.Session) -> None:
    covered: dict[str, list[str]] = defaultdict(list)
    for item in session.items:
        for requirement in _requirements(item):
            name = item.nodeid.partition("[")[0]
            if name not in covered[requirement]:
                covered[requirement].append(name)
    session.config.stash[_COVERED] = covered


def _requirements(item: pytest.Item) -> Iterator[str]:
    for marker in item.iter_markers("requirement"):
        if not marker.args:
            raise pytest.UsageError(f"{item.nodeid}: a requirement marker names the rows that it covers")
        yield from cast("tuple[str, ...]", marker.args)


def _in_order(requirement: str) -> list[tuple[int, str]]:
    """Sorts numbers in an id as numbers."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", requirement)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if not config.getoption("--requirements"):
        return
    nothing: dict[str, list[str]] = {}
    covered = config.stash.get(_COVERED, nothing)
    terminalreporter.section(f"{len(covered)} requirements")
    for requirement in sorted(covered, key=_in_order):
        terminalreporter.write_line(requirement)
        for name in covered[requirement]:
            terminalreporter.write_line(f"    {name}")
