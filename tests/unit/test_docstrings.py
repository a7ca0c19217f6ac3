from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yiemagent_nb.core.docstrings import parse_docstring

GOOGLE = """Find trains.

    Only direct ones are found.

    Args:
        origin: Where to start.
        target (str, optional): Where to go,
            which may be abroad:
            - a city
            - a station
        options (dict[str, tuple(int, int)]): More of it.

            A second paragraph.
        *extra: Not shown.
        **more: Whatever else.

    Returns:
        str: The trains.

    Raises:
        ValueError: There is none.

    Note:
        Times are local.
    """

NUMPY = """Find trains.

    Only direct ones are found.

    Parameters
    ----------
    origin : str
        Where to start.
    target, via : str, optional
        Where to go,
        and through where.
    bare

    Returns
    -------
    str
        The trains.

    Other Parameters
    ----------------
    **more : dict
        Whatever else.
    """

REST = """Find trains.

    Only direct ones are found.

    :param origin: Where to start.
    :param str target: Where to go,
        which may be abroad.
    :type target: str
    :param dict[str, int] more: Whatever else.
    :returns: The trains.
    :raises ValueError: There is none.
    """


def test_a_google_docstring_gives_prose_and_parameters() -> None:
    docstring = parse_docstring(GOOGLE)
    assert docstring.description == "Find trains.\n\nOnly direct ones are found.\n\nNote:\n    Times are local."
    assert docstring.parameters == {
        "origin": "Where to start.",
        "target": "Where to go, which may be abroad:\n- a city\n- a station",
        "options": "More of it.\nA second paragraph.",
        "extra": "Not shown.",
        "more": "Whatever else.",
    }


def test_a_numpy_docstring_gives_prose_and_parameters() -> None:
    docstring = parse_docstring(NUMPY)
    assert docstring.description == "Find trains.\n\nOnly direct ones are found."
    assert docstring.parameters == {
        "origin": "Where to start.",
        "target": "Where to go, and through where.",
        "via": "Where to go, and through where.",
        "more": "Whatever else.",
    }


def test_a_rest_docstring_gives_prose_and_parameters() -> None:
    docstring = parse_docstring(REST)
    assert docstring.description == "Find trains.\n\nOnly direct ones are found."
    assert docstring.parameters == {
        "origin": "Where to start.",
        "target": "Where to go, which may be abroad.",
        "more": "Whatever else.",
    }


@pytest.mark.parametrize("nothing", [None, "", "  \n  "])
def test_no_docstring_gives_nothing(nothing: str | None) -> None:
    docstring = parse_docstring(nothing)
    assert (docstring.description, docstring.parameters) == ("", {})


@pytest.mark.parametrize(
    "prose",
    [
        "Say it: loudly.",
        "See :class:`Thing` for more.\n\n:class:`Other` too.",
        "A list:\n\n- one\n- two",
        "Args: are not explained here.",
        "Time\n12:30",
    ],
)
def test_prose_that_looks_like_a_section_stays_prose(prose: str) -> None:
    assert parse_docstring(prose).description == prose
    assert parse_docstring(prose).parameters == {}


def test_a_docstring_of_sections_alone_has_no_description() -> None:
    assert parse_docstring("Args:\n    a: The a.").description == ""


_line = st.sampled_from(
    [
        "Args:",
        "Parameters",
        "----------",
        ":param x: y",
        "    a: text",
        "a : int",
        "    b",
        "",
        "Returns:",
        "prose",
        ":",
    ]
)


@settings(deadline=None)
@given(st.one_of(st.text(), st.lists(_line, max_size=12).map("\n".join)))
def test_no_docstring_makes_it_raise_and_names_are_names(text: str) -> None:
    for name, description in parse_docstring(text).parameters.items():
        assert description
        assert name.replace("_", "a").isalnum() or ":param" in text
