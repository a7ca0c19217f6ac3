from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import json
import math
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from enum import Enum
from typing import Any, Literal, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from yiemagent_nb.core.errors import (
    ExecutionAbortedError,
    HookError,
    InvalidParametersError,
    ToolNotSupportedError,
    YiemAgentError,
)
from yiemagent_nb.core.messages import ImageContent, TextContent, ToolCall
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import (
    Tool,
    ToolAnnotations,
    ToolContext,
    as_tools,
    current_agent,
    tool,
    validate_arguments,
    validate_required_args,
    validate_tool_arguments,
)


class Place(BaseModel):
    name: str
    floor: int = 0


class Unit(Enum):
    METRE = "m"


async def answer(_id: str, arguments: dict[str, Any], _signal: AbortSignal, _update: Callable[[Any], None]) -> Any:
    return arguments


def make(**fields: Any) -> Tool:
    given_fields: dict[str, Any] = {"name": "find", "description": "Finds.", "execute": answer, **fields}
    return Tool(**given_fields)


def run(made: Tool, *, signal: AbortSignal | None = None, agent: object = None, **arguments: Any) -> Any:
    """Execute as the loop does; returns the result and the updates."""
    updates: list[Any] = []

    async def main() -> Any:
        current_agent.set(agent)
        value = made.execute("call_1", arguments, signal or AbortSignal(), updates.append)
        return await value if inspect.isawaitable(value) else value

    return asyncio.run(main()), updates


# --- Tool --------------------------------------------------------------------------------------


@pytest.mark.requirement("A SPEC-3.1")
def test_a_tool_has_every_field_with_its_default() -> None:
    made = make()
    assert dataclasses.asdict(dataclasses.replace(made, execute=answer)) == {
        "name": "find",
        "description": "Finds.",
        "execute": answer,
        "label": "Find",
        "input_schema": {"type": "object", "properties": {}},
        "prepare_arguments": None,
        "validate_required_args": None,
        "execution_mode": None,
        "annotations": {"read_only": None, "destructive": None, "idempotent": None, "open_world": None},
        "output_schema": None,
        "timeout": None,
        "source": "python",
        "original_name": "find",
        "validator": None,
        "function": None,
    }


@pytest.mark.parametrize(
    ("name", "label"),
    [("get_weather", "Get weather"), ("getWeather", "Get weather"), ("URL_fetch", "URL fetch"), ("_", "_")],
)
def test_a_label_is_made_of_the_name(name: str, label: str) -> None:
    assert make(name=name).label == label
    assert make(name=name, label="Mine").label == "Mine"


@pytest.mark.requirement("A SPEC-8.2")
@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "größe", "a.b", "a\n", "x" * 65, None, 3])
def test_a_bad_name_is_refused_and_named(name: Any) -> None:
    with pytest.raises(InvalidParametersError, match=r"the name of tool .* expected") as caught:
        make(name=name)
    assert "name=" in caught.value.hint


@pytest.mark.requirement("A SPEC-8.2")
@pytest.mark.parametrize("name", ["a", "_", "A9_", "x" * 64])
def test_a_good_name_is_taken(name: str) -> None:
    assert make(name=name).name == name


@pytest.mark.requirement("A SPEC-8.2")
@pytest.mark.parametrize("description", ["", " \n", None, 3])
def test_a_tool_without_a_description_is_refused(description: Any) -> None:
    with pytest.raises(InvalidParametersError, match="the description of tool 'find' is empty"):
        make(description=description)


