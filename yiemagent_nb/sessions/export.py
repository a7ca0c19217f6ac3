"""A conversation as a file that people read: markdown, or a notebook.

The notebook has nbformat's version 4.5 (https://nbformat.readthedocs.io). A conversation's code in
Python stands there in code cells, which nobody has run: whoever runs them runs what a model wrote.
Programs that execute notebooks leave them out, by the tag ``skip-execution``.

All that models, tools and files say passes ``tame_markdown`` or stands in fences, and the keys of this
program's connections are masked.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.messages import (
    AssistantMessage,
    CustomMessage,
    ImageContent,
    Message,
    ReasoningContent,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
    new_id,
    now,
)
from yiemagent_nb.core.redaction import mask_keys
from yiemagent_nb.sessions.pieces import IMAGE_TYPES, attached_file, call_lines, cut_text, denied
from yiemagent_nb.sessions.safe_markdown import Fence, fenced, split_fences, tame_markdown
from yiemagent_nb.sessions.visible import visible_code, visible_name

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = [
    "ConversationFile",
    "Format",
    "MarkdownLimits",
    "conversation_file",
    "export_markdown",
    "export_notebook",
    "message_markdown",
    "save_conversation",
]

Format = Literal["markdown", "notebook"]

_SUFFIXES: dict[str, Format] = {".md": "markdown", ".markdown": "markdown", ".ipynb": "notebook"}
_PYTHON = frozenset({"python", "python3", "py", "ipython"})


class ConversationFile(NamedTuple):
    """A file for a person to keep."""

    name: str
    mime_type: str
    text: str


class MarkdownLimits(NamedTuple):
    """How much of a message is kept.

    ``text`` is for what is said and thought, ``result`` for a call, a result or a file, in characters;
    ``image`` is in characters of base64: a larger one is named.
    """

    text: int = sys.maxsize
    result: int = sys.maxsize
    image: int = sys.maxsize


_NO_LIMITS = MarkdownLimits()


class _Image(NamedTuple):
    mime_type: str
    data: str


_Part = str | Fence | _Image
"""Markdown, code that may become a cell, or an image of a type that is shown."""


def export_markdown(messages: Sequence[Message], title: str = "") -> str:
    """A conversation as markdown: reasoning and files folded, calls and results fenced, images inside.

    Args:
        messages: The history, such as ``agent.messages``.
        title: Stands above it.
    """
    return mask_keys("\n\n".join([*_title(title), *map(message_markdown, messages)]) + "\n")


def message_markdown(message: Message, limits: MarkdownLimits = _NO_LIMITS) -> str:
    """One message as markdown, in the form of ``export_markdown``.

    Args:
        message: The message.
        limits: How much of it is kept.
    """
    return "\n\n".join(_as_markdown(part) for part in _parts(message, limits))


def export_notebook(messages: Sequence[Message], title: str = "") -> str:
    """A conversation as a notebook, the JSON text of an ``.ipynb`` file.

    What was said stands in markdown cells, with its images attached. Code in Python that the model wrote
    in fences stands in code cells without outputs, which were not run.

    Args:
        messages: The history, such as ``agent.messages``.
        title: Stands above it.
    """
    cells = [_markdown_cell([heading]) for heading in _title(title)]
    for message in messages:
        cells.extend(_cells(_parts(message)))
    for index, cell in enumerate(cells):
        cell["id"] = f"cell-{index}"
    notebook = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return mask_keys(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n")


def conversation_file(messages: Sequence[Message], form: Format, title: str = "") -> ConversationFile:
    """A conversation as a file with a name that says when it was made, for a page to download.

    Args:
        messages: The history of the branch that is shown.
        form: ``markdown`` or ``notebook``.
        title: Stands above it.
    """
    stem = f"conversation-{now().astimezone():%Y-%m-%d-%H%M}"
    if form == "notebook":
        return ConversationFile(f"{stem}.ipynb", "application/x-ipynb+json", export_notebook(messages, title))
    return ConversationFile(f"{stem}.md", "text/markdown", export_markdown(messages, title))


def save_conversation(
    conversation: Agent | Sequence[Message], path: str | Path, *, title: str = "", overwrite: bool = False
) -> Path:
    """Write a conversation to a file: ``.md`` as markdown, ``.ipynb`` as a notebook.

    Args:
        conversation: An agent, of which the branch is written that is shown, or messages.
        path: Where to write.
        title: Stands above it.
        overwrite: Replace a file that is there.

    Returns:
        The path.

    Raises:
        InvalidParametersError: The path ends in neither, or a file is there and ``overwrite`` is not set.
        OSError: The file cannot be written.

    Example::

        save_conversation(agent, "trip.ipynb", title="The trip to Lisbon")
    """
    path = Path(path)
    form = _SUFFIXES.get(path.suffix.lower())
    if form is None:
        raise InvalidParametersError(
            f"A conversation is not written to {path.name!r}: its suffix says no known form.",
            "Let the path end in .md for markdown, or in .ipynb for a notebook.",
        )
    messages = conversation if isinstance(conversation, Sequence) else conversation.messages
    text = export_notebook(messages, title) if form == "notebook" else export_markdown(messages, title)
    data = text.encode("utf-8")
    if overwrite:
        _replace(path.resolve(), data)
        return path
    try:
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        raise InvalidParametersError(
            f"The file {str(path)!r} is there already.", "Pass overwrite=True to replace it, or another path."
        ) from None
    return path


def _replace(path: Path, data: bytes) -> None:
    """Write a file so that the one that was there stays until the new one is whole."""
    neighbour = path.with_name(f".{new_id('save')}.tmp")
    try:
        neighbour.write_bytes(data)
        if path.exists():
            shutil.copymode(path, neighbour)
        neighbour.replace(path)
    finally:
        neighbour.unlink(missing_ok=True)


def _title(title: str) -> list[str]:
    return [f"# {tame_markdown(visible_name(title))}"] if title.strip() else []


def _parts(message: Message, limits: MarkdownLimits = _NO_LIMITS) -> Iterator[_Part]:
    match message:
        case UserMessage():
            yield "**You**"
            for block in message.content:
                yield from _said(block, limits)
        case AssistantMessage():
            yield "**Agent**"
            for block in message.content:
                yield from _answered(block, limits)
            if message.error_message:
                yield fenced(cut_text(f"Error: {message.error_message}", limits.text))
            elif message.stop_reason == "aborted":
                yield "*Stopped*"
        case ToolResultMessage():
            verb = "Denied" if denied(message) else "Failed" if message.is_error else "Result"
            yield f"*{verb}*"
            for block in message.content:
                yield (
                    _image(block, limits) if isinstance(block, ImageContent) else _fenced_cut(block.text, limits.result)
                )
        case CustomMessage():
            yield fenced(visible_name(message.kind))


def _said(block: UserContent, limits: MarkdownLimits) -> Iterator[_Part]:
    if isinstance(block, ImageContent):
        yield _image(block, limits)
    elif (file := attached_file(block.text)) is not None:
        yield _folded("Attached file", f"{file.name}\n\n{cut_text(file.text, limits.result)}")
    else:
        yield tame_markdown(cut_text(block.text, limits.text))


def _answered(
    block: TextContent | ImageContent | ReasoningContent | ToolCall, limits: MarkdownLimits
) -> Iterator[_Part]:
    match block:
        case TextContent():
            for part in split_fences(cut_text(block.text, limits.text)):
                yield part if isinstance(part, Fence) else tame_markdown(part)
        case ImageContent():
            yield _image(block, limits)
        case ReasoningContent():
            if block.text:
                yield _folded("Thought", cut_text(block.text, limits.text))
        case ToolCall():
            yield "*Call*"
            yield _fenced_cut(call_lines(block), limits.result)


def _folded(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{fenced(text)}\n\n</details>"


def _fenced_cut(text: str, most: int) -> str:
    return fenced(cut_text(text, most))


def _image(block: ImageContent, limits: MarkdownLimits) -> _Part:
    if block.mime_type not in IMAGE_TYPES or len(block.data) > limits.image:
        return fenced(f"[an image of type {block.mime_type}]")
    return _Image(block.mime_type, block.data)


def _as_markdown(part: _Part) -> str:
    match part:
        case str():
            return part
        case Fence():
            return fenced(part.code, part.language)
        case _Image():
            return f"![image](data:{part.mime_type};base64,{part.data})"


def _cells(parts: Iterable[_Part]) -> Iterator[dict[str, Any]]:
    said: list[_Part] = []
    for part in parts:
        if isinstance(part, Fence) and part.language.lower() in _PYTHON and part.code.strip():
            if said:
                yield _markdown_cell(said)
                said = []
            yield {
                "cell_type": "code",
                "execution_count": None,
                "metadata": {"tags": ["skip-execution"]},
                "outputs": [],
                "source": _source(visible_code(part.code)),
            }
        else:
            said.append(part)
    if said:
        yield _markdown_cell(said)


def _markdown_cell(parts: Sequence[_Part]) -> dict[str, Any]:
    attachments: dict[str, dict[str, str]] = {}
    texts: list[str] = []
    for part in parts:
        if isinstance(part, _Image):
            name = f"image{len(attachments)}.{part.mime_type.partition('/')[2]}"
            attachments[name] = {part.mime_type: part.data}
            texts.append(f"![image](attachment:{name})")
        else:
            texts.append(_as_markdown(part))
    cell: dict[str, Any] = {"cell_type": "markdown", "metadata": {}, "source": _source("\n\n".join(texts))}
    return cell | {"attachments": attachments} if attachments else cell


def _source(text: str) -> list[str]:
    return text.splitlines(keepends=True)
