"""The embedded demo: nothing makes it fail, and nothing makes it slow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.demo_answers import ADD, ALL, TEXT, ask, function, user

Json = st.SearchStrategy[Any]

JSON_VALUES: Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
PIECES = """add 17 and 25 the result weather in Paris, Rome it a= b: {"a": 1} [1, 2 " ' ( ) / /tour next again
2027-02-31 tomorrow 10:61 e@x.org 1e999 -3 to from named call what did I ask first? true not ` `` $ + 99999999999999999
"""
SENTENCES = st.lists(st.sampled_from([*PIECES.split(), "\ud800", "\n", "\ufb01"]), max_size=12).map(" ".join)
SAID: Json = SENTENCES | JSON_VALUES

KEYWORDS = (
    "type properties required enum const anyOf oneOf allOf items $ref format default examples minimum description"
)
ATOMS = ["string", "number", "integer", "boolean", "array", "object", "null", "#", "#/properties/a", 1, None, True]
NAMES = ["add", "get_weather", "x", ""]
SCHEMAS: Json = st.recursive(
    st.sampled_from(ATOMS) | JSON_VALUES,
    lambda inner: (
        st.dictionaries(st.sampled_from([*KEYWORDS.split(), "a", "b", "city"]), inner, max_size=5)
        | st.lists(inner, max_size=4)
    ),
    max_leaves=20,
)


def mapping(**fields: Json) -> Json:
    return st.fixed_dictionaries(fields)


FUNCTIONS = mapping(
    name=st.sampled_from(NAMES) | st.text(max_size=10),
    description=SAID,
    parameters=mapping(properties=SCHEMAS, required=SCHEMAS) | SCHEMAS,
)
TOOLS: Json = st.lists(mapping(type=st.just("function"), function=FUNCTIONS) | JSON_VALUES, max_size=4)
CALLED = mapping(name=st.sampled_from(NAMES) | JSON_VALUES, arguments=SAID)
CALLS: Json = st.lists(mapping(id=st.just("c"), function=CALLED) | JSON_VALUES, max_size=2)
MESSAGES: Json = st.lists(
    mapping(role=st.just("user"), content=SAID)
    | mapping(role=st.just("assistant"), content=SAID, tool_calls=CALLS)
    | mapping(role=st.just("tool"), tool_call_id=st.just("c"), content=SAID)
    | JSON_VALUES,
    max_size=7,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(messages=MESSAGES | JSON_VALUES, tools=TOOLS | JSON_VALUES)
def test_no_conversation_and_no_schema_makes_it_fail(messages: Any, tools: Any) -> None:
    answer = asyncio.run(ask(messages, tools))
    assert bool(answer.calls) is (answer.finish == "tool_calls")
    assert answer.calls or answer.text.encode()
    assert all(isinstance(arguments, dict) for _, arguments in answer.made)


SIMPLE: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


@settings(max_examples=200, deadline=None)
@given(text=SENTENCES, kinds=st.lists(st.sampled_from(sorted(SIMPLE)), min_size=1, max_size=4), needed=st.booleans())
def test_arguments_have_the_types_that_the_schema_names(text: str, kinds: Iterable[str], *, needed: bool) -> None:
    properties = dict(zip("abcd", ({"type": kind} for kind in kinds), strict=False))
    schema = {"type": "object", "properties": properties, "required": list(properties) if needed else []}
    tool = {"type": "function", "function": {"name": "add", "description": "Add.", "parameters": schema}}
    for _, arguments in asyncio.run(ask([user(f"add {text}")], [tool])).made:
        for name, value in arguments.items():
            kind = properties[name]["type"]
            assert isinstance(value, SIMPLE[kind])
            assert isinstance(value, bool) is (kind == "boolean")
        if needed:
            assert set(arguments) == set(properties)


ENDLESS: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"$ref": "#"}},
    "required": ["a"],
    "allOf": [{"$ref": "#"}],
}
WIDE: dict[str, Any] = {"type": "object", "properties": {f"p{n}": {"enum": ["x"] * 500} for n in range(3000)}}


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    return schema


@pytest.mark.parametrize("schema", [ENDLESS, WIDE, deep(400)], ids=["endless", "wide", "deep"])
async def test_a_hostile_schema_costs_little(schema: Any) -> None:
    tool = {"type": "function", "function": {"name": "add", "description": "Add.", "parameters": schema}}
    start = time.perf_counter()
    assert (await ask([user("add 1 and 2 and x")], [tool])).finish
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize(
    "text",
    [
        "'" * 50_000,
        "“ " * 25_000,
        "add 1 and " * 5_000,
        "[" * 50_000,
        "in A, " * 10_000,
        "1," * 20_000,
        "a=" * 20_000,
        "A " * 20_000,
    ],
)
async def test_a_hostile_text_costs_little(text: str) -> None:
    start = time.perf_counter()
    assert (await ask([user(text)], ALL)).finish
    assert time.perf_counter() - start < 2


async def test_many_tools_cost_little() -> None:
    tools = [function(f"tool_number_{n}", f"Does thing {n} to a text.", text=TEXT) for n in range(500)] + [ADD]
    start = time.perf_counter()
    assert (await ask([user("add 1 and 2")], tools)).made == [("add", {"a": 1, "b": 2})]
    assert time.perf_counter() - start < 2
