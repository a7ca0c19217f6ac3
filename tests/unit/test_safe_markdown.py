"""Markdown of others in files: it reads as it was written, and no reader finds anything live in it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from markdown_it import MarkdownIt

from yiemagent_nb.sessions.safe_markdown import defuse_formulas, fenced, tame_markdown
from yiemagent_nb.sessions.visible import visible_code, visible_name, visible_text


def test_markdown_stays_markdown() -> None:
    text = "# Title\n\n- **bold**, `a < b` and [a link](https://example.org/a?b=c)\n\n| a |\n|---|\n| $x^2$ |\n"
    text += "\n$$\n\\frac12\n$$"
    assert tame_markdown(text) == text


def test_code_in_fences_stays_code_under_a_fence_longer_than_any_in_it() -> None:
    text = "Look:\n\n```python\nif a < b: [1](2)\n```\n\ndone"
    assert tame_markdown(text) == text
    text = "````md\n```\n````\n\n~~~\n`````\n~~~\n\n```\n`a`\n```"
    assert tame_markdown(text) == "````md\n```\n````\n\n``````\n`````\n``````\n\n```\n`a`\n```"


def test_code_in_a_list_loses_the_indentation_of_the_list_alone() -> None:
    assert tame_markdown("1. x\n   ```py\n   if a:\n       b\n   ```") == "1. x\n\n```py\nif a:\n    b\n```"


@pytest.mark.parametrize(
    "text",
    [
        "$$\n```\n$$\n<img src=x onerror=alert(1)>\n```",
        "\\begin{a}\n```\n\\end{a}\n<img src=x onerror=alert(1)>\n```",
        "\\begin{a} $$ \\end{a} $$\n```\n$$\n<img src=x onerror=alert(1)>\n```",
        "\\\\[\n```\n\\\\]\n<img src=x onerror=alert(1)>\n```",
        "$$$ x $$\n```\n$$\n<img src=x onerror=alert(1)>\n```",
    ],
)
def test_no_formula_runs_on_into_code(text: str) -> None:
    said, _, code = tame_markdown(text).partition("\n\n```")
    assert "<img" in code
    for mark in ("$$", "\\begin", "\\\\["):
        assert mark not in said


@pytest.mark.parametrize("form", ["\\{}", "\\\\{}", "$\\{}{{x}}$", "\\\\\\{}"])
def test_commands_that_make_links_or_read_files_are_none_any_more(form: str) -> None:
    for command in ("href", "input", "def", "require"):
        assert f"\\{command}" not in defuse_formulas(form.format(command))
    assert defuse_formulas("\\hrefs \\frac \\definition") == "\\hrefs \\frac \\definition"


@pytest.mark.parametrize(
    "text",
    [
        "![x](https://example.org/x.png)",
        "![x][1]\n\n[1]: https://example.org/x.png",
        "[![x](https://e.org/x.png)](https://e.org)",
        "\\![x](https://e.org/x.png)",
        "[a](javascript:alert(1)) [b](  data:text/html,x) [c](<javascript:x>) [d]( javascript&colon;x)",
        "[a\n](javascript:alert(1))",
        "[^1]: javascript:x",
        "<javascript:alert(1)>",
    ],
)
def test_nothing_loads_and_no_link_leads_elsewhere_than_to_the_web(text: str) -> None:
    html = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(tame_markdown(text))
    assert "<img" not in html
    assert 'href="' not in html.replace('href="https://', "")


def test_what_readers_draw_is_shown_as_text() -> None:
    assert fenced("graph TD", "mermaid") == "```text\ngraph TD\n```"


def test_characters_that_programs_obey_are_visible() -> None:
    assert visible_text("\x1b[31mred\x1b[0m \x1b]8;;https://e.org\x07x\x9b\r\nend\r!") == (
        "red \\x1b]8;;https://e.org\\x07x\\x9b\nend\n!"
    )
    assert visible_code("if user != '\u202e\u2066': \u200d") == "if user != '\\u202e\\u2066': \u200d"
    assert visible_name("in\u202evoice\u200b\n.\U000e0041pdf") == "in\\u202evoice\\u200b .\\U000e0041pdf"
    assert visible_name("résumé 数据 데이터.csv") == "résumé 数据 데이터.csv"


def test_a_fence_is_never_long_and_what_would_need_a_longer_one_is_broken() -> None:
    run = "`" * 500
    for text in (fenced(f"a\n{run}\nb"), tame_markdown(f"~~~\na\n{run}\nb\n~~~")):
        fence = text.partition("\n")[0].removesuffix("text")
        assert fence == "`" * 51
        assert text.replace("\u200b", "") == f"{text.partition(chr(10))[0]}\na\n{run}\nb\n{fence}"
        html = MarkdownIt("commonmark").render(text)
        assert html.count("<code") == 1
        assert html.count("`") == 500


GREEDY = {
    "fences and a run": '"~~~\\na\\n~~~\\n" * (n // 12) + "x " + "`" * (n // 2)',
    "fences that hold a run": '("~~~\\n" + "`" * 1000 + "\\n~~~\\n") * (n // 1010)',
    "a fence of a run": '"`" * n',
    "runs and lines": '("`" * 3000 + "\\n") * (n // 3001)',
    "an indented fence": '" " * (n // 2) + "```\\n" + "\\n" * (n // 2)',
    "a long fence": '"`" * (n // 2) + "\\n" + "```\\n" * (n // 8)',
    "backslashes": '"\\\\" * n',
    "backslashes and dollars": '"\\\\$" * (n // 2)',
    "beginnings": '"\\\\begin{" * (n // 7)',
    "beginnings and endings": '"\\\\begin{x}\\\\end{x}" * (n // 17) + "$$"',
    "formulas that stay open": '"$$" + "\\\\begin\\\\end" * (n // 10)',
    "dollars": '"$" * n',
    "links": '"](https://a" * (n // 11)',
    "one long link": '"](https://" + "a" * n',
    "images": '"![" * (n // 2)',
    "definitions": '"[a]:" * (n // 4)',
    "tags": '"<a " * (n // 3)',
    "spaces": '" " * n + "x"',
    "colours": '"\\x1b[1" * (n // 3)',
    "one long colour": '"\\x1b[" + "1" * n',
    "control characters": '"\\x1b" * n',
    "a file": '"<file name=\\"a\\">\\n" + "\\n</file> \\n" * (n // 10) + "x"',
}
"""Expressions for texts of ``n`` characters, of kinds for which careless programs take the square of that."""

PROGRAM = """
import json, sys
from yiemagent_nb.core.messages import AssistantMessage, ReasoningContent, UserMessage
from yiemagent_nb.sessions.export import export_markdown, export_notebook

n = 400_000
for name, expression in json.load(sys.stdin).items():
    print(name, end=" ", flush=True)
    text = eval(expression)
    messages = [UserMessage(text), AssistantMessage([ReasoningContent(text), text], error_message=text)]
    print(len(text), len(export_markdown(messages)), len(export_notebook(messages)), flush=True)
"""


def test_no_text_takes_more_than_a_moment_or_grows_much() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(GREEDY),
        capture_output=True,
        text=True,
        check=True,
        timeout=90,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(GREEDY)
    for line in lines:
        size, markdown, notebook = map(int, line.split()[-3:])
        assert size > 350_000, line
        assert markdown < 4 * 5 * size, line
        assert notebook < 4 * 9 * size, line
