"""Observers: those who look inside, and are told something inline."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.hooks import hook_name

__all__ = ["Observers"]

T = TypeVar("T")

_log = logging.getLogger("yiemagent_nb")


class Observers(Generic[T]):
    """Functions of one argument, told in order. One that raises is logged, and harms neither the run nor the others."""

    def __init__(self) -> None:
        self._functions: tuple[Callable[[T], None], ...] = ()

    @property
    def tell(self) -> Callable[[T], None] | None:
        """Tells all of them; None while there is none, so that nothing need be made for them."""
        return self._tell if self._functions else None

    def add(self, function: Callable[[T], None]) -> Callable[[], None]:
        """Add one; returns what takes it back.

        Raises:
            InvalidParametersError: It cannot be called.
        """
        if not callable(function):
            raise InvalidParametersError(
                f"An observer is a function of one argument, not {type(function).__name__}.",
                "Pass a function without calling it.",
            )
        self._functions = (*self._functions, function)

        def leave() -> None:
            self._functions = tuple(each for each in self._functions if each is not function)

        return leave

    def _tell(self, value: T) -> None:
        for function in self._functions:
            try:
                function(value)
            except Exception:
                _log.warning("the observer %s raised", hook_name(function), exc_info=True)
