"""Every streamed wire case, its bytes cut at other places; and what the other checks leave out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from wire.case_server import bytes_of, cut_randomly, load_cases
from wire.expectations import check_error, check_message

from yiemagent_nb.backends.engine.stream_reader import StreamReader
from yiemagent_nb.backends.http.sse import SseDecoder
from yiemagent_nb.core.errors import BackendError
from yiemagent_nb.core.messages import AssistantMessage
from yiemagent_nb.core.reading.assemble import Assembler
from yiemagent_nb.core.reading.server_errors import server_error

pytestmark = pytest.mark.requirement("Y SP-017", "Y SP-018", "Y SD-009")

SHORT = 8_000
CUT_BY_THE_SERVER = {"cut-mid-text", "stall"}
"""Cases whose error is the connection's: without it they are streams without an end."""

CASES = [case for case in load_cases("stream") if case["id"] not in CUT_BY_THE_SERVER]


def by_id(case: Mapping[str, Any]) -> str:
    return case["id"]


def decode(pieces: Iterable[bytes]) -> list[tuple[str, str]]:
    decoder = SseDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.flush()


def assemble(case: Mapping[str, Any], pieces: Iterable[bytes]) -> tuple[AssistantMessage, BackendError | None]:
    options = case.get("options", {})
    assembler = Assembler(tool_names=case["tools"], text_tool_calls=options.get("text_tool_fallback", False))
    reader = StreamReader()
    reader.begin("text/event-stream")
    try:
        for piece in [*pieces, b""]:
            if reader.over:
                break
            for chunk in reader.feed(piece):
                assembler.feed(chunk)
        return assembler.finish(), None
    except BackendError as error:
        return assembler.partial("error", str(error)), error


@pytest.mark.parametrize("case", [case for case in CASES if len(bytes_of(case)) <= SHORT], ids=by_id)
def test_events_do_not_depend_on_where_the_bytes_are_cut(case: Mapping[str, Any]) -> None:
    data = bytes_of(case)
    events = decode([data])
    for at in range(len(data) + 1):
        assert decode([data[:at], data[at:]]) == events


@pytest.mark.parametrize("case", [case for case in CASES if len(bytes_of(case)) <= SHORT], ids=by_id)
def test_message_is_the_same_byte_by_byte(case: Mapping[str, Any]) -> None:
    data = bytes_of(case)
    message, error = assemble(case, (data[at : at + 1] for at in range(len(data))))
    check_error(case, error)
    check_message(case, message)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_message_is_the_same_cut_at_random(case: Mapping[str, Any], seed: int) -> None:
    data = bytes_of(case)
    message, error = assemble(case, cut_randomly(data, seed, longest=max(40, len(data) // 50)))
    check_error(case, error)
    check_message(case, message)


@pytest.mark.parametrize("line_end", [b"\r\n", b"\r"])
@pytest.mark.parametrize("case", [case for case in CASES if len(bytes_of(case)) <= SHORT], ids=by_id)
def test_message_is_the_same_with_other_line_ends(case: Mapping[str, Any], line_end: bytes) -> None:
    data = bytes_of(case).replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", line_end)
    message, error = assemble(case, cut_randomly(data, 7, longest=9))
    check_error(case, error)
    check_message(case, message)


@pytest.mark.parametrize("case", [case for case in CASES if len(bytes_of(case)) <= SHORT], ids=by_id)
def test_a_stream_cut_anywhere_never_runs_a_call_that_was_not_whole(case: Mapping[str, Any]) -> None:
    data = bytes_of(case)
    whole, _ = assemble(case, [data])
    for at in range(0, len(data), 7):
        message, _ = assemble(case, [data[:at]])
        for call in message.tool_calls if message.stop_reason == "tool_calls" else ():
            matching = [each for each in whole.tool_calls if each.name == call.name]
            assert any(each.arguments == call.arguments for each in matching)


@pytest.mark.parametrize(
    "case", [case for case in load_cases("error") if "message_must_contain" in case["expect"]], ids=by_id
)
def test_an_error_repeats_the_words_that_help(case: Mapping[str, Any]) -> None:
    error = server_error(json.loads(bytes_of(case)), status=case["http"]["status"])
    assert case["expect"]["message_must_contain"] in error.message


@pytest.mark.parametrize("case", [case for case in CASES if "cost_usd" in case["expect"]], ids=by_id)
def test_a_cost_that_the_server_states_is_kept(case: Mapping[str, Any]) -> None:
    message, _ = assemble(case, [bytes_of(case)])
    assert message.usage is not None
    assert message.usage.cost is not None
    assert message.usage.cost.total == case["expect"]["cost_usd"]
