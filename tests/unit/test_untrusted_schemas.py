"""JSON Schemas of servers: whatever they are, a check ends soon, and refuses nothing that may fit."""

from __future__ import annotations

import json
import logging
import sys
from subprocess import run
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from yiemagent_nb.core import json_schema
from yiemagent_nb.core.bounded_schema import Effort, TooMuchEffortError, bounded_validator, count_nodes
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.json_schema import CheckedSchema, check_schema, compile_schema
from yiemagent_nb.core.tools import Tool


def idle(*_: object) -> None:
    pass


SLOW = {"type": "string", "pattern": "^(a+)+$"}
SLOW_TEXT = "a" * 60 + "!"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def problems(schema: dict[str, Any], value: Any, **options: Any) -> list[str]:
    return compile_schema(check_schema(schema, "it", trusted=False), trusted=False, **options)({"x": value})


def of_x(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}, **more}


def doubling(keyword: str, last: dict[str, Any]) -> dict[str, Any]:
    """A schema that is applied two to the power of forty times."""
    steps = {f"a{n}": {keyword: [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)}
    return {"$ref": "#/$defs/a0", "$defs": {**steps, "a40": last}}


LARGE = [{f"k{n}": [n]} for n in range(5_000)]
FOREVER: dict[str, tuple[dict[str, Any], Any]] = {
    "a pattern": (of_x(SLOW), SLOW_TEXT),
    "a pattern in a part that names its dialect": (of_x({**SLOW, "$schema": DIALECT}), SLOW_TEXT),
    "a pattern of names": (
        of_x({"patternProperties": {SLOW["pattern"]: False}, "additionalProperties": False}),
        {SLOW_TEXT: 1},
    ),
    "a pattern of names beside unevaluatedProperties": (
        of_x({"patternProperties": {SLOW["pattern"]: True}, "unevaluatedProperties": False}),
        {SLOW_TEXT: 1},
    ),
    "references that double": (doubling("allOf", {"type": "object"}), 1),
    "references that double and fail": (doubling("anyOf", {"type": "array"}), 1),
    "references that double, in an older dialect": (
        {**doubling("allOf", {"type": "object"}), "$schema": "http://json-schema.org/draft-07/schema#"},
        1,
    ),
    "unique items": (of_x({"uniqueItems": True}), [{"a": n} for n in range(100_000)]),
    "items": (of_x({"items": {}}), [1] * 300_000),
    "equal values": (
        of_x({"allOf": [{"$ref": "#/$defs/e"}] * 5_000}, **{"$defs": {"e": {"enum": [LARGE]}}}),
        LARGE,
    ),
    "alternatives of a large value": (of_x({"anyOf": [{"type": "string"}] * 5_000}), ["a" * 100] * 20_000),
    "references to a part with a name": (
        of_x(
            {"allOf": [{"$ref": "#/$defs/e"}] * 500},
            **{"$defs": {"e": {"$id": "https://x/e", "allOf": [{"$ref": "#/$defs/f"}] * 30, "$defs": {"f": {}}}}},
        ),
        1,
    ),
    "patterns that are large to compile": (
        {"properties": {"x": {"allOf": [{"pattern": rf"(\w{{1,{n}}}x){{10}}"} for n in range(10, 99)]}}},
        "é" * 2_000,
    ),
    "a schema whose metaschema compares": ({"$anchor": "a", "type": [{"a": n} for n in range(15_000)]}, 1),
    "a schema of many parts": (of_x({"dependencies": {f"p{n}": {"not": {}} for n in range(9_000)}}), {}),
}
RUN_ALL = """
import json, sys
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.json_schema import check_schema, compile_schema
for name, (schema, value) in json.load(sys.stdin).items():
    print(name, file=sys.stderr, flush=True)
    try:
        compile_schema(check_schema(schema, "it", trusted=False), trusted=False)({"x": value})
    except InvalidParametersError as error:
        assert "it" in error.message
"""


def test_no_schema_takes_for_ever() -> None:
    # In a process of its own: a pattern that runs away holds the interpreter, and no test could end it.
    run([sys.executable, "-c", RUN_ALL], input=json.dumps(FOREVER), text=True, check=True, timeout=100)


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_a_check_stops_after_its_steps(keyword: str) -> None:
    effort = Effort(1_000)
    failures = bounded_validator(
        Draft202012Validator, doubling(keyword, {"type": "object" if keyword == "allOf" else "array"})
    )
    with pytest.raises(TooMuchEffortError):
        list(failures({"x": 1}, effort))
    assert -100 < effort.left < 0


def test_what_took_too_many_steps_counts_as_fitting_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    schema = of_x({"items": {"type": "integer"}})
    assert problems(schema, ["a"]) == ['x[0] should be an integer, got "a"']
    with caplog.at_level(logging.DEBUG, "yiemagent_nb"):
        assert problems(schema, [1] * 1_000 + ["a"], max_steps=100) == []
    assert "it takes too long" in caplog.text


@pytest.mark.parametrize(
    ("schema", "fitting", "wrong"),
    [
        ({"pattern": "^[a-z]{2}$"}, "ab", "abc"),
        ({"pattern": "^(a+)+$"}, "aaa", "aab"),
        ({"not": {"pattern": "^a"}}, "b", "a"),
        ({"uniqueItems": True}, [1, True, "1", {"a": 1}], [{"a": 1, "b": 2.0}, {"b": 2, "a": 1}]),
        ({"uniqueItems": False}, [1, 1], None),
        ({"enum": [1, "a"]}, "a", "b"),
        ({"$ref": "#/$defs/n"}, 3, "3"),
        ({"oneOf": [{"type": "string"}, {"minimum": 3}]}, 4, 1),
        ({"contains": {"const": 1}}, [2, 1], [2]),
        ({"additionalProperties": False, "properties": {"a": {}}}, {"a": 1}, {"b": 1}),
        ({"$schema": DIALECT, "minLength": 2}, "ab", "a"),
    ],
)
def test_keywords_mean_what_they_mean(schema: dict[str, Any], fitting: Any, wrong: Any) -> None:
    whole = of_x(schema, **{"$defs": {"n": {"type": "integer"}}})
    assert problems(whole, fitting) == []
    if wrong is not None:
        assert problems(whole, wrong) != []


UNREADABLE = {"pattern": "^(?=a)b"}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (UNREADABLE, "c"),
        ({"not": UNREADABLE}, "c"),
        ({"not": {"not": {"not": UNREADABLE}}}, "c"),
        ({"oneOf": [UNREADABLE, {"type": "string"}]}, "c"),
        ({"if": UNREADABLE, "then": False}, "c"),
        ({"contains": UNREADABLE, "maxContains": 1}, ["c", "d"]),
        ({"patternProperties": {"^x-": {}}, "additionalProperties": False}, {"x-a": 1}),
        ({"patternProperties": {"^x-": {}}, "unevaluatedProperties": False}, {"x-a": 1}),
        ({"pattern": "^[a-z&&[^b]]$"}, "c"),
        ({"pattern": "^a{2000}$"}, "c"),
        ({"pattern": "a"}, "b" * 3_000),
        ({"$ref": "#/$defs/nowhere"}, 1),
        ({"$ref": "https://example.invalid/schema.json"}, 1),
    ],
)
def test_what_cannot_be_decided_is_left_to_the_schemas_author(schema: dict[str, Any], value: Any) -> None:
    assert problems(of_x(schema), value) == []


