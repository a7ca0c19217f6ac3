"""The embedded demo with a JSON Schema to answer in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address
from typing import Annotated, Any, Literal
from uuid import UUID

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from unit.demo_answers import ADD, ask, results, user
from unit.test_demo_robustness import JSON_VALUES, MESSAGES, SCHEMAS, SENTENCES, TOOLS

from yiemagent_nb.backends.demo import Demo
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.errors import OutputInvalidError
from yiemagent_nb.core.output import OutputFormat


class Person(BaseModel):
    name: str
    age: int = Field(gt=0)


class Trip(BaseModel):
    city: str
    day: date | None = None
    purpose: Literal["work", "fun"]
    travellers: int = 1
    tags: list[str]


class Weather(BaseModel):
    city: str
    celsius: int


class Owner(BaseModel):
    owner: Person
    pets: list[str]


UNDERSTOOD: list[tuple[str, Any, Any]] = [
    ("Ada Lovelace is 36 years old.", Person, Person(name="Ada Lovelace", age=36)),
    ('{"name": "Ada", "age": 36}', Person, Person(name="Ada", age=36)),
    ("name: Ada, age: 36", Person, Person(name="Ada", age=36)),
    (
        "A trip to Lisbon on 3 May 2027 for fun with 3 travellers",
        Trip,
        Trip(city="Lisbon", day=date(2027, 5, 3), purpose="fun", travellers=3, tags=[]),
    ),
    ("hello", Trip, Trip(city="", purpose="work", tags=[])),
    (
        "Ada is 36 and Bob is 40",
        list[Person],
        [Person(name="Ada", age=36), Person(name="Bob", age=40)],
    ),
    ("Ada is 36", Owner, Owner(owner=Person(name="Ada", age=36), pets=[])),
    ("What is it? 40", int, 40),
    ("It is bad", Literal["good", "bad"], "bad"),
    ("hello", int | None, None),
    ("hello", dict[str, int], {}),
]


@pytest.mark.parametrize(("text", "kind", "value"), UNDERSTOOD)
async def test_a_schema_is_filled_from_what_was_said(text: str, kind: Any, value: Any) -> None:
    agent = Agent(Demo(delay=0))
    assert await agent.prompt(text, output_type=kind, output_retries=0) == value


def get_weather(city: str) -> dict[str, Any]:
    """The weather of a city."""
    return {"city": city, "celsius": 21}


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_tools_are_called_first_and_their_results_go_into_the_answer() -> None:
    agent = Agent(Demo(delay=0), tools=[get_weather, add])
    assert await agent.prompt("weather in Paris", output_type=Weather) == Weather(city="Paris", celsius=21)
    assert await agent.prompt("add 17 and 25", output_type=int) == 42
    assert [message.role for message in agent.messages] == ["user", "assistant", "toolResult", "assistant"] * 2


async def test_a_tool_that_failed_gives_nothing() -> None:
    def broken(city: str) -> str:
        """The weather of a city."""
        raise ValueError(city)

    agent = Agent(Demo(delay=0), tools=[broken])
    assert await agent.prompt("weather in Paris", output_type=Weather) == Weather(city="Paris", celsius=0)


class Odd(Enum):
    FIRST = "first"
    SECOND = "second"


class Leaf(BaseModel):
    branch: Leaf | None
    leaves: list[Leaf]


BLANKS: list[Any] = [
    Person,
    Trip,
    Leaf,
    Odd,
    str,
    int,
    float,
    bool,
    None | int,
    list[int],
    dict[str, Any],
    tuple[int, str],
    UUID,
    date,
    timedelta,
    Decimal,
    IPv4Address,
    Annotated[int, Field(gt=3)],
    Annotated[int, Field(lt=-3)],
    Annotated[int, Field(ge=4, multiple_of=5)],
    Annotated[float, Field(gt=0.25, lt=0.5)],
    Annotated[str, Field(min_length=3)],
    Annotated[list[Person], Field(min_length=2)],
    Person | Trip,
]


@pytest.mark.parametrize("kind", BLANKS, ids=str)
async def test_what_nobody_said_gets_a_valid_value(kind: Any) -> None:
    output = OutputFormat(kind)
    answer = await ask([user("hm")], response_format=output.response_format)
    jsonschema.validate(json.loads(answer.text), output.schema)
    output.parse(answer.text)


async def test_the_same_conversation_gives_the_same_answer_in_pieces() -> None:
    answers = [await ask([user("Ada is 36")], response_format=OutputFormat(Person).response_format) for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0].pieces > 2
    assert (answers[0].finish, answers[0].usage["completion_tokens"] > 0) == ("stop", True)


async def test_a_correction_is_answered_as_the_request_before_it_was() -> None:
    class Code(BaseModel):
        name: str
        code: str = Field(pattern="^[A-Z]{3}$")

    agent = Agent(Demo(delay=0))
    with pytest.raises(OutputInvalidError, match="code was refused"):
        await agent.prompt("Ada is here", output_type=Code)
    said = [json.loads(message.text) for message in agent.messages if message.role == "assistant"]
    assert len(said) == 3
    assert said[0] == said[1] == said[2]
    assert said[0]["name"] == "Ada"


@pytest.mark.parametrize(
    "response_format",
    [
        None,
        {},
        {"type": "text"},
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": {"schema": 5}},
        {"type": "json_schema", "json_schema": {"schema": {"type": "nothing"}}},
    ],
)
async def test_without_a_valid_schema_it_answers_in_words(response_format: Any) -> None:
    plain = await ask([user("What can you do?")])
    assert await ask([user("What can you do?")], response_format=response_format) == plain


def schema_format(schema: Any) -> Mapping[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "output", "schema": schema}}


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(messages=MESSAGES, tools=TOOLS, schema=SCHEMAS, properties=st.dictionaries(st.text(max_size=5), SCHEMAS))
def test_no_schema_makes_it_fail(messages: Any, tools: Any, schema: Any, properties: Any) -> None:
    for each in (schema, {"type": "object", "properties": properties, "required": list(properties)}):
        answer = asyncio.run(ask(messages, tools, response_format=schema_format(each)))
        assert answer.calls or answer.text.encode()


PLAIN: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "count": {"type": "integer", "minimum": 3, "maximum": 9},
    "size": {"type": "number", "exclusiveMinimum": -2, "exclusiveMaximum": -1},
    "unit": {"enum": ["celsius", "fahrenheit"]},
    "urgent": {"type": "boolean"},
    "city": {"anyOf": [{"type": "string", "maxLength": 6}, {"type": "null"}]},
    "values": {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 2},
    "place": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}


@settings(max_examples=150, deadline=None)
@given(text=SENTENCES, names=st.lists(st.sampled_from(sorted(PLAIN)), unique=True), needed=st.booleans())
def test_the_answer_is_valid_whatever_is_said(text: str, names: list[str], *, needed: bool) -> None:
    properties = {name: PLAIN[name] for name in names}
    schema = {"type": "object", "properties": properties, "required": names if needed else []}
    answer = asyncio.run(ask([user(text)], response_format=schema_format(schema)))
    jsonschema.validate(json.loads(answer.text), schema)


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 10**400, 1e300, True])
@pytest.mark.parametrize("key", ["minimum", "maximum", "exclusiveMinimum", "multipleOf", "minLength", "minItems"])
async def test_bounds_beyond_reason_are_survived(key: str, value: Any) -> None:
    for kind in ("integer", "number", "string", "array"):
        schema = {"type": "object", "properties": {"a": {"type": kind, key: value}}, "required": ["a"]}
        assert (await ask([user("a is 5")], response_format=schema_format(schema))).text


async def test_an_endless_schema_costs_little() -> None:
    endless = {
        "type": "object",
        "properties": {name: {"$ref": "#"} for name in "abcdefgh"},
        "required": list("abcdefgh"),
    }
    answer = await asyncio.wait_for(ask([user("a is 5")], response_format=schema_format(endless)), 10)
    assert answer.text


@settings(max_examples=50, deadline=None)
@given(value=JSON_VALUES)
def test_any_default_can_be_said(value: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"default": value}}, "required": ["a"]}
    assert asyncio.run(ask([user("hm")], response_format=schema_format(schema))).text.encode()


async def test_results_are_read_where_the_tools_are_in_openais_form() -> None:
    first = await ask([user("add 1 and 2")], [ADD], response_format=OutputFormat(int).response_format)
    said = [user("add 1 and 2"), *results(first, '{"result": 3}')]
    assert json.loads((await ask(said, [ADD], response_format=OutputFormat(int).response_format)).text) == {"value": 3}
