from __future__ import annotations

import dataclasses
import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.display import HTML, JSON, SVG, Latex, Markdown, Math
from matplotlib.figure import Figure
from PIL import Image
from pydantic import BaseModel

from yiemagent_nb.core.frames import frame_as_markdown
from yiemagent_nb.core.messages import ImageContent, TextContent, ToolResultMessage, dump_message
from yiemagent_nb.core.results import ToolResult, to_tool_result


class Point(BaseModel):
    x: float
    y: float = 0.0


@dataclasses.dataclass
class Pair:
    left: int
    right: Point


class Color(Enum):
    RED = "red"


class Opaque:
    def __repr__(self) -> str:
        return "Opaque!"


def picture() -> Image.Image:
    return Image.new("RGB", (2, 2))


def png() -> bytes:
    buffer = io.BytesIO()
    picture().save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.requirement("A SPEC-3.2")
def test_a_tool_result_stays_as_it_is() -> None:
    result = ToolResult("text", details=1, terminate=True)
    assert to_tool_result(result) is result


@pytest.mark.requirement("A SPEC-3.1")
def test_a_tool_result_takes_text_one_block_or_several() -> None:
    image = ImageContent.from_bytes(png())
    assert ToolResult("text").content == (TextContent("text"),)
    assert ToolResult(image).content == (image,)
    assert ToolResult(["a", image]).content == (TextContent("a"), image)
    result = ToolResult()
    assert (result.content, result.is_error, result.terminate, result.usage, result.added_tool_names) == (
        (),
        False,
        False,
        None,
        None,
    )


def test_text_stays_text_and_no_text_is_an_empty_result() -> None:
    assert to_tool_result("hello").content == (TextContent("hello"),)
    assert to_tool_result("").content == ()
    assert not to_tool_result("").is_error


def test_none_is_done() -> None:
    assert to_tool_result(None).text == "done"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "5"),
        (True, "true"),
        (1.5, "1.5"),
        ({"a": [1, 2], "b": None}, '{"a":[1,2],"b":null}'),
        (["a", "b"], '["a","b"]'),
        ((1, 2), "[1,2]"),
        ({3}, "[3]"),
        (Point(x=1), '{"x":1.0,"y":0.0}'),
        ([Point(x=1)], '[{"x":1.0,"y":0.0}]'),
        (Pair(1, Point(x=2)), '{"left":1,"right":{"x":2.0,"y":0.0}}'),
        (Decimal("1.50"), '"1.50"'),
        (datetime(2026, 1, 2, tzinfo=UTC), '"2026-01-02T00:00:00Z"'),
        (Color.RED, '"red"'),
        (np.float32(1.5), "1.5"),
        (np.arange(3), "[0,1,2]"),
        ({"n": np.int64(4)}, '{"n":4}'),
    ],
)
def test_data_becomes_json_text_with_itself_in_details(value: object, text: str) -> None:
    result = to_tool_result(value)
    assert result.text == text
    assert result.details is value
    assert not result.is_error


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"x": [float("-inf")]}, Point(x=float("nan"))])
def test_numbers_that_json_lacks_give_valid_json_all_the_same(value: object) -> None:
    def refuse(constant: str) -> None:
        pytest.fail(f"{constant} is no JSON")

    json.loads(to_tool_result(value).text, parse_constant=refuse)


@pytest.mark.parametrize("value", [picture(), Figure(), png(), bytearray(png()), memoryview(png())])
def test_what_shows_as_an_image_becomes_one(value: object) -> None:
    (block,) = to_tool_result(value).content
    assert isinstance(block, ImageContent)
    assert block.mime_type == "image/png"


def test_bytes_that_are_no_image_are_described_and_not_shown() -> None:
    assert to_tool_result(b"\x00" * 2000).text == "2,000 bytes of binary data, not shown"


def test_a_list_that_mixes_text_data_and_images_becomes_blocks_in_order() -> None:
    image = ImageContent.from_bytes(png())
    content = to_tool_result(["before", picture(), {"a": 1}, "", image, TextContent("after"), b"abc"]).content
    kinds = [block.text if isinstance(block, TextContent) else "image" for block in content]
    assert kinds == ["before", "image", '{"a":1}', "image", "after", "3 bytes of binary data, not shown"]


def test_lone_surrogates_are_replaced_in_text_and_escaped_in_json() -> None:
    assert to_tool_result("a\ud800é").text == "a�é"
    assert to_tool_result("\ud83d\ude00").text == "😀"
    assert ToolResult(["a\udc80", TextContent("b")]).text == "a�b"
    names = ["caf\udce9.txt", {"p": Point(x=1)}]
    assert json.loads(to_tool_result(names).text) == ["caf\udce9.txt", {"p": {"x": 1.0, "y": 0.0}}]


