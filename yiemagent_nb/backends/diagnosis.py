"""Diagnosis: what is wrong with a server that does not answer as it should, in one sentence."""

from __future__ import annotations

from yiemagent_nb.backends.habits import Habits
from yiemagent_nb.backends.http import HttpConnection
from yiemagent_nb.core.errors import BackendError

__all__ = ["diagnose"]


async def diagnose(http: HttpConnection, habits: Habits, error: BackendError) -> str:
    """Say what is wrong and what to do. Never raises.

    Args:
        http: The connection that failed.
        habits: The server's kind.
        error: How it failed.
    """
    del http, habits
    return f"{error.message} {error.hint}".rstrip()
