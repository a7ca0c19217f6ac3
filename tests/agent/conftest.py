"""Fixtures of the tests of the running agent."""

from __future__ import annotations

import pytest

from yiemagent_nb.core import concurrency


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait long for what does not stop."""
    monkeypatch.setattr(concurrency, "ABORT_GRACE", 0.01)
