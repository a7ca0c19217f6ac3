"""What a caller gives wrong: a typed error that names it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from agent.script import Model, check_agent
from agent.wrongs import good

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.errors import InvalidMessageRoleError, InvalidParametersError, ToolNotSupportedError
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.tools import Tool

pytestmark = pytest.mark.requirement("Y NFR-201", "Y FR-005", "Y FR-002")


def undescribed() -> None:
    pass


def execute(*_: object) -> ToolResult:
    """Do nothing."""
    return ToolResult("nothing")


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"llm_call": 17}, InvalidParametersError, "llm_call must be callable, not int"),
        ({"before_tool_call": 17}, InvalidParametersError, "before_tool_call"),
        ({"after_tool_call": [good, 17]}, InvalidParametersError, "after_tool_call"),
        ({"tools": [good, good]}, InvalidParametersError, "'good'"),
        ({"tools": good}, ToolNotSupportedError, "list of tools"),
        ({"tools": [17]}, ToolNotSupportedError, "17"),
        ({"tools": [int]}, ToolNotSupportedError, "class int"),
        ({"tools": [lambda: 1]}, InvalidParametersError, "name"),
        ({"tools": [undescribed]}, InvalidParametersError, "description of tool 'undescribed'"),
        ({"messages": [17]}, InvalidParametersError, "int is no message"),
        ({"messages": [{"role": "boss", "content": "x"}]}, InvalidMessageRoleError, "boss"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_caller_gives_wrong_raises_an_error_that_names_it(
    options: dict[str, Any], error: type[Exception], told: str
) -> None:
    defaults: dict[str, Any] = {"llm_call": Model()}
    with pytest.raises(error) as caught:
        Agent(**(defaults | options))
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"name": "a b"}, "a b"),
        ({"name": "x" * 65}, "65 characters"),
        ({"description": " "}, "description of tool 'a'"),
        ({"input_schema": {"type": "objekt"}}, "input_schema of tool 'a'"),
        ({"input_schema": 17}, "input_schema of tool 'a'"),
        ({"timeout": 0}, "timeout of tool 'a'"),
        ({"execution_mode": "somehow"}, "execution_mode of tool 'a'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_tool_with_a_wrong_field_raises_an_error_that_names_tool_and_field(fields: dict[str, Any], told: str) -> None:
    defaults: dict[str, Any] = {"name": "a", "description": "x", "execute": execute}
    with pytest.raises(InvalidParametersError) as caught:
        Tool(**(defaults | fields))
    assert told in str(caught.value)


@pytest.mark.parametrize("mode", ["one at a time", "", None])
@pytest.mark.parametrize("option", ["steering_mode", "follow_up_mode", "tool_execution", "thinking_level", "runtime"])
def test_an_option_that_is_none_of_its_words_is_refused_by_name(option: str, mode: Any) -> None:
    options: dict[str, Any] = {option: mode}
    with pytest.raises(InvalidParametersError, match=option.partition("_")[0]):
        Agent(Model(), **options)


async def test_a_backend_with_a_signature_of_its_own_gets_only_what_it_declares() -> None:
    seen: list[object] = []

    def narrow(messages: object) -> str:
        seen.append(messages)
        return "narrow"

    def wide(messages: object, tools: object, signal: object, *, temperature: float = 1.0) -> str:
        seen.append((messages, tools, signal, temperature))
        return "wide"

    agent = Agent(narrow, tools=[good], options={"temperature": 0.5, "unknown": 1})
    assert (await agent.prompt("u")).text == "narrow"
    agent.set_llm_call(wide)
    assert (await agent.prompt("v")).text == "wide"
    assert isinstance(seen[1], tuple)
    assert seen[1][3] == 0.5
    assert inspect.signature(narrow).parameters.keys() == {"messages"}
    await check_agent(agent)


async def test_a_backend_that_cannot_be_called_so_is_an_error_that_names_it() -> None:
    def nothing() -> str:
        return "never"

    agent = Agent(nothing)
    answer = await agent.prompt("u")
    assert answer.stop_reason == "error"
    assert "nothing" in str(answer.error_message)
    await check_agent(agent)
