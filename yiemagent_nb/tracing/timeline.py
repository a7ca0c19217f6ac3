"""The timeline as text, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from yiemagent_nb.core.redaction import mask_keys
from yiemagent_nb.tracing.rows import Row

__all__ = ["seconds_in_words", "timeline"]

_DEPTH = {"run": 0, "turn": 1, "model": 2, "tool": 2, "hand": 0}
_MARKS = {"running": "…", "done": "✓", "failed": "✗", "aborted": "■"}
_NAMES = {"model": "model", "tool": "tool", "hand": "by hand"}
_WIDTH = 110


def timeline(rows: Sequence[Row], total: int) -> str:
    """Rows below each other: number, how it went, time, what it is, waiting and first token, tokens, cost."""
    if not rows:
        return "Nothing was recorded yet."
    lines = [_line(row) for row in rows]
    if total > len(rows):
        lines.insert(0, f"({total - len(rows)} earlier rows)")
    return mask_keys("\n".join(lines))


def seconds_in_words(seconds: float) -> str:
    """A duration, in the unit that fits."""
    if seconds < 0.00995:  # noqa: PLR2004
        return f"{seconds * 1000:.1f} ms"
    if seconds < 0.9995:  # noqa: PLR2004
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"  # noqa: PLR2004


def _line(row: Row) -> str:
    took = "" if row.duration is None else seconds_in_words(row.duration)
    title = mask_keys(row.title)
    name = title.lower() if row.kind in {"run", "turn"} else f"{_NAMES[row.kind]} {title}"
    facts: list[str] = []
    if row.waited is not None and row.waited >= 0.001:  # noqa: PLR2004 - less is not shown
        facts.append(f"waited {seconds_in_words(row.waited)}")
    if row.first is not None:
        facts.append(f"first token {seconds_in_words(row.first)}")
    if row.tokens is not None:
        facts.append(f"{row.tokens.input} → {row.tokens.output} tokens")
    if row.cost:
        facts.append(f"${row.cost:.4f}")
    if facts:
        name = f"{name} ({', '.join(facts)})"
    text = mask_keys(row.error) if row.state == "failed" and row.error else row.summary
    if text:
        name = f"{name}: {text}"
    line = f"{row.number:>5} {_MARKS[row.state]} {took:>8}  {'  ' * _DEPTH[row.kind]}{name}"
    line = "".join(character if character.isprintable() else "·" for character in line)  # no terminal obeys it
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
