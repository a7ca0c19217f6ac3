"""The conversation in a saved file: readable, whole, and without anything that runs."""

from __future__ import annotations

import base64
import gc
import json
import re
import weakref
from collections.abc import Sequence
from html import escape
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
from yiemagent_nb.core.redaction import Redactor
from yiemagent_nb.sessions.export import export_markdown, export_notebook
from yiemagent_nb.sessions.safe_markdown import tame_markdown
from yiemagent_nb.widgets import static_html
from yiemagent_nb.widgets.static_transcript import (
    IMAGE_CHARACTERS,
    LARGEST_IMAGE,
    MAX_CHARACTERS,
    StaticTranscript,
)

TEXT_TAGS = {
    "a",
    "bdi",
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


def bundle_of(messages: Sequence[Message], css_class: str = "") -> dict[str, str]:
    return StaticTranscript().bundle(messages, css_class)


def html_of(messages: Sequence[Message]) -> str:
    """The HTML, without the elements that keep the direction of a text to themselves."""
    return re.sub("</?bdi>", "", bundle_of(messages)["text/html"])


def inspect(html: str) -> Inspector:
    inspector = Inspector()
    inspector.feed(html)
    inspector.close()
    return inspector


def conversation(text: str) -> list[Message]:
    """A conversation with one text in every place that a model, a tool or a person fills."""
    call = ToolCall(id="c", name=text, arguments={text: text})
    return [
        UserMessage([text, f'<file name="{escape(text)}">\n{text}\n</file>']),
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
    bundle = bundle_of(conversation(payload), "yna-transcript-1")
    assert inspect(bundle["text/html"]).problems == []
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", bundle["text/plain"]) is None
    notebook = json.loads(export_notebook(conversation(payload), payload))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    for markdown in (bundle["text/markdown"], export_markdown(conversation(payload), payload), *cells):
        rendered = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(markdown)
        assert inspect(rendered).problems == []


def test_a_fence_that_a_list_closes_opens_no_way_for_tags() -> None:
    trick = (
        "- a\n  ```\n<img src=x onerror=alert(1)>\n\u2028```\n<img src=x onerror=alert(2)>\n~~~\n```~\n<svg onload=x>"
    )
    rendered = MarkdownIt("commonmark", {"html": True}).render(tame_markdown(trick))
    assert inspect(rendered).problems == []


def test_words_calls_results_images_and_errors_are_all_there() -> None:
    image = ImageContent(data=PIXEL, mime_type="image/png")
    call = ToolCall(id="c", name="plot", arguments={"kind": "line"})
    bundle = bundle_of(
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
    html = html_of([AssistantToolCallMessage(tool_calls=[call]), result])
    assert "A recording (audio/wav, 12 B), which this file does not keep." in html
    assert 'Ticket <a href="https://example.org/t"' in html
    assert "Table <code>rail://t</code> <small>48.2 kB</small>" in html
    assert "<pre>&lt;b&gt;booked&lt;/b&gt;</pre>" in html
    assert "<summary>Structured result</summary><pre>{\n  &quot;seats&quot;: [" in html
    assert PIXEL not in html
    assert inspect(html).problems == []


def test_what_an_answer_took_stands_below_it_in_every_form() -> None:
    usage = Usage(input_tokens=1_200, output_tokens=30)
    bundle = bundle_of([UserMessage("hi"), AssistantMessage("hello", model="tide-1", usage=usage)])
    for form in bundle.values():
        assert "tide-1 · 1,200 tokens in, 30 out" in form


def test_an_error_is_taken_apart_into_its_sentence_its_hint_and_its_code() -> None:
    error = str(BackendConnectionError("No connection.", "Start the server."))
    html = html_of([AssistantMessage("", stop_reason="error", error_message=error)])
    assert "No connection.<br>Start the server. <small><code>CONNECTION</code></small>" in html


def test_a_call_of_a_broken_answer_is_told_as_not_run() -> None:
    call = ToolCall(id="c", name="add", raw_arguments='{"a": 1')
    broken = AssistantToolCallMessage(tool_calls=[call], stop_reason="aborted")
    result = ToolResultMessage(
        tool_call_id="c", tool_name="add", content=(TextContent("It did not run."),), is_error=True
    )
    html = html_of([UserMessage("go"), broken, result])
    assert "<summary>Not run: <code>add({&quot;a&quot;: 1)</code></summary>" in html


def test_calls_that_share_an_id_keep_their_own_results() -> None:
    messages: list[Message] = []
    for text in ("first", "second"):
        messages.append(AssistantToolCallMessage(tool_calls=[ToolCall(id="c", name="add")]))
        messages.append(ToolResultMessage(tool_call_id="c", tool_name="add", content=(TextContent(text),)))
    html = html_of(messages)
    assert "<pre>first</pre>" in html
    assert "<pre>second</pre>" in html


def test_an_image_from_elsewhere_becomes_a_link() -> None:
    html = html_of([AssistantMessage("![chart](https://example.org/x.png)")])
    assert "<img" not in html
    assert '<a href="https://example.org/x.png"' in html


def test_a_transcript_that_is_too_long_keeps_the_newest_and_says_so() -> None:
    messages = [UserMessage(f"{number} " + "x" * 40_000) for number in range(60)]
    bundle = bundle_of(messages)
    assert len(bundle["text/html"]) < MAX_CHARACTERS + 2_000
    assert "59 xxx" in bundle["text/html"]
    assert "earlier messages are left out here" in bundle["text/html"]


def test_an_empty_conversation_says_so() -> None:
    assert "Nothing was said yet." in bundle_of([])["text/html"]


def test_the_html_says_all_without_style_and_has_no_line_at_which_markdown_would_begin() -> None:
    messages: list[Message] = [
        UserMessage(["Look", '<file name="a &lt;b&gt;.txt">\none\n\n\ntwo\n</file>']),
        AssistantToolCallMessage([ReasoningContent("I think.\n\nSo.")], tool_calls=[ToolCall(id="c", name="add")]),
        ToolResultMessage(tool_call_id="c", tool_name="add", content=(TextContent("2"),)),
        AssistantMessage("Two.\n\n```\n\n[a](javascript:1)\n```", stop_reason="aborted"),
    ]
    html = StaticTranscript(lambda _result: 1.25).bundle(messages, note=lambda index: f"Branch {index}")["text/html"]
    assert "\n\n" not in html
    text = "".join(inspect(html).text)
    for part in ("You Branch 0", "Attached file a <b>.txt", "one\n\n\ntwo", "Thought", "Ran add() 1.2 s", "Stopped"):
        assert part in text


def test_a_call_with_long_arguments_has_them_all_below() -> None:
    call = ToolCall(id="c", name="send", arguments={"text": "word " * 60})
    html = html_of([AssistantToolCallMessage(tool_calls=[call])])
    assert "word … " not in html
    assert "…</code></summary><pre>{\n  &quot;text&quot;: &quot;word" in html


def test_a_denied_call_is_told_as_denied() -> None:
    result = ToolResultMessage(
        tool_call_id="c",
        tool_name="add",
        content=(TextContent("The person denied this call."),),
        is_error=True,
        details={"blocked": True, "hook": "approve"},
    )
    html = html_of([AssistantToolCallMessage(tool_calls=[ToolCall(id="c", name="add")]), result])
    assert "<summary>Denied: <code>add()</code></summary><pre>The person denied this call.</pre>" in html


def test_keys_of_connections_are_masked_in_every_form() -> None:
    connection = Redactor()
    connection.add("sk-marked-0123456789abcdef")
    for form in bundle_of([AssistantMessage("It is sk-marked-0123456789abcdef.")]).values():
        assert "sk-marked" not in form
        assert "[key]" in form
    assert connection("sk-marked-0123456789abcdef") == "[key]"


def test_names_hide_nothing_and_terminals_obey_nothing() -> None:
    call = ToolCall(id="c", name="read\u202egnp.exe", arguments={"a\u200bb": "\x1b]8;;x\x07"})
    bundle = bundle_of([AssistantToolCallMessage(["\x1b[31mred\x1b[2J"], tool_calls=[call])])
    assert "read\\u202egnp.exe(a\\u200bb=" in bundle["text/plain"]
    assert "<bdi>read\\u202egnp.exe(a\\u200bb=" in bundle["text/html"]
    for form in bundle.values():
        assert "\x1b" not in form
        assert "red\\x1b[2J" in form


def test_an_image_that_is_too_large_is_named_and_takes_no_words_with_it() -> None:
    large = ImageContent(data="A" * (LARGEST_IMAGE + 4), mime_type="image/png")
    call = ToolCall(id="c", name="plot")
    details = {"server": "s", "tool": "t", "content": [{"type": "image", "data": large.data, "mimeType": "image/png"}]}
    messages: list[Message] = [
        UserMessage("hello"),
        AssistantToolCallMessage(tool_calls=[call]),
        ToolResultMessage(tool_call_id="c", tool_name="plot", content=(TextContent("a plot"),), details=details),
        UserMessage(["look", large]),
    ]
    for form in bundle_of(messages).values():
        assert "AAAA" not in form
        assert all(words in form for words in ("hello", "a plot", "look"))
        assert "[an image of type image/png]" in re.sub("</?bdi>", "", form)


def test_of_many_images_the_newest_are_shown_and_the_others_named() -> None:
    images = [ImageContent(data=f"{number:04}" * 75_000, mime_type="image/png") for number in range(20)]
    messages: list[Message] = []
    for number, image in enumerate(images):
        call = ToolCall(id="c", name="plot", arguments={"number": number})
        messages.append(AssistantToolCallMessage(tool_calls=[call]))
        messages.append(ToolResultMessage(tool_call_id="c", tool_name="plot", content=(TextContent("yes"), image)))
        messages.append(UserMessage(["mine", image]))
    bundle = bundle_of(messages)
    assert len(bundle["text/html"]) + len(bundle["text/markdown"]) < IMAGE_CHARACTERS + 20_000
    for form in (bundle["text/html"], bundle["text/markdown"]):
        shown = [image.data in form for image in images]
        assert shown == sorted(shown)
        assert any(shown)
        assert form.count("mine") == form.count("yes") == 20
        assert form.count("base64,") + form.count("[an image of type") == 40


def test_the_newest_message_is_kept_however_long_it_is() -> None:
    long = AssistantMessage(["x" * 90_000 + "."] * 12)
    html = bundle_of([UserMessage("earlier"), long])["text/html"]
    assert "1 earlier messages are left out here." in html
    assert html.count("x.") == 12
    assert "earlier</p>" not in html


def test_a_text_beyond_all_measure_is_cut_in_every_form() -> None:
    text = "word " * 100_000
    call = ToolCall(id="c", name="x", raw_arguments=text)
    answer = AssistantToolCallMessage([ReasoningContent(text), text], tool_calls=[call], stop_reason="aborted")
    for form in bundle_of([UserMessage(text), answer]).values():
        assert len(form) < 4 * 100_000
        assert form.count("400000 more characters") >= 2


class CountingParser:
    """The markdown parser, which says what it was given."""

    def __init__(self, parser: Any) -> None:
        self._parser = parser
        self.texts: list[str] = []

    def render(self, text: str) -> str:
        self.texts.append(text)
        return self._parser.render(text)


def test_each_message_is_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = CountingParser(vars(static_html)["_parser"])
    monkeypatch.setattr(static_html, "_parser", parser)
    messages: list[Message] = []
    transcript = StaticTranscript()
    for number in range(30):
        messages += [UserMessage(f"question {number}"), AssistantMessage(f"answer {number}")]
        transcript.bundle(messages)
        assert transcript.html(messages) == transcript.bundle(messages)["text/html"]
    assert len(parser.texts) == 60


def test_what_was_rendered_is_used_as_long_as_it_is_true() -> None:
    call, other = ToolCall(id="c", name="add"), ToolCall(id="d", name="add")
    asks = AssistantToolCallMessage(tool_calls=[call, other], usage=Usage(input_tokens=10), model="m")
    first, second = (
        ToolResultMessage(tool_call_id=name, tool_name="add", content=(TextContent(f"{name}!"),)) for name in "cd"
    )
    again = first.model_copy()
    answer = AssistantMessage("42", model="m", usage=Usage(input_tokens=5))
    image = ImageContent(data="A" * 400_000, mime_type="image/png")
    images = [UserMessage([f"image {number}", image]) for number in range(8)]
    took: dict[int, float] = {}
    notes: dict[int, str] = {}

    def duration(result: ToolResultMessage) -> float | None:
        return took.get(id(result))

    def note(index: int) -> str:
        return notes.get(index, "")

    history: list[Message] = [UserMessage("go")]
    transcript = StaticTranscript(duration)

    def check() -> None:
        assert transcript.bundle(history, "css", note) == StaticTranscript(duration).bundle(history, "css", note)

    for message in (asks, first, second, answer):
        history.append(message)
        check()
    took[id(first)] = 1.5
    check()
    notes[0] = "Branch 2 of 2"
    check()
    history[2] = again
    check()
    history[1] = AssistantToolCallMessage(tool_calls=[call, other], usage=Usage(input_tokens=70), model="m")
    check()
    history.insert(4, UserMessage("so?"))
    check()
    for message in images:
        history.append(message)
        check()
    del history[3:8]
    check()
    key = "sk-marked-9876543210fedcba"
    history.append(AssistantMessage(f"It is {key}."))
    check()
    connection = Redactor()
    connection.add(key)
    check()
    assert key not in "".join(transcript.bundle(history).values())
    assert connection(key) == "[key]"


def test_what_is_no_longer_in_the_conversation_is_not_kept() -> None:
    transcript = StaticTranscript()
    message = AssistantMessage("forget me")
    gone = weakref.ref(message)
    transcript.bundle([message])
    del message
    transcript.bundle([UserMessage("anew")])
    gc.collect()
    assert gone() is None


def test_a_call_that_never_ran_took_no_time() -> None:
    result = ToolResultMessage(
        tool_call_id="c", tool_name="add", content=(TextContent("No such tool."),), is_error=True
    )
    messages = [AssistantToolCallMessage(tool_calls=[ToolCall(id="c", name="add")]), result]
    html = StaticTranscript(lambda _result: 0.0).bundle(messages)["text/html"]
    assert "<summary>Failed: <code><bdi>add()</bdi></code></summary>" in html


@pytest.mark.parametrize(
    "details",
    [
        {"blocked": True},
        {"blocked": True, "hook": 1},
        {"blocked": 1, "hook": "approve"},
        {"blocked": True, "hook": "approve", "server": "s", "tool": "t"},
        [1],
    ],
)
def test_a_tool_that_fails_and_says_that_it_was_blocked_is_told_as_failed(details: Any) -> None:
    result = ToolResultMessage(tool_call_id="c", tool_name="add", is_error=True, details=details)
    html = html_of([AssistantToolCallMessage(tool_calls=[ToolCall(id="c", name="add")]), result])
    assert "<summary>Failed: <code>add()</code></summary>" in html
    assert "*Failed*" in export_markdown([result])
