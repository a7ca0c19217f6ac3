from __future__ import annotations

import copy
import functools
import json
import socket
import sqlite3
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from subprocess import run
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, SecretStr, TypeAdapter
from typing_extensions import TypedDict

from yiemagent_nb.core.errors import InvalidParametersError, ToolNotSupportedError
from yiemagent_nb.core.json_schema import _is_plain, check_schema, compile_schema  # pyright: ignore[reportPrivateUsage]
from yiemagent_nb.core.schema import FunctionSchema
from yiemagent_nb.core.validation import json_copy, shorten


class Injected:
    """Stands for what is filled in."""


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    """A place."""

    x: int
    y: int = 0
    title: str = ""


@dataclass
class Line:
    start: Point
    ends: list[Point] = field(default_factory=list[Point])


class Options(TypedDict, total=False):
    deep: bool


class Span(NamedTuple):
    first: int
    last: int


def read(function: Callable[..., Any]) -> FunctionSchema:
    return FunctionSchema(function, tool_name="f", injected=Injected)


def check(function: Callable[..., Any], **arguments: Any) -> dict[str, Any]:
    return read(function).check(arguments)


def call(function: Callable[..., Any], **arguments: Any) -> Any:
    positional, keywords = read(function).bind(arguments, Injected)
    return function(*positional, **keywords)


def refusal(function: Callable[..., Any], **arguments: Any) -> str:
    with pytest.raises(InvalidParametersError) as caught:
        read(function).check(arguments)
    return caught.value.message


# --- What a model sees -------------------------------------------------------------------------


def test_a_schema_holds_types_defaults_descriptions_and_nothing_more() -> None:
    def f(a: int, b: Annotated[str, "The b."] = "x", *, c: Literal["u", "v"] = "u", d: float | None = None) -> None:
        """Do it.

        Args:
            a: The a.
            b: Not this one.
        """

    schema = read(f)
    assert schema.description == "Do it."
    assert schema.input_schema == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "The a."},
            "b": {"type": "string", "description": "The b.", "default": "x"},
            "c": {"type": "string", "enum": ["u", "v"], "default": "u"},
            "d": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


def test_nested_types_keep_their_fields_and_lose_their_titles() -> None:
    def f(line: Line, color: Color = Color.RED, options: Options | None = None) -> None: ...

    schema = read(f).input_schema
    assert schema["$defs"]["Point"] == {
        "description": "A place.",
        "type": "object",
        "properties": {
            "x": {"type": "integer"},
            "y": {"type": "integer", "default": 0},
            "title": {"type": "string", "default": ""},
        },
        "required": ["x"],
    }
    assert schema["properties"]["color"] == {"$ref": "#/$defs/Color", "default": "red"}
    assert "title" not in schema["$defs"]["Color"]


def test_constraints_of_a_field_stand_in_the_schema_and_hold() -> None:
    def f(n: Annotated[int, Field(ge=1, description="Mine.")], m: int = Field(4, ge=2, description="Other.")) -> int:
        """F.

        Args:
            n: Not this one.
        """
        return n + m

    properties = read(f).input_schema["properties"]
    assert properties["n"] == {"type": "integer", "minimum": 1, "description": "Mine."}
    assert properties["m"] == {"type": "integer", "minimum": 2, "description": "Other.", "default": 4}
    assert read(f).input_schema["required"] == ["n"]
    assert call(f, n=1) == 5
    assert "m should be greater than or equal to 2, got 1" in refusal(f, n=1, m=1)


def test_a_parameter_without_annotation_takes_anything() -> None:
    def f(x: Any, y: Any = None) -> None: ...

    f.__annotations__.clear()
    assert read(f).input_schema["properties"] == {"x": {}, "y": {}}
    assert check(f, x=[{"a": None}]) == {"x": [{"a": None}]}


def test_a_default_of_none_allows_null() -> None:
    def f(x: Any = None) -> None: ...

    f.__annotations__["x"] = int
    assert check(f, x=None) == {"x": None}
    assert "x should be a valid integer" in refusal(f, x="a")


