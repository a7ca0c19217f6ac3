"""The conversation as a file keeps it: plain text, markdown, and HTML without script.

A notebook that is opened without its kernel shows a dead widget. So the conversation stands
beside the widget as an output of its own, renewed at the end of each turn; a widget that lives
hides it.

All text of models and tools passes markdown-it with raw HTML off, a list of link schemes, and
remote images turned into links; everything else is escaped. The HTML asks MathJax to leave it
alone, which hosts run over outputs and whose formulas can hold links of any kind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, cast

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from yiemagent_nb.core.json_values import json_form
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
)
from yiemagent_nb.widgets.answer_facts import AnswerFacts, answer_facts, newest_first
from yiemagent_nb.widgets.error_text import read_error
from yiemagent_nb.widgets.static_details import html_details, html_image
from yiemagent_nb.widgets.texts import cut_text

__all__ = ["MAX_CHARACTERS", "tame_markdown", "transcript_bundle"]

MAX_CHARACTERS = 1_000_000
"""The newest messages that fit into so much HTML are kept; how many are left out is said."""

RESULT_CHARACTERS = 4_000
_LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)$", re.DOTALL)

_STYLE = (
    "<style>"
    ".yna-static{line-height:1.5;max-width:52rem}"
    ".yna-static .yna-who{margin:.9em 0 .2em;font-weight:600;opacity:.7}"
    ".yna-static details{margin:.4em 0;opacity:.85}"
    ".yna-static pre{overflow-x:auto;white-space:pre-wrap;padding:.5em .7em;border-radius:4px;"
    "background:rgba(127,127,127,.12)}"
    ".yna-static img{max-width:100%}"
    ".yna-static .yna-took{margin:.2em 0;font-size:.85em;opacity:.7}"
    "</style>"
)


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


def transcript_bundle(messages: Sequence[Message], css_class: str = "") -> dict[str, str]:
    """The MIME bundle of a conversation.

    Args:
        messages: The history.
        css_class: A class for the outermost element besides ``yna-static``.
    """
    results = _results_of_calls(messages)
    html: list[str] = []
    plain: list[str] = []
    markdown: list[str] = []
    size = 0
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        facts = answer_facts(message, newest_first(messages, index)) if isinstance(message, AssistantMessage) else None
        piece = _html(message, results, facts)
        size += len(piece)
        if size > MAX_CHARACTERS:
            break
        html.append(piece)
        plain.append(_plain(message, facts))
        markdown.append(_markdown(message, facts))
    left_out = len(messages) - len(html)
    note = f"{left_out} earlier messages are left out here." if left_out else ""
    head = f"<p><em>{note}</em></p>" if note else ""
    body = "".join(reversed(html)) or "<p><em>Nothing was said yet.</em></p>"
    names = f"yna-static mathjax_ignore tex2jax_ignore {escape(css_class)}"
    return {
        "text/plain": "\n\n".join(filter(None, [note, *reversed(plain)])) or "Nothing was said yet.",
        "text/markdown": "\n\n".join(filter(None, [note and f"*{note}*", *reversed(markdown)])),
        "text/html": f'<div class="{names}">{_STYLE}{head}{body}</div>',
    }


_Results = Mapping[int, ToolResultMessage]
"""Results by the identity of their calls, since ids of calls come again in other answers."""


def _results_of_calls(messages: Sequence[Message]) -> _Results:
    results: dict[int, ToolResultMessage] = {}
    waiting: dict[str, ToolCall] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            waiting |= {call.id: call for call in message.tool_calls}
        elif isinstance(message, ToolResultMessage) and (call := waiting.pop(message.tool_call_id, None)) is not None:
            results[id(call)] = message
    return results


def _call_line(call: ToolCall) -> str:
    if call.raw_arguments is not None:
        return f"{call.name}({call.raw_arguments})"
    return f"{call.name}({', '.join(f'{name}={_json(value)}' for name, value in call.arguments.items())})"


def _json(value: object) -> str:
    return json.dumps(json_form(value), ensure_ascii=False)


def _html(message: Message, results: _Results, facts: AnswerFacts | None) -> str:
    match message:
        case UserMessage():
            return _who("You") + "".join(_html_content(block) for block in message.content)
        case AssistantMessage():
            broken = message.stop_reason in {"aborted", "error"}
            blocks = "".join(_html_block(block, results, broken=broken) for block in message.content)
            took = f'<p class="yna-took">{escape(facts.line)}</p>' if facts is not None else ""
            return _who("Agent") + blocks + _html_error(message.error_message) + took
        case CustomMessage():
            return f"<p><em>{escape(message.kind)}</em></p>"
        case ToolResultMessage():
            return ""  # stands with its call


def _who(name: str) -> str:
    return f'<p class="yna-who">{name}</p>'


def _html_error(text: str | None) -> str:
    if not text:
        return ""
    error = read_error(text)
    hint = f"<br>{escape(error.hint)}" if error.hint else ""
    code = f" <small><code>{escape(error.code)}</code></small>" if error.code else ""
    return f"<p><strong>Error:</strong> {escape(error.message)}{hint}{code}</p>"


def _html_block(block: object, results: _Results, *, broken: bool) -> str:
    match block:
        case ReasoningContent():
            return f"<details><summary>Thought</summary><pre>{escape(block.text)}</pre></details>" if block.text else ""
        case ToolCall():
            result = results.get(id(block))
            verb = "Called" if result is None else "Failed:" if result.is_error else "Ran"
            verb = "Not run:" if broken else verb
            summary = f"<summary>{verb} <code>{escape(_call_line(block))}</code></summary>"
            text = (
                f"<pre>{escape(cut_text(result.text, RESULT_CHARACTERS))}</pre>"
                if result is not None and result.text
                else ""
            )
            if result is None:
                return f"<details>{summary}</details>"
            images = "".join(_html_content(item) for item in result.content if isinstance(item, ImageContent))
            return f"<details>{summary}{text}</details>{images}{html_details(result, RESULT_CHARACTERS)}"
        case TextContent() | ImageContent():
            return _html_content(block)
        case _:
            return ""


def _html_content(block: UserContent) -> str:
    if isinstance(block, TextContent):
        return _parser.render(block.text)
    return html_image(block.mime_type, block.data)


def _plain(message: Message, facts: AnswerFacts | None) -> str:
    match message:
        case UserMessage():
            return f"You: {message.text}"
        case AssistantMessage():
            lines = [block.text for block in message.content if isinstance(block, TextContent)]
            lines += [f"[calls {_call_line(call)}]" for call in message.tool_calls]
            lines += [f"[error: {message.error_message}]"] if message.error_message else []
            lines += [f"[{facts.line}]"] if facts is not None else []
            return "Agent: " + "\n".join(lines)
        case ToolResultMessage():
            return f"{message.tool_name}: {cut_text(message.text, RESULT_CHARACTERS)}"
        case CustomMessage():
            return f"[{message.kind}]"


def _markdown(message: Message, facts: AnswerFacts | None) -> str:
    match message:
        case UserMessage():
            return f"**You**\n\n{tame_markdown(message.text)}"
        case AssistantMessage():
            parts = [tame_markdown(block.text) for block in message.content if isinstance(block, TextContent)]
            parts += [_fenced(_call_line(call)) for call in message.tool_calls]
            parts += [_fenced(f"Error: {message.error_message}")] if message.error_message else []
            parts += [_fenced(facts.line)] if facts is not None else []
            return "\n\n".join(["**Agent**", *parts])
        case ToolResultMessage():
            return _fenced(cut_text(message.text, RESULT_CHARACTERS))
        case CustomMessage():
            return _fenced(message.kind)


def _fenced(text: str, language: str = "text", fence: str | None = None) -> str:
    fence = fence or _longer_fence(text)
    return f"{fence}{language}\n{text}\n{fence}"


def _longer_fence(text: str) -> str:
    return "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))


def tame_markdown(text: str) -> str:
    """Markdown without live HTML and without links, for readers that render both as they are.

    Code in fences is fenced anew, by a fence longer than any that the text holds; outside of it,
    what could begin a tag, a link, an image, a definition or a fence is escaped. So it does not
    matter how a reader's idea of a fence differs from the one here.
    """
    fence = _longer_fence(text)
    parts: list[str] = []
    code: list[str] = []
    opened: re.Match[str] | None = None
    for line in re.split(r"\r\n|\r|\n", text):
        mark = _FENCE.match(line)
        if opened is None:
            if mark is None:
                parts.append(_escape_line(line))
            else:
                opened = mark
        elif mark is not None and mark[1].startswith(opened[1]) and not mark[2].strip():
            parts.append(_fenced("\n".join(code), _language(opened), fence))
            code, opened = [], None
        else:
            code.append(line)
    if opened is not None:
        parts.append(_fenced("\n".join(code), _language(opened), fence))
    return "\n".join(parts)


def _language(opened: re.Match[str]) -> str:
    word = re.match(r"[\w+-]*", opened[2].strip())
    return word[0] if word is not None else ""


def _escape_line(line: str) -> str:
    for live, tame in (("<", "&lt;"), ("](", "]\\("), ("]:", "]\\:"), ("```", "\\`\\`\\`"), ("~~~", "\\~\\~\\~")):
        line = line.replace(live, tame)
    return line
