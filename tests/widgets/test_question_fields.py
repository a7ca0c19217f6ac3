"""A question's schema becomes fields that can be drawn; what no field can hold is asked for as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.widgets.question_fields import (
    LARGEST_SCHEMA,
    Choice,
    QuestionField,
    question_fields,
    with_titles,
)

COLOURS = (Choice("r", "Red"), Choice("g", "Green"))


def field(schema: Any, *, required: bool = False) -> QuestionField:
    whole = {"type": "object", "properties": {"x": schema}, "required": ["x"] if required else []}
    fields = question_fields(whole)
    assert fields is not None
    return fields[0]


@pytest.mark.parametrize(
    ("schema", "kind", "hint"),
    [
        ({"type": "string"}, "text", ""),
        ({"type": "string", "minLength": 3, "maxLength": 20}, "text", "3 to 20 characters"),
        ({"type": "string", "maxLength": 1000}, "text", "at most 1,000 characters"),
        ({"type": "number", "minimum": 0.5}, "number", "at least 0.5"),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, "number", "more than 0, less than 1"),
        ({"type": "integer", "minimum": 1, "maximum": 9}, "integer", "a whole number, 1 to 9"),
        ({"type": "integer", "maximum": 2**63}, "integer", "a whole number"),
        ({"type": "boolean"}, "boolean", ""),
        ({"type": "array", "items": {"enum": ["a"]}, "minItems": 1}, "choices", "at least 1 of them"),
        ({"type": "array", "items": {"type": "string"}}, "json", "JSON"),
        ({"type": "object"}, "json", "JSON"),
        ({}, "json", "JSON"),
        (True, "json", "JSON"),
        ({"type": "string", "minLength": "3", "format": 7, "title": [], "description": None, "enum": {}}, "text", ""),
    ],
)
def test_each_kind_has_its_field_and_says_what_fits(schema: Any, kind: str, hint: str) -> None:
    found = field(schema)
    assert (found.name, found.title, found.kind, found.hint) == ("x", "x", kind, hint)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
        {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
        {"anyOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
    ],
)
def test_choices_are_read_in_every_form(schema: dict[str, Any]) -> None:
    assert (field(schema).kind, field(schema).choices) == ("choice", COLOURS)
    several = field({"type": "array", "items": schema})
    assert (several.kind, several.choices) == ("choices", COLOURS)


def test_a_choice_without_a_title_shows_its_value() -> None:
    assert [choice.label for choice in field({"enum": ["a", 7, "", None]}).choices] == ["a", "7", "(empty)", "null"]


@pytest.mark.parametrize("name", ["email", "uri", "date", "date-time"])
def test_formats_that_a_page_can_help_with_are_kept(name: str) -> None:
    assert field({"type": "string", "format": name}).format == name
    assert field({"type": "string", "format": "regex"}).format == ""


@pytest.mark.parametrize(
    ("schema", "default"),
    [
        ({"type": "string", "default": "here"}, "here"),
        ({"type": "string", "default": 7}, None),
        ({"type": "integer", "default": 7}, 7),
        ({"type": "integer", "default": 7.5}, None),
        ({"type": "integer", "default": True}, None),
        ({"type": "number", "default": 7.5}, 7.5),
        ({"type": "boolean", "default": False}, False),
        ({"type": "boolean", "default": "yes"}, None),
        ({"enum": ["a", "b"], "default": "b"}, "b"),
        ({"enum": ["a", "b"], "default": "c"}, None),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "default": ["b"]}, ["b"]),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "default": ["c"]}, None),
    ],
)
def test_a_default_that_fits_its_field_is_kept(schema: dict[str, Any], default: object) -> None:
    assert field(schema).default == default


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "x"},
    ],
)
def test_a_value_or_null_is_a_field_that_may_be_null(schema: dict[str, Any]) -> None:
    found = field(schema, required=True)
    assert (found.kind, found.nullable, found.required) == ("text", True, True)


def test_a_reference_to_a_definition_is_followed() -> None:
    fields = question_fields(
        {
            "properties": {"x": {"$ref": "#/$defs/Colour", "default": "g"}, "y": {"$ref": "#/$defs/Nothing"}},
            "$defs": {"Colour": {"enum": ["r", "g"], "title": "Colour"}},
        }
    )
    assert fields is not None
    assert [(each.kind, each.title, each.default) for each in fields] == [
        ("choice", "Colour", "g"),
        ("json", "y", None),
    ]


def test_long_texts_are_cut() -> None:
    found = field({"type": "string", "title": "t" * 5_000, "description": "d" * 50_000})
    assert len(found.title) == 200
    assert len(found.description) == 2_000


@pytest.mark.parametrize("schema", [{"properties": []}, {"properties": None}, {"required": "x"}, {}])
def test_a_schema_without_fields_has_none(schema: dict[str, Any]) -> None:
    assert question_fields(schema) == ()


def test_a_schema_that_is_too_large_is_not_drawn() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"properties": deep}
    assert question_fields({"properties": {"x": {"description": "d" * LARGEST_SCHEMA}}}) is None
    assert question_fields(deep) is None


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("It does not fit: name is missing.", "It does not fit: String is missing."),
        ("It does not fit: n, name is missing.", "It does not fit: Number, String is missing."),
        (
            "It does not fit: n should be a number, got 'x'; name should be",
            "It does not fit: Number should be a number, got 'x'; String should be",
        ),
        (
            "It does not fit: n should be one of name, n, got 'name'.",
            "It does not fit: Number should be one of name, n, got 'name'.",
        ),
        ("It does not fit: a.* should be b.", "It does not fit: Odd \\1 should be b."),
        ("It does not fit: surname is missing.", "It does not fit: surname is missing."),
    ],
)
def test_what_does_not_fit_is_told_by_titles(said: str, told: str) -> None:
    properties = {"n": {"title": "Number"}, "name": {"title": "String"}, "a.*": {"title": "Odd \\1"}, "plain": {}}
    error = with_titles(InvalidParametersError(said, "Try again."), {"properties": properties})
    assert (error.message, error.hint) == (told, "Try again.")


def test_what_is_asked_without_a_form_is_told_as_it_is() -> None:
    error = InvalidParametersError("It does not fit: name is missing.")
    assert with_titles(error, None) is error
