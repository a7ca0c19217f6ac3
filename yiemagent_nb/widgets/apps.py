"""Notebooks that are served as apps: their visitors are not their author, whose keys the kernel holds."""

from __future__ import annotations

import os

from yiemagent_nb.core.errors import InvalidParametersError

__all__ = ["refuse_in_apps", "served_as_app"]


def served_as_app() -> bool:
    """Whether Voilà serves this notebook."""
    return os.environ.get("SERVER_SOFTWARE", "").startswith("voila")


def refuse_in_apps(what: str) -> None:
    """Refuse what only a notebook's author may do.

    Args:
        what: What is refused, as the error says it: "Servers cannot be added".

    Raises:
        InvalidParametersError: The notebook is served as an app.
    """
    if served_as_app():
        raise InvalidParametersError(f"{what} where a notebook is served as an app.", "Do it in the notebook's code.")
