"""What MCP servers send beside text and images is read for people, whatever its form and size."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from yiemagent_nb.widgets.tool_details import (
    LARGEST_AUDIO,
    LONGEST_STRUCTURE,
    Audio,
    Link,
    Picture,
    Resource,
    Structure,
    ToolDetails,
    Words,
    is_web_address,
    read_details,
    size_in_words,
)

WAV = base64.b64encode(b"RIFF----WAVE").decode()


def part(block: Mapping[str, Any]) -> object:
    details = read_details({"server": "s", "tool": "t", "content": [block], "structured_content": None})
    assert details is not None
    return details.parts[0]


@pytest.mark.parametrize(
    "details", [None, "text", 7, [], {}, {"server": "s"}, {"server": 7, "tool": "t"}, {"code": "X"}]
)
def test_details_of_other_tools_are_left_alone(details: object) -> None:
    assert read_details(details) is None


def test_a_recording_of_a_known_type_can_be_played() -> None:
    assert part({"type": "audio", "data": WAV, "mimeType": "Audio/WAV; rate=8000"}) == Audio("audio/wav", 12, WAV)
    blob = {"uri": "rec://1", "mimeType": "audio/mpeg", "blob": WAV}
    assert part({"type": "resource", "resource": blob}) == Audio("audio/mpeg", 12, WAV, "rec://1")


@pytest.mark.parametrize(
    ("mime_type", "data"),
    [
        ("audio/x-unheard", WAV),
        ("text/html", WAV),
        ("audio/wav", ""),
        ("audio/wav", None),
        ("audio/wav", "<script>"),
        ("audio/wav", "A" * (LARGEST_AUDIO * 4 // 3 + 8)),
        (None, WAV),
    ],
)
def test_any_other_recording_is_only_named(mime_type: object, data: object) -> None:
    found = part({"type": "audio", "data": data, "mimeType": mime_type})
    assert isinstance(found, Audio)
    assert found.data == ""


def test_links_and_resources_are_told_with_their_facts() -> None:
    link = {"type": "resource_link", "uri": "file:///a", "name": "a", "title": "A", "mimeType": "text/plain", "size": 3}
    assert part(link) == Link("file:///a", "A", "", "text/plain", 3)
    text = {"uri": "file:///a", "mimeType": "text/plain", "text": "abc"}
    assert part({"type": "resource", "resource": text}) == Resource("file:///a", "text/plain", "abc", 3)
    blob = {"uri": "file:///b", "blob": "AAAAAA=="}
    assert part({"type": "resource", "resource": blob}) == Resource("file:///b", "", None, 4)


def test_content_of_a_kind_to_come_is_shown_as_json() -> None:
    assert part({"type": "hologram", "x": 1}) == Structure(
        "Content of type hologram", '{\n  "type": "hologram",\n  "x": 1\n}', cut=False
    )


@pytest.mark.parametrize(
    "block",
    [
        {"type": "resource_link", "uri": 7, "name": None, "size": "many"},
        {"type": "resource_link", "size": float("inf")},
        {"type": "resource", "resource": "none"},
        {"type": ["audio"]},
        {},
        "no block",
    ],
)
def test_malformed_content_does_no_harm(block: Any) -> None:
    assert part(block) is not None


def test_structured_content_is_written_only_as_far_as_it_is_shown() -> None:
    details = read_details({"server": "s", "tool": "t", "structured_content": {"rows": list(range(1_000_000))}})
    assert details is not None
    [found] = details.parts
    assert isinstance(found, Structure)
    assert found.cut
    assert len(found.text) == LONGEST_STRUCTURE


def test_structured_content_of_any_depth_is_cut_and_what_is_no_json_is_said_to_be_so() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value, text in ((deep, "[\n  [\n"), ({(1, 2): 3}, "It cannot be shown")):
        details = read_details({"server": "s", "tool": "t", "structured_content": value})
        assert details is not None
        [found] = details.parts
        assert isinstance(found, Structure)
        assert found.text.startswith(text)


def test_what_the_model_does_not_see_is_shown_to_the_person() -> None:
    image = {"type": "image", "data": WAV, "mimeType": "image/png"}
    assert part({"type": "text", "text": "for you"}) == Words("for you", cut=False)
    assert part(image) == Picture("image/png", 12, WAV)
    assert part({**image, "mimeType": "image/svg+xml"}) == Picture("image/svg+xml", 12, "")
    assert part({**image, "data": '"><script>'}) == Picture("image/png", 7, "")
    assert read_details({"server": "s", "tool": "t", "content": [image]}, {WAV}) == ToolDetails("s", ())


def test_too_many_parts_and_what_was_too_large_are_told() -> None:
    blocks = [{"type": "resource_link", "uri": "a:b"}] * 150
    details = read_details({"server": "s\n" * 500, "tool": "t", "content": blocks, "left_out": ["meta (30 MB)", 7]})
    assert details is not None
    assert (len(details.parts), details.left_out) == (100, "meta (30 MB), 50 more parts")
    assert len(details.server) == 300
    assert "\n" not in details.server


@pytest.mark.parametrize(
    ("uri", "is_web"),
    [
        ("https://example.org/a", True),
        ("HTTP://example.org", True),
        ("https:///x", False),
        ("javascript:alert(1)//https://example.org", False),
        (" https://example.org", False),
        ("data:text/html,x", False),
        ("file:///etc/passwd", False),
        ("", False),
    ],
)
def test_only_addresses_of_the_web_can_be_opened(uri: str, *, is_web: bool) -> None:
    assert is_web_address(uri) is is_web


def test_sizes_are_told_in_words() -> None:
    assert [size_in_words(size) for size in (0, 999, 48_211, 5_000_000)] == ["0 B", "999 B", "48.2 kB", "5.0 MB"]
