"""Messages as HTML that runs nothing and loads nothing, and that reads well without any style.

All text of models and people passes markdown-it with raw HTML off, a list of link schemes, and
remote images turned into links; everything else is escaped, in elements that keep the direction of
their text to themselves. The HTML asks MathJax to leave it alone, which hosts run over outputs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any, NamedTuple, cast

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from yiemagent_nb.core.json_values import json_form
from yiemagent_nb.core.messages import (
    AssistantContent,
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
)
from yiemagent_nb.sessions.pieces import attached_file, call_line, cut_text, denied
from yiemagent_nb.sessions.safe_markdown import defuse_formulas
from yiemagent_nb.sessions.visible import visible_text
from yiemagent_nb.widgets.error_text import read_error
from yiemagent_nb.widgets.static_details import html_details
from yiemagent_nb.widgets.static_elements import html_folded, html_image, html_name, html_pre
from yiemagent_nb.widgets.texts import one_line

__all__ = ["RESULT_CHARACTERS", "TEXT_CHARACTERS", "HtmlForm", "ShownCall"]

TEXT_CHARACTERS = 100_000
"""Of what is said or thought in one piece. It bounds what rendering takes: about a second for markdown at its worst."""

RESULT_CHARACTERS = 4_000
LONGEST_SUMMARY = 120

_LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)


def _image_as_link(
    self: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: EnvType,
) -> str:
    token = tokens[index]
    text = escape(self.renderInlineAsText(token.children or [], options, env) or "image")
    return f'<a href="{escape(str(token.attrs.get("src", "")))}" rel="noopener noreferrer nofollow">{text}</a>'


def _link_open(
    self: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: EnvType,
) -> str:
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    tokens[index].attrSet("target", "_blank")
    return self.renderToken(tokens, index, options, env)


def _allowed_link(url: str) -> bool:
    return _LINK.match(url) is not None


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.validateLink = _allowed_link  # type: ignore[method-assign]  # markdown-it's way to set the rule
    parser.add_render_rule("image", cast("Callable[..., Any]", _image_as_link))
    parser.add_render_rule("link_open", cast("Callable[..., Any]", _link_open))
    return parser


_parser = _make_parser()


class ShownCall(NamedTuple):
    """What is shown with a call: its result, where there is one, and its seconds, where they are known."""

    result: ToolResultMessage | None
    seconds: float | None


class HtmlForm:
    """A message as HTML.

    Args:
        calls: What is shown with each of its calls.
        largest_image: In characters of base64; a larger image is only named.
    """

    def __init__(self, calls: Sequence[ShownCall], largest_image: int) -> None:
        self._calls = calls
        self._largest_image = largest_image
        self.image_characters = 0
        """How many characters of base64 the images have that stand in the HTML."""

    def message(self, message: Message, took: str, note: str) -> str:
        """One message; a result stands with its call.

        Args:
            message: The message.
            took: What an answer took, in words.
            note: What to say beside it.
        """
        match message:
            case UserMessage():
                return _who("You", note) + "".join(map(self._said, message.content))
            case AssistantMessage():
                broken = message.stop_reason in {"aborted", "error"}
                calls = iter(self._calls)
                blocks = "".join(self._block(block, calls, broken=broken) for block in message.content)
                return _who("Agent", note) + blocks + _ending(message) + _took(took)
            case CustomMessage():
                return f"<p><em>{html_name(message.kind)}</em></p>"
            case ToolResultMessage():
                return ""

    def _block(self, block: AssistantContent, calls: Iterator[ShownCall], *, broken: bool) -> str:
        match block:
            case ReasoningContent():
                return html_folded("Thought", html_pre(block.text, TEXT_CHARACTERS)) if block.text else ""
            case ToolCall():
                return self._call(block, next(calls), broken=broken)
            case _:
                return self._content(block)

    def _call(self, call: ToolCall, shown: ShownCall, *, broken: bool) -> str:
        line = call_line(call)
        short = one_line(line, LONGEST_SUMMARY)
        whole = "" if short == line else html_pre(_arguments(call), RESULT_CHARACTERS)
        result = shown.result
        verb = "Not run:" if broken else _verb(result)
        summary = f"{verb} <code><bdi>{escape(short)}</bdi></code>"
        if result is None:
            return html_folded(summary, whole)
        summary += f" <small>{shown.seconds:.1f} s</small>" if shown.seconds else ""  # 0.0: it never ran
        text = html_pre(result.text, RESULT_CHARACTERS) if result.text else ""
        images = "".join(self._content(item) for item in result.content if isinstance(item, ImageContent))
        return html_folded(summary, whole + text) + images + html_details(result, RESULT_CHARACTERS, self._image)

    def _said(self, block: UserContent) -> str:
        file = attached_file(block.text) if isinstance(block, TextContent) else None
        if file is None:
            return self._content(block)
        summary = f"Attached file <code><bdi>{escape(file.name)}</bdi></code>"
        return html_folded(summary, html_pre(file.text, RESULT_CHARACTERS))

    def _content(self, block: UserContent) -> str:
        if isinstance(block, TextContent):
            return defuse_formulas(_parser.render(visible_text(cut_text(block.text, TEXT_CHARACTERS))))
        return self._image(block.mime_type, block.data)

    def _image(self, mime_type: str, data: str) -> str:
        if len(data) > self._largest_image:
            return html_image(mime_type)
        self.image_characters += len(data)
        return html_image(mime_type, data)


def _verb(result: ToolResultMessage | None) -> str:
    if result is None:
        return "Called"
    if denied(result):
        return "Denied:"
    return "Failed:" if result.is_error else "Ran"


def _arguments(call: ToolCall) -> str:
    if call.raw_arguments is not None:
        return call.raw_arguments
    return json.dumps(json_form(call.arguments), ensure_ascii=False, indent=2)


def _who(name: str, note: str) -> str:
    aside = f" <small>{escape(note)}</small>" if note else ""
    return f'<p class="yna-who"><strong>{name}</strong>{aside}</p>'


def _took(line: str) -> str:
    return f'<p class="yna-took"><small>{html_name(line)}</small></p>' if line else ""


def _ending(message: AssistantMessage) -> str:
    if not message.error_message:
        return "<p><em>Stopped</em></p>" if message.stop_reason == "aborted" else ""
    error = read_error(visible_text(cut_text(message.error_message, TEXT_CHARACTERS)))
    hint = f"<br><bdi>{escape(error.hint)}</bdi>" if error.hint else ""
    code = f" <small><code>{escape(error.code)}</code></small>" if error.code else ""
    return f"<p><strong>Error:</strong> <bdi>{escape(error.message)}</bdi>{hint}{code}</p>"
