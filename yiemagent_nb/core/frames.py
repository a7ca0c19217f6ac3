"""Data frames as short markdown tables, known by their shape and not by their library."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, cast

__all__ = ["frame_as_markdown"]

MAX_ROWS = 20
MAX_COLUMNS = 20
MAX_CELL = 80


def frame_as_markdown(value: object) -> str | None:
    """The head of a frame or series as a markdown table under its full shape; None for anything else.

    At most 20 rows, 20 columns and 80 characters a cell are shown. Of pandas' index only one that
    says something, other than row numbers, becomes columns.

    Args:
        value: Anything. A frame has ``columns``, a ``shape`` of two, ``head``, and either pandas'
            ``itertuples`` or polars' ``iter_rows``; a series has ``to_frame``.
    """
    if isinstance(value, type):
        return None
    frame: Any = value
    if len(_shape(frame)) == 1 and hasattr(frame, "to_frame"):
        frame = frame.to_frame()
    shape = _shape(frame)
    if len(shape) != 2 or not hasattr(frame, "columns") or not hasattr(frame, "head"):  # noqa: PLR2004 - rows, columns
        return None
    rows, columns = int(shape[0]), int(shape[1])
    head = frame.head(MAX_ROWS)
    names = [_cell(name) for name in islice(frame.columns, MAX_COLUMNS)]
    if hasattr(head, "iter_rows"):
        table = [list(row[:MAX_COLUMNS]) for row in head.iter_rows()]
    elif hasattr(head, "itertuples"):
        # By position, since columns may share a name.
        table = [list(row) for row in head.iloc[:, :MAX_COLUMNS].itertuples(index=False, name=None)]
        names, table = _with_index(head.index, names, table)
    else:
        return None
    caption = _caption(type(value).__name__, rows, columns)
    return f"{caption}\n\n{_markdown(names, table)}" if names else caption


def _shape(frame: Any) -> tuple[Any, ...]:
    shape: object = getattr(frame, "shape", None)
    return cast("tuple[Any, ...]", shape) if isinstance(shape, tuple) else ()


def _with_index(index: Any, names: list[str], table: list[list[Any]]) -> tuple[list[str], list[list[Any]]]:
    labels = list(index)
    titles = [name for name in index.names if name is not None]
    if not titles and labels == list(range(len(labels))):
        return names, table
    several = len(index.names) > 1
    shown = [_cell(name) if name is not None else "" for name in index.names]
    return shown + names, [[*(label if several else (label,)), *row] for label, row in zip(labels, table, strict=True)]


def _caption(kind: str, rows: int, columns: int) -> str:
    shape = f"{kind}, {rows:,} {'row' if rows == 1 else 'rows'} x {columns:,} {'column' if columns == 1 else 'columns'}"
    left_out = [
        f"first {limit} {what}"
        for count, limit, what in ((rows, MAX_ROWS, "rows"), (columns, MAX_COLUMNS, "columns"))
        if count > limit
    ]
    return f"{shape} (the {' and '.join(left_out)} are shown)" if left_out else shape


def _markdown(names: Sequence[str], table: Iterable[Sequence[Any]]) -> str:
    lines = [names, ["---"] * len(names), *([_cell(value) for value in row] for row in table)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    text = " ".join(str(value).split())
    if len(text) > MAX_CELL:
        text = f"{text[: MAX_CELL - 1]}…"
    return text.replace("\\", "\\\\").replace("|", "\\|")
