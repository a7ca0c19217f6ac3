"""What messages of a page are made of."""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["MAX_TEXT", "Acting", "FromPage", "Ticketed", "bounded"]

MAX_TEXT = 1_000_000
MAX_VALUES = 10_000


class FromPage(BaseModel):
    """Something that a page says. A page is not trusted: what is not declared is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Ticketed(FromPage):
    """Something that is answered, and carried out once."""

    ticket: str = Field(min_length=1, max_length=64)


class Acting(Ticketed):
    """Something that runs code, or starts and ends things, when a person presses a button.

    ``session`` is what this kernel's widget told the page in its snapshot. A page that was saved, or
    that belongs to another kernel, does not know it.
    """

    session: str = Field(min_length=1, max_length=64)


def bounded(content: dict[str, Any]) -> dict[str, Any]:
    """Refuse values of a size that no person enters; of any depth."""
    waiting: list[object] = [content]
    values = characters = 0
    while waiting:
        value = waiting.pop()
        values += 1
        match value:
            case str():
                characters += len(value)
            case dict():
                items = cast("dict[str, object]", value)
                characters += sum(map(len, items))
                waiting.extend(items.values())
            case list():
                waiting.extend(cast("list[object]", value))
            case _:
                pass
        if values + len(waiting) > MAX_VALUES or characters > MAX_TEXT:
            raise ValueError(f"more than {MAX_VALUES:,} values, or {MAX_TEXT:,} characters")
    return content
