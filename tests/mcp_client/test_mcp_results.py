"""Results of calls, as a model reads them and a person sees them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yiemagent_nb.core.json_schema import compile_schema
from yiemagent_nb.core.messages import ImageContent, ToolResultMessage
from yiemagent_nb.core.openai_form import to_openai
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.mcp import results
from yiemagent_nb.mcp.results import ResultReader
from yiemagent_nb.mcp.sizes import readable_size
from yiemagent_nb.mcp.text_limit import limit_text

PNG_BYTES = b"\x89PNG\r\n\x1a\n" + bytes(60)
PNG = base64.b64encode(PNG_BYTES).decode()
JPEG = base64.b64encode(b"\xff\xd8\xff" + bytes(60)).decode()


def text(value: object, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **fields}


def image(data: object, mime_type: object = "image/png") -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": mime_type}


def read(*blocks: object, max_characters: int = 100_000, **fields: Any) -> ToolResult:
    return ResultReader("server", "tool", max_characters=max_characters).read({"content": list(blocks), **fields})


@pytest.mark.requirement("Y SP-010")
def test_text_is_text_and_says_where_it_came_from() -> None:
    result = read(text("four"))
    assert result.text == "four"
    assert not result.is_error
    assert result.details == {"server": "server", "tool": "tool"}


@pytest.mark.requirement("Y SP-010")
def test_an_error_of_the_tool_is_an_error_result() -> None:
    result = read(text("no such city"), isError=True)
    assert result.is_error
    assert result.text == "no such city"


def test_text_has_no_terminal_s_commands_and_keeps_its_tabs_and_newlines() -> None:
    said = "\x1b[31mred\x1b[0m\x07\x1b]0;title\x07\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\\tone\r\ntwo\x00\x9b\x1b"
    plain = "red\ufffdlink\tone\r\ntwo\ufffd\ufffd\ufffd"
    assert read(text(said)).text == plain
    assert read(text(said), isError=True).text == plain
    resource = {"type": "resource", "resource": {"uri": "x:\x1b[31my", "text": said}}
    link = {"type": "resource_link", "name": "\x1b[31mn", "uri": "u\x07", "description": "\x1b[31md"}
    assert not any(character in read(resource, link).text for character in "\x1b\x07\x00\x9b")


def test_texts_that_follow_each_other_are_lines() -> None:
    assert read(text("one"), text("two"), text("")).text == "one\ntwo\n"


@pytest.mark.requirement("Y SP-010")
def test_an_image_is_an_image_between_its_texts() -> None:
    before, picture, after = read(text("before"), image(PNG), text("after")).content
    assert isinstance(picture, ImageContent)
    assert (picture.data, picture.mime_type) == (PNG, "image/png")
    assert [getattr(block, "text", None) for block in (before, after)] == ["before", "after"]


def test_an_image_with_a_wrong_label_gets_the_right_one() -> None:
    (picture,) = read(image(JPEG, "image/png")).content
    assert isinstance(picture, ImageContent)
    assert picture.mime_type == "image/jpeg"


def test_line_breaks_in_base64_are_taken_out() -> None:
    (picture,) = read(image(f"{PNG[:76]}\n{PNG[76:]}\n")).content
    assert isinstance(picture, ImageContent)
    assert picture.data == PNG


@pytest.mark.parametrize(
    ("block", "note"),
    [
        (image("not base64!"), "[An image, image/png, 8 bytes: not sent to you, since"),
        (image(PNG[:-1]), "[An image, image/png, 68 bytes: not sent to you, since image data must be base64"),
        (image(None), "[An image, image/png, without data: not sent to you, since it has no data]"),
        (
            image(base64.b64encode(b"<svg/>").decode(), "image/svg+xml"),
            "[An image, image/svg+xml, 6 bytes: not sent to you, since these bytes are neither PNG, JPEG, GIF nor",
        ),
        (image("", 7), "[An image, 7, 0 bytes: not sent to you"),
    ],
)
def test_a_bad_image_is_a_note_and_stays_for_the_person(block: dict[str, Any], note: str) -> None:
    result = read(block)
    assert result.text.startswith(note)
    assert not result.is_error
    assert result.details["content"] == [block]


@pytest.mark.requirement("Y SP-010")
def test_audio_is_a_note_and_stays_for_the_person() -> None:
    block = {"type": "audio", "data": "A" * 16_400, "mimeType": "audio/wav"}
    result = read(block)
    assert result.text == "[Audio, audio/wav, 12.3 kB: shown to the person]"
    assert result.details["content"] == [block]


@pytest.mark.requirement("Y SP-010")
def test_a_resource_of_text_is_text_with_its_address() -> None:
    resource = {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "hello"}
    result = read({"type": "resource", "resource": resource})
    assert result.text == "[The resource file:///a.txt (text/plain):]\nhello"
    assert result.details["content"] == [{"type": "resource", "resource": resource}]


@pytest.mark.requirement("Y SP-010")
def test_a_resource_that_is_an_image_is_an_image_with_its_address() -> None:
    resource = {"uri": "file:///a.png", "mimeType": "image/png", "blob": PNG}
    result = read({"type": "resource", "resource": resource})
    assert result.text == "[The resource file:///a.png:]"
    assert isinstance(result.content[1], ImageContent)


def test_a_resource_of_other_bytes_is_a_note() -> None:
    resource = {"uri": "file:///a.zip", "mimeType": "application/zip", "blob": "AAAA"}
    result = read({"type": "resource", "resource": resource})
    assert result.text == "[The resource file:///a.zip, application/zip, 3 bytes: shown to the person]"


@pytest.mark.requirement("Y SP-010")
def test_a_link_is_told_with_what_is_known_of_it() -> None:
    link = {
        "type": "resource_link",
        "uri": "file:///report.pdf",
        "name": "report",
        "mimeType": "application/pdf",
        "size": 2_500_000,
        "description": "The yearly report.",
    }
    result = read(link)
    assert (
        result.text == "[A link to the resource report, file:///report.pdf, application/pdf, 2.5 MB: The yearly report]"
    )
    assert result.details["content"] == [link]


def test_what_is_meant_for_the_person_alone_is_kept_from_the_model() -> None:
    block = text("the person's secret", annotations={"audience": ["user"]})
    result = read(block, text("for both", annotations={"audience": ["user", "assistant"]}))
    assert result.text == (
        "[A part of the result (text) is meant for the person alone and is shown to them.]\nfor both"
    )
    assert result.details["content"] == [block]


@pytest.mark.parametrize(
    ("block", "note"),
    [
        ({"type": "hologram", "data": "x"}, "[A part of the result is of the unknown type hologram;"),
        ({"text": "x"}, "[A part of the result is of the unknown type null;"),
        ("words", '[A part of the result is no object, but "words";'),
        (text(7), "[A text is 7; it was left out.]"),
        ({"type": "resource"}, "[A resource is null, where an object was expected; it was left out.]"),
        ({"type": "resource_link"}, "[A link to the resource null, without an address]"),
    ],
)
def test_a_block_that_is_none_is_a_note(block: object, note: str) -> None:
    result = read(block, text("the rest"))
    assert result.text.startswith(note)
    assert result.text.endswith("\nthe rest")


@pytest.mark.requirement("Y SP-010")
def test_a_structured_result_without_text_is_told_as_json() -> None:
    result = read(structuredContent={"city": "Lisboa", "degrees": 21})
    assert json.loads(result.text) == {"city": "Lisboa", "degrees": 21}
    assert result.details["structured_content"] == {"city": "Lisboa", "degrees": 21}


def test_a_structured_result_beside_text_is_for_the_person() -> None:
    result = read(text("21 degrees"), structuredContent={"degrees": 21})
    assert result.text == "21 degrees"
    assert result.details["structured_content"] == {"degrees": 21}


DEGREES = {"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]}


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        ({"structuredContent": {"degrees": 21}}, None),
        ({"structuredContent": {"degrees": "warm"}}, 'degrees should be a number, got "warm"'),
        ({"structuredContent": {}}, "degrees is missing"),
        ({"structuredContent": [1]}, "the arguments should be an object"),
        ({}, "promises a structured result and gave none"),
        ({"isError": True}, None),
    ],
)
def test_a_structured_result_is_checked_and_kept_whatever_it_is(fields: dict[str, Any], note: str | None) -> None:
    check: Any = compile_schema(DEGREES)
    result = ResultReader("server", "tool", check).read({"content": [text("here")], **fields})
    assert result.text.startswith("here")
    assert result.text == "here" if note is None else note in result.text
    assert result.is_error is fields.get("isError", False)
    assert result.details.get("structured_content") == fields.get("structuredContent")


def test_meta_is_for_the_person() -> None:
    assert read(text("x"), _meta={"cost": 3}).details["meta"] == {"cost": 3}


def test_a_result_without_a_word_says_so() -> None:
    assert read().text == "[The tool is done, without a word]"
    assert read(isError=True).text == "[The tool reported an error, without a word]"


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    result = read(text("a" * 50_000), text("z" * 150_000))
    assert len(result.text) <= 100_000
    assert result.text.startswith("a" * 50_000)
    assert result.text.endswith("z" * 30_000)
    assert "of 200,001 characters were left out here; ask for less at once" in result.text


def test_a_result_of_50_megabytes_is_cut_for_the_model_and_the_person() -> None:
    blob = {"type": "audio", "data": "A" * 30_000_000, "mimeType": "audio/wav"}
    small = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
    result = read(text("x" * 20_000_000), blob, small, structuredContent={"all": "y" * 25_000_000})
    assert len(result.text) <= 100_000
    assert result.details["content"] == [small]
    assert result.details["left_out"] == ["1 blocks of content", "structured_content (25.0 MB)"]


def test_only_so_many_images_go_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MAX_IMAGES", 2)
    result = read(*[image(PNG)] * 3)
    assert sum(isinstance(block, ImageContent) for block in result.content) == 2
    assert result.text.startswith("[An image, image/png, 68 bytes: not sent to you, since the result has too many")


def test_images_too_large_together_do_not_go_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MAX_IMAGE_BYTES", 150)
    result = read(image(PNG), image(PNG))
    assert sum(isinstance(block, ImageContent) for block in result.content) == 1


@pytest.mark.parametrize("raw", [None, [], "text", 7])
def test_what_is_no_result_is_an_error_result(raw: object) -> None:
    result = ResultReader("server", "tool").read(raw)
    assert result.is_error
    assert "The result of 'tool' could not be read" in result.text


def test_a_content_that_is_no_list_is_a_note() -> None:
    assert ResultReader("s", "t").read({"content": "plain"}).text == (
        '[The result\'s content is "plain", where a list was expected.]'
    )


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=15,
)
kinds = st.sampled_from(["text", "image", "audio", "resource", "resource_link", "other"])
contents = st.fixed_dictionaries(
    {},
    optional={
        "type": kinds | anything,
        "text": anything,
        "data": st.sampled_from([PNG, JPEG, "AAAA", ""]) | anything,
        "mimeType": st.sampled_from(["image/png", "audio/wav"]) | anything,
        "resource": st.fixed_dictionaries(
            {}, optional={"uri": anything, "text": anything, "blob": anything, "mimeType": anything}
        )
        | anything,
        "annotations": st.fixed_dictionaries({"audience": anything | st.just(["user"])}) | anything,
        **dict.fromkeys(("uri", "name", "title", "size", "description"), anything),
    },
)
raw_results = anything | st.fixed_dictionaries(
    {},
    optional={
        "content": st.lists(contents | anything, max_size=5) | anything,
        "structuredContent": anything,
        "isError": anything,
        "_meta": anything,
    },
)


@given(raw=raw_results, max_characters=st.integers(0, 500))
def test_no_result_makes_the_reader_raise_or_give_too_much(raw: Any, max_characters: int) -> None:
    check: Any = compile_schema(DEGREES)
    result = ResultReader("server", "tool", check, max_characters).read(raw)
    if isinstance(raw, dict):
        assert "could not be read" not in result.text
        assert len(result.text) <= max(max_characters, 100)
    message = ToolResultMessage(
        tool_call_id="1", tool_name="tool", content=result.content, details=result.details, is_error=result.is_error
    )
    json.dumps(to_openai(message)).encode()
    assert ToolResultMessage.model_validate_json(message.model_dump_json()).content == result.content


@given(parts=st.lists(st.text(max_size=300) | st.integers(), max_size=8), limit=st.integers(0, 600))
def test_cut_texts_are_the_beginning_and_the_end_of_the_whole(parts: list[str | int], limit: int) -> None:
    limited = limit_text(parts, limit)
    whole = "".join(part for part in parts if isinstance(part, str))
    kept = "".join(part for part in limited if isinstance(part, str))
    assert [part for part in limited if isinstance(part, int)] == [part for part in parts if isinstance(part, int)]
    assert "" not in limited
    if len(whole) <= limit:
        assert kept == whole
    else:
        head, _, rest = kept.partition("\n[… ")
        _, _, tail = rest.partition(" …]\n")
        assert len(kept) <= max(limit, 80)
        assert whole.startswith(head)
        assert whole.endswith(tail)


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (12_345, "12.3 kB"), (2_500_000, "2.5 MB"), (10**13, "10000.0 GB")],
)
def test_sizes_are_readable(size: int, words: str) -> None:
    assert readable_size(size) == words
