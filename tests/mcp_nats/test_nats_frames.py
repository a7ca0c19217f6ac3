"""The wire form of MCP on NATS: written frames are read again, and anything else is refused."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yiemagent_nb.mcp.nats.frames import (
    CHUNK_BYTES,
    Assembly,
    Frame,
    FrameError,
    Kind,
    header_bytes,
    read_frame,
    read_message,
    write_frames,
    write_message,
)

names = st.sampled_from(["Mcp-Frame", "Mcp-Part", "Mcp-Size", "Mcp-Request", "Mcp-Period", "Status", "Other"])
values = st.one_of(
    st.text(max_size=20), st.sampled_from([*Kind, "1/2", "2/1", "0/0", "1/999999999", "-1", "7", "٣/٤", "1e9", "nan"])
)


@given(st.binary(max_size=3000), st.integers(400, 2000), st.sampled_from(Kind))
def test_what_was_cut_is_put_together_again(payload: bytes, limit: int, kind: Kind) -> None:
    assembly = Assembly(10_000)
    wholes: list[bytes] = []
    for piece, headers in write_frames(kind, payload, limit=limit, headers={"Mcp-Request": "a" * 32}):
        assert len(piece) + header_bytes(headers) <= limit
        frame = read_frame(headers, piece)
        assert frame is not None
        assert frame.kind is kind
        whole = assembly.add(frame)
        if whole is not None:
            wholes.append(whole)
    assert wholes == [payload]


def test_pieces_have_half_a_mebibyte_where_the_server_takes_more() -> None:
    sizes = [len(piece) for piece, _ in write_frames(Kind.END, b"x" * 2_000_000, limit=8_000_000)]
    assert max(sizes) == CHUNK_BYTES
    assert sum(sizes) == 2_000_000


def test_a_limit_without_room_is_refused() -> None:
    with pytest.raises(FrameError, match="no room"):
        list(write_frames(Kind.END, b"x", limit=50))


@given(st.one_of(st.none(), st.dictionaries(names, values, max_size=6)), st.binary(max_size=50))
def test_any_headers_are_a_frame_a_plain_message_or_refused(headers: dict[str, str] | None, payload: bytes) -> None:
    try:
        frame = read_frame(headers, payload)
    except FrameError:
        return
    if frame is None:
        assert not headers or "Mcp-Frame" not in headers
    else:
        assert 1 <= frame.part <= frame.parts
        assert frame.payload == payload


frames = st.builds(
    Frame,
    st.sampled_from([Kind.END, Kind.ANSWER]),
    st.binary(max_size=8),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 20),
)


@given(st.lists(frames, max_size=8))
def test_pieces_in_any_order_give_a_payload_of_the_said_size_or_an_error(pieces: list[Frame]) -> None:
    assembly = Assembly(16)
    with contextlib.suppress(FrameError):
        for piece in pieces:
            whole = assembly.add(piece)
            assert whole is None or len(whole) == piece.size <= 16


@pytest.mark.parametrize(
    ("pieces", "problem"),
    [
        ([(1, 3, b"aa"), (3, 3, b"cc")], "piece 2 of 3 is missing"),
        ([(2, 3, b"bb")], "piece 1 of 3 is missing"),
        ([(1, 3, b"aa"), (1, 3, b"aa")], "piece 2 of 3 is missing"),
        ([(1, 3, b"aa"), (2, 4, b"bb")], "another payload"),
        ([(1, 3, b"aaaaaaa")], "does not fit"),
        ([(1, 3, b"aa"), (2, 3, b"")], "does not fit"),
        ([(1, 3, b"aa"), (2, 3, b"bb"), (3, 3, b"c")], "5 of 6 bytes"),
    ],
)
def test_a_wrong_piece_is_an_error_at_once(pieces: list[tuple[int, int, bytes]], problem: str) -> None:
    assembly = Assembly(100)
    *before, last = (Frame(Kind.END, payload, part, parts, 6) for part, parts, payload in pieces)
    assert [assembly.add(piece) for piece in before] == [None] * len(before)
    with pytest.raises(FrameError, match=problem):
        assembly.add(last)


def test_a_payload_that_says_it_is_too_large_is_refused_at_its_first_piece() -> None:
    with pytest.raises(FrameError, match="101 bytes are more than the 100"):
        Assembly(100).add(Frame(Kind.END, b"x", 1, 101, 101))


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"[1]", b'"x"', b"\xff{}", b'{"a": NaN}', b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}"]
)
def test_what_is_no_json_object_is_refused(payload: bytes) -> None:
    with pytest.raises(FrameError, match="payload"):
        read_message(payload)


@pytest.mark.parametrize("message", [{"text": "ä€🙂"}, {"a": [1, 2.5, None, True]}])
def test_messages_are_utf_8(message: dict[str, Any]) -> None:
    assert read_message(write_message(message)) == message


def test_half_a_surrogate_pair_is_sent_as_a_replacement_character() -> None:
    assert read_message(write_message({"text": "a\ud800b"})) == {"text": "a\ufffdb"}


@pytest.mark.parametrize("message", [{"a": float("nan")}, {"a": object()}])
def test_what_json_cannot_hold_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"JSON"):
        write_message(message)
