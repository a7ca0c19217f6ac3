"""What a person adds to their words: images, and text files, as content that a model reads."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.messages import ImageContent, TextContent, UserContent, UserMessage
from yiemagent_nb.core.text_files import TextFile, text_file_block
from yiemagent_nb.widgets.protocol import Attachment
from yiemagent_nb.widgets.texts import one_line

__all__ = ["MAX_TEXT_FILE", "read_attachments"]

MAX_TEXT_FILE = 200_000
"""Bytes of a text file: all of it is sent to the model with each request."""

LONGEST_NAME = 120
_BESIDE = "Save it beside the notebook and name its path."
_AGAIN = "Attach it again."


def read_attachments(text: str, attachments: Sequence[Attachment]) -> UserMessage:
    """The message that a text and files make: the text, the files in their order.

    A file whose type is ``image/…`` becomes an image, of the type that its bytes have; any other is
    text in UTF-8 and becomes a block as ``core.text_files`` describes it. Whether the model takes
    images is not asked here.

    Raises:
        InvalidParametersError: A file is neither, or is too large; or
            there is nothing at all.
    """
    content: list[UserContent] = [TextContent(text)] if text.strip() else []
    content += [_read(each) for each in attachments]
    if not content:
        raise InvalidParametersError("The message is empty.", "Say something.")
    return UserMessage(content)


def _read(file: Attachment) -> UserContent:
    name = one_line(file.name, LONGEST_NAME) or "unnamed"
    data = _decode(name, file.data)
    return _image(name, data) if file.mime_type.lower().startswith("image/") else _text(name, data)


def _decode(name: str, data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:  # ValueError: what is not ASCII
        raise InvalidParametersError(f"The data of {name!r} is no base64: {error}.", _AGAIN) from error


def _image(name: str, data: bytes) -> ImageContent:
    try:
        return ImageContent.from_bytes(data)
    except ValueError as error:
        raise InvalidParametersError(
            f"{name!r} is no image that can be sent: expected were the bytes of a PNG, JPEG, GIF or WebP file.",
            "Convert it to PNG first.",
        ) from error


def _text(name: str, data: bytes) -> TextContent:
    if len(data) > MAX_TEXT_FILE:
        raise InvalidParametersError(
            f"{name!r} has {len(data):,} bytes; a text file may have {MAX_TEXT_FILE:,}.", _BESIDE
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidParametersError(f"{name!r} is neither an image nor text in UTF-8.", _BESIDE) from error
    if "\0" in text:
        raise InvalidParametersError(f"{name!r} is neither an image nor text: it has NUL characters.", _BESIDE)
    return text_file_block(TextFile(name, text))
