"""McpServer as a callable: the methods of MCP, their arguments, and what comes back."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

import pytest
from mcp.server import MCPServer

from yiemagent_nb import Agent, McpError, McpServer, McpTimeoutError, Scripted
from yiemagent_nb.core.errors import InvalidParametersError

pytestmark = pytest.mark.requirement("Y SD-004", "Y SP-009", "Y SP-010")


class Recorder:
    """A callable server that keeps what it was called with."""

    __name__ = "recorder"

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.calls: list[tuple[Any, ...]] = []

    async def __call__(self, *arguments: Any) -> Any:
        self.calls.append(arguments)
        return self.answer


def calculator() -> MCPServer:
    server = MCPServer("calculator", instructions="Whole numbers only.")

    @server.tool()
    def add(a: int, b: int) -> int:  # pyright: ignore[reportUnusedFunction]
        """Add two numbers."""
        return a + b

    @server.prompt()
    def riddle(word: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """A riddle."""
        return f"What rhymes with {word}?"

    @server.resource("numbers://pi")
    def pi() -> str:  # pyright: ignore[reportUnusedFunction]
        """The number."""
        return "3.14159"

    return server


async def test_the_answer_is_the_envelope_of_json_rpc() -> None:
    async with McpServer.in_process(calculator()) as server:
        first = await server("tools/call", "add", {"a": 17, "b": 25})
        second = await server("tools/list")
    assert (first["jsonrpc"], first["id"], second["id"]) == ("2.0", 1, 2)
    assert first["result"]["content"] == [{"type": "text", "text": "42"}]
    assert [tool["name"] for tool in second["result"]["tools"]] == ["add"]


async def test_an_error_is_an_error_object_and_not_raised() -> None:
    async with McpServer.in_process(calculator()) as server:
        answer = await server("no/such/method")
        assert answer["error"]["code"] == -32601
        assert "result" not in answer
        with pytest.raises(McpError) as caught:
            await server.request("no/such/method")
        assert caught.value.rpc_code == -32601


async def test_what_a_server_says_of_itself_is_known_after_the_first_request() -> None:
    server = McpServer.in_process(calculator())
    assert (server.name, server.info.instructions) == ("calculator", "")
    await server("tools/list")
    assert server.info.instructions == "Whole numbers only."
    assert "tools" in server.info.capabilities
    await server.close()


async def test_prompts_and_resources() -> None:
    async with McpServer.in_process(calculator()) as server:
        assert [prompt["name"] for prompt in await server.list_prompts()] == ["riddle"]
        prompt = await server.get_prompt("riddle", {"word": "orange"})
        assert prompt["messages"][0]["content"]["text"] == "What rhymes with orange?"
        assert [resource["uri"] for resource in await server.list_resources()] == ["numbers://pi"]
        assert (await server.read_resource("numbers://pi"))[0]["text"] == "3.14159"
        assert (await server("resources/read", "numbers://pi"))["result"]["contents"][0]["text"] == "3.14159"
        assert await server.list_resource_templates() == []


ASKED_AND_CALLED: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = [
    (("tools/list",), ("tools/list",)),
    (("tools/list", "page2"), ("tools/list", "page2")),
    (("tools/call", "add", {"a": 1}), ("tools/call", "add", {"a": 1})),
    (("tools/call", "add"), ("tools/call", "add", {})),
    (("tools/call", {"name": "add", "arguments": {"a": 1}}), ("tools/call", "add", {"a": 1})),
    (("resources/read", "file:///a"), ("resources/read", {"uri": "file:///a"})),
    (("anything/else", {"x": 1}), ("anything/else", {"x": 1})),
    (("anything/else",), ("anything/else",)),
]


@pytest.mark.parametrize(("asked", "called"), ASKED_AND_CALLED)
async def test_a_callable_of_the_users_is_a_server(asked: tuple[Any, ...], called: tuple[Any, ...]) -> None:
    recorder = Recorder({"result": {"fine": True}})
    server = McpServer(recorder)
    assert (await server(*asked))["result"] == {"fine": True}
    assert recorder.calls == [called]
    assert (server.name, server.kind) == ("recorder", "callable")


async def test_a_function_that_blocks_runs_in_a_thread() -> None:
    seen: list[threading.Thread] = []

    def server(_method: str) -> dict[str, Any]:
        seen.append(threading.current_thread())
        return {"tools": []}

    assert await McpServer(server).list_tools() == []
    assert seen[0] is not threading.current_thread()


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ({"error": {"code": -32001, "message": "busy", "data": [1]}}, -32001, "busy"),
        ({"error": {}}, -32603, "says nothing"),
        ({"error": {"code": "x", "message": 5}}, -32603, "5"),
        ("text", -32603, "must be an object"),
        (None, -32603, "must be an object"),
        ({"result": [1]}, -32603, "must be an object"),
    ],
)
async def test_what_a_callable_does_wrong_is_an_error_object(answer: Any, code: int, words: str) -> None:
    error = (await McpServer(Recorder(answer))("tools/list"))["error"]
    assert error["code"] == code
    assert words in error["message"]


async def test_a_callable_that_raises_is_an_error_object() -> None:
    async def broken(_method: str) -> None:
        raise KeyError("no table")

    error = (await McpServer(broken)("tools/list"))["error"]
    assert "KeyError: 'no table'" in error["message"]


async def test_a_request_has_a_deadline() -> None:
    async def stuck(_method: str) -> None:
        await asyncio.Event().wait()

    server = McpServer(stuck, timeout=0.05)
    with pytest.raises(McpTimeoutError):
        await server.request("tools/list")
    assert (await server("tools/list"))["error"]["code"] == -32001


async def test_more_arguments_than_a_method_takes_are_refused() -> None:
    server = McpServer(Recorder({}))
    with pytest.raises(InvalidParametersError, match="tools/list takes cursor, or its params as one mapping; 2"):
        await server("tools/list", "a", "b")


def test_allow_and_deny_lists_take_names_and_patterns() -> None:
    server = McpServer(Recorder({}), allow=["read_*", "list"], deny=["read_secret*"])
    admitted = [name for name in ("read_file", "read_secrets", "list", "write") if server.admits(name)]
    assert admitted == ["read_file", "list"]


def test_the_same_server_object_serves_a_script_and_an_agent() -> None:
    server = McpServer.in_process(calculator())
    agent = Agent(Scripted(["ok"]), mcp_servers=[server])
    assert agent.mcp_servers == (server,)


def test_a_name_that_would_be_taken_for_the_agents_own_tools_is_not_given() -> None:
    assert McpServer.stdio("python", "-c", "pass").name == "python-server"
    assert McpServer.stdio(sys.executable, "server.py").name == "server"
    with pytest.raises(InvalidParametersError, match="cannot have the name 'python'"):
        McpServer(Recorder({}), name="python")