def test_a_default_that_json_cannot_hold_or_that_is_secret_is_not_shown() -> None:
    def f(x: Any = object(), key: SecretStr = SecretStr("k"), n: float = float("nan")) -> Any:  # noqa: B008
        return x, key, n

    properties = read(f).input_schema["properties"]
    assert not any("default" in schema for schema in properties.values())
    assert call(f)[1].get_secret_value() == "k"


def test_keyword_arguments_allow_more_of_their_type() -> None:
    def f(a: int, **more: int) -> dict[str, int]:
        return {"a": a, **more}

    assert read(f).input_schema["additionalProperties"] == {"type": "integer"}
    assert call(f, a=1, b="2") == {"a": 1, "b": 2}
    assert "b should be a valid integer" in refusal(f, a=1, b="x")

    def g(**more: Any) -> None: ...

    g.__annotations__.clear()
    assert read(g).input_schema["additionalProperties"] is True


def test_the_injected_parameter_is_hidden_filled_in_and_never_taken_from_a_model() -> None:
    def f(a: int, here: Injected, maybe: Injected | None = None, **more: Any) -> Any:
        return a, here, maybe, more

    assert list(read(f).input_schema["properties"]) == ["a"]
    _, here, maybe, _ = call(f, a=1)
    assert isinstance(here, Injected)
    assert isinstance(maybe, Injected)
    assert "here is not known" in refusal(f, a=1, here="mine")


def test_positional_only_parameters_are_given_by_name_too() -> None:
    def f(a: int, b: int = 2, /, c: int = 3) -> tuple[int, int, int]:
        return a, b, c

    assert call(f, a=1, c=5) == (1, 2, 5)


def test_what_a_partial_fixes_is_neither_shown_nor_taken() -> None:
    def f(a: int, b: int, secret: str) -> str:
        return f"{a}{b}{secret}"

    bound = functools.partial(functools.partial(f, 1), secret="s")  # noqa: S106
    assert list(read(bound).input_schema["properties"]) == ["b"]
    assert call(bound, b=2) == "12s"
    assert "secret is not known" in refusal(bound, b=2, secret="other")  # noqa: S106


def test_names_that_collide_with_pydantics_are_fine() -> None:
    def f(model_config: int, schema: int, _private: int, self_: int, json: int) -> int:
        return model_config + schema + _private + self_ + json

    assert call(f, model_config=1, schema=1, _private=1, self_=1, json=1) == 5


def test_a_local_class_with_postponed_annotations_is_found() -> None:
    class Local(BaseModel):
        n: int

    @dataclass
    class Outer:
        inner: Local

    def f(local: Local, outer: Outer) -> int:
        return local.n + outer.inner.n

    assert call(f, local={"n": 1}, outer={"inner": {"n": 2}}) == 3


def test_a_local_class_is_found_for_a_function_that_refers_to_itself() -> None:
    class Local(BaseModel):
        n: int

    def make() -> FunctionSchema:
        def f(local: Local, depth: int = 0) -> int:
            return f(local, depth - 1) if depth else local.n

        return read(f)

    assert make().check({"local": {"n": "1"}}) == {"local": {"n": 1}}


