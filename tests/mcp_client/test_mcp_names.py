"""The names that a model calls servers' tools by, on the names that servers may have thought of."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from yiemagent_nb.mcp.names import ToolNames

VALID = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}")

surrogates = st.characters(categories=["Cs"])
hostile_text = st.one_of(
    st.text(max_size=8),
    st.text(alphabet=st.one_of(surrogates, st.characters()), max_size=6),
    st.text(alphabet="ab_", max_size=6),
    st.from_regex(VALID, fullmatch=True),
    st.sampled_from(
        ["", "a__b", "b", "a", "9lives", "\0", "a\0", "list_tools", "🍷", "a" * 64, "a" * 65, "x" * 10_000]
    ),
)
origins = st.lists(st.tuples(hostile_text, hostile_text), max_size=30)
names_of_others = st.frozensets(hostile_text, max_size=5)


def test_a_valid_name_that_is_free_is_kept() -> None:
    assert ToolNames().name_for("github", "create_issue") == "create_issue"


def test_a_second_server_with_the_same_name_puts_its_own_before_it() -> None:
    names = ToolNames()
    assert names.name_for("one", "search") == "search"
    assert names.name_for("two", "search") == "two__search"


@pytest.mark.parametrize(
    ("server", "tool", "expected"),
    [
        ("web", "get-page", "web__get_page"),
        ("my server", "naïve", "my_server__na_ve"),
        ("9", "1", "_9__1"),
        ("files", "", "files__"),
        ("web", "a.b/c", "web__a_b_c"),
    ],
)
def test_other_characters_become_underscores(server: str, tool: str, expected: str) -> None:
    assert ToolNames().name_for(server, tool) == expected


def test_a_long_name_is_cut_and_ends_in_a_digest_of_server_and_tool() -> None:
    name = ToolNames().name_for("server", "x" * 10_000)
    assert len(name) == 64
    # sha256 of "server", NUL and ten thousand x, computed with sha256sum
    assert name == f"server__{'x' * 47}_3590b298"


def test_two_names_that_become_the_same_stay_apart() -> None:
    names = ToolNames()
    first, second = names.name_for("web", "a-b"), names.name_for("web", "a.b")
    assert first == "web__a_b"
    assert re.fullmatch(r"web__a_b_[0-9a-f]{8}", second)


def test_a_name_that_looks_like_anothers_takes_nothing_from_it() -> None:
    names = ToolNames()
    given_before = names.name_for("evil", "bank__transfer")
    names.name_for("other", "transfer")
    assert given_before == "bank__transfer"
    assert names.name_for("bank", "transfer") not in {given_before, "transfer"}
    assert names.origin("bank__transfer") == ("evil", "bank__transfer")


def test_names_that_belong_to_others_are_not_given() -> None:
    names = ToolNames()
    assert names.name_for("calc", "add", {"add"}) == "calc__add"
    assert names.name_for("calc", "sub", {"sub", "calc__sub"}).startswith("calc__sub_")


def test_a_tool_whose_name_was_taken_meanwhile_gets_another_and_keeps_that() -> None:
    names = ToolNames()
    names.name_for("calc", "add")
    assert names.name_for("calc", "add", {"add"}) == "calc__add"
    assert names.origin("add") is None
    assert names.name_for("calc", "add") == "calc__add"
    assert len(names) == 1


@pytest.mark.requirement("Y SP-009")
@given(origins=origins, reserved=names_of_others)
@example(origins=[("a", "b"), ("c", "b"), ("", "a__b"), ("a", "b")], reserved=frozenset())
@example(origins=[("a", "-"), ("a", "."), ("a", "_"), ("a_", "_")], reserved=frozenset())
def test_names_are_valid_unique_and_lead_back(origins: list[tuple[str, str]], reserved: frozenset[str]) -> None:
    names = ToolNames()
    given_names = {origin: names.name_for(*origin, reserved) for origin in origins}
    assert len(set(given_names.values())) == len(given_names)
    assert not reserved & set(given_names.values())
    for origin, name in given_names.items():
        assert VALID.fullmatch(name)
        assert names.origin(name) == origin


@given(origins=origins, data=st.data())
def test_a_tool_keeps_its_name_in_whatever_order_it_comes_again(
    origins: list[tuple[str, str]], data: st.DataObject
) -> None:
    names = ToolNames()
    before = {origin: names.name_for(*origin) for origin in origins}
    again = data.draw(st.permutations(origins))
    assert all(names.name_for(*origin) == before[origin] for origin in again)


@given(origins=origins)
def test_another_session_gives_the_same_names_for_the_same_order(origins: list[tuple[str, str]]) -> None:
    one, other = ToolNames(), ToolNames()
    assert [one.name_for(*origin) for origin in origins] == [other.name_for(*origin) for origin in origins]
