"""Schemas in the strict form, of whatever types an answer may have."""

from __future__ import annotations

import datetime as dt
import enum
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, HttpUrl, TypeAdapter, create_model
from typing_extensions import TypedDict

from yiemagent_nb.backends.engine.strict_schema import strict_schema

pytestmark = pytest.mark.requirement("Y FR-002", "Y SD-009")

KEYWORDS = {
    *("type", "description", "enum", "const", "anyOf", "$ref", "$defs"),
    *("properties", "required", "additionalProperties", "items"),
    *("pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minItems", "maxItems"),
}
FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}


class Person(BaseModel):
    """A person."""

    name: str
    age: int = 0
    tags: list[str] = Field(default_factory=list)


@dataclass
class Node:
    value: int
    children: list[Node]


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    x: int


class Pair(NamedTuple):
    x: int
    y: int


class Options(TypedDict, total=False):
    verbose: bool


class Colour(enum.Enum):
    RED = "red"
    ONE = 1


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]

LEAVES: list[Any] = [
    *(str, int, float, bool, bytes, None, Any, object, dict, list, set, Decimal, Path, re.Pattern),
    *(dt.datetime, dt.date, dt.time, dt.timedelta, uuid.UUID),
    *(HttpUrl, AnyUrl, IPv4Address, IPv6Address, Colour, Person, Node, Open, Pair, Options, Pet, BaseModel),
    *(Literal["a", 1], dict[str, int], tuple[int, str], tuple[int, ...]),
    Annotated[str, Field(min_length=2, max_length=9, pattern=r"^a+$")],
    Annotated[str, Field(pattern=r"^(?:a|b)$")],
    Annotated[int, Field(ge=0, lt=10, multiple_of=2)],
    Annotated[list[int], Field(min_length=1, max_length=3)],
    Annotated[str, Field(description="A word.", examples=["x"])],
]


def wrapped(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda each: list[each]),
        inner.map(lambda each: set[each]),
        inner.map(lambda each: each | None if each is not None else each),
        inner.map(lambda each: dict[str, each]),
        st.tuples(inner, inner).map(lambda pair: create_model("Made", first=pair[0], second=(pair[1], None))),
    )


types = st.recursive(st.sampled_from(LEAVES), wrapped, max_leaves=6)


def schemas_in(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield schema
    for name in ("properties", "$defs"):
        for each in schema.get(name, {}).values():
            yield from schemas_in(each)
    for each in [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())]:
        yield from schemas_in(each)


def check_strict(strict: Mapping[str, Any]) -> None:
    """Assert what OpenAI's guide asks of a schema."""
    json.dumps(strict, allow_nan=False)
    assert strict["type"] == "object"
    for schema in schemas_in(strict):
        assert set(schema) <= KEYWORDS
        assert "format" not in schema or schema["format"] in FORMATS
        assert "(?" not in schema.get("pattern", "").replace("(?:", "")
        assert {"type", "anyOf", "$ref"} & set(schema)
        assert "$ref" not in schema or set(schema) <= {"$ref"}
        kinds: Any = schema.get("type")
        if "object" in (kinds if isinstance(kinds, list) else [kinds]):
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
            assert schema["properties"]
        if kinds == "array":
            assert "items" in schema
        if "$ref" in schema:
            assert schema["$ref"].removeprefix("#/$defs/") in strict["$defs"]


def holding(annotation: Any) -> dict[str, Any]:
    """The schema of an object with one property."""
    return create_model("Holder", value=(annotation, ...)).model_json_schema()


@given(types)
@example(HttpUrl)
@example(set[str])
@example(bytes)
@example(Decimal)
@example(Any)
def test_the_schema_of_any_type_becomes_strict_or_nothing(annotation: Any) -> None:
    for schema in (TypeAdapter(annotation).json_schema(), holding(annotation)):
        strict = strict_schema(schema)
        if strict is not None:
            check_strict(strict)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*sorted(KEYWORDS), "oneOf", "not", "definitions", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from([*sorted(KEYWORDS), "oneOf", "definitions"]), json_values))
def test_no_schema_whatever_stands_in_it_raises(schema: dict[str, Any]) -> None:
    strict_schema({"type": "object", **schema})
    strict_schema({"type": "object", "properties": {"a": schema}})


