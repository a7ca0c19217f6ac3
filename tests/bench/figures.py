"""Figures, their targets, and the table that shows them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Figure", "Target", "as_json", "as_table", "percentile"]


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure should be.

    Args:
        limit: The bound, itself allowed.
        of: What is bounded: the agent's figure, its ratio to the bare loop's, or its distance.
        at_least: Whether ``limit`` is the lowest value, and not the highest.
    """

    limit: float
    of: Literal["figure", "ratio", "difference"] = "ratio"
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table.

    Args:
        scenario: Where it was measured.
        name: What was measured.
        unit: Of ``agent`` and ``bare``.
        agent: The agent's figure.
        bare: What it is compared with; None where there is nothing.
        target: What it should be; None where it only informs.
    """

    scenario: str
    name: str
    unit: str
    agent: float
    bare: float | None = None
    target: Target | None = None

    @property
    def ratio(self) -> float | None:
        """The agent's figure over the bare loop's."""
        return self.agent / self.bare if self.bare else None

    @property
    def aim(self) -> str:
        """The target in words."""
        if self.target is None:
            return ""
        sign = "≥" if self.target.at_least else "≤"
        limit = f"{self.target.limit:,g}"
        if self.target.of == "ratio":
            return f"{sign} {limit}x"
        return f"{sign} {'+' if self.target.of == 'difference' else ''}{limit} {self.unit}".rstrip()

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.target is None:
            return None
        values = {"figure": self.agent, "ratio": self.ratio, "difference": self.agent - (self.bare or 0.0)}
        value = values[self.target.of]
        if value is None:
            raise ValueError(f"{self.name} has nothing to compare with")
        return value >= self.target.limit if self.target.at_least else value <= self.target.limit

    def row(self) -> tuple[str, ...]:
        """Its cells."""
        verdict = {True: "met", False: "missed", None: ""}[self.met]
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}x"
        bare = "" if self.bare is None else _number(self.bare)
        return (self.scenario, self.name, bare, _number(self.agent), self.unit, ratio, self.aim, verdict)


_HEADER = ("scenario", "figure", "bare", "agent", "unit", "ratio", "target", "")
_RIGHT = frozenset({2, 3, 5})
"""Columns of numbers."""


def percentile(values: Sequence[float], percent: int) -> float:
    """A percentile of at least two values."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def as_table(figures: Iterable[Figure]) -> str:
    """Figures in columns."""
    rows = [_HEADER, *(figure.row() for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))
    return "\n".join("  ".join(map(_align, row, widths, range(len(row)))).rstrip() for row in rows)


def as_json(figures: Iterable[Figure]) -> list[dict[str, Any]]:
    """Figures for programs."""
    return [
        {
            "scenario": figure.scenario,
            "name": figure.name,
            "unit": figure.unit,
            "bare": figure.bare,
            "agent": figure.agent,
            "ratio": figure.ratio,
            "target": figure.aim,
            "met": figure.met,
        }
        for figure in figures
    ]


def _align(text: str, width: int, column: int) -> str:
    return text.rjust(width) if column in _RIGHT else text.ljust(width)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
