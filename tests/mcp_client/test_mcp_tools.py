"""A server's definitions as tools, and the calls of these."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_client.workbench import Workbench, definition, text_result

from yiemagent_nb.core.errors import (
    ExecutionTimeoutError,
    InvalidParametersError,
    McpConnectionError,
    McpError,
    McpTimeoutError,
    ToolNotFoundError,
    YiemAgentError,
)
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import Tool, ToolAnnotations, validate_arguments
from yiemagent_nb.mcp.link import NOT_DELIVERED, Progress
from yiemagent_nb.mcp.progress import INTERVAL, ProgressReporter
from yiemagent_nb.mcp.server import McpServer
from yiemagent_nb.mcp.tools import read_definition


def make(server: McpServer, **fields: Any) -> Tool:
    return read_definition(definition("do", **fields)).make_tool(server, "do")


async def run(tool: Tool, arguments: dict[str, Any] | None = None) -> tuple[ToolResult, list[Any]]:
    updates: list[Any] = []
    result = await tool.execute("call_1", arguments or {}, AbortSignal(), updates.append)
    assert isinstance(result, ToolResult)
    return result, updates


def idle(*_: Any) -> dict[str, Any]:
    return {}


# Definitions


@pytest.mark.requirement("Y SP-009")
def test_a_definition_becomes_a_tool_with_all_its_fields() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    raw = definition(
        "get-weather",
        "Tells the weather.",
        title="Weather",
        inputSchema=schema,
        outputSchema={"type": "object"},
        annotations={"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
    )
    read = read_definition(raw)
    tool = read.make_tool(McpServer(idle, name="weather"), "weather__get_weather")
    assert read.problems == ()
    assert (tool.name, tool.original_name, tool.source) == ("weather__get_weather", "get-weather", "weather")
    assert (tool.label, tool.description, tool.timeout) == ("Weather", "Tells the weather.", None)
    assert tool.input_schema == schema
    assert tool.output_schema == {"type": "object"}
    assert tool.annotations == ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
    assert tool.is_async


def test_a_tool_shares_nothing_with_its_raw_definition() -> None:
    raw = definition("do", inputSchema={"type": "object", "properties": {"a": {"type": "string"}}})
    tool = read_definition(raw).make_tool(McpServer(idle), "do")
    raw["inputSchema"]["properties"]["a"]["type"] = "number"
    assert tool.input_schema["properties"] == {"a": {"type": "string"}}


def test_the_label_may_stand_in_the_annotations() -> None:
    assert make(McpServer(idle), annotations={"title": "Do it"}).label == "Do it"


@pytest.mark.parametrize("description", ["", "  \n", None])
def test_a_tool_without_a_description_gets_one(description: Any) -> None:
    tool = make(McpServer(idle, name="calc"), description=description)
    assert tool.description == "do, a tool of the server calc"


def test_hints_that_are_no_booleans_are_unknown() -> None:
    tool = make(McpServer(idle), annotations={"readOnlyHint": "yes", "destructiveHint": 0, "other": 1})
    assert tool.annotations == ToolAnnotations()


@pytest.mark.parametrize("schema", ["text", [], {"type": "array"}, {"type": "nonsense"}, {"properties": 7}, 7])
def test_a_schema_that_is_none_is_refused_with_the_tools_name(schema: Any) -> None:
    with pytest.raises(InvalidParametersError, match='The inputSchema of the tool "do"'):
        read_definition(definition("do", inputSchema=schema))


def test_a_tool_that_only_runs_as_a_task_is_refused() -> None:
    with pytest.raises(InvalidParametersError, match='"research" runs only as a task'):
        read_definition(definition("research", execution={"taskSupport": "required"}))
    assert read_definition(definition("research", execution={"taskSupport": "optional"})).name == "research"


def test_a_definition_nested_too_deeply_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(200):
        schema = {"not": schema}
    with pytest.raises(InvalidParametersError, match="nested more than 100 levels"):
        read_definition(definition("do", inputSchema=schema))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"outputSchema": {"type": "nonsense"}}, "The outputSchema of the tool"),
        ({"annotations": "dangerous"}, "The annotations of the tool"),
        ({"title": 7}, "The title of the tool"),
        ({"description": ["a"]}, "The description of the tool"),
        ({"inputSchema": None}, "The inputSchema of the tool"),
        ({"description": "x" * 30_000}, "has 30,000 characters; the first 20,000 count"),
    ],
)
def test_what_is_wrong_in_other_fields_is_left_aside_and_told(fields: dict[str, Any], problem: str) -> None:
    read = read_definition(definition("do", **fields))
    assert len(read.problems) == 1
    assert problem in read.problems[0]
    tool = read.make_tool(McpServer(idle), "do")
    assert len(tool.description) <= 20_000
    assert tool.output_schema is None


def test_definitions_say_the_same_whatever_stands_beside_them_and_in_whatever_order() -> None:
    base = read_definition(definition("do", inputSchema={"type": "object", "properties": {}}, _meta={"version": 1}))
    other: dict[str, Any] = {"inputSchema": {"properties": {}, "type": "object"}, "_meta": {"version": 2}}
    assert base.says_the_same(read_definition(definition("do", **other)))
    assert not base.says_the_same(read_definition(definition("do", "Does else.")))
    one, yes = ({"type": "object", "properties": {"a": {"default": default}}} for default in (1, True))
    assert not read_definition(definition("do", inputSchema=one)).says_the_same(
        read_definition(definition("do", inputSchema=yes))
    )
    assert not base.says_the_same(read_definition(definition("do", annotations={"readOnlyHint": True})))


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters(), max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
some_field = st.sampled_from(["title", "description", "inputSchema", "outputSchema", "annotations", "name", "_meta"])


@given(fields=st.dictionaries(some_field, anything), name=st.text(alphabet=st.characters(), max_size=10))
def test_a_definition_becomes_a_tool_or_is_refused(fields: dict[str, Any], name: str) -> None:
    try:
        read = read_definition({"name": name, **fields})
    except InvalidParametersError:
        return
    tool = read.make_tool(McpServer(idle), "do")
    assert tool.description.encode()
    assert tool.input_schema["type"] == "object"


# Calls


@pytest.mark.requirement("Y SP-010")
async def test_a_call_goes_to_the_server_by_the_original_name() -> None:
    bench = Workbench()
    async with McpServer(bench) as server:
        tool = read_definition(definition("get-it")).make_tool(server, "bench__get_it")
        result, updates = await run(tool, {"a": 1})
    assert bench.calls == [("get-it", {"a": 1})]
    assert result.text == "get-it ran"
    assert result.details == {"server": "bench", "tool": "get-it"}
    assert updates == []


@pytest.mark.parametrize(
    ("progress", "words", "details"),
    [
        (Progress(3, 10, "reading"), "3/10: reading", {"progress": 3, "total": 10}),
        (Progress(0.5), "0.5", {"progress": 0.5, "total": None}),
        (Progress(2500, None, "so far"), "2,500: so far", {"progress": 2500, "total": None}),
        (Progress(float("nan"), 1), "?/1", {"progress": None, "total": 1}),
        (Progress(1, None, "\x1b[31mred\x1b[0m\x07"), "1: red\ufffd", {"progress": 1, "total": None}),
    ],
)
async def test_progress_is_told_in_few_words_and_in_numbers(
    progress: Progress, words: str, details: dict[str, Any]
) -> None:
    bench = Workbench()
    bench.progress = (progress,)
    async with McpServer(bench) as server:
        _, (update,) = await run(make(server))
    assert (update.text, update.details) == (words, details)


async def test_a_flood_of_progress_is_told_at_a_pace_and_to_its_end() -> None:
    bench = Workbench()
    bench.progress = tuple(Progress(number) for number in range(50_000))
    started = time.monotonic()
    async with McpServer(bench) as server:
        _, updates = await run(make(server))
    assert len(updates) <= (time.monotonic() - started) / INTERVAL + 2
    assert updates[0].text == "0"
    assert updates[-1].text == "49,999"


async def test_progress_is_told_though_the_server_says_no_more() -> None:
    told: asyncio.Queue[ToolResult] = asyncio.Queue()
    with ProgressReporter(told.put_nowait) as report:
        for number in range(3):
            report(Progress(number))
        assert (await told.get()).text == "0"
        assert (await asyncio.wait_for(told.get(), 60)).text == "2"
    assert told.empty()


async def test_progress_after_the_end_is_not_told() -> None:
    updates: list[Any] = []
    with ProgressReporter(updates.append) as report:
        report(Progress(1))
        report(Progress(2))
    report(Progress(3))
    await asyncio.sleep(2 * INTERVAL)  # until the time at which the second would have been told
    assert [update.text for update in updates] == ["1", "2"]


async def test_progress_may_come_from_other_threads() -> None:
    updates: list[Any] = []
    with ProgressReporter(updates.append) as report:
        numbers = range(1_000)
        await asyncio.gather(*(asyncio.to_thread(lambda: [report(Progress(n)) for n in numbers]) for _ in range(4)))
        report(Progress(-1))
    assert updates[-1].text == "-1"


async def test_a_structured_result_is_checked_against_the_promise() -> None:
    bench = Workbench()
    bench.answer = lambda _name, _arguments: text_result("here", structuredContent={"n": "one"})
    async with McpServer(bench) as server:
        result, _ = await run(make(server, outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}}))
    assert result.text == (
        'here\n[The structured result does not fit the tool\'s output schema: n should be an integer, got "one".]'
    )
    assert not result.is_error


def test_arguments_are_checked_before_the_call() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    tool = make(McpServer(idle), inputSchema=schema)
    with pytest.raises(InvalidParametersError, match="Missing required arguments: a"):
        validate_arguments(tool, {})
    with pytest.raises(InvalidParametersError, match='a should be an integer, got "x"'):
        validate_arguments(tool, {"a": "x"})


def test_a_pattern_is_checked_in_time_that_does_not_run_away() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    tool = make(McpServer(idle), inputSchema=schema)
    assert validate_arguments(tool, {"a": "aaa"}) == {"a": "aaa"}
    assert tool.validator is not None  # the check of ``input_schema`` alone would match it as Python does
    with pytest.raises(InvalidParametersError, match="a should fit"):
        tool.validator({"a": "a" * 60 + "!"})


def test_arguments_that_only_the_server_can_check_are_passed_on() -> None:
    schema = {"type": "object", "properties": {"a": {"pattern": "^(?=a)"}, "b": {"$ref": "#/nowhere"}}}
    arguments = {"a": "b", "b": 1}
    assert validate_arguments(make(McpServer(idle), inputSchema=schema), arguments) == arguments


def test_prose_of_a_definition_has_no_control_characters() -> None:
    prose = "\x1b[31mred\x1b[0m\x07\x1b]0;title\x07\x7f\x9b é\n\t"
    plain = "red\ufffd\ufffd\ufffd é"
    tool = make(
        McpServer(idle),
        description=prose,
        title=prose,
        inputSchema={"type": "object", "properties": {"a": {"description": prose, "enum": ["\x1b"]}}},
    )
    assert tool.description == plain
    assert tool.label == f"{plain}\n\t"
    assert tool.input_schema["properties"] == {"a": {"description": f"{plain}\n\t", "enum": ["\x1b"]}}


@pytest.mark.requirement("Y SP-010")
@pytest.mark.parametrize(
    ("failure", "kind", "words"),
    [
        (McpError("boom", rpc_code=-32603), McpError, '"do" of the server "bench" failed: boom.'),
        (McpError("bad a", rpc_code=-32602), InvalidParametersError, "refused the call: bad a. Call it again with"),
        (McpError("gone", rpc_code=-32601), ToolNotFoundError, "is not there: gone. Call list_tools"),
    ],
)
async def test_an_error_of_the_protocol_says_what_to_do(
    failure: McpError, kind: type[YiemAgentError], words: str
) -> None:
    bench = Workbench()
    bench.answer = lambda _name, _arguments: failure
    async with McpServer(bench) as server:
        with pytest.raises(kind) as caught:
            await run(make(server))
    assert words in str(caught.value)


async def test_an_error_s_text_is_short_and_plain() -> None:
    bench = Workbench()
    bench.answer = lambda _name, _arguments: McpError("\x1b[31mbad\x1b[0m\x07" + "x" * 20_000_000)
    async with McpServer(bench) as server:
        with pytest.raises(McpError, match="failed: bad\ufffdx") as caught:
            await run(make(server))
    assert len(str(caught.value)) < 2_500
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("kind", [McpError, McpConnectionError, McpTimeoutError])
async def test_advice_for_the_person_is_not_given_to_the_model(kind: type[McpError]) -> None:
    bench = Workbench()
    bench.answer = lambda _name, _arguments: kind("It is switched off.", "Set server.enabled.")
    async with McpServer(bench) as server:
        with pytest.raises(YiemAgentError) as caught:
            await run(make(server))
    assert "It is switched off" in str(caught.value)
    assert "server.enabled" not in str(caught.value)
    cause = caught.value.__cause__
    assert isinstance(cause, kind)
    assert cause.hint == "Set server.enabled."


async def test_a_call_that_never_arrived_was_not_carried_out() -> None:
    bench = Workbench()
    bench.answer = lambda _name, _arguments: McpConnectionError("Gone.", "Ask again.", data=NOT_DELIVERED)
    async with McpServer(bench) as server:
        with pytest.raises(McpConnectionError, match=r"Gone\. It was not carried out\."):
            await run(make(server))


async def test_an_answer_that_does_not_come_in_time_is_a_timeout() -> None:
    class Silent(Workbench):
        async def request(self, *_: Any, **__: Any) -> dict[str, Any]:
            await asyncio.Event().wait()
            raise AssertionError

    async with McpServer(Silent(), timeout=0.05) as server:
        with pytest.raises(ExecutionTimeoutError, match=r"in time: .* within 0\.05 seconds. It is not known"):
            await run(make(server))


def crash_once(bench: Workbench) -> None:
    """The first call crashes the server; later ones are answered."""

    async def crash() -> None:
        bench.crash()
        await asyncio.Event().wait()

    def answer(_name: str, _arguments: Any) -> Any:
        return crash() if len(bench.calls) == 1 else text_result("second time")

    bench.answer = answer


async def test_a_call_is_not_repeated_after_a_crash() -> None:
    bench = Workbench()
    crash_once(bench)
    async with McpServer(bench) as server:
        with pytest.raises(McpConnectionError) as caught:
            await run(make(server))
    assert len(bench.calls) == 1
    assert "out of luck" in str(caught.value)
    assert "It is not known whether the request was carried out. Before you call it again, check" in str(caught.value)


@pytest.mark.parametrize("hint", ["readOnlyHint", "idempotentHint"])
async def test_a_call_that_does_no_harm_is_repeated_once_after_a_crash(hint: str) -> None:
    bench = Workbench()
    crash_once(bench)
    async with McpServer(bench) as server:
        result, _ = await run(make(server, annotations={hint: True}))
    assert result.text == "second time"
    assert len(bench.calls) == 2
    assert bench.opened == 2


async def test_a_server_that_cannot_be_reached_says_why() -> None:
    bench = Workbench()
    bench.refusal = McpConnectionError("The program mcp-calc was not found.")
    with pytest.raises(McpConnectionError, match=r"the connection failed: .*mcp-calc was not found"):
        await run(make(McpServer(bench)))