@pytest.mark.requirement("A SPEC-3.1")
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"input_schema": {"type": "objekt"}}, "input_schema of tool 'find' must be of type 'object'"),
        ({"input_schema": {"type": "array"}}, "input_schema of tool 'find' must be of type 'object'"),
        ({"input_schema": {"properties": {"a": {"type": "text"}}}}, "input_schema of tool 'find' is no valid"),
        ({"input_schema": {"required": "a"}}, "input_schema of tool 'find' is no valid"),
        ({"input_schema": {"properties": {"a": object()}}}, "input_schema of tool 'find' is no JSON Schema"),
        ({"input_schema": None}, "input_schema of tool 'find' must be a JSON Schema"),
        ({"input_schema": True}, "input_schema of tool 'find' must be a JSON Schema"),
        ({"output_schema": {"type": 3}}, "output_schema of tool 'find' is no valid"),
        ({"timeout": 0}, "timeout of tool 'find' must be a number"),
        ({"timeout": -1.5}, "timeout of tool 'find' must be a number"),
        ({"timeout": math.nan}, "timeout of tool 'find' must be a number"),
        ({"timeout": math.inf}, "timeout of tool 'find' must be a number"),
        ({"timeout": True}, "timeout of tool 'find' must be a number"),
        ({"timeout": "3"}, "timeout of tool 'find' must be a number"),
        ({"execution_mode": "serial"}, "execution_mode of tool 'find' must be"),
        ({"execution_mode": ["parallel"]}, "execution_mode of tool 'find' must be"),
        ({"annotations": {"read_only": True}}, "annotations of tool 'find' must be ToolAnnotations"),
        ({"prepare_arguments": "x"}, "prepare_arguments of tool 'find' must be a function"),
        ({"validate_required_args": 1}, "validate_required_args of tool 'find' must be a function"),
        ({"source": None}, "source of tool 'find' must be a string"),
    ],
)
def test_a_wrong_field_is_refused_with_its_name_and_the_tools(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParametersError) as caught:
        make(**fields)
    assert words in caught.value.message


@pytest.mark.requirement("A SPEC-3.2")
def test_execute_must_be_callable() -> None:
    with pytest.raises(ToolNotSupportedError, match="execute of tool 'find' must be a function"):
        make(execute="x")


def test_a_tool_keeps_its_own_copy_of_a_schema() -> None:
    schema: dict[str, Any] = {"properties": {"a": {"type": "integer"}}}
    made = make(input_schema=schema)
    schema["properties"]["a"]["type"] = "text"
    assert made.input_schema == {"type": "object", "properties": {"a": {"type": "integer"}}}


def test_a_tool_is_frozen_hashable_and_has_a_short_repr() -> None:
    made = make(input_schema={"properties": {str(n): {} for n in range(1000)}}, source="files")
    assert repr(made) == "Tool(name='find', source='files')"
    assert {made: 1}[made] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.name = "other"  # pyright: ignore[reportAttributeAccessIssue]


def test_a_renamed_copy_keeps_the_original_name() -> None:
    renamed = dataclasses.replace(make(source="files"), name="files__find")
    assert (renamed.name, renamed.source, renamed.original_name) == ("files__find", "files", "find")


class AsyncObject:
    async def __call__(self, *_: Any) -> str:
        return "done"


class SyncObject:
    """Says what is asked."""

    def __call__(self, text: str) -> str:
        return text


def test_a_tool_knows_whether_it_belongs_on_the_loop() -> None:
    assert make().is_async
    assert make(execute=functools.partial(answer)).is_async
    assert make(execute=AsyncObject()).is_async
    assert not make(execute=print).is_async
    assert not make(execute=SyncObject()).is_async


def test_a_tool_without_a_function_cannot_be_called_like_one() -> None:
    with pytest.raises(ToolNotSupportedError, match="'find' was not made of a Python function"):
        make()()


# --- Arguments ---------------------------------------------------------------------------------

SCHEMA: dict[str, Any] = {
    "properties": {"b": {"type": "integer"}, "a": {"type": "string"}},
    "required": ["b", "a"],
    "additionalProperties": False,
}


@pytest.mark.requirement("Y SP-005")
def test_a_call_carries_its_type_id_name_and_parsed_arguments() -> None:
    call = ToolCall(id="1", name="find", arguments={"a": 1})
    assert (call.type, call.id, call.name, call.arguments) == ("function", "1", "find", {"a": 1})


@pytest.mark.requirement("Y SP-005", "Y SP-024")
def test_arguments_that_were_not_json_are_refused() -> None:
    call = ToolCall(name="find", raw_arguments='{"a": ')
    with pytest.raises(InvalidParametersError, match="arguments of find are not valid JSON"):
        validate_tool_arguments(make(), call)


@pytest.mark.requirement("Y SP-023", "Y NFR-301")
def test_missing_arguments_are_listed_in_the_schemas_order() -> None:
    assert validate_required_args({}, SCHEMA) == "Missing required arguments: b, a"
    assert validate_required_args({"b": None}, SCHEMA) == "Missing required arguments: a"
    assert validate_required_args({"a": 1, "b": 2}, SCHEMA) is None
    assert validate_required_args({}, {}) is None


