"""ToolResult: what a tool gives back, and how any Python value becomes one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic_core import to_json

from yiemagent_nb.core.displays import shown_as_markup, shown_as_words
from yiemagent_nb.core.frames import frame_as_markdown
from yiemagent_nb.core.json_values import Opaque
from yiemagent_nb.core.messages import ImageContent, TextContent, UserContent, read_content
from yiemagent_nb.core.models import Usage

__all__ = ["ToolResult", "to_tool_result"]


_Block = str | TextContent | ImageContent


class ToolResult(BaseModel):
    """What a tool gives back.

    Args:
        content: Text, a block, or several; this is what the model sees. It may be empty. Lone
            surrogates in text are replaced.
        details: Anything, for people and widgets; the model does not see it.
        usage: Tokens that the tool itself spent.
        added_tool_names: Tools that it made available.
        is_error: Whether the call failed.
        terminate: End the run after this batch, if every result of the batch says so.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    content: Annotated[tuple[UserContent, ...], BeforeValidator(read_content)] = ()
    details: Opaque = None
    usage: Usage | None = None
    added_tool_names: tuple[str, ...] | None = None
    is_error: bool = False
    terminate: bool = False

    def __init__(
        self,
        content: _Block | Sequence[_Block | Mapping[str, Any]] = (),
        **data: Any,
    ) -> None:
        super().__init__(content=content, **data)

    @property
    def text(self) -> str:
        """All text of the result."""
        return "".join(block.text for block in self.content if isinstance(block, TextContent))


def to_tool_result(value: object) -> ToolResult:
    """Make a result of what a tool returned. It never raises.

    - a ``ToolResult`` stays as it is; content blocks, and lists with blocks or images in them,
      become content
    - text stays text, and an empty one is an empty result; ``None`` is ``done``
    - an image, a figure, anything with ``_repr_png_``, and the bytes of an image become an image
    - a data frame or series (pandas, polars, or alike) becomes a short markdown table, with itself
      in ``details``
    - what shows itself in notebooks as markdown or LaTeX (``_repr_markdown_``, ``_repr_latex_``) becomes
      that, with itself in ``details``
    - anything else becomes JSON text, with itself in ``details``: models, dataclasses, dicts,
      lists, sets, numbers, dates, enums. A part that JSON cannot hold is shown by its ``repr``
    - what has no JSON form at all is shown by its ``repr``, with a note, or where that says nothing, by
      the JSON that it is drawn from, or by the words and tables of its ``_repr_html_``. Where even that
      fails, the result is an error
    """
    try:
        return _convert(value)
    except Exception:  # whatever an object of the user's does when it is looked at
        return _shown_by_repr(value)


def _convert(value: Any) -> ToolResult:
    if isinstance(value, ToolResult):
        return value
    content = _content(value)
    if content is not None:
        return ToolResult(content)
    shown = None if isinstance(value, (int, float)) else _table(value) or _markup(value)
    return ToolResult(_json(value, value) if shown is None else shown, details=value)


def _content(value: Any) -> _Block | list[_Block] | None:
    """The content of a value that is text or image by itself; None for all others."""
    match value:
        case None:
            return "done"
        case str() if not isinstance(value, Enum):
            content = value
        case bool() | int() | float():
            content = None
        case TextContent() | ImageContent():
            content = value
        case bytes() | bytearray() | memoryview():
            content = _bytes_block(bytes(cast("bytes", value)))
        case list() | tuple():
            content = _mixture(cast("Sequence[object]", value))
        case _:
            content = _image(value)
    return content


def _mixture(items: Sequence[object]) -> list[_Block] | None:
    """The blocks of a list in which images or blocks stand; None where it is data."""
    kinds: set[type] = {type(item) for item in items}
    if not any(_may_be_block(kind) for kind in kinds):
        return None
    blocks = [_block(item) for item in items]
    return blocks if any(not isinstance(block, str) for block in blocks) else None


def _may_be_block(kind: type[Any]) -> bool:
    if issubclass(kind, TextContent | ImageContent | bytes | bytearray):
        return True
    return hasattr(kind, "_repr_png_") or hasattr(kind, "savefig")


def _block(item: object) -> _Block:
    """One item of a list that mixes text and images."""
    if isinstance(item, str):
        return item
    if isinstance(item, TextContent | ImageContent):
        return item
    if isinstance(item, bytes | bytearray):
        return _bytes_block(bytes(item))
    image = _image(item)
    return image if image is not None else _json(item)


def _image(value: object) -> ImageContent | None:
    """The picture of a value that shows as one; None where it does not, or fails to."""
    try:
        return ImageContent.try_display(value)
    except Exception:  # then its JSON form or its repr is shown instead
        return None


def _table(value: object) -> str | None:
    try:
        return frame_as_markdown(value)
    except Exception:  # something like a frame that is none, such as a lazy one
        return None


def _markup(value: object) -> str | None:
    try:
        return shown_as_markup(value)
    except Exception:  # then its JSON form or its repr is shown instead
        return None


def _bytes_block(data: bytes) -> TextContent | ImageContent:
    try:
        return ImageContent.from_bytes(data)
    except ValueError:
        return TextContent(f"{len(data):,} bytes of binary data, not shown")


def _json(value: object, whole: object = None) -> str:
    """JSON text. Parts that JSON cannot hold become their ``repr``, except ``whole``.

    Raises:
        Exception: It has no JSON form: a cycle, too deep, or ``whole`` is of an unknown kind.
    """

    def stand_in(part: object) -> object:
        if not isinstance(part, type) and callable(as_list := getattr(part, "tolist", None)):  # NumPy's
            return as_list()
        if part is whole:
            raise TypeError(f"a {type(part).__name__} has no JSON form")
        return repr(part)

    try:
        return to_json(value, inf_nan_mode="strings", bytes_mode="base64", fallback=stand_in).decode("utf-8")
    except ValueError as error:
        if "surrogates not allowed" not in str(error):
            raise
    # In ASCII, for text such as file names that are not UTF-8.
    return json.dumps(value, allow_nan=False, default=lambda part: json.loads(_json(part)))


_ADVICE = "Return text, JSON values, a pydantic model, a dataclass, an image or a data frame."


def _shown_by_repr(value: object) -> ToolResult:
    kind = "object"
    try:
        kind = type(value).__name__
        words = shown_as_words(value)
        if words is not None and words != repr(value):
            return ToolResult(words, details=value)
        return ToolResult(f"{value!r}\n(Shown by its repr: the type {kind} has no JSON form. {_ADVICE})")
    except Exception as failure:  # an object that cannot even be looked at
        return ToolResult(
            f"The tool returned a {kind} that cannot be shown ({type(failure).__name__}). {_ADVICE}",
            is_error=True,
        )
