"""One content block of an answer while it grows, and the delta that tells a piece of it."""

from __future__ import annotations

from typing import NamedTuple

from yiemagent_nb.core.events import DeltaKind
from yiemagent_nb.core.messages import (
    AssistantContent,
    ImageContent,
    ReasoningContent,
    TextContent,
    ToolCall,
    new_id,
)
from yiemagent_nb.core.reading.fields import clean_text, has_surrogates, read_arguments

__all__ = ["Block", "CallBlock", "Delta"]

NAMELESS = "unnamed_tool"
"""The name of a call that came without one; it is no tool's, so the model hears of it."""

_FIRST_HIGH_SURROGATE, _LAST_HIGH_SURROGATE = "\ud800", "\udbff"


class Delta(NamedTuple):
    """A piece of an answer, as ``events.MessageUpdate`` tells it.

    ``block`` is the index of the content block that grows, ``offset`` the number of characters
    that it had before. ``text`` is a piece of text, of reasoning, or of a call's JSON arguments; a
    call's first delta comes when its name is known. ``block`` is what tells calls apart: a server
    may give a call's id later than its first piece.
    """

    kind: DeltaKind
    text: str
    block: int
    offset: int
    tool_call_id: str | None = None
    tool_name: str | None = None


class Block:
    """A block of text or reasoning, or an image. Its pieces are joined when it is whole."""

    __slots__ = ("half", "image", "index", "kind", "length", "pieces", "signature")

    def __init__(self, kind: DeltaKind, index: int) -> None:
        self.kind: DeltaKind = kind
        self.index = index
        self.pieces: list[str] = []
        self.length = 0
        self.half = ""
        """The first half of a UTF-16 pair, whose second comes with the next piece."""
        self.signature: str | None = None
        self.image: ImageContent | None = None

    @property
    def text(self) -> str:
        """All pieces."""
        return "".join(self.pieces) + ("\ufffd" if self.half else "")

    def append(self, piece: str) -> Delta | None:
        """Append a piece; None where nothing of it can be told yet."""
        if self.half or has_surrogates(piece):
            piece = self.mend(piece)
        if not piece:
            return None
        offset = self.length
        self.length = offset + len(piece)
        self.pieces.append(piece)
        return Delta(self.kind, piece, self.index, offset)

    def mend(self, piece: str) -> str:
        """``piece`` in valid Unicode; the first half of a pair waits for its second."""
        piece, self.half = self.half + piece, ""
        if piece and _FIRST_HIGH_SURROGATE <= piece[-1] <= _LAST_HIGH_SURROGATE:
            piece, self.half = piece[:-1], piece[-1]
        return clean_text(piece)

    def build(self) -> AssistantContent | None:
        """The block, whole; None where nothing is in it."""
        if self.image is not None:
            return self.image
        text = self.text
        if self.kind == "reasoning":
            return ReasoningContent(text, signature=self.signature) if text or self.signature else None
        return TextContent(text) if text else None


class CallBlock(Block):
    """A call. Its pieces are its arguments; ``given_id`` is the server's id, ``id`` that or one made here."""

    __slots__ = ("given_id", "id", "name", "told")

    def __init__(self, index: int) -> None:
        super().__init__("tool_call", index)
        self.given_id = ""
        self.id = ""
        self.name = ""
        self.told = False

    def is_whole(self) -> bool:
        """Whether its arguments are a complete object already."""
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False
        return read_arguments(self.text)[1] is None

    def append(self, piece: str) -> Delta | None:
        """Append a piece of the arguments, once its name is known; before, it is kept."""
        if self.half or has_surrogates(piece):
            piece = self.mend(piece)
        offset = self.length
        if piece:
            self.length = offset + len(piece)
            self.pieces.append(piece)
        if not self.name or not (piece or not self.told):
            return None
        if not self.id:
            self.id = new_id("call")
        if not self.told:  # its name has just come, so all its arguments so far are told
            self.told = True
            piece, offset = "".join(self.pieces), 0
        return Delta("tool_call", piece, self.index, offset, self.id, self.name)

    def build(self) -> AssistantContent | None:
        """The call; None where neither its name nor any arguments came."""
        text = self.text
        if not self.name and not text:
            return None
        arguments, raw = read_arguments(text)
        if raw is not None and (whole := _sent_again(self.pieces)) is not None:
            arguments, still_raw = read_arguments(whole)
            raw = raw if still_raw is not None else None
        call_id = self.id or new_id("call")
        return ToolCall(id=call_id, name=self.name or NAMELESS, arguments=arguments, raw_arguments=raw)


def _sent_again(pieces: list[str]) -> str | None:
    """The arguments of pieces that are no plain succession; None where they are nothing else.

    Servers were seen to send an empty object before the first piece, all pieces so far with each
    further one, and the whole once more after its pieces.
    """
    first, *rest = [piece for piece in pieces if piece] or [""]
    if not rest:
        return None
    if first.strip() == "{}":
        return "".join(rest)
    last = rest[-1]
    grows = all(map(str.startswith, rest, [first, *rest]))
    return last if grows or last == first + "".join(rest[:-1]) else None
