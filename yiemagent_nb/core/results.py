"""ToolResult: what a tool gives back, and how any Python value becomes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from yiemagent_nb.core.messages import ImageContent, TextContent, UserContent, read_content
from yiemagent_nb.core.models import Usage

__all__ = ["ToolResult"]


class ToolResult(BaseModel):
    """What a tool gives back.

    Args:
        content: Text, a block, or several; this is what the model sees.
        details: Anything, for people and widgets; the model does not see it.
        usage: Tokens that the tool itself spent.
        added_tool_names: Tools that it made available.
        is_error: Whether the call failed.
        terminate: End the run after this batch, if every result of the batch says so.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    content: Annotated[tuple[UserContent, ...], BeforeValidator(read_content)] = ()
    details: Any = None
    usage: Usage | None = None
    added_tool_names: tuple[str, ...] | None = None
    is_error: bool = False
    terminate: bool = False

    def __init__(
        self,
        content: str | TextContent | ImageContent | Sequence[str | TextContent | ImageContent | Mapping[str, Any]] = (),
        **data: Any,
    ) -> None:
        super().__init__(content=content, **data)

    @property
    def text(self) -> str:
        """All text of the result."""
        return "".join(block.text for block in self.content if isinstance(block, TextContent))