def test_a_part_without_a_json_form_is_shown_by_its_repr() -> None:
    assert json.loads(to_tool_result({"part": Opaque()}).text) == {"part": "Opaque!"}


def test_a_value_without_a_json_form_is_shown_by_its_repr_with_advice() -> None:
    result = to_tool_result(Opaque())
    assert result.text.startswith("Opaque!\n")
    assert "Return text, JSON values, a pydantic model" in result.text
    assert not result.is_error


def test_a_cycle_is_shown_by_its_repr() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    assert to_tool_result(cycle).text.startswith("[[...]]")


def test_a_number_with_more_digits_than_python_prints_harms_nothing() -> None:
    assert isinstance(to_tool_result(10**5000), ToolResult)
    assert isinstance(to_tool_result([10**5000]), ToolResult)


def test_what_is_nested_too_deeply_to_be_shown_is_an_error() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    result = to_tool_result(deep)
    assert result.is_error
    assert "cannot be shown (RecursionError)" in result.text


class Shows:
    """Shows itself in notebooks by the methods it is given."""

    def __init__(self, **forms: object) -> None:
        for name, form in forms.items():
            setattr(self, f"_repr_{name}_", lambda form=form: form)


def test_what_shows_as_markdown_or_latex_becomes_that() -> None:
    assert to_tool_result(Markdown("# Tides\n\n- high")).text == "# Tides\n\n- high"
    assert to_tool_result(Math("x^2")).text == "$\\displaystyle x^2$"
    assert to_tool_result(Latex("$x^2$")).text == "$$x^2$$"
    both = Shows(html="<b>no</b>", latex=None, markdown=("*yes*", {"isolated": True}))
    result = to_tool_result(both)
    assert (result.text, result.details) == ("*yes*", both)


def test_of_html_the_words_and_tables_are_left_and_nothing_that_runs() -> None:
    html = (
        "<title>t</title><style>p { color: red }</style><h1>Tides &amp; <b>times</b></h1><script>alert(1)</script>"
        "<table><tr><th>hour<th>a|b</tr><tr><td>6<td>high</table><svg><text>no</text></svg><p>end"
    )
    words = "Tides & times\n\n| hour | a\\|b |\n| --- | --- |\n| 6 | high |\n\nend"
    assert to_tool_result(HTML(html)).text == words
    assert to_tool_result(pd.DataFrame({"n": [1]}).style).text == "| | n |\n| --- | --- |\n| 0 | 1 |"


def test_what_a_plot_is_drawn_from_is_said_where_its_repr_says_nothing() -> None:
    bundle: dict[str, object] = {"text/plain": "?", "application/vnd.plot.v1+json": {"mark": "bar"}}
    plot = Shows(mimebundle=(bundle, None), html="<b>x</b>")
    assert to_tool_result(plot).text == '{"mark": "bar"}'
    assert to_tool_result(JSON({"a": [1]})).text == '{"a": [1]}'
    assert "Return a PNG of it" in to_tool_result(SVG("<svg><script>alert(1)</script></svg>")).text


def test_forms_that_fail_or_are_of_an_odd_kind_harm_nothing() -> None:
    class Fails:
        def _repr_markdown_(self) -> str:
            raise RuntimeError

        def __repr__(self) -> str:
            return "Fails()"

    assert to_tool_result(Fails()).text.startswith("Fails()\n")
    for odd in (5, (), ("",), {"a": 1}, b"bytes"):
        result = to_tool_result(Shows(markdown=odd, latex=odd, mimebundle=odd, html=odd, svg=odd))
        assert "Shown by its repr" in result.text


# --- Frames ------------------------------------------------------------------------------------


def test_a_frame_becomes_a_table_under_its_full_shape() -> None:
    frame = pd.DataFrame({"name": ["a|b", "two\nlines"], "value": [1, 2]})
    result = to_tool_result(frame)
    assert result.text == (
        "DataFrame, 2 rows x 2 columns\n\n| name | value |\n| --- | --- |\n| a\\|b | 1 |\n| two lines | 2 |"
    )
    assert result.details is frame


def test_a_big_frame_is_cut_in_rows_columns_and_cells() -> None:
    frame = pd.DataFrame([["x" * 1000] * 30] * 5000)
    text = to_tool_result(frame).text
    caption, _, header, _, *rows = text.splitlines()
    assert caption == "DataFrame, 5,000 rows x 30 columns (the first 20 rows and first 20 columns are shown)"
    assert header.count("|") == 21
    assert len(rows) == 20
    assert rows[0].split(" | ")[1] == "x" * 79 + "…"