def test_functions_of_a_notebook_cell_are_read_with_the_cells_names() -> None:
    cell = """
        from __future__ import annotations
        from pydantic import BaseModel
        class Query(BaseModel):
            text: str
        def search(query: Query, limit: int = 3) -> str:
            "Search."
            return query.text * limit
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(textwrap.dedent(cell), names)  # noqa: S102 - as a notebook does
    assert call(names["search"], query={"text": "a"}) == "aaa"


def test_the_hints_of_a_wrapped_function_are_used() -> None:
    def twice(function: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> int:
            return 2 * function(*args, **kwargs)

        return wrapper

    @twice
    def f(point: Point) -> int:
        """F."""
        return point.x

    assert call(f, point={"x": 3}) == 6


# --- What cannot be a tool ---------------------------------------------------------------------


def annotated(annotation: object) -> Callable[..., Any]:
    def f(a: Any) -> Any:
        return a

    f.__annotations__["a"] = annotation
    return f


def starred(*names: str) -> None: ...


def unknown_extra(**connections: sqlite3.Connection) -> None: ...


class Shop:
    def sell(self, count: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (starred, "it takes *names"),
        (annotated(sqlite3.Connection), "'a' is annotated sqlite3.Connection"),
        (annotated(Callable[[int], int]), "'a' is annotated"),
        (annotated("NotDefinedAnywhere"), "'NotDefinedAnywhere' is not defined"),
        (annotated("int |"), "its annotations cannot be read"),
        (unknown_extra, "sqlite3.Connection"),
        (Shop.sell, "a method without its object"),
        (iter, "Python does not tell what it takes"),
    ],
)
def test_a_function_that_a_model_cannot_call_is_refused_with_the_reason(function: Any, words: str) -> None:
    with pytest.raises(ToolNotSupportedError) as caught:
        read(function)
    assert words in caught.value.message
    assert caught.value.message.startswith("f cannot be a tool")
    assert caught.value.hint


# --- Checking ----------------------------------------------------------------------------------


def everything(  # noqa: PLR0917
    n: int,
    when: date,
    path: Path,
    color: Color,
    line: Line,
    tags: set[str],
    either: int | list[Point],
    span: Span,
) -> list[Any]:
    return [n, when, path, color, line, tags, either, span]


GOOD: dict[str, Any] = {
    "n": "5",
    "when": "2026-01-02",
    "path": "a/b",
    "color": "blue",
    "line": {"start": {"x": 1.0}},
    "tags": ["a"],
    "either": [{"x": "3"}],
    "span": [1, 2],
}


def test_values_arrive_as_the_types_that_the_function_declares() -> None:
    assert call(everything, **GOOD) == [
        5,
        date(2026, 1, 2),
        Path("a/b"),
        Color.BLUE,
        Line(Point(x=1)),
        {"a"},
        [Point(x=3)],
        Span(1, 2),
    ]


def test_checked_arguments_are_json_in_the_form_that_the_function_will_see() -> None:
    checked = check(everything, **GOOD)
    assert json.loads(json.dumps(checked)) == checked
    assert checked["n"] == 5
    assert checked["line"]["start"] == {"x": 1}
    assert checked["either"] == [{"x": 3}]


def test_a_flag_is_a_boolean_before_a_hook_sees_it() -> None:
    def f(force: bool) -> None: ...

    assert check(f, force="yes") == {"force": True}
    assert check(f, force=1)["force"] is True


def test_a_secret_reaches_the_function_whole_beside_coerced_values() -> None:
    def f(key: SecretStr, n: int) -> str:
        return key.get_secret_value() * n

    checked = check(f, key="abc", n="2")
    assert checked == {"key": "abc", "n": 2}
    assert call(f, **checked) == "abcabc"


def test_what_does_not_fit_is_said_an_argument_each() -> None:
    message = refusal(
        everything,
        n="many",
        when="soon",
        path=3,
        color="green",
        line={"ends": [{"x": 1}, 7]},
        tags=[],
        either="x",
        span=[1, 2],
        other=1,
    )
    assert message == (
        "The arguments of f are not valid: "
        'n should be a valid integer, unable to parse string as an integer, got "many"; '
        'when should be a valid date or datetime, input is too short, got "soon"; '
        "path is not a valid path, got 3; "
        "color should be 'red' or 'blue', got \"green\"; "
        "line.start is missing; and 3 more."
    )


def test_a_wrong_union_names_every_form_once() -> None:
    def f(x: int | Point | list[int]) -> None: ...

    message = refusal(f, x={"y": 1})
    assert "x should be a valid integer or should be a valid list, got {'y': 1}" in message
    assert "x.x is missing" in message


def test_an_unknown_argument_is_named_with_the_known_ones() -> None:
    def f(a: int, b: int = 0) -> None: ...

    assert "c is not known; known are a, b" in refusal(f, a=1, c=2)


def test_an_error_of_a_users_validator_is_told() -> None:
    class Even(BaseModel):
        n: int

        def model_post_init(self, _context: Any, /) -> None:
            if self.n % 2:
                raise ValueError("n must be even")

    def f(even: Even) -> None: ...

    assert "even was refused: n must be even, got {'n': 3}" in refusal(f, even={"n": 3})


def test_long_values_and_long_lists_of_failures_are_cut() -> None:
    def f(x: list[int]) -> None: ...

    message = refusal(f, x=["y" * 10_000] * 1000)
    assert "and 995 more" in message
    assert len(message) < 1500


@pytest.mark.parametrize("value", ["a" * 200, {"k": ["v" * 200] * 200}, "\ud800", object(), None])
def test_a_value_is_shown_short_and_as_plain_text(value: object) -> None:
    text = shorten(value)
    assert len(text) <= 81
    text.encode("utf-8")


def test_a_number_with_more_digits_than_python_prints_is_shown_all_the_same() -> None:
    assert "int" in shorten(10**5000)


# --- Round trips -------------------------------------------------------------------------------

_TYPES: list[Any] = [
    int,
    bool,
    str,
    date,
    datetime,
    UUID,
    Color,
    Literal["a", 1] | None,
    list[int],
    dict[str, bool],
    tuple[int, str],
    set[int],
    int | None,
    int | str | bool,
    Point,
    Line,
    Options,
    Span,
    list[Point | Color],
]
_cases = st.one_of(
    *(st.tuples(st.just(kind), st.from_type(kind)) for kind in _TYPES),
    st.tuples(st.just(float), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just(bytes), st.text().map(str.encode)),
    st.tuples(st.just(Annotated[int, Field(ge=3, le=9)]), st.integers(3, 9)),
)


@pytest.mark.requirement("Y NFR-301")
@settings(deadline=None)
@given(_cases)
def test_arguments_made_from_the_type_are_accepted_and_come_back_the_same(case: tuple[Any, Any]) -> None:
    kind, value = case

    def f(value: Any) -> Any:
        return value

    f.__annotations__["value"] = kind
    schema = read(f)
    arguments = {"value": TypeAdapter(kind).dump_python(value, mode="json")}
    Draft202012Validator.check_schema(schema.input_schema)
    assert compile_schema(schema.input_schema)(arguments) == []
    positional, keywords = schema.bind(schema.check(schema.check(arguments)), Injected)
    assert f(*positional, **keywords) == value


# --- JSON Schemas ------------------------------------------------------------------------------

_keyword_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-2, 3), st.floats(allow_nan=False), st.text(max_size=3),
        st.sampled_from(["string", "object", "null", "#/$defs/a", "http://json-schema.org/draft-07/schema#"]),
        st.lists(st.sampled_from(["a", "b", "string", "integer"]), max_size=3),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from(["a", "type", "items", "minimum", "enum"]), inner, max_size=2),
    ),
    max_leaves=5,
)  # fmt: skip
_schemas = st.dictionaries(
    st.sampled_from(
        [
            "$schema",
            "$ref",
            "type",
            "required",
            "uniqueItems",
            "title",
            "description",
            "format",
            "pattern",
            "default",
            "const",
            "enum",
            "examples",
            "minimum",
            "exclusiveMaximum",
            "minLength",
            "maxItems",
            "items",
            "additionalProperties",
            "propertyNames",
            "not",
            "properties",
            "$defs",
            "definitions",
            "anyOf",
            "allOf",
            "if",
            "unknown",
        ]
    ),
    _keyword_values,
    max_size=3,
)


@settings(deadline=None)
@given(_schemas)
def test_a_schema_that_is_taken_without_the_library_is_valid_for_it(schema: dict[str, Any]) -> None:
    if _is_plain(schema):
        Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("dialect", ["draft-06", "draft-07"])
def test_the_schemas_that_servers_send_are_checked_without_the_library(dialect: str) -> None:
    schema = {
        "$schema": f"http://json-schema.org/{dialect}/schema#",
        "type": "object",
        "properties": {
            "path": {"type": ["string", "null"], "description": "A path.", "pattern": "^/"},
            "edits": {"type": "array", "minItems": 1, "items": {"anyOf": [{"$ref": "#/definitions/edit"}, False]}},
        },
        "definitions": {"edit": {"type": "object", "additionalProperties": {"enum": [1, "a"]}, "uniqueItems": True}},
        "required": ["path"],
        "additionalProperties": False,
    }
    assert _is_plain(schema)
    assert check_schema(schema, "it", of_object=True) == schema


def test_neither_a_tool_nor_its_functions_schema_loads_the_json_schema_library() -> None:
    code = (
        "import sys\n"
        "from yiemagent_nb.core.tools import tool\n"
        "def f(a: int) -> int:\n"
        "    'F.'\n"
        "    return a\n"
        "tool(f).execute('1', {'a': 1}, None, None)\n"
        "assert 'jsonschema' not in sys.modules"
    )
    assert run([sys.executable, "-c", code], check=False).returncode == 0


def failures(schema: dict[str, Any], **arguments: Any) -> list[str]:
    return compile_schema(check_schema(schema, "it", of_object=True))(arguments)


NESTED: dict[str, Any] = {
    "properties": {
        "n": {"type": "integer", "minimum": 3},
        "mode": {"enum": ["a", "b"]},
        "who": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name", "age"]},
        "list": {"type": "array", "items": {"type": ["number", "null"]}},
        "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]},
    },
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"n": "x"}, 'n should be an integer, got "x"'),
        ({"n": 1}, 'n should fit {"minimum": 3}, got 1'),
        ({"mode": "c"}, 'mode should be one of "a", "b", got "c"'),
        ({"who": {"name": "x"}}, "who.age is missing"),
        ({"who": {}}, "who.name, who.age is missing"),
        ({"list": [1, "x"]}, 'list[1] should be a number or null, got "x"'),
        ({"either": ["x"]}, 'either[0] should be an integer, got "x"'),
        ({"other": 1}, "other is not known; known are n, mode, who, list, either"),
    ],
)
def test_a_json_schemas_failure_says_where_what_was_expected_and_what_came(
    arguments: dict[str, Any], expected: str
) -> None:
    assert expected in failures(NESTED, **arguments)


def test_every_failing_argument_is_named() -> None:
    assert len(failures(NESTED, n="x", mode="c", other=1)) == 3
    assert failures(NESTED, n=3, mode="a", either="x") == []


def test_a_pattern_that_python_cannot_read_is_left_to_the_tool() -> None:
    schema = {"properties": {"x": {"type": "string", "pattern": r"^\p{L}+$"}, "y": {"pattern": "^a"}}}
    assert failures(schema, x="abc") == []
    assert failures(schema, y="b") == ['y should fit {"pattern": "^a"}, got "b"']


def test_a_dialect_is_obeyed() -> None:
    old = {"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"n": {"exclusiveMinimum": True}}}
    with pytest.raises(InvalidParametersError, match="is no valid JSON Schema"):
        check_schema({**old, "$schema": "https://json-schema.org/draft/2020-12/schema"}, "it")
    schema = {**old, "properties": {"n": {"minimum": 3, "exclusiveMinimum": True}}}
    assert failures(schema, n=3) == ['n should fit {"minimum": 3}, got 3']


def test_a_reference_to_somewhere_else_is_never_fetched() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        (failure,) = failures({"properties": {"x": {"$ref": url}}}, x=1)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert "its schema cannot be applied" in failure


def test_a_schema_that_leads_in_a_circle_is_a_failure_and_no_hang() -> None:
    schema = {"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}}
    (failure,) = failures(schema, x=1)
    assert "its schema cannot be applied" in failure


def test_a_schemas_missing_type_and_properties_are_filled_in() -> None:
    given_schema: dict[str, Any] = {}
    assert check_schema(given_schema, "it", of_object=True) == {"type": "object", "properties": {}}
    assert given_schema == {}


def test_a_json_copy_shares_nothing_and_holds_json_alone() -> None:
    value: dict[str, Any] = {"a": [{"b": (1, 2.5, None, True)}]}
    copied = json_copy(value)
    assert copied == {"a": [{"b": [1, 2.5, None, True]}]}
    value["a"][0]["b"] = "changed"
    assert copied["a"][0]["b"] == [1, 2.5, None, True]
    for wrong in ({1: 2}, [object()], Decimal(1), {"a": {2}}):
        with pytest.raises(InvalidParametersError, match="JSON"):
            json_copy(wrong)
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidParametersError, match="nested too deeply"):
        json_copy(deep)


@settings(deadline=None)
@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_a_json_copy_equals_what_it_was_made_of(value: Any) -> None:
    assert json_copy(value) == copy.deepcopy(value)
