"""Walking over the pages of a list, whatever the server puts on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_client.workbench import definition

from yiemagent_nb.core.errors import McpConnectionError, McpError
from yiemagent_nb.mcp import discovery
from yiemagent_nb.mcp.discovery import Listing, walk_pages
from yiemagent_nb.mcp.server import McpServer

Page = Any


class Pages:
    """Answers the n-th request with the n-th page."""

    def __init__(self, pages: Sequence[Page] | Callable[[int], Page]) -> None:
        self._page = pages if callable(pages) else pages.__getitem__
        self.params: list[dict[str, Any]] = []

    async def __call__(self, _method: str, params: dict[str, Any]) -> Any:
        self.params.append(params)
        page = self._page(len(self.params) - 1)
        if isinstance(page, Exception):
            raise page
        return page


async def walk(pages: Sequence[Page] | Callable[[int], Page], key: str = "tools", **limits: Any) -> Listing:
    return await walk_pages(Pages(pages), f"{key}/list", key, **limits)


def names(listing: Listing) -> list[Any]:
    return [item["name"] for item in listing.items]


@pytest.mark.requirement("Y SP-009")
async def test_the_cursor_is_followed_to_the_end() -> None:
    pages = Pages([{"tools": [definition("a")], "nextCursor": "x"}, {"tools": [definition("b")]}])
    listing = await walk_pages(pages, "tools/list", "tools")
    assert names(listing) == ["a", "b"]
    assert pages.params == [{}, {"cursor": "x"}]
    assert listing.complete
    assert not listing.problems


@pytest.mark.requirement("Y NFR-102")
@pytest.mark.parametrize("count", [50, 500])
async def test_many_tools_in_pages_of_25_are_all_found(count: int) -> None:
    def server(method: str, cursor: str = "0") -> dict[str, Any]:
        assert method == "tools/list"
        end = int(cursor) + 25
        more = {"nextCursor": str(end)} if end < count else {}
        return {"result": {"tools": [definition(f"tool_{n}") for n in range(int(cursor), end)], **more}}

    async with McpServer(server) as connected:
        listing = await walk_pages(connected.request, "tools/list", "tools")
        assert names(listing) == [f"tool_{n}" for n in range(count)]
        assert len(await connected.list_tools()) == count


@pytest.mark.requirement("Y SP-009")
async def test_a_cursor_that_comes_again_ends_the_walk_and_is_told() -> None:
    listing = await walk(lambda number: {"tools": [definition(f"t{number}")], "nextCursor": "round"})
    assert names(listing) == ["t0", "t1"]
    assert not listing.complete
    assert listing.problems == ('tools/list was not read to its end: the cursor "round" came a second time.',)


async def test_an_empty_cursor_is_the_end() -> None:
    assert (await walk([{"tools": [definition("a")], "nextCursor": ""}])).complete


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ({"tools": [], "nextCursor": 7}, "the next page's cursor is 7"),
        ({"tools": "none"}, "a page has no list of tools"),
        ({}, "a page has no list of tools"),
        ([], "a page has no list of tools"),
        (McpConnectionError("gone"), "page 2 failed: McpConnectionError: gone"),
        (McpError("Invalid cursor", rpc_code=-32602), "page 2 failed: McpError: Invalid cursor"),
    ],
)
async def test_what_came_before_a_bad_page_counts(page: Page, why: str) -> None:
    listing = await walk([{"tools": [definition("a")], "nextCursor": "x"}, page])
    assert names(listing) == ["a"]
    assert not listing.complete
    assert why in listing.problems[0]


async def test_a_first_page_that_fails_raises() -> None:
    with pytest.raises(McpError, match="no luck"):
        await walk([McpError("no luck")])


async def test_items_that_are_none_are_left_out_with_a_reason() -> None:
    items = [definition("a"), "b", None, {}, {"name": 7}, {"name": ""}, definition("a", "again"), definition("c")]
    listing = await walk([{"tools": items}])
    assert names(listing) == ["a", "c"]
    assert listing.items[0]["description"] == "Does it."
    assert listing.complete
    assert len(listing.problems) == 6
    assert listing.problems[0] == 'tools/list has an item that is no object, but "b"; it was left out.'
    assert "name is 7" in listing.problems[3]
    assert '"a" more than once' in listing.problems[5]


@pytest.mark.parametrize(("key", "field"), [("resources", "uri"), ("resourceTemplates", "uriTemplate")])
async def test_resources_differ_by_their_address(key: str, field: str) -> None:
    items = [{field: "file:///a", "name": "same"}, {field: "file:///b", "name": "same"}, {"name": "without"}]
    listing = await walk([{key: items}], key)
    assert [item[field] for item in listing.items] == ["file:///a", "file:///b"]
    assert len(listing.problems) == 1


async def test_a_list_without_an_end_stops_at_the_limit_of_pages() -> None:
    listing = await walk(lambda number: {"tools": [], "nextCursor": str(number)}, max_pages=7)
    assert listing.problems == ("tools/list was not read to its end: it was not at its end after 7 pages.",)


async def test_a_slow_list_without_an_end_stops_at_the_limit_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(discovery.time, "monotonic", lambda: next(clock))
    listing = await walk(lambda number: {"tools": [], "nextCursor": str(number)}, max_seconds=25)
    assert listing.problems == ("tools/list was not read to its end: it was not at its end after 3 pages and 25 s.",)


async def test_a_list_too_long_is_cut() -> None:
    listing = await walk([{"tools": [definition(f"t{n}") for n in range(10)]}], max_items=4)
    assert names(listing) == ["t0", "t1", "t2", "t3"]
    assert "more than 4 items" in listing.problems[0]


async def test_a_flood_of_problems_is_counted_rather_than_kept() -> None:
    listing = await walk([{"tools": [None] * 250}])
    assert len(listing.problems) == 101
    assert listing.problems[-1] == "150 further problems are not listed."


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
nameds: st.SearchStrategy[Any] = st.fixed_dictionaries({"name": json_values})
tool_lists: st.SearchStrategy[Any] = json_values | st.lists(nameds | json_values, max_size=5)
cursors: st.SearchStrategy[Any] = st.sampled_from(["a", "b", "c"]) | json_values
full_pages: st.SearchStrategy[Any] = st.fixed_dictionaries({"tools": tool_lists}, optional={"nextCursor": cursors})
pages = json_values | full_pages


@given(given_pages=st.lists(pages, min_size=1, max_size=8))
async def test_no_page_makes_the_walk_raise_or_give_an_item_without_a_name(given_pages: list[Any]) -> None:
    listing = await walk(lambda number: given_pages[number % len(given_pages)], max_pages=20)
    found = names(listing)
    assert all(isinstance(name, str) and name for name in found)
    assert len(set(found)) == len(found)
    assert listing.complete or listing.problems