@pytest.mark.requirement("Y SP-023", "Y SP-024")
def test_missing_arguments_are_the_first_failure_with_exactly_that_message() -> None:
    with pytest.raises(InvalidParametersError) as caught:
        validate_tool_arguments(make(input_schema=SCHEMA), ToolCall(name="find", arguments={"a": 5, "zz": 1}))
    assert caught.value.message == "Missing required arguments: b"


@pytest.mark.requirement("Y SP-024", "Y NFR-301")
def test_the_checks_come_in_order() -> None:
    seen: list[tuple[str, dict[str, Any]]] = []

    def prepare(arguments: dict[str, Any]) -> dict[str, Any]:
        seen.append(("prepare", dict(arguments)))
        return {**arguments, "b": 1}

    def required(arguments: dict[str, Any]) -> None:
        seen.append(("required", dict(arguments)))

    made = make(input_schema=SCHEMA, prepare_arguments=prepare, validate_required_args=required)
    with pytest.raises(InvalidParametersError, match="a should be a string, got 5"):
        validate_tool_arguments(made, ToolCall(name="find", arguments={"a": 5}))
    assert seen == [("prepare", {"a": 5}), ("required", {"a": 5, "b": 1})]
    assert validate_tool_arguments(made, ToolCall(name="find", arguments={"a": "x"})) == {"a": "x", "b": 1}


@pytest.mark.requirement("Y SP-024")
def test_a_tools_own_check_replaces_the_default_one_and_its_message_is_the_error() -> None:
    def say_where(_: dict[str, Any]) -> str:
        return "Say where."

    made = make(input_schema=SCHEMA, validate_required_args=say_where)
    with pytest.raises(InvalidParametersError) as caught:
        validate_tool_arguments(made, ToolCall(name="find", arguments={"a": "x", "b": 1}))
    assert caught.value.message == "Say where."


def raising(_: Any) -> Any:
    raise ZeroDivisionError("oh")


async def asynchronous(_: Any) -> Any:
    return {}


def echo(**arguments: Any) -> Any:
    """Say it again."""
    return arguments


def first_name(arguments: dict[str, Any]) -> str | None:
    return next(iter(arguments), None)


@pytest.mark.requirement("Y SP-024")
@pytest.mark.parametrize("hook", ["prepare_arguments", "validate_required_args"])
@pytest.mark.parametrize("function", [raising, asynchronous, len, set])
def test_a_failing_hook_of_a_tool_is_an_error_that_names_it(hook: str, function: Any) -> None:
    with pytest.raises(HookError, match=f"^{hook} of tool 'find' failed with"):
        validate_tool_arguments(make(**{hook: function}), ToolCall(name="find"))


@pytest.mark.requirement("Y SP-024")
@pytest.mark.parametrize("made", [make(), tool(echo, name="find")])
def test_nothing_that_is_given_out_belongs_to_the_call_in_history(made: Tool) -> None:
    call = ToolCall(name="find", arguments={"deep": {"list": [1]}})
    given_out = validate_tool_arguments(made, call)
    given_out["deep"]["list"].append(2)
    assert call.arguments == {"deep": {"list": [1]}}


def test_arguments_of_a_hook_are_checked_and_copied_without_being_prepared_again() -> None:
    made = make(input_schema=SCHEMA, prepare_arguments=raising)
    edited: dict[str, Any] = {"a": "x", "b": 1}
    checked = validate_arguments(made, edited)
    assert checked == edited
    assert checked is not edited
    with pytest.raises(InvalidParametersError, match="Missing required arguments: b"):
        validate_arguments(made, {"a": "x"})
    with pytest.raises(InvalidParametersError, match="JSON value"):
        validate_arguments(made, {"a": object(), "b": 1})


# --- @tool -------------------------------------------------------------------------------------


@tool
def area(width: float, height: float = 1.0) -> float:
    """Compute an area.

    Args:
        width: In metres.
    """
    return width * height


@pytest.mark.requirement("A SPEC-3.1")
def test_a_decorated_function_is_a_tool_and_still_a_function() -> None:
    assert isinstance(area, Tool)
    assert (area.name, area.label, area.description) == ("area", "Area", "Compute an area.")
    assert area.input_schema["properties"]["width"] == {"type": "number", "description": "In metres."}
    assert area(2, height=3) == 6
    assert str(inspect.signature(area)) == "(width: 'float', height: 'float' = 1.0) -> 'float'"
    assert cast("Any", area.function).__name__ == "area"


