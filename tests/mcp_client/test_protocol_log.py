"""What a protocol log keeps, for how long, and what it says of it."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import weakref
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_client.watching import until
from pydantic_core import to_json

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.redaction import Redactor
from yiemagent_nb.mcp.bounded_json import write_bounded
from yiemagent_nb.mcp.log_writer import LogWriter
from yiemagent_nb.mcp.protocol_log import MAX_BYTES, MAX_ENTRIES, MAX_MESSAGE_BYTES, LogEntry, ProtocolLog

pytestmark = pytest.mark.requirement("Y FR-004", "Y SD-004")


def request(number: object, method: str = "tools/list", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def answer(number: object, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


@pytest.fixture
def log() -> ProtocolLog:
    return ProtocolLog()


@pytest.fixture
def writer(log: ProtocolLog) -> LogWriter:
    return LogWriter(log)


# Reading


def test_the_newest_entries_are_given_oldest_first_and_older_ones_by_number(
    log: ProtocolLog, writer: LogWriter
) -> None:
    for number in range(10):
        writer.frame("in", "frame", f"text {number}")
    assert [entry.text for entry in log.entries(limit=3)] == ["text 7", "text 8", "text 9"]
    assert [entry.number for entry in log.entries(before=8, limit=3)] == [5, 6, 7]
    assert [entry.number for entry in log.entries(before=1)] == []
    assert log.entries(limit=0) == []
    assert log.entry(4) == "text 3"
    assert len(log) == 10


def test_an_entry_that_is_not_there_is_an_error(log: ProtocolLog, writer: LogWriter) -> None:
    with pytest.raises(InvalidParametersError, match="no entry 1"):
        log.entry(1)
    writer.frame("in", "frame", "first")
    log.clear()
    writer.frame("in", "frame", "second")
    with pytest.raises(InvalidParametersError, match="no entry 1"):
        log.entry(1)
    with pytest.raises(InvalidParametersError, match="no entry 3"):
        log.entry(3)


def test_numbers_go_on_when_the_log_was_cleared(log: ProtocolLog, writer: LogWriter) -> None:
    writer.frame("in", "frame", "first")
    log.clear()
    assert len(log) == 0
    writer.frame("in", "frame", "second")
    assert [(entry.number, entry.text) for entry in log.entries()] == [(2, "second")]


def test_listeners_hear_each_entry_and_one_that_raises_keeps_it_from_no_other(
    log: ProtocolLog, writer: LogWriter, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[LogEntry] = []

    def broken(_: LogEntry) -> None:
        raise ValueError("not today")

    log.subscribe(broken)
    undo = log.subscribe(heard.append)
    with caplog.at_level(logging.ERROR, logger="yiemagent_nb"):
        writer.message("out", request(1))
    undo()
    writer.message("in", answer(1))
    assert [entry.number for entry in heard] == [1]
    assert heard == log.entries()[:1]
    assert "not today" in caplog.text


# Bounds


def test_no_more_than_a_thousand_entries_are_kept(log: ProtocolLog, writer: LogWriter) -> None:
    for number in range(MAX_ENTRIES + 500):
        writer.wrote_to_stderr(f"line {number}")
    assert len(log) == MAX_ENTRIES
    assert log.entries(limit=1)[0].number == MAX_ENTRIES + 500
    assert log.entries(limit=MAX_ENTRIES)[0].text == "line 500"


def test_no_more_than_two_mebibytes_are_kept(log: ProtocolLog, writer: LogWriter) -> None:
    for number in range(100):
        writer.message("in", answer(number, text="x" * 60_000))
    kept = log.entries(limit=MAX_ENTRIES)
    assert 25 < len(kept) < 40
    assert sum(len(entry.content) for entry in kept) <= MAX_BYTES


@pytest.mark.parametrize("as_text", [True, False])
def test_of_a_large_message_the_beginning_is_kept_and_how_much_is_not(
    log: ProtocolLog, writer: LogWriter, as_text: bool
) -> None:
    message = answer(1, content=[{"type": "text", "text": "ä" * 1_000_000}])
    data = to_json(message)
    writer.message("in", message, data if as_text else None)
    (entry,) = log.entries()
    assert len(entry.content) <= MAX_MESSAGE_BYTES
    beginning, _, rest = entry.text.partition("…")
    assert data.decode().startswith(beginning)
    assert len(beginning) > 30_000
    assert rest == f" ({entry.left_out:,} bytes left out)"
    assert 900_000 < entry.left_out < 2_000_000
    assert log.entry(1) == entry.text
    assert entry.beginning(50) == data.decode()[:49] + "…"


async def test_a_large_result_that_is_logged_late_is_let_go_of_soon(log: ProtocolLog, writer: LogWriter) -> None:
    class Large(list[str]):
        pass

    content = Large(["x" * 1_000_000])
    held = weakref.ref(content)
    writer.late_message("in", {"jsonrpc": "2.0", "id": 1, "result": {"content": content}})
    del content
    await until(lambda: held() is None)
    assert log.entries()[0].left_out > 900_000


async def test_what_is_logged_late_stands_in_its_place_for_whoever_reads(log: ProtocolLog, writer: LogWriter) -> None:
    for number in range(1_000):
        writer.late_message("out", request(number))
    writer.became("ready")
    assert [entry.id for entry in log.entries(limit=3)] == [998, 999, None]
    writer.late_message("in", answer(999))
    heard: list[LogEntry] = []
    log.subscribe(heard.append)
    writer.late_message("in", answer(998))
    assert [(entry.number, entry.method, entry.id) for entry in heard] == [(1_003, "tools/list", 998)]
    await until(lambda: len(asyncio.all_tasks()) == 1)


def test_a_log_that_is_read_in_one_thread_and_written_in_another_loses_nothing(
    log: ProtocolLog, writer: LogWriter
) -> None:
    async def write() -> None:
        for number in range(900):
            writer.late_message("out", request(number))
            if number % 7 == 0:
                await asyncio.sleep(0)

    thread = threading.Thread(target=lambda: asyncio.run(write()))
    thread.start()
    while thread.is_alive():
        numbers = [entry.number for entry in log.entries(limit=MAX_ENTRIES)]
        assert numbers == list(range(1, len(numbers) + 1))
    thread.join()
    assert [entry.id for entry in log.entries(limit=MAX_ENTRIES)] == list(range(900))


def test_a_log_that_nobody_holds_any_more_is_let_go_of() -> None:
    log = ProtocolLog()
    writer, held = LogWriter(log), weakref.ref(log)
    writer.became("connecting")
    del log
    assert held() is None
    writer.became("ready")
    writer.message("out", request(1))


# Requests and answers


def test_what_came_is_told_by_its_form(log: ProtocolLog, writer: LogWriter) -> None:
    writer.message("out", request(1, "tools/call"))
    writer.message("in", {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})
    writer.message("in", {"jsonrpc": "2.0", "id": 1, "result": {"isError": True}})
    writer.message("in", request("a", "roots/list"))
    writer.message("out", {"jsonrpc": "2.0", "id": "a", "error": {"code": -1, "message": "no"}})
    writer.message("in", answer(77))
    writer.wrote_rubbish("what?")
    seen = [(e.direction, e.method, e.id, e.seconds is None, e.is_error) for e in log.entries()]
    assert seen == [
        ("out", "tools/call", 1, True, False),
        ("in", "notifications/progress", None, True, False),
        ("in", "tools/call", 1, False, True),
        ("in", "roots/list", "a", True, False),
        ("out", "roots/list", "a", False, True),
        ("in", "", 77, True, False),
        ("rubbish", "", None, True, True),
    ]


def test_an_answer_over_a_new_connection_belongs_to_no_request_of_the_last(log: ProtocolLog, writer: LogWriter) -> None:
    writer.message("out", request(1, "tools/call"))
    writer.became("backoff", "it died", is_error=True)
    writer.became("connecting")
    writer.message("in", answer(1))
    newest = log.entries()[-1]
    assert (newest.method, newest.seconds) == ("", None)
    assert log.entry(2) == "backoff: it died"


def test_a_number_that_comes_back_as_a_text_is_the_same_id(log: ProtocolLog, writer: LogWriter) -> None:
    writer.message("out", request(7, "prompts/list"))
    writer.message("in", answer("7"))
    assert log.entries()[-1].method == "prompts/list"
    assert log.entries()[-1].id == "7"


@pytest.mark.parametrize("wrong", [{"id": 1.5}, {"id": [1]}, {"id": True, "method": 3}, {"method": ["x"]}, {}])
def test_a_message_whose_fields_have_another_form_is_logged_all_the_same(
    log: ProtocolLog, writer: LogWriter, wrong: dict[str, Any]
) -> None:
    writer.message("in", wrong)
    (entry,) = log.entries()
    assert json.loads(entry.text) == wrong
    assert (entry.method, entry.id, entry.seconds) == ("", None, None)


def test_long_names_and_ids_are_cut(log: ProtocolLog, writer: LogWriter) -> None:
    writer.message("in", request("i" * 10_000, "m" * 10_000))
    (entry,) = log.entries()
    assert (len(str(entry.id)), len(entry.method)) == (200, 200)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "answer", "tell", "reconnect"]),
        st.sampled_from(["out", "in"]),
        st.integers(0, 5),
        st.booleans(),
    ),
    max_size=30,
)


@given(STEPS)
async def test_in_any_order_each_answer_is_that_of_its_request(steps: list[Any]) -> None:
    """Both sides ask with the same few ids, again and again, with and without a text, over several connections."""
    log = ProtocolLog()
    writer = LogWriter(log)
    asked: dict[tuple[str, int], str] = {}
    expected: list[tuple[str, bool]] = []

    for number, (what, way, request_id, late) in enumerate(steps):
        other = "in" if way == "out" else "out"
        match what:
            case "ask":
                asked[way, request_id] = f"method/{number}"
                message = request(request_id, f"method/{number}")
                expected.append((f"method/{number}", False))
            case "answer":
                method = asked.pop((other, request_id), None)
                message = answer(request_id)
                expected.append((method or "", method is not None))
            case "tell":
                message = {"jsonrpc": "2.0", "method": "notifications/message"}
                expected.append(("notifications/message", False))
            case _:
                asked.clear()
                writer.became("connecting")
                expected.append(("connecting", False))
                continue
        if late:
            writer.late_message(way, message)
        else:
            writer.message(way, message, to_json(message))

    assert [(entry.method, entry.seconds is not None) for entry in log.entries()] == expected
    assert [entry.number for entry in log.entries()] == list(range(1, len(steps) + 1))


# Keys


def test_a_key_is_in_no_text_even_if_it_became_known_later(log: ProtocolLog, writer: LogWriter) -> None:
    key = 'sk-0123456789"abcdef'
    writer.message("in", answer(1, content=[{"type": "text", "text": f"{'y' * 150} {key}"}]))
    writer.wrote_to_stderr(f"I have {key}")
    redactor = Redactor()
    redactor.add(key)
    for entry in log.entries():
        for text in (entry.text, entry.beginning(200), entry.beginning(195), log.entry(entry.number), repr(entry)):
            assert "sk-0123" not in text
    assert "[key]" in log.entry(1)
    assert log.entries()[1].beginning() == "I have [key]"


# Writing messages that are no text


TEXT = st.text(max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, width=32) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXT, JSON, max_size=4), st.integers(1, 200))
def test_a_message_is_written_whole_or_its_beginning_is(message: dict[str, Any], limit: int) -> None:
    whole = to_json(message)
    data, size = write_bounded(message, limit)
    assert len(data) <= limit
    assert whole.startswith(data)
    if len(whole) <= limit:
        assert (data, size) == (whole, len(whole))
    else:
        assert size > len(data)


@pytest.mark.parametrize(
    "message",
    [
        {"result": {"numbers": list(range(1_000_000))}},
        {"result": {"rows": [{"a": [1, 2, 3], "b": "text"}] * 100_000}},
        {"result": {str(number): number for number in range(500_000)}},
    ],
    ids=["numbers", "rows", "fields"],
)
def test_of_a_message_of_very_many_parts_few_are_looked_at(message: dict[str, Any]) -> None:
    looked_at = 0

    class Counting(Mapping[str, Any]):
        def __getitem__(self, name: str) -> Any:
            nonlocal looked_at
            looked_at += 1
            return message[name]

        def __iter__(self) -> Any:
            return iter(message)

        def __len__(self) -> int:
            return len(message)

    data, size = write_bounded(Counting(), 10_000)
    assert to_json(message).startswith(data)
    assert 2_500 < len(data) <= 10_000 < size
    assert looked_at < 10


def test_what_is_no_json_is_written_somehow() -> None:
    circle: dict[str, Any] = {}
    circle["again"] = circle
    for message in ({"text": "\ud800"}, {"thing": object()}, {"number": float("nan")}, circle):
        data, size = write_bounded(message, 10_000)
        assert data.startswith(b"{")
        assert size >= len(data)