@pytest.mark.parametrize(
    ("annotation", "is_strict"),
    [
        (Person, True),
        (Node, True),
        (HttpUrl, True),
        (set[str], True),
        (bytes, True),
        (Decimal, True),
        (Pet, True),
        (Colour, True),
        (Literal["a", 1], True),
        (Options, True),
        (dict[str, int], False),
        (Any, False),
        (list, False),
        (tuple[int, str], False),
        (Open, False),
        (BaseModel, False),
        (dict[Annotated[str, Field(pattern="^a")], int], False),
    ],
)
def test_a_schema_is_strict_where_it_can_be(annotation: Any, is_strict: bool) -> None:
    assert (strict_schema(holding(annotation)) is not None) is is_strict


@pytest.mark.parametrize("annotation", [str, dict[str, int], list[Person], Person | Node])
def test_only_an_object_can_be_strict_as_a_whole(annotation: Any) -> None:
    assert strict_schema(TypeAdapter(annotation).json_schema()) is None


@pytest.mark.parametrize(
    "inner", [True, False, None, 5, [], {"patternProperties": {"^a": {"type": "string"}}, "type": "object"}]
)
def test_what_is_no_closed_schema_is_not_strict(inner: object) -> None:
    assert strict_schema({"type": "object", "properties": {"a": inner}}) is None


def property_of(annotation: Any) -> Any:
    strict = strict_schema(holding(annotation))
    assert strict is not None
    return strict["properties"]["value"]


@pytest.mark.parametrize(
    ("annotation", "there"),
    [
        (HttpUrl, {"type": "string"}),
        (bytes, {"type": "string"}),
        (set[int], {"type": "array", "items": {"type": "integer"}}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (dt.timedelta, {"type": "string", "format": "duration"}),
        (Annotated[str, Field(min_length=2, pattern="^a+$")], {"type": "string", "pattern": "^a+$"}),
        (Annotated[str, Field(pattern="^(?:a|b)$")], {"type": "string", "pattern": "^(?:a|b)$"}),
        (Decimal, {"anyOf": [{"type": "number"}, {"type": "string"}]}),
        (Annotated[int, Field(ge=0, lt=9)], {"type": "integer", "minimum": 0, "exclusiveMaximum": 9}),
        (Literal["a", 2], {"enum": ["a", 2], "type": ["string", "integer"]}),
    ],
)
def test_keywords_and_formats_that_openai_does_not_take_are_left_out(annotation: Any, there: Any) -> None:
    assert property_of(annotation) == there


def test_definitions_under_their_older_name_are_found() -> None:
    person = {"type": "object", "properties": {"name": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/Person"}},
        "definitions": {"Person": person},
    }
    strict = strict_schema(schema)
    assert strict is not None
    check_strict(strict)
    assert strict["properties"]["a"] == {"$ref": "#/$defs/Person"}


@pytest.mark.parametrize("reference", ["#/$defs/Missing", "https://example.org/schema", "#/properties/a", 5])
def test_a_reference_to_anywhere_else_is_not_strict(reference: object) -> None:
    assert strict_schema({"type": "object", "properties": {"a": {"$ref": reference}}}) is None


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def in_definitions(levels: int) -> dict[str, Any]:
    """The same, each level a definition of its own, as pydantic writes models within models."""
    model: Any = str
    for number in range(levels):
        model = create_model(f"Level{number}", a=(model, ...))
    return cast("dict[str, Any]", model.model_json_schema())


def with_names(count: int, length: int = 1) -> dict[str, Any]:
    names = [f"{number:0{length}}" for number in range(count)]
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}}


def with_enum(count: int, length: int = 1) -> dict[str, Any]:
    values = [f"{number:0{length}}" for number in range(count)]
    return {"type": "object", "properties": {"a": {"type": "string", "enum": values}}}


@pytest.mark.parametrize(
    ("fits", "too_large"),
    [
        (nested(10), nested(11)),
        (in_definitions(10), in_definitions(11)),
        (with_names(5_000), with_names(5_001)),
        (with_names(1_200, 100), with_names(1_201, 100)),
        (with_enum(1_000), with_enum(1_001)),
        (with_enum(300, 50), with_enum(301, 50)),
    ],
    ids=["levels", "levels of definitions", "properties", "letters", "values of enums", "letters of an enum"],
)
def test_a_schema_beyond_the_limits_is_not_strict(fits: dict[str, Any], too_large: dict[str, Any]) -> None:
    assert strict_schema(fits) is not None
    assert strict_schema(too_large) is None


def test_a_schema_without_end_is_not_strict() -> None:
    assert strict_schema(nested(10_000)) is None
