"""Copies of a row: as Python, as curl, as a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.tracing.as_curl import curl_of
from yiemagent_nb.tracing.as_python import python_of
from yiemagent_nb.tracing.as_test import test_of
from yiemagent_nb.tracing.requests import size_of
from yiemagent_nb.tracing.rows import CallBody, Row

if TYPE_CHECKING:
    from yiemagent_nb.tracing.recorder import TraceRecorder

__all__ = ["Copy", "CopyForm", "copy_of"]

CopyForm = Literal["python", "curl", "test"]


@dataclass(frozen=True, slots=True)
class Copy:
    """A text, and the name of the file that it would go into."""

    text: str
    name: str


def copy_of(trace: TraceRecorder, row: Row, form: CopyForm, *, most: int | None = None) -> Copy:
    """What makes the same request again, or tests that it stays the same. No key is in it.

    Args:
        trace: The trace that has the row.
        row: A call of the model; for a test also a run.
        form: Which.
        most: So many characters it may have, about.

    Raises:
        InvalidParametersError: The row has no request, or none of this form; what it held was let go; or
            the copy is too long.
    """
    if most is not None:
        _check(_size_of(trace, row), most, row)
    copy = _copy(trace, row, form)
    if most is not None:
        _check(len(copy.text), most, row)
    return copy


def _copy(trace: TraceRecorder, row: Row, form: CopyForm) -> Copy:
    if form == "python":
        return Copy(python_of(trace, row), f"request_{row.number}.py")
    if form == "curl":
        return Copy(curl_of(row), f"request_{row.number}.sh")
    return Copy(test_of(trace, row), f"tests/test_recorded_{row.number}.py")


def _check(size: int, most: int, row: Row) -> None:
    if size > most:
        raise InvalidParametersError(
            f"A copy of row {row.number} has about {size / 1e6:,.1f} million characters; "
            f"up to {most / 1e6:,.1f} are copied.",
            "Make a test of it in a file, or choose another row.",
        )


def _size_of(trace: TraceRecorder, row: Row) -> int:
    """About how many characters a copy has at least; cheap beside making it."""
    if row.kind == "model":
        requests = row.model.requests
        return sum(map(size_of, requests[row.model.used].messages)) if requests else 0
    size = 0
    for each in trace.rows(row.number) if row.kind == "run" else ():
        if each.kind == "run" and each is not row:
            break
        if isinstance(each.body, CallBody):
            size += each.body.size
        size += sum(request.size for request in each.model.requests)
    return size
