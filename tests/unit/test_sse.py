"""The decoder of server-sent events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yiemagent_nb.backends.http.sse import SseDecoder


def decode(*pieces: bytes) -> list[tuple[str, str]]:
    decoder = SseDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.flush()


@pytest.mark.parametrize(
    ("data", "events"),
    [
        (b"data: a\n\n", [("", "a")]),
        (b"data:a\n\ndata:  b\n\n", [("", "a"), ("", " b")]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", [("", "a"), ("", "b"), ("", "c")]),
        (b"data: a\ndata: b\n\n", [("", "a\nb")]),
        (b"event: ping\ndata: a\n\ndata: b\n\n", [("ping", "a"), ("", "b")]),
        (b"event: lonely\n\ndata: b\n\n", [("", "b")]),
        (b": comment\n\n:\ndata: a\n: more\n\n", [("", "a")]),
        (b"id: 1\nretry: 5\nunknown\ndata: a\n\n", [("", "a")]),
        (b"data:\n\ndata: \n\ndata\n\ndata: a\n\n", [("", "a")]),
        (b"data: the last event", [("", "the last event")]),
        (b"\xef\xbb\xbfdata: after a byte order mark\n\n", [("", "after a byte order mark")]),
        (b'error: {"code":400}\n\n', [("error", '{"code":400}')]),
        (b'{"error":"bare"}', [("", '{"error":"bare"}')]),
        (b'{\n  "error": "pretty",\n  "code": 400\n}\n', [("", '{\n  "error": "pretty",\n  "code": 400\n}')]),
        (b"data: \xff\n\n", [("", "\ufffd")]),
        (b'[\n{"error": "in a list"}\n]\n', [("", '[\n{"error": "in a list"}\n]')]),
        (b'[{"error": "in a list"}]', [("", '[{"error": "in a list"}]')]),
        (b'{"a":1}\n\n{"b":2}\n[DONE]\n', [("", '{"a":1}'), ("", '{"b":2}'), ("", "[DONE]")]),
        (b'data: {"a":1}\ndata: {"b":2}\ndata: [DONE] \n', [("", '{"a":1}'), ("", '{"b":2}'), ("", "[DONE]")]),
        (b'data: {"a":\ndata: {"b":2}}\n\n', [("", '{"a":\n{"b":2}}')]),
        (b'event: a\ndata: {"a":1}\nevent: b\ndata: {"b":2}\n', [("a", '{"a":1}'), ("b", '{"b":2}')]),
        (b"data: : keep-alive\n\ndata: :\ndata: a\n\n", [("", "a")]),
        (b"data: one\x0btwo\xe2\x80\xa8three\n\n", [("", "one\x0btwo\u2028three")]),
        (b"", []),
    ],
)
def test_bytes_become_events(data: bytes, events: list[tuple[str, str]]) -> None:
    assert decode(data) == events
    assert decode(*(data[at : at + 1] for at in range(len(data)))) == events


TEXTS = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1)


@given(st.lists(TEXTS.filter(lambda text: not text.startswith(":") and text.strip() != "[DONE]")), st.data())
def test_any_texts_survive_any_cuts(texts: list[str], data: st.DataObject) -> None:
    end = data.draw(st.sampled_from(["\n", "\r", "\r\n"]))
    stream = "".join(f"data: {text}{end}{end}" for text in texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    pieces = [stream[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decode(*pieces) == [("", text) for text in texts]


def test_a_long_line_costs_no_more_than_its_bytes() -> None:
    decoder = SseDecoder()
    piece = b"x" * 1000
    decoder.feed(b"data: ")
    for _ in range(5000):
        assert decoder.feed(piece) == []
    [(_, text)] = decoder.feed(b"\n\n")
    assert len(text) == 5_000_000
