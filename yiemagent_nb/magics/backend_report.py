"""What ``%agent_backend`` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import NamedTuple

from yiemagent_nb.backends.state import BackendState

__all__ = ["BackendReport", "Other"]

SHOWN_MODELS = 20
WIDTH = 100

_STATES = {"unknown": "not asked yet", "checking": "being asked", "ok": "ready", "bad": "not usable"}


class Other(NamedTuple):
    """A backend that could answer too, and the name to type for it."""

    name: str
    label: str


@dataclass(frozen=True, slots=True, repr=False)
class BackendReport:
    """A backend, how it is, and what else could answer.

    Args:
        title: What to call the backend.
        model: The name of its model; empty where none is known.
        state: How it is.
        can_be_asked: Whether ``--check`` would tell more.
        others: What else could answer; None where nobody looked.
    """

    title: str
    model: str
    state: BackendState
    can_be_asked: bool = False
    others: Sequence[Other] | None = None

    def __repr__(self) -> str:
        """A few lines to read."""
        state = self.state
        answers = f"{self.title}: {self.model}" if self.model else self.title
        lines = [f"{answers} ({_STATES[state.state]})"]
        if said := f"{state.message} {state.hint}".strip():
            lines += _indented(said)
        elif self.can_be_asked:
            lines += _indented("%agent_backend --check asks it.")
        if state.models:
            more = len(state.models) - SHOWN_MODELS
            names = [*state.models[:SHOWN_MODELS], *([f"and {more} more"] if more > 0 else [])]
            lines += ["Models:", *_indented(", ".join(names))]
        if self.others is not None:
            lines.append(
                "Could answer too (%agent_backend NAME [MODEL]):" if self.others else "Nothing else was found."
            )
            width = max((len(name) for name, _ in self.others), default=0)
            lines += [f"  {name.ljust(width)}  {label}" for name, label in self.others]
        return "\n".join(lines)


def _indented(text: str) -> list[str]:
    return wrap(
        text, WIDTH, initial_indent="  ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