def test_options_override_what_the_function_says() -> None:
    @tool(
        name="other",
        label="Other!",
        description="Does other things.",
        timeout=2,
        execution_mode="sequential",
        annotations=ToolAnnotations(read_only=True),
        prepare_arguments=lambda _: {"a": 1},
        source="mine",
    )
    def f(a: int) -> int:
        """F."""
        return a

    assert (f.name, f.label, f.description, f.timeout) == ("other", "Other!", "Does other things.", 2)
    assert (f.execution_mode, f.annotations.read_only, f.source) == ("sequential", True, "mine")
    assert validate_tool_arguments(f, ToolCall(name="other")) == {"a": 1}


def test_a_tool_can_be_changed_by_tool() -> None:
    assert tool(area) is not area
    assert tool(area, name="surface").name == "surface"
    assert tool(area, name="surface")(2) == 2


def test_an_unknown_option_is_named_with_the_known_ones() -> None:
    with pytest.raises(InvalidParametersError, match=r"no option colour, speed; it takes name, label"):
        tool(**cast("Any", {"speed": 1, "colour": 2}))


@pytest.mark.requirement("A SPEC-8.2")
def test_a_function_without_a_docstring_needs_a_description() -> None:
    def f(a: int) -> int:
        return a

    with pytest.raises(InvalidParametersError, match="the description of tool 'f' is empty") as caught:
        tool(f)
    assert caught.value.hint == "Write a docstring, or give `description=`."
    assert tool(f, description="F.").description == "F."


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(InvalidParametersError, match='tool "<lambda>" is not valid') as caught:
        tool(lambda: 1, description="One.")
    assert "name=" in caught.value.hint
    assert run(tool(lambda: 1, name="one", description="One."))[0].text == "1"


class Shop:
    """A shop."""

    def __init__(self, stock: int) -> None:
        self.stock = stock

    def sell(self, count: int) -> int:
        """Sell some."""
        self.stock -= count
        return self.stock

    @classmethod
    def open(cls) -> Shop:
        """Open one."""
        return cls(1)

    @tool
    @staticmethod
    def greet(name: str) -> str:
        """Greet."""
        return f"Hello {name}"

    @staticmethod
    @tool
    def part(name: str) -> str:
        """Say goodbye."""
        return f"Bye {name}"


def test_bound_methods_static_methods_partials_and_callable_objects_become_tools() -> None:
    shop = Shop(5)
    assert run(tool(shop.sell), count="2")[0].text == "3"
    assert run(Shop.greet, name="Ann")[0].text == "Hello Ann"
    assert run(Shop.part, name="Ann")[0].text == "Bye Ann"
    assert shop.greet("Bob") == "Hello Bob"
    assert run(tool(functools.partial(shop.sell), name="sell_it"), count=1)[0].text == "2"
    assert tool(functools.partial(shop.sell)).name == "sell"
    assert tool(functools.partial(area, height=2)).description == "Compute an area."
    assert run(tool(functools.partial(area, height=2)), width=3)[0].text == "6.0"
    spoken = tool(SyncObject())
    assert (spoken.name, spoken.description) == ("sync_object", "Says what is asked.")
    assert run(spoken, text="hi")[0].text == "hi"


@pytest.mark.parametrize("thing", [Shop, functools.partial(Shop, 1), "area", 3, int, Shop.__dict__["open"]])
def test_what_is_no_function_is_refused(thing: Any) -> None:
    with pytest.raises(ToolNotSupportedError, match="cannot be a tool: expected a function"):
        tool(thing)


def test_a_method_without_its_object_is_refused() -> None:
    with pytest.raises(ToolNotSupportedError, match="a method without its object") as caught:
        tool(Shop.sell)
    assert "tool(instance.method)" in caught.value.hint