def test_beside_what_cannot_be_decided_the_rest_is_checked() -> None:
    assert problems(of_x({**UNREADABLE, "type": "string", "maxLength": 2}), "abc") != []
    assert problems(of_x({"not": {"type": "string"}, "allOf": [UNREADABLE]}), "abc") != []


def test_the_persons_own_patterns_are_pythons() -> None:
    check = compile_schema(check_schema(of_x(UNREADABLE), "it"))
    assert check({"x": "c"}) == ['x should fit {"pattern": "^(?=a)b"}, got "c"']


def test_a_schema_that_is_too_large_is_refused() -> None:
    with pytest.raises(InvalidParametersError, match="it is too large to be checked"):
        check_schema({"enum": list(range(60_000))}, "it", trusted=False)
    check_schema({"enum": list(range(60_000))}, "it")


def test_a_schema_that_takes_too_long_to_check_is_refused() -> None:
    schema: dict[str, Any] = {"dependencies": {f"p{n}": {"not": {}} for n in range(9_000)}}
    with pytest.raises(InvalidParametersError, match="too intricate to be checked"):
        check_schema(schema, "it", trusted=False)


def test_a_failure_names_few_of_many_names() -> None:
    (sentence, *_) = problems({"required": [f"r{n}" for n in range(1_000)]}, 1)
    assert sentence.endswith("r19 and 980 more is missing")
    (sentence,) = problems({"properties": {f"p{n}": {} for n in range(50)}, "additionalProperties": False}, 1)
    assert sentence == f"x is not known; known are {', '.join(f'p{n}' for n in range(20))} and 30 more"


