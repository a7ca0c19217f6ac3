"""HTML as words: what is seen of it stays, and no text makes the reading slow or its result long."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yiemagent_nb.core.displays import html_as_text

PIECES = (
    *("<a ", "<table>", "<tr>", "<td>", "<th>", "</table>", "<p>", "<br/>", "<svg>", "</svg>", "<script>", "</script>"),
    *("<style", "</sty", "<!--", "-->", "<", "</", "<?", "<![CDATA[", ">", "/>", "=", '="', "='", '"', "'", " ", "\n"),
    *("&", "&#", "&#x10ffff;", "&amp;", "&notin", "9", "|", "\\", "a", "é"),
)
"""What the reader looks for, and what may stand between it."""


@pytest.mark.parametrize(
    ("html", "words"),
    [
        ("a &amp; b &lt c &#65;&#x42; &unknown; &", "a & b < c AB &unknown; &"),
        ('<a title="x>y">seen</a> <p it\'s>and</p> more', "seen\nand\nmore"),
        ("x < y and z > 1", "x < y and z > 1"),
        ("one<!-- <b>no</b> -->two<!-- no", "onetwo"),
        ("<svg><script/><text>no</text></svg>one<svg/>two", "onetwo"),
        ("<STYLE>p { content: '</p>' }</style>one<script>'<!--'</script>two", "onetwo"),
        ("one<?php no ?>two<![CDATA[no]]>", "onetwo"),
        ("<select><option>no</select>one<title>a<b></title>", "one"),
        ("<table><tr><td>a<td>b<tr><td>c</table>", "| a | b |\n| --- | --- |\n| c |"),
        ("<table><tr><td>a<tr><td>b<td>c</table>", "| a | |\n| --- | --- |\n| b | c |"),
        ("one<a href='never closed", "one"),
        ("&#" + "1" * 10_000, "\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_what_is_seen_stays(html: str, words: str) -> None:
    assert html_as_text(html) == words


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text(max_size=60), st.integers(1, 50))
def test_the_words_are_no_more_than_a_few_times_as_long_as_the_html(html: str, times: int) -> None:
    assert len(html_as_text(html * times)) <= 4 * len(html) * times


@pytest.mark.parametrize("piece", ["<a ", "<!--", "<", "<![CDATA[", "<style>", "<?", "&", "<a x='", "<a =", "<svg>"])
def test_no_text_makes_it_slow(piece: str) -> None:
    started = time.perf_counter()
    html_as_text(piece * 20_000)
    assert time.perf_counter() - started < 1  # where each piece reads on to the end, it is half a minute


def test_rows_are_not_filled_up_to_the_widest() -> None:
    html = "<table><tr>" + "<td>" * 2000 + "<tr><td>x" * 2000
    assert len(html_as_text(html)) < 2 * len(html)