@pytest.mark.requirement("A SPEC-3.2")
def test_a_sync_function_has_a_sync_execute_and_an_async_one_an_async_one() -> None:
    @tool
    async def slow(a: int) -> int:
        """Slow."""
        await asyncio.sleep(0)
        return a

    assert not area.is_async
    assert not inspect.iscoroutinefunction(area.execute)
    assert slow.is_async
    assert inspect.iscoroutinefunction(slow.execute)
    assert run(area, width=2)[0] == ToolResult("2.0", details=2.0)
    assert run(slow, a="3")[0] == ToolResult("3", details=3)
    assert tool(functools.partial(cast("Any", slow.function), 1), name="bound").is_async


def test_an_async_function_behind_a_sync_decorator_is_awaited() -> None:
    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @tool
    @decorated
    async def f(a: int) -> int:
        """F."""
        return a + 1

    assert not f.is_async
    assert run(f, a=1)[0].text == "2"


@pytest.mark.requirement("A SPEC-3.2")
def test_what_a_generator_yields_is_progress_and_the_last_one_the_result() -> None:
    @tool
    def count(to: int) -> Iterator[str]:
        """Count."""
        for n in range(to):
            yield f"step {n}"

    @tool
    async def count_async(to: int) -> AsyncIterator[str]:
        """Count."""
        for n in range(to):
            await asyncio.sleep(0)
            yield f"step {n}"

    @tool
    def total(to: int) -> Any:
        """Count."""
        yield from range(to)
        return "all counted"

    assert not count.is_async
    assert count_async.is_async
    for counter in (count, count_async):
        result, updates = run(counter, to=2)
        assert result.text == "step 1"
        assert [update.text for update in updates] == ["step 0", "step 1"]
        assert run(counter, to=0)[0].text == "done"
    assert run(total, to=2)[0].text == "all counted"


def test_a_generator_stops_at_its_next_step_after_an_abort_and_cleans_up() -> None:
    signal = AbortSignal()
    cleaned: list[str] = []

    @tool
    def endless() -> Iterator[int]:
        """Go on and on."""
        try:
            while True:
                yield 1
                signal.abort()
        finally:
            cleaned.append("sync")

    @tool
    async def endless_async() -> AsyncIterator[int]:
        """Go on and on."""
        try:
            while True:
                yield 1
                signal.abort()
        finally:
            cleaned.append("async")

    for made in (endless, endless_async):
        signal = AbortSignal()
        with pytest.raises(ExecutionAbortedError, match="between two steps"):
            run(made, signal=signal)
    assert cleaned == ["sync", "async"]


@pytest.mark.requirement("A SPEC-3.2")
def test_a_context_is_filled_in_and_hidden() -> None:
    seen: list[ToolContext] = []
    signal, agent = AbortSignal(), object()

    @tool
    def f(a: int, context: ToolContext, other: ToolContext | None = None) -> str:
        """F."""
        seen.append(context)
        assert other is not None
        context.update(f"half of {a}")
        other.update({"done": 1})
        return "ok"

    assert list(f.input_schema["properties"]) == ["a"]
    result, updates = run(f, signal=signal, agent=agent, a=1)
    assert result.text == "ok"
    assert [update.text for update in updates] == ["half of 1", '{"done":1}']
    assert (seen[0].tool_call_id, seen[0].signal, seen[0].agent) == ("call_1", signal, agent)


def test_a_context_made_by_hand_serves_to_call_a_function_by_hand() -> None:
    @tool
    def f(context: ToolContext) -> str:
        """F."""
        context.update("nobody hears")
        return f"{context.signal.aborted} {context.agent} {context.tool_call_id!r}"

    assert f(ToolContext()) == "False None ''"


def test_updates_may_come_from_another_thread() -> None:
    @tool
    def f(context: ToolContext) -> str:
        """F."""
        thread = threading.Thread(target=context.update, args=("from a thread",))
        thread.start()
        thread.join()
        return "ok"

    assert run(f)[1] == [ToolResult("from a thread")]


@pytest.mark.requirement("Y NFR-301")
def test_arguments_are_coerced_for_hooks_and_become_objects_for_the_function() -> None:
    seen: list[Any] = []

    @tool
    def f(places: list[Place], unit: Unit = Unit.METRE, many: bool = False) -> None:
        """F."""
        seen.extend((places, unit, many))

    call = ToolCall(name="f", arguments={"places": [{"name": "x", "floor": "2"}], "unit": "m", "many": "yes"})
    arguments = validate_tool_arguments(f, call)
    assert arguments == {"places": [{"name": "x", "floor": 2}], "unit": "m", "many": True}
    assert run(f, **arguments)[0].text == "done"
    assert seen == [[Place(name="x", floor=2)], Unit.METRE, True]


