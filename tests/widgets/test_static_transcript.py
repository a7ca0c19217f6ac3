"""The conversation in a saved file: readable, whole, and without anything that runs."""

from __future__ import annotations

import base64
from html.parser import HTMLParser
from typing import Any

import pytest
from markdown_it import MarkdownIt
from widgets.payloads import PAYLOADS

from yiemagent_nb.core.errors import BackendConnectionError
from yiemagent_nb.core.messages import (
    AssistantMessage,
    AssistantToolCallMessage,
    CustomMessage,
    ImageContent,
    Message,
    ReasoningContent,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from yiemagent_nb.core.models import Usage
from yiemagent_nb.widgets.static_transcript import MAX_CHARACTERS, tame_markdown, transcript_bundle

TEXT_TAGS = {
    "a",
    "blockquote",
    "br",
    "code",
    "details",
    "div",
    "em",
    "hr",
    "img",
    "p",
    "pre",
    "s",
    "small",
    "strong",
    "summary",
}
LIST_TAGS = {"h1", "h2", "h3", "h4", "h5", "h6", "li", "ol", "ul", "table", "tbody", "td", "th", "thead", "tr"}
ALLOWED_TAGS = TEXT_TAGS | LIST_TAGS | {"style"}
ALLOWED_ATTRIBUTES = {"href", "title", "rel", "target", "class", "src", "alt", "start", "style"}
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n0000").decode()


class Inspector(HTMLParser):
    """Complains of everything that is no plain text structure."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ALLOWED_TAGS:
            self.problems.append(f"<{tag}>")
        for name, value in attrs:
            text = (value or "").strip().lower()
            if name not in ALLOWED_ATTRIBUTES or name.startswith("on"):
                self.problems.append(f"{tag} {name}")
            if name == "style" and not text.startswith("text-align:"):
                self.problems.append(f"{tag} style={text}")
            if name == "href" and not text.startswith(("http://", "https://", "mailto:")):
                self.problems.append(f"{tag} href={text}")
            if name == "src" and not text.startswith("data:image/png;base64,"):
                self.problems.append(f"{tag} src={text}")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def inspect(html: str) -> Inspector:
    inspector = Inspector()
    inspector.feed(html)
    inspector.close()
    return inspector


def conversation(text: str) -> list[Message]:
    """A conversation with one text in every place that a model, a tool or a person fills."""
    call = ToolCall(id="c", name=text, arguments={text: text})
    return [
        UserMessage(text),
        AssistantToolCallMessage([ReasoningContent(text), text], tool_calls=[call]),
        ToolResultMessage(
            tool_call_id="c",
            tool_name=text,
            content=(TextContent(text),),
            is_error=True,
            details={
                "server": text,
                "tool": text,
                "content": [
                    {"type": "text", "text": text},
                    {"type": "image", "data": text, "mimeType": "image/png"},
                    {"type": "audio", "data": text, "mimeType": text},
                    {"type": "resource_link", "uri": text, "name": text, "description": text, "mimeType": text},
                    {"type": "resource_link", "uri": f"https://e.org/{text}", "name": text},
                    {"type": "resource", "resource": {"uri": text, "mimeType": text, "text": text}},
                    {"type": "resource", "resource": {"uri": text, "mimeType": text, "blob": text}},
                    {"type": text, text: text},
                ],
                "structured_content": {text: text},
                "left_out": [text],
            },
        ),
        AssistantMessage(text, stop_reason="error", error_message=text, model=text, thinking_sent=text, provider=text),
        CustomMessage(kind=text),
    ]


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
def test_nothing_that_runs_comes_through(payload: str) -> None:
    bundle = transcript_bundle(conversation(payload), "yna-transcript-1")
    assert inspect(bundle["text/html"]).problems == []
    rendered = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(bundle["text/markdown"])
    assert inspect(rendered).problems == []


def test_a_fence_that_a_list_closes_opens_no_way_for_tags() -> None:
    trick = (
        "- a\n  ```\n<img src=x onerror=alert(1)>\n\u2028```\n<img src=x onerror=alert(2)>\n~~~\n```~\n<svg onload=x>"
    )
    rendered = MarkdownIt("commonmark", {"html": True}).render(tame_markdown(trick))
    assert inspect(rendered).problems == []


def test_markdown_stays_markdown() -> None:
    text = "# Title\n\n- **bold** and `a`\n\n```python\nif a < b: [1](2)\n```"
    assert tame_markdown(text) == text.replace("```", "````")


def test_words_calls_results_images_and_errors_are_all_there() -> None:
    image = ImageContent(data=PIXEL, mime_type="image/png")
    call = ToolCall(id="c", name="plot", arguments={"kind": "line"})
    bundle = transcript_bundle(
        [
            UserMessage("Draw *it*"),
            AssistantToolCallMessage([ReasoningContent("hm"), "I draw."], tool_calls=[call]),
            ToolResultMessage(tool_call_id="c", tool_name="plot", content=(TextContent("drawn"), image)),
            AssistantMessage("| a |\n|--|\n| 1 |"),
        ]
    )
    html = bundle["text/html"]
    for part in ("<em>it</em>", "hm", "I draw.", "plot(kind=&quot;line&quot;)", "drawn", PIXEL, "<td>1</td>"):
        assert part in html
    assert "<script" not in html
    assert bundle["text/plain"].startswith("You: Draw *it*\n\nAgent: I draw.\n[calls plot")
    assert inspect(html).problems == []


def test_what_an_mcp_server_sent_is_there_without_its_recordings() -> None:
    content: list[dict[str, Any]] = [
        {"type": "audio", "data": PIXEL, "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "https://example.org/t", "name": "Ticket", "mimeType": "text/plain"},
        {"type": "resource_link", "uri": "rail://t", "name": "Table", "size": 48_211},
        {"type": "resource", "resource": {"uri": "rail://b", "text": "<b>booked</b>"}},
    ]
    details = {"server": "railways", "tool": "book", "content": content, "structured_content": {"seats": ["12A"]}}
    call = ToolCall(id="c", name="book")
    result = ToolResultMessage(tool_call_id="c", tool_name="book", details=details)
    html = transcript_bundle([AssistantToolCallMessage(tool_calls=[call]), result])["text/html"]
    assert "A recording (audio/wav, 12 B), which this file does not keep." in html
    assert 'Ticket <a href="https://example.org/t"' in html
    assert "Table <code>rail://t</code> <small>48.2 kB</small>" in html
    assert "<pre>&lt;b&gt;booked&lt;/b&gt;</pre>" in html
    assert "<summary>Structured result</summary><pre>{\n  &quot;seats&quot;: [" in html
    assert PIXEL not in html
    assert inspect(html).problems == []


def test_what_an_answer_took_stands_below_it_in_every_form() -> None:
    usage = Usage(input_tokens=1_200, output_tokens=30)
    bundle = transcript_bundle([UserMessage("hi"), AssistantMessage("hello", model="tide-1", usage=usage)])
    for form in bundle.values():
        assert "tide-1 · 1,200 tokens in, 30 out" in form


def test_an_error_is_taken_apart_into_its_sentence_its_hint_and_its_code() -> None:
    error = str(BackendConnectionError("No connection.", "Start the server."))
    html = transcript_bundle([AssistantMessage("", stop_reason="error", error_message=error)])["text/html"]
    assert "No connection.<br>Start the server. <small><code>CONNECTION</code></small>" in html


def test_a_call_of_a_broken_answer_is_told_as_not_run() -> None:
    call = ToolCall(id="c", name="add", raw_arguments='{"a": 1')
    broken = AssistantToolCallMessage(tool_calls=[call], stop_reason="aborted")
    result = ToolResultMessage(
        tool_call_id="c", tool_name="add", content=(TextContent("It did not run."),), is_error=True
    )
    html = transcript_bundle([UserMessage("go"), broken, result])["text/html"]
    assert "<summary>Not run: <code>add({&quot;a&quot;: 1)</code></summary>" in html


def test_calls_that_share_an_id_keep_their_own_results() -> None:
    messages: list[Message] = []
    for text in ("first", "second"):
        messages.append(AssistantToolCallMessage(tool_calls=[ToolCall(id="c", name="add")]))
        messages.append(ToolResultMessage(tool_call_id="c", tool_name="add", content=(TextContent(text),)))
    html = transcript_bundle(messages)["text/html"]
    assert "<pre>first</pre>" in html
    assert "<pre>second</pre>" in html


def test_an_image_from_elsewhere_becomes_a_link() -> None:
    html = transcript_bundle([AssistantMessage("![chart](https://example.org/x.png)")])["text/html"]
    assert "<img" not in html
    assert '<a href="https://example.org/x.png"' in html


def test_a_transcript_that_is_too_long_keeps_the_newest_and_says_so() -> None:
    messages = [UserMessage(f"{number} " + "x" * 40_000) for number in range(60)]
    bundle = transcript_bundle(messages)
    assert len(bundle["text/html"]) < MAX_CHARACTERS + 2_000
    assert "59 xxx" in bundle["text/html"]
    assert "earlier messages are left out here" in bundle["text/html"]


def test_an_empty_conversation_says_so() -> None:
    assert "Nothing was said yet." in transcript_bundle([])["text/html"]
