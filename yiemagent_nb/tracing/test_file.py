"""Writing a test as a file below the folder of the notebook."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.tracing.as_test import test_of
from yiemagent_nb.tracing.rows import Row

if TYPE_CHECKING:
    from yiemagent_nb.tracing.recorder import TraceRecorder

__all__ = ["write_test"]


def write_test(trace: TraceRecorder, row: Row, path: str | Path) -> Path:
    """Write the test of a row. A file that is there is never written over: the next free name is taken.

    Args:
        trace: The trace that has the row.
        row: A call of the model, or a run.
        path: Below the kernel's current folder, such as ``tests/test_greeting.py``.

    Returns:
        Where it stands, from that folder on.

    Raises:
        InvalidParametersError: The path leaves the folder or is no Python file, or no test can be made of the row.
    """
    folder = Path.cwd().resolve()
    wanted = Path(path)
    target = (folder / wanted).resolve()
    if wanted.is_absolute() or not target.is_relative_to(folder) or target == folder or "\0" in str(path):
        raise InvalidParametersError(
            f"A test is written below the notebook's folder, and {str(path)!r} is not.", "Give tests/test_….py."
        )
    if target.suffix != ".py" or not target.name.startswith("test_"):
        raise InvalidParametersError(
            f"{target.name!r} is no name that pytest finds a test by.", "Give one like tests/test_greeting.py."
        )
    text = test_of(trace, row)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return _write(target, text).relative_to(folder)
    except OSError as error:
        raise InvalidParametersError(f"{target.name} cannot be written: {error.strerror or error}.") from error


def _write(target: Path, text: str) -> Path:
    for number in count(2):
        try:
            with target.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except FileExistsError:
            stem = target.stem.rstrip("0123456789").rstrip("_") if number > 2 else target.stem  # noqa: PLR2004
            target = target.with_name(f"{stem}_{number}.py")
        else:
            return target
    raise AssertionError
