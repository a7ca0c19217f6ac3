"""A server's connection: when it opens, gets lost, comes back and ends."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from mcp_client.steered import Steered

from yiemagent_nb.core.errors import InvalidParametersError, McpConnectionError, McpTimeoutError
from yiemagent_nb.mcp import connection as connection_module
from yiemagent_nb.mcp.server import McpServer, ServerEvent

pytestmark = pytest.mark.requirement("Y SD-004", "Y P-002")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "PAUSES", (0.01, 0.01, 0.01))
    monkeypatch.setattr(connection_module, "SETTLED_SECONDS", 0.0)


async def until(server: McpServer, state: str) -> None:
    await eventually(lambda: server.state == state)


async def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(5_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came to that")


async def test_nothing_starts_before_it_is_used() -> None:
    transport = Steered()
    server = McpServer(transport)
    assert (server.state, transport.openings) == ("new", 0)
    assert await server.request("ping", {"a": 1}) == {"method": "ping", "a": 1}
    assert (server.state, server.info.name) == ("ready", "steered")
    await server.close()


async def test_requests_at_once_share_one_connection() -> None:
    transport = Steered()
    server = McpServer(transport)
    await asyncio.gather(*(server.request("ping") for _ in range(50)))
    assert transport.openings == 1
    await server.close()
    assert (server.state, transport.closings) == ("closed", 1)


async def test_one_task_enters_and_leaves_though_others_ask() -> None:
    transport = Steered()
    server = McpServer(transport)
    await asyncio.create_task(server.request("ping"))
    await asyncio.create_task(server.close())
    entered = {task for step, task in transport.tasks if step == "enter"}
    left = {task for step, task in transport.tasks if step == "leave"}
    assert entered == left
    assert asyncio.current_task() not in entered


async def test_a_caller_that_is_cancelled_leaves_the_connection_alone() -> None:
    server = McpServer(transport := Steered())
    await server.open()
    call = asyncio.create_task(server.request("wait"))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait({call})
    assert call.cancelled()
    assert server.state == "ready"
    assert transport.closings == 0
    await server.close()


async def test_a_server_that_does_not_start_is_one_flat_error_with_its_last_lines() -> None:
    server = McpServer(Steered("refuse"))
    with pytest.raises(McpConnectionError) as caught:
        await server.request("ping")
    assert caught.value.message == "The server exited with code 1. Its last lines:\nTraceback: no such table"
    assert caught.value.hint == "Look at its log."
    assert server.state == "failed"
    assert str(server.error) == str(caught.value)
    assert server.stderr == ("Traceback: no such table",)


async def test_what_task_groups_wrap_is_unwrapped() -> None:
    with pytest.raises(
        McpConnectionError, match=r"^The server cannot be used: OSError: no route\. \[MCP_CONNECTION\]$"
    ):
        await McpServer(Steered("group")).request("ping")


async def test_a_server_that_never_gets_ready_is_given_up_at_its_deadline() -> None:
    server = McpServer(transport := Steered("hang"), connect_timeout=0.05)
    with pytest.raises(McpConnectionError, match=r"did not get ready within 0\.05 seconds"):
        await server.request("ping")
    assert (server.state, transport.closings) == ("failed", 1)


async def test_a_failed_server_is_tried_again_when_it_is_asked_again() -> None:
    server = McpServer(transport := Steered("refuse"))
    assert "error" in await server("ping")
    assert "result" in await server("ping")
    assert transport.openings == 2
    await server.close()


async def test_just_after_a_failure_requests_get_the_same_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "SETTLED_SECONDS", 60.0)
    server = McpServer(transport := Steered("refuse"))
    answers = [await server("ping") for _ in range(3)]
    assert [answer["error"]["code"] for answer in answers] == [-32000] * 3
    assert transport.openings == 1


async def test_a_lost_connection_comes_back_by_itself() -> None:
    server = McpServer(transport := Steered())
    states: list[Any] = []
    server.subscribe(lambda event: states.append(event.data["state"]) if event.kind == "state" else None)
    await server.open()
    transport.end()
    await until(server, "backoff")
    await until(server, "ready")
    assert states == ["connecting", "ready", "backoff", "connecting", "ready"]
    assert (server.restarts, transport.closings) == (1, 1)
    await server.close()


async def test_a_request_in_flight_fails_with_the_reason_and_is_not_repeated() -> None:
    server = McpServer(transport := Steered())
    await server.open()
    call = asyncio.create_task(server.request("wait"))
    await asyncio.sleep(0)
    assert transport.inbox is not None
    transport.inbox.wrote_to_stderr("Segmentation fault")
    transport.end()
    with pytest.raises(McpConnectionError) as caught:
        await call
    assert caught.value.message == (
        "The server went away during wait: it exited with code 3. Its last lines:\nSegmentation fault"
    )
    assert caught.value.hint == "It is not known whether the request was carried out."
    await server.close()


async def test_the_next_request_waits_for_the_new_connection() -> None:
    server = McpServer(transport := Steered("open", "refuse"))
    await server.open()
    transport.end()
    await until(server, "backoff")
    await until(server, "ready")
    assert await server.request("ping") == {"method": "ping"}
    assert transport.openings == 3
    await server.close()


async def test_a_connection_that_does_not_come_back_has_failed() -> None:
    server = McpServer(transport := Steered("open", "refuse", "refuse", "refuse"))
    await server.open()
    transport.end()
    await until(server, "failed")
    assert transport.openings == 4
    assert "exited with code 1" in str(server.error)


async def test_closing_while_it_connects_does_not_wait_for_the_deadline() -> None:
    server = McpServer(transport := Steered("hang"))
    call = asyncio.create_task(server.request("ping"))
    await until(server, "connecting")
    async with asyncio.timeout(5):
        await server.close()
    with pytest.raises(McpConnectionError, match="was closed"):
        await call
    assert (server.state, transport.closings) == ("closed", 1)


async def test_closing_while_it_waits_to_try_again_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "PAUSES", (60.0,))
    server = McpServer(transport := Steered())
    await server.open()
    transport.end()
    await until(server, "backoff")
    async with asyncio.timeout(5):
        await server.close()
    assert server.state == "closed"


async def test_a_closed_server_opens_again_when_it_is_asked() -> None:
    server = McpServer(transport := Steered())
    async with server:
        assert server.state == "ready"
    assert server.state == "closed"
    assert await server.request("ping") == {"method": "ping"}
    assert transport.openings == 2
    await server.close()


async def test_a_request_during_the_close_gets_a_new_connection() -> None:
    server = McpServer(transport := Steered())
    await server.open()
    closing = asyncio.create_task(server.close())
    await asyncio.sleep(0)
    assert await server.request("ping") == {"method": "ping"}
    await closing
    assert transport.openings == 2
    await server.close()


async def test_a_server_that_nobody_holds_any_more_is_closed() -> None:
    transport = Steered()
    server = McpServer(transport)
    await server.open()
    gone = weakref.ref(server)
    del server
    gc.collect()
    assert gone() is None
    await eventually(lambda: transport.closings == 1)


async def test_the_last_user_that_lets_go_closes_it() -> None:
    server = McpServer(transport := Steered())
    first, second = object(), object()
    server.acquire(first)
    server.acquire(second)
    await server.request("ping")
    server.release(id(first))
    await asyncio.sleep(0.01)
    assert (server.state, transport.closings) == ("ready", 0)
    server.release(id(second))
    await until(server, "closed")


async def test_a_server_opened_by_hand_outlives_its_users() -> None:
    server = McpServer(Steered())
    await server.open()
    user = object()
    server.acquire(user)
    server.release(id(user))
    await asyncio.sleep(0.01)
    assert server.state == "ready"
    await server.close()


async def test_requests_may_come_from_a_loop_in_another_thread() -> None:
    server = McpServer(transport := Steered())
    await server.open()

    def ask(number: int) -> dict[str, Any]:
        return asyncio.run(server.request("ping", {"n": number}))

    answers = await asyncio.gather(*(asyncio.to_thread(ask, number) for number in range(5)))
    assert [answer["n"] for answer in answers] == list(range(5))
    assert transport.openings == 1
    await server.close()


def test_a_server_moves_to_the_next_loop_when_its_own_is_closed() -> None:
    transport = Steered()
    server = McpServer(transport)
    for _ in range(2):
        assert asyncio.run(server.request("ping")) == {"method": "ping"}
    assert transport.openings == 2
    assert transport.closings == 2, "asyncio.run ends what it started"


async def test_a_server_that_is_switched_off_says_so() -> None:
    server = McpServer(transport := Steered(), enabled=False)
    with pytest.raises(McpConnectionError, match="'steered' is switched off"):
        await server.request("ping")
    assert transport.openings == 0


async def test_a_listener_that_raises_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    server = McpServer(transport := Steered())
    told: list[ServerEvent] = []

    def fail(_event: ServerEvent) -> None:
        raise RuntimeError("of the user's")

    server.subscribe(fail)
    unsubscribe = server.subscribe(told.append)
    await server.open()
    assert transport.inbox is not None
    transport.inbox.notified("notifications/message", {"level": "info", "data": "hello"})
    transport.inbox.wrote_rubbish("not json")
    assert [event.kind for event in told] == ["state", "state", "log", "rubbish"]
    assert server.rubbish == 1
    unsubscribe()
    await server.close()
    assert len(told) == 4
    assert "a listener of the MCP server steered raised" in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": ""}, "name of a server"),
        ({"timeout": 0}, "timeout must be"),
        ({"timeout": True}, "timeout must be"),
        ({"connect_timeout": float("inf")}, "connect_timeout must be"),
        ({"allow": "read"}, "allow must be a list"),
        ({"deny": [1]}, "deny must be a list"),
        ({"max_result_characters": -1}, "max_result_characters must be"),
    ],
)
def test_options_that_are_wrong_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParametersError, match=message):
        McpServer(Steered(), **options)


def test_something_that_is_no_server_is_refused() -> None:
    with pytest.raises(InvalidParametersError, match="takes a callable or a transport, not 17"):
        McpServer(17)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidParametersError, match="is an McpServer already"):
        McpServer(McpServer(Steered()))


async def test_a_request_that_was_certainly_not_carried_out_is_sent_again() -> None:
    server = McpServer(transport := Steered())
    await server.open()
    assert await server.request("undelivered") == {"method": "undelivered"}
    assert transport.openings == 2
    await server.close()


async def test_a_server_that_wants_a_login_is_not_asked_over_and_over() -> None:
    server = McpServer(transport := Steered("open", "login"))
    await server.open()
    transport.end()
    await until(server, "failed")
    assert transport.openings == 2
    assert "It asks who you are." in str(server.error)


async def test_a_request_that_meets_the_close_is_told_so() -> None:
    server = McpServer(transport := Steered())
    await server.open()
    call = asyncio.create_task(server.request("wait"))
    await asyncio.sleep(0)
    closing = asyncio.create_task(server.close())
    await asyncio.sleep(0)
    transport.end()
    with pytest.raises(McpConnectionError, match="was closed before the answer came"):
        await call
    await closing


async def test_the_last_lines_are_those_of_the_last_attempt() -> None:
    server = McpServer(Steered("refuse", "hang"), connect_timeout=0.05)
    assert "no such table" in (await server("ping"))["error"]["message"]
    assert "no such table" not in (await server("ping"))["error"]["message"]
    assert server.stderr == ("Traceback: no such table",)


def test_a_call_from_another_loop_hears_that_the_servers_loop_ended() -> None:
    server = McpServer(Steered())
    answers: list[dict[str, Any]] = []
    asked = threading.Event()

    async def ask() -> None:
        call = asyncio.create_task(server("wait"))
        await asyncio.sleep(0)
        asked.set()
        answers.append(await call)

    async def hold() -> threading.Thread:
        await server.open()
        caller = threading.Thread(target=lambda: asyncio.run(ask()))
        caller.start()
        await asyncio.to_thread(asked.wait, 5)
        return caller

    asyncio.run(hold()).join(10)
    (answer,) = answers
    assert answer["error"]["code"] == -32000


@pytest.mark.parametrize("name", ["two\nlines", "\x1b[31mred", "x" * 101])
def test_a_name_is_one_line_that_can_be_shown(name: str) -> None:
    with pytest.raises(InvalidParametersError, match="one line of at most 100 characters"):
        McpServer(Steered(), name=name)


async def test_arguments_that_are_no_mapping_are_refused_before_anything_is_sent() -> None:
    server = McpServer(transport := Steered())
    with pytest.raises(InvalidParametersError, match="arguments of echo must be a mapping"):
        await server.call_tool("echo", "text")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidParametersError, match="A method of MCP is a text"):
        await server(5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidParametersError, match="timeout must be a number above 0"):
        await server.request("ping", timeout=float("nan"))
    assert transport.openings == 0


async def test_a_server_that_is_silent_runs_out_of_time() -> None:
    server = McpServer(Steered(), timeout=0.05)
    with pytest.raises(McpTimeoutError, match=r"did not answer wait within 0\.05 seconds"):
        await server.request("wait")
    assert server.state == "ready"
    await server.close()


async def test_no_time_runs_out_while_a_person_is_asked() -> None:
    async def think(_message: str, _schema: object) -> dict[str, str]:
        await asyncio.sleep(0.3)
        return {"name": "Ada"}

    server = McpServer(Steered(), timeout=0.1, on_elicitation=think)
    assert await server.request("ask") == {"action": "accept", "content": {"name": "Ada"}}
    await server.close()