def test_an_index_that_says_something_becomes_columns() -> None:
    frame: Any = pd.DataFrame({"y": ["a", "a", "b"], "z": [1, 1, 2], "n": [1, 2, 3]})
    assert "| y | n |\n| --- | --- |\n| a | 3 |" in to_tool_result(frame.groupby("y")[["n"]].sum()).text
    assert "| y | z | n |\n| --- | --- | --- |\n| a | 1 | 3 |" in to_tool_result(frame.groupby(["y", "z"]).sum()).text
    assert "|  | n |" in to_tool_result(pd.DataFrame({"n": [1]}, index=["first"])).text


def test_a_series_is_a_table_of_one_column() -> None:
    assert to_tool_result(pd.Series([1, 2], name="s")).text == (
        "Series, 2 rows x 1 column\n\n| s |\n| --- |\n| 1 |\n| 2 |"
    )


def test_columns_may_share_a_name_and_a_frame_may_be_empty() -> None:
    assert "| a | a |" in to_tool_result(pd.DataFrame([[1, 2]], columns=["a", "a"])).text
    assert to_tool_result(pd.DataFrame()).text == "DataFrame, 0 rows x 0 columns"


class PolarsLike:
    """As polars' frames are: no index, rows as tuples."""

    def __init__(self, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
        self.columns = columns
        self.rows = rows

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), len(self.columns)

    def head(self, n: int) -> PolarsLike:
        return PolarsLike(self.columns, self.rows[:n])

    def iter_rows(self) -> Any:
        return iter(self.rows)


def test_a_frame_without_an_index_becomes_a_table_too() -> None:
    text = to_tool_result(PolarsLike(["a", "b"], [(n, None) for n in range(30)])).text
    assert text.startswith("PolarsLike, 30 rows x 2 columns (the first 20 rows are shown)\n\n| a | b |\n")
    assert text.endswith("| 19 | None |")


class Lazy:
    columns = ("a",)
    shape = (None, 1)

    def head(self, _: int) -> None:
        raise RuntimeError


def test_something_almost_like_a_frame_is_shown_otherwise() -> None:
    assert "Lazy object" in to_tool_result(Lazy()).text
    assert frame_as_markdown(pd.DataFrame) is None
    assert frame_as_markdown(np.zeros((2, 2))) is None


# --- Whatever comes ----------------------------------------------------------------------------


class BadRepr:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class BadAttributes:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class BadClass:
    def __getattribute__(self, name: str) -> Any:  # isinstance asks for __class__ here
        raise RuntimeError(name)


class BadPicture:
    def _repr_png_(self) -> bytes:
        raise RuntimeError("no picture")


class OddPicture:
    def _repr_png_(self) -> str:
        return "this is not base64"


class BadText(str):
    __slots__ = ()

    def isascii(self) -> bool:
        raise RuntimeError("no text")


class BadHash(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no items")


class Anything:
    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self


@pytest.mark.requirement("A SPEC-8.2")
@pytest.mark.parametrize("kind", [BadRepr, BadClass])
def test_an_object_that_cannot_even_be_looked_at_is_an_error_result(kind: type) -> None:
    result = to_tool_result(kind())
    assert result.is_error or result.text
    assert isinstance(to_tool_result([kind()]), ToolResult)


def test_a_picture_that_fails_is_shown_as_an_object() -> None:
    assert "BadPicture object" in to_tool_result(BadPicture()).text
    assert "OddPicture object" in to_tool_result(OddPicture()).text


def picture_with(value: object) -> list[object]:
    return [picture(), value]


_hostile = st.sampled_from(
    [
        Opaque,
        BadRepr,
        BadAttributes,
        BadClass,
        BadPicture,
        OddPicture,
        BadText,
        BadHash,
        Anything,
        Lazy,
        object,
        Exception,
    ]
).flatmap(st.builds)
_text = st.text(st.characters(exclude_categories=()))
_hashable = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), _text, st.binary(), st.decimals(allow_nan=False),
    st.datetimes(), st.timedeltas(), st.uuids(), st.complex_numbers(), st.fractions(),
    st.just(Color.RED), st.just(int), st.just(len),
)  # fmt: skip
_values = st.recursive(
    _hashable | _hostile,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.sets(_hashable, max_size=3),
        st.dictionaries(_hashable, inner, max_size=3),
        st.builds(Pair, inner, inner),  # pyright: ignore[reportArgumentType] - a dataclass checks nothing
        st.builds(iter, st.lists(inner, max_size=2)),
        st.builds(picture_with, inner),
    ),
    max_leaves=8,
)


@pytest.mark.requirement("A SPEC-8.2")
@settings(deadline=None)
@given(_values)
def test_no_value_makes_it_raise_and_every_result_can_be_sent(value: object) -> None:
    result = to_tool_result(value)
    message = ToolResultMessage(tool_call_id="1", tool_name="t", content=result.content, is_error=result.is_error)
    json.dumps(dump_message(message), allow_nan=False).encode("utf-8")
    result.text.encode("utf-8")