@pytest.mark.requirement("Y NFR-301")
def test_arguments_that_a_hook_spoiled_never_reach_the_function() -> None:
    with pytest.raises(InvalidParametersError, match="width should be a valid number"):
        run(area, width="wide")


def test_a_tool_is_readable_by_a_person_in_a_notebook() -> None:
    assert (area.__doc__ or "").startswith("Compute an area.")


# --- as_tools ----------------------------------------------------------------------------------


def plain(a: int) -> int:
    """Do something plain."""
    return a


def test_tools_and_functions_are_gathered_by_name_in_order() -> None:
    found = as_tools([make(), plain, area])
    assert list(found) == ["find", "plain", "area"]
    assert found["plain"].function is plain
    assert list(as_tools(found)) == ["find", "plain", "area"]
    assert as_tools(()) == as_tools({}) == {}


def test_two_tools_of_one_name_are_refused_and_named() -> None:
    with pytest.raises(InvalidParametersError, match="two tools have the name 'plain'") as caught:
        as_tools([plain, make(name="plain")])
    assert "tool(function, name='plain_2')" in caught.value.hint


@pytest.mark.parametrize("tools", [area, plain, "area", 3, None])
def test_tools_must_be_a_collection(tools: Any) -> None:
    with pytest.raises(ToolNotSupportedError, match="tools must be a list of tools and functions") as caught:
        as_tools(tools)
    assert caught.value.hint == "Write tools=[…] around it."


@pytest.mark.parametrize("item", [{"type": "function", "function": {"name": "f"}}, "area", None])
def test_an_item_that_is_no_tool_is_refused(item: Any) -> None:
    with pytest.raises(ToolNotSupportedError, match="cannot be a tool: expected a function"):
        as_tools([item])


# --- Whatever comes ----------------------------------------------------------------------------


@tool
def family(
    n: int,
    place: Place | list[Place],
    mode: Literal["a", "b"] = "a",
    unit: Unit | None = None,
    ratio: float = Field(0.5, gt=0),
    **more: int,
) -> str:
    """Take many kinds."""
    return f"{n}{place}{mode}{unit}{ratio}{more}"


_FAMILY = [
    make(),
    make(input_schema=SCHEMA),
    make(
        input_schema={
            "properties": {
                "n": {"type": "integer", "minimum": 0},
                "place": {"oneOf": [{"$ref": "#/$defs/place"}, {"type": "null"}]},
                "mode": {"enum": ["a", {"b": 1}]},
                "a": {"pattern": "(", "minLength": 2},
            },
            "patternProperties": {"^x": {"const": 1}},
            "$defs": {"place": {"properties": {"place": {"$ref": "#/$defs/place"}}, "dependentRequired": {"a": ["b"]}}},
        }
    ),
    make(input_schema={"properties": {"n": {"$ref": "#/$defs/nowhere"}}, "not": {"required": ["mode"]}}),
    make(prepare_arguments=raising),
    make(validate_required_args=first_name),
    area,
    family,
]
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["n", "place", "name", "a", "x", "floor"]), inner)
    ),
    max_leaves=6,
)
_arguments = st.dictionaries(
    st.sampled_from(["n", "place", "mode", "unit", "ratio", "a", "b", "x", "width", "height", "\ud800"]), _json
)


@pytest.mark.requirement("Y NFR-301", "Y SP-024")
@settings(deadline=None)
@given(st.sampled_from(_FAMILY), _arguments)
@example(_FAMILY[-1], {"n": 1, "place": {"name": "x"}, "extra": "3"})
def test_any_arguments_are_taken_as_json_or_refused_with_a_typed_error(made: Tool, arguments: dict[str, Any]) -> None:
    call = ToolCall(name=made.name, arguments=arguments)
    before = json.dumps(call.arguments)
    try:
        checked = validate_tool_arguments(made, call)
    except YiemAgentError as error:
        str(error).encode("utf-8")
    else:
        json.dumps(checked)
        assert all(isinstance(key, str) for key in checked)
        if made.function is not None:
            assert isinstance(run(made, **checked)[0].content[0], TextContent | ImageContent)
    assert json.dumps(call.arguments) == before
