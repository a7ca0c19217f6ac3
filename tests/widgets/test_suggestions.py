"""Example prompts are made from the tools that are there."""

from __future__ import annotations

from typing import Literal

from yiemagent_nb.core.tools import Tool, ToolAnnotations, tool
from yiemagent_nb.widgets.suggestions import suggestions


@tool
def add(a: int, b: int) -> int:
    """Add two numbers. Any two."""
    return a + b


@tool
def weather(city: str, unit: Literal["C", "F"] = "C") -> str:
    """Tell the weather in a city."""
    return city + unit


@tool
def summarise(document: str) -> str:
    """Summarise a document."""
    return document


@tool
def delete_file(path: str) -> str:
    """Delete a file."""
    return path


def test_prompts_name_the_purpose_and_values_that_make_sense() -> None:
    assert suggestions([add, weather, summarise]) == [
        "Add two numbers: a = 17, b = 25",
        "Tell the weather in a city: city = Lisbon",
        "Summarise a document",
    ]


def test_nothing_destructive_is_suggested() -> None:
    marked = Tool(name="reboot", description="Reboot.", execute=print, annotations=ToolAnnotations(destructive=True))
    assert suggestions([delete_file, marked]) == []


def test_there_are_at_most_three() -> None:
    assert len(suggestions([add, weather, summarise, add])) == 3


def test_a_long_description_is_cut() -> None:
    [prompt] = suggestions([Tool(name="x", description="Do " + "very " * 40 + "much", execute=print)])
    assert len(prompt) <= 60
    assert prompt.endswith("…")


def test_schemas_of_others_make_prompts_without_values_that_make_no_sense() -> None:
    def prompt(schema: object) -> str:
        parameters = {"properties": {"x": schema}, "required": ["x"]}
        [text] = suggestions([Tool(name="t", description="Try it.", execute=print, input_schema=parameters)])
        return text

    assert prompt(True) == "Try it"
    assert prompt({"enum": ["x" * 61]}) == "Try it"
    assert prompt({"enum": ["x"]}) == "Try it: x = x"
