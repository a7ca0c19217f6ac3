"""Structured output: what is asked for, and how an answer is read."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError, create_model, field_validator
from typing_extensions import TypedDict

from yiemagent_nb.core.errors import InvalidParametersError, OutputInvalidError
from yiemagent_nb.core.messages import AssistantMessage, ReasoningContent, StopReason, TextContent
from yiemagent_nb.core.output import OutputFormat

pytestmark = pytest.mark.requirement("Y FR-002", "Y US-005")


class Person(BaseModel):
    name: str
    age: int = Field(gt=0)


class Node(BaseModel):
    label: str
    children: list[Node] = []


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Place(TypedDict):
    city: str


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


class Numbers(RootModel[list[int]]):
    pass


class Fragile(BaseModel):
    key: str

    @field_validator("key")
    @classmethod
    def look_up(cls, value: str) -> str:
        return {"known": "found"}[value]


ADA = '{"name": "Ada", "age": 36}'


def failure(output: OutputFormat[Any], text: str) -> str:
    """What is said of a text that does not fit."""
    with pytest.raises(OutputInvalidError) as caught:
        output.parse(text)
    assert str(caught.value).endswith("[OUTPUT_INVALID]")
    return caught.value.message


# What is asked for


def test_a_model_is_asked_for_by_its_name_and_schema_in_openais_chat_form() -> None:
    assert OutputFormat(Person).response_format == {
        "type": "json_schema",
        "json_schema": {
            "name": "Person",
            "schema": {
                "title": "Person",
                "type": "object",
                "properties": {"name": {"type": "string"}, "age": {"type": "integer", "exclusiveMinimum": 0}},
                "required": ["name", "age"],
            },
        },
    }


@pytest.mark.parametrize("kind", [Place, Point, dict[str, int]])
def test_what_is_an_object_itself_is_not_wrapped(kind: Any) -> None:
    schema = OutputFormat(kind).schema
    assert schema["type"] == "object"
    assert "value" not in schema.get("properties", {})


WRAPPED: list[tuple[Any, str, Any]] = [
    (int, '{"value": 3}', 3),
    (str, '{"value": "x"}', "x"),
    (bool, '{"value": false}', False),
    (list[Person], f'{{"value": [{ADA}]}}', [Person(name="Ada", age=36)]),
    (Literal["yes", "no"], '{"value": "no"}', "no"),
    (Colour, '{"value": "red"}', Colour.RED),
    (int | None, '{"value": null}', None),
    (Person | Point, '{"value": {"x": 1}}', Point(1)),
    (Annotated[int, Field(le=5)], '{"value": 5}', 5),
    (Numbers, '{"value": [1, 2]}', Numbers([1, 2])),
    (tuple[int, str], '{"value": [1, "a"]}', (1, "a")),
    (Any, '{"value": {"value": 1}}', {"value": 1}),
]


@pytest.mark.parametrize(("kind", "text", "value"), WRAPPED, ids=[str(kind) for kind, _, _ in WRAPPED])
def test_what_is_no_object_is_asked_for_as_the_property_of_one(kind: Any, text: str, value: Any) -> None:
    output = OutputFormat(kind)
    assert output.schema["type"] == "object"
    assert list(output.schema["properties"]) == output.schema["required"] == ["value"]
    assert output.parse(text) == value
    assert type(output.parse(text)) is type(value)


@pytest.mark.parametrize(("kind", "text", "value"), WRAPPED[:-1], ids=[str(kind) for kind, _, _ in WRAPPED[:-1]])
def test_a_model_that_leaves_the_wrapping_out_is_understood(kind: Any, text: str, value: Any) -> None:
    bare = json.dumps(json.loads(text)["value"])
    assert OutputFormat(kind).parse(bare) == value
    assert OutputFormat(kind).parse(f"It is:\n```json\n{bare}\n```") == value


def test_a_wrapped_value_that_does_not_fit_is_not_taken_for_a_bare_one() -> None:
    class Loose(BaseModel):
        size: int = 0

    class Other(BaseModel):
        weight: int = 0

    text = '{"value": {"size": "big", "weight": "much"}}'
    assert "value.size should be a valid integer" in failure(OutputFormat(Loose | Other), text)


def test_a_schema_has_no_reference_at_its_root() -> None:
    schema = OutputFormat(Node).schema
    assert "$ref" not in schema
    assert (schema["type"], schema["required"]) == ("object", ["label"])
    assert OutputFormat(Node).parse('{"label": "a", "children": [{"label": "b"}]}').children[0].label == "b"


def test_fields_have_no_titles_made_of_their_names() -> None:
    assert '"title": "Name"' not in json.dumps(OutputFormat(Person).schema)
    named = create_model("Named", size=(int, Field(title="The size in metres")))
    assert OutputFormat(named).schema["properties"]["size"]["title"] == "The size in metres"


@settings(deadline=None)
@given(name=st.text(min_size=1, max_size=90))
def test_a_name_is_one_that_servers_take(name: str) -> None:
    model: type[BaseModel] = type(name.replace("\0", ""), (BaseModel,), {"__module__": __name__})
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", OutputFormat(model).name)


@pytest.mark.parametrize("kind", [Callable[[int], int], 5, "Nowhere", Person(name="Ada", age=36)])
def test_a_type_without_a_schema_is_refused_with_what_to_use(kind: Any) -> None:
    with pytest.raises(InvalidParametersError, match=r"has no JSON Schema: .* Use a pydantic model"):
        OutputFormat(kind)


@pytest.mark.parametrize("retries", [-1, 1.5, "2"])
def test_retries_are_a_number_from_zero_on(retries: Any) -> None:
    with pytest.raises(InvalidParametersError, match=r"output_retries is .*; expected a whole number"):
        OutputFormat(Person, retries=retries)


def test_the_words_for_other_backends_stand_behind_the_system_prompt() -> None:
    output = OutputFormat(Person)
    text = output.instruct("Be brief.")
    assert text.startswith("Be brief.\n\nYour final answer must be one JSON object")
    assert json.loads(text.rpartition("\n")[2]) == output.schema
    assert output.instruct("").startswith("Your final answer")


# How an answer is read

READ = [
    ADA,
    f"\n {ADA} \n",
    f"```json\n{ADA}\n```",
    f"```JSON {ADA}```",
    f"```\n{ADA}\n```",
    f"Here you are:\n\n```json\n{ADA}\n```\nAnything else?",
    f"Here you are: {ADA} Anything else?",
    f'The set {{a, b}} and {{"name": "Bob"}} do not fit, {ADA} does, and so would {{"name": "Eve", "age": 1}}',
    f'An example: {{"name": "…", "age": 0}}\n```json\n{ADA}',
    f"```python\nprint('{{}}')\n```\n{ADA}",
    '{"name": "Ada", "age": "36", "more": [1, 2]}',
]


@pytest.mark.parametrize("text", READ)
def test_json_is_found_wherever_it_stands(text: str) -> None:
    assert OutputFormat(Person).parse(text) == Person(name="Ada", age=36)


PROSE = st.text(max_size=40).filter(lambda text: not set(text) & set("{}`"))
PEOPLE = st.builds(Person, name=st.text(), age=st.integers(1, 10**20))


@settings(deadline=None)
@given(person=PEOPLE, before=PROSE, after=PROSE, indent=st.none() | st.integers(0, 4), fenced=st.booleans())
def test_any_value_is_read_from_any_prose(
    person: Person, before: str, after: str, indent: int | None, *, fenced: bool
) -> None:
    text = json.dumps(person.model_dump(), indent=indent)
    text = f"```json\n{text}\n```" if fenced else text
    assert OutputFormat(Person).parse(f"{before} {text} {after}") == person


@settings(deadline=None)
@given(value=st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=8))
def test_any_json_value_goes_through_its_wrapping(value: Any) -> None:
    assert OutputFormat(Any).parse(json.dumps({"value": value})) == value


FRAGMENTS = st.sampled_from(
    [
        *("{", "}", "[", "]", '"', ",", ":", '"name"', '"age"', '"value"', '"key"', "1", "-", "null", "NaN", "1e999"),
        *("```", "json", " ", "\n", "\\", "\ud800", "\\ud800", "\x00", "é", ADA, '{"key": "x"}', "9" * 5000),
    ]
)
TYPES: list[Any] = [Person, Node, Fragile, Place, list[Person], int, Any, Person | Point, dict[str, Fragile]]
FORMATS = [OutputFormat(kind) for kind in TYPES]


@settings(max_examples=400, deadline=None)
@given(output=st.sampled_from(FORMATS), text=st.lists(FRAGMENTS | st.text(max_size=3), max_size=25).map("".join))
def test_reading_never_fails_otherwise_than_it_says(output: OutputFormat[Any], text: str) -> None:
    try:
        output.parse(text)
    except OutputInvalidError as error:
        message = error.message
    else:
        return
    assert message.startswith("The answer does not fit ")
    assert message.encode()
    assert len(message) < 2_500
    assert output.correction(AssistantMessage(text)) is not None


@pytest.mark.parametrize(
    "text",
    [
        "{" * 200_000,
        '{"a":' * 50_000,
        '{"a":[1,' * 50_000,
        "```" * 100_000,
        '{"a":"' * 50_000,
        "{}" * 50_000,
        '{"' * 100_000,
    ],
    ids=["braces", "nested", "lists", "fences", "strings", "empty", "quotes"],
)
@pytest.mark.timeout(60)
def test_a_hostile_answer_is_read_to_its_end(text: str) -> None:
    assert failure(OutputFormat(Person), text)


@pytest.mark.parametrize(
    "text", [f'{{"people": [{ADA}, {{"name": "B', f'{{"wrong": {ADA}}}', f'{{"broken" {ADA}, oops}}'[:20]]
)
def test_a_part_of_another_object_is_not_taken_for_the_answer(text: str) -> None:
    assert failure(OutputFormat(Person), text)


def test_values_are_those_of_json_as_pydantic_reads_them() -> None:
    class Event(BaseModel):
        model_config = ConfigDict(strict=True)
        day: date
        pair: tuple[int, int]
        raw: bytes
        where: str = Field(alias="place")

    text = '{"day": "2027-05-03", "pair": [1, 2], "raw": "x", "place": "Lisbon"}'
    event = OutputFormat(Event).parse(text)
    assert (event.day, event.pair, event.raw, event.where) == (date(2027, 5, 3), (1, 2), b"x", "Lisbon")


FAILURES: list[tuple[Any, str, str]] = [
    (Person, '{"name": "Ada", "age": "old"}', "Person: age should be a valid integer, unable to parse string as an "),
    (Person, '{"name": "Ada", "age": -1}', "Person: age should be greater than 0, got -1."),
    (Person, '{"nam": "Ada"}', "Person: name is missing; age is missing."),
    (Person, "Ada is 36.", 'Person: it holds no JSON object, got "Ada is 36.".'),
    (Person, " ", "Person: it is empty."),
    (Person, "[1]", "Person: the answer should be an object, got [1]."),
    (Person, '{"name": "Ada", "age":', "Person: it is no valid JSON (Expecting value), got "),
    (Person, 'So: {"name": "Ada"} or {"age": 1}', "Person: age is missing."),
    (list[int], '{"value": [1, "x"]}', "list[int]: value[1] should be a valid integer"),
    (int, '{"number": 3}', "int: value is missing."),
    (Fragile, '{"key": "x"}', "Fragile: it was refused: KeyError: 'x'."),
    (list[int], f'{{"value": {json.dumps(["x"] * 9)}}}', "; and 4 more."),
]


@pytest.mark.parametrize(("kind", "text", "words"), FAILURES)
def test_what_does_not_fit_is_said_with_the_field_what_was_expected_and_what_came(
    kind: Any, text: str, words: str
) -> None:
    assert words in failure(OutputFormat(kind), text)


def test_the_cause_is_pydantics_own_error() -> None:
    with pytest.raises(OutputInvalidError) as caught:
        OutputFormat(Person).read(AssistantMessage("{}"))
    assert isinstance(caught.value.__cause__, ValidationError)


def test_reasoning_is_not_read() -> None:
    answer = AssistantMessage([ReasoningContent('{"name": "Eve", "age": 1}'), TextContent(ADA)])
    assert OutputFormat(Person).read(answer).name == "Ada"


def test_a_correction_says_what_does_not_fit_and_asks_for_json_only() -> None:
    output = OutputFormat(Person)
    correction = output.correction(AssistantMessage('{"name": "Ada", "age": "old"}'))
    assert correction is not None
    words, _, schema = correction.text.partition("\n")
    assert words.startswith("The answer does not fit Person: age should be a valid integer")
    assert 'got "old". Answer again with JSON only: one object' in words
    assert json.loads(schema) == output.schema


def test_an_answer_that_fits_needs_no_correction() -> None:
    assert OutputFormat(Person).correction(AssistantMessage(ADA)) is None


ENDINGS: list[tuple[StopReason, str]] = [
    ("length", "the run ended at the length limit of an answer"),
    ("content_filter", "the run ended by the server's content filter"),
    ("aborted", "the run was aborted"),
    ("error", "the run failed (the server is on fire)"),
]


@pytest.mark.parametrize(("reason", "words"), ENDINGS)
def test_an_answer_that_is_not_whole_is_not_read_even_where_it_would_fit(reason: StopReason, words: str) -> None:
    message = "the server is on fire" if reason == "error" else None
    answer = AssistantMessage(ADA, stop_reason=reason, error_message=message)
    output = OutputFormat(Person)
    with pytest.raises(OutputInvalidError) as caught:
        output.read(answer)
    assert caught.value.message == f"There is no Person: {words}."
    assert caught.value.hint
    assert caught.value.answer is answer
    assert output.correction(answer) is None


def test_an_error_of_a_text_alone_carries_no_answer() -> None:
    with pytest.raises(OutputInvalidError) as caught:
        OutputFormat(Person).parse("")
    assert caught.value.answer is None


def test_a_format_shows_its_type() -> None:
    assert repr(OutputFormat(list[int], retries=0)) == "OutputFormat(list[int], retries=0)"
