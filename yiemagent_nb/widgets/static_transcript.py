"""The conversation as a file keeps it: plain text, markdown, and HTML without script.

A notebook that is opened without its kernel shows a dead widget. So the conversation stands
beside the widget as an output of its own, renewed at the end of each turn; a widget that lives
hides it.

Readers prefer the HTML. GitHub and other sanitisers strip it of its style, its classes and images
that stand in it, so its words say all that there is. It has no blank line: a markdown file into
which nbconvert writes it would take what follows one for markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from itertools import takewhile, zip_longest

from yiemagent_nb.core.messages import (
    AssistantMessage,
    CustomMessage,
    ImageContent,
    Message,
    TextContent,
    ToolResultMessage,
    UserMessage,
)
from yiemagent_nb.core.redaction import Redactor, mask_keys
from yiemagent_nb.sessions.export import MarkdownLimits, message_markdown
from yiemagent_nb.sessions.pieces import attached_file, call_line, cut_text, results_of_calls
from yiemagent_nb.sessions.safe_markdown import fenced
from yiemagent_nb.sessions.visible import visible_name, visible_text
from yiemagent_nb.widgets.answer_facts import AnswerFacts, answer_facts, newest_first
from yiemagent_nb.widgets.static_html import RESULT_CHARACTERS, TEXT_CHARACTERS, HtmlForm, ShownCall

__all__ = ["IMAGE_CHARACTERS", "LARGEST_IMAGE", "MAX_CHARACTERS", "StaticTranscript"]

MAX_CHARACTERS = 1_000_000
"""The newest messages that fit into so much HTML without its images are kept; how many are left out is said."""

LARGEST_IMAGE = 400_000
"""Characters of base64, 300 kB, of an image that is shown; a larger one is named."""

IMAGE_CHARACTERS = 4_000_000
"""The newest images of which HTML and markdown together hold so much base64 are shown, the others named."""

_NOTHING = "Nothing was said yet."
_BLANK_LINE = re.compile(r"\n(?=[ \t]*\n)")

_STYLE = (
    "<style>"
    ".yna-static{line-height:1.5;max-width:52rem;overflow-wrap:anywhere}"
    ".yna-static .yna-who{margin:1em 0 .2em;opacity:.7}"
    ".yna-static details{margin:.4em 0}"
    ".yna-static summary{opacity:.8;cursor:pointer}"
    ".yna-static pre{overflow-x:auto;white-space:pre-wrap;padding:.5em .7em;border-radius:4px;"
    "background:rgba(127,127,127,.12)}"
    ".yna-static img{max-width:100%}"
    ".yna-static th,.yna-static td{padding:.2em .7em}"
    ".yna-static .yna-took{margin:.2em 0;opacity:.7}"
    "</style>"
)


class StaticTranscript:
    """A conversation in the forms that a file keeps.

    Each message is rendered once: what was rendered for the last conversation is used again, as far as
    the same messages stand in this one. Keys of this program's connections are masked.

    Args:
        duration: How many seconds a call took, where that is known; 0.0 for one that never ran.
    """

    def __init__(self, duration: Callable[[ToolResultMessage], float | None] = lambda _result: None) -> None:
        self._duration = duration
        self._pieces: dict[int, _Piece] = {}

    def bundle(
        self, messages: Sequence[Message], css_class: str = "", note: Callable[[int], str] = lambda _index: ""
    ) -> dict[str, str]:
        """The MIME bundle of a conversation.

        Args:
            messages: The history.
            css_class: A class for the outermost element besides ``yna-static``.
            note: What to say beside a message, by its index.
        """
        pieces = self._newest(messages, note)
        missing = _missing(len(messages) - len(pieces))
        plain = "\n\n".join(filter(None, [missing, *(piece.plain for piece in pieces)]))
        return {
            "text/plain": plain or _NOTHING,
            "text/markdown": "\n\n".join(
                filter(None, [missing and f"*{missing}*", *(piece.markdown for piece in pieces)])
            ),
            "text/html": _html_of(pieces, missing, css_class),
        }

    def html(self, messages: Sequence[Message]) -> str:
        """The HTML alone."""
        pieces = self._newest(messages, lambda _index: "")
        return _html_of(pieces, _missing(len(messages) - len(pieces)), "")

    def _newest(self, messages: Sequence[Message], note: Callable[[int], str]) -> list[_Piece]:
        """The newest messages, as many as fit, but one at least; the oldest of them first."""
        results = results_of_calls(messages)
        known, self._pieces = self._pieces, {}
        pieces: list[_Piece] = []
        room, image_room = MAX_CHARACTERS, IMAGE_CHARACTERS
        for index in range(len(messages) - 1, -1, -1):
            message = messages[index]
            source = self._source(messages, index, results, note(index))
            piece = known.get(id(message))
            if piece is None or not piece.source.is_same(source):
                piece = _Piece(source)
            self._pieces[id(message)] = piece
            image_room = image_room - piece.image_characters if piece.image_characters <= image_room else 0
            piece.show_images(image_room > 0)
            room -= piece.size
            if room < 0 and pieces:
                break
            pieces.append(piece)
        return pieces[::-1]

    def _source(
        self, messages: Sequence[Message], index: int, results: Mapping[int, ToolResultMessage], note: str
    ) -> _Source:
        message = messages[index]
        if not isinstance(message, AssistantMessage):
            return _Source(message, note)
        shown = [results.get(id(call)) for call in message.tool_calls]
        calls = tuple(ShownCall(each, None if each is None else self._duration(each)) for each in shown)
        earlier: tuple[Message, ...] = ()
        if message.stop_reason != "tool_calls":  # nothing stands under one that calls tools
            since = takewhile(lambda each: not isinstance(each, UserMessage), newest_first(messages, index))
            earlier = tuple(each for each in since if isinstance(each, AssistantMessage))
        return _Source(message, note, calls, earlier)


@dataclass(frozen=True, eq=False)
class _Source:
    """All that the forms of a message depend on."""

    message: Message
    note: str
    calls: tuple[ShownCall, ...] = ()
    earlier: tuple[Message, ...] = ()
    """The answers before it of which it sums up what they took."""
    secrets: int = field(default_factory=Redactor.additions)

    def is_same(self, other: _Source) -> bool:
        """Whether the same objects say the same."""
        return (
            (self.note, self.secrets) == (other.note, other.secrets)
            and all(mine is its for mine, its in zip_longest(self._messages(), other._messages()))
            and all(mine.seconds == its.seconds for mine, its in zip(self.calls, other.calls, strict=True))
        )

    def _messages(self) -> Iterator[Message | None]:
        yield self.message
        yield from (call.result for call in self.calls)
        yield from self.earlier


class _Piece:
    """A message in its forms, each made when it is asked for."""

    def __init__(self, source: _Source) -> None:
        message = source.message
        self.source = source
        self._facts = answer_facts(message, source.earlier) if isinstance(message, AssistantMessage) else None
        self._shows_images = True
        self._make_html()
        self.image_characters = self._images_in_html + _images_in_markdown(message)
        """Characters of base64 in its HTML and its markdown, where images are shown."""

    @property
    def size(self) -> int:
        """Characters of HTML, without images."""
        return len(self.html) - self._images_in_html

    def show_images(self, shown: bool) -> None:
        """Show the images, but those that are too large, or only name them."""
        if self.image_characters and shown is not self._shows_images:
            self._shows_images = shown
            self._make_html()
            vars(self).pop("markdown", None)

    @property
    def _largest_image(self) -> int:
        return LARGEST_IMAGE if self._shows_images else 0

    def _make_html(self) -> None:
        form = HtmlForm(self.source.calls, self._largest_image)
        html = form.message(self.source.message, self._facts.line if self._facts is not None else "", self.source.note)
        self._images_in_html = form.image_characters
        self.html = mask_keys(_BLANK_LINE.sub("&#10;", html))

    @cached_property
    def plain(self) -> str:
        """The message as plain text."""
        return mask_keys(visible_text(_plain(self.source.message, self._facts, self.source.note)))

    @cached_property
    def markdown(self) -> str:
        """The message as markdown."""
        limits = MarkdownLimits(TEXT_CHARACTERS, RESULT_CHARACTERS, self._largest_image)
        parts = [
            self.source.note and f"*{self.source.note}*",
            message_markdown(self.source.message, limits),
            fenced(self._facts.line) if self._facts is not None else "",
        ]
        return mask_keys("\n\n".join(filter(None, parts)))


def _images_in_markdown(message: Message) -> int:
    images = [] if isinstance(message, CustomMessage) else [each for each in message.content if each.type == "image"]
    return sum(len(image.data) for image in images if len(image.data) <= LARGEST_IMAGE)


def _missing(left_out: int) -> str:
    return f"{left_out} earlier messages are left out here." if left_out else ""


def _html_of(pieces: Sequence[_Piece], missing: str, css_class: str) -> str:
    head = f"<p><em>{missing}</em></p>" if missing else ""
    body = "".join(piece.html for piece in pieces) or f"<p><em>{_NOTHING}</em></p>"
    names = " ".join(filter(None, ("yna-static mathjax_ignore tex2jax_ignore", escape(css_class))))
    return f'<div class="{names}">{_STYLE}{head}{body}</div>'


def _plain(message: Message, facts: AnswerFacts | None, note: str) -> str:
    aside = f" [{note}]" if note else ""
    match message:
        case UserMessage():
            return f"You{aside}: " + "\n".join(_plain_content(block) for block in message.content)
        case AssistantMessage():
            lines = [
                _plain_content(block) for block in message.content if isinstance(block, TextContent | ImageContent)
            ]
            lines += [f"[calls {cut_text(call_line(call), RESULT_CHARACTERS)}]" for call in message.tool_calls]
            lines += [f"[error: {cut_text(message.error_message, TEXT_CHARACTERS)}]"] if message.error_message else []
            lines += [f"[{facts.line}]"] if facts is not None else []
            return f"Agent{aside}: " + "\n".join(lines)
        case ToolResultMessage():
            text = "\n".join(_plain_content(block) for block in message.content)
            return f"{visible_name(message.tool_name)}: {cut_text(text, RESULT_CHARACTERS)}"
        case CustomMessage():
            return f"[{visible_name(message.kind)}]"


def _plain_content(block: TextContent | ImageContent) -> str:
    if isinstance(block, ImageContent):
        return f"[an image of type {block.mime_type}]"
    file = attached_file(block.text)
    return (
        cut_text(block.text, TEXT_CHARACTERS)
        if file is None
        else f"[the file {file.name}]\n{cut_text(file.text, RESULT_CHARACTERS)}"
    )