def test_a_checked_schema_is_copied_and_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = CheckedSchema(check_schema(of_x({"type": "string"}), "it", of_object=True, trusted=False))

    def fail(*_: object) -> bool:
        raise AssertionError("it was checked again")

    monkeypatch.setattr(json_schema, "_is_plain", fail)
    tool = Tool(name="t", description="T.", execute=idle, input_schema=checked)
    assert not isinstance(tool.input_schema, CheckedSchema)
    assert tool.input_schema == checked
    assert tool.input_schema["properties"] is not checked["properties"]
    with pytest.raises(AssertionError, match="checked again"):
        Tool(name="t", description="T.", execute=idle, input_schema=dict(checked))


def test_nodes_are_counted_with_the_length_of_texts() -> None:
    assert count_nodes({"a": [1, 2], "b": "x" * 1_000}) > 10
    assert count_nodes([]) == 1


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b", "ab", 1.0]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=8,
)
plain_schemas = st.recursive(
    st.booleans()
    | st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "integer", "array", "object", "null"]),
            "enum": st.lists(plain_values, min_size=1, max_size=3),
            "minimum": st.integers(-2, 2),
            "maxLength": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "pattern": st.sampled_from(["^a", "b$", "a|b"]),
            "required": st.lists(st.sampled_from(["a", "b"]), unique=True),
            "$ref": st.just("#/$defs/d"),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=2),
            "additionalProperties": inner,
            "items": inner,
            "contains": inner,
            "not": inner,
            "if": inner,
            "then": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
        },
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(schema=plain_schemas, value=plain_values)
def test_a_check_says_the_same_as_the_persons_own(schema: Any, value: Any) -> None:
    whole = of_x(schema, **{"$defs": {"d": {"type": "string"}}})
    trusted = compile_schema(check_schema(whole, "it"))({"x": value})
    assert bool(problems(whole, value)) == bool(trusted)


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("$ref", "$id", "$anchor", "$schema", "$dynamicRef", "type", "items", "not", "if", "properties"),
                    *("patternProperties", "pattern", "allOf", "dependencies", "unevaluatedItems", "x"),
                ]
            )
            | st.text(max_size=3),
            inner | st.sampled_from(["#", "#a", "object", "http://json-schema.org/draft-04/schema#"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(schema=any_json, value=any_json)
def test_any_schema_is_refused_or_checks_without_raising(schema: Any, value: Any) -> None:
    try:
        checked = check_schema(schema, "it", trusted=False)
    except InvalidParametersError:
        return
    assert isinstance(compile_schema(checked, trusted=False)({"x": value}), list)
