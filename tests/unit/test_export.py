"""A conversation as a file: markdown, or a notebook."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import nbformat
import pytest

from yiemagent_nb import Agent, Scripted, save_conversation
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.messages import (
    AssistantMessage,
    AssistantToolCallMessage,
    CustomMessage,
    ImageContent,
    Message,
    ReasoningContent,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from yiemagent_nb.core.redaction import Redactor
from yiemagent_nb.sessions.export import conversation_file, export_markdown, export_notebook

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n0000").decode()
IMAGE = ImageContent(data=PIXEL, mime_type="image/png")
CODE = "Run this:\n\n```python\nprint('<b>')\n```\n\nor this:\n\n```sh\nls\n```"

CONVERSATION: list[Message] = [
    UserMessage(["Plot *it*", '<file name="a &amp; b.csv">\nx,y\n1,2\n</file>', IMAGE]),
    AssistantToolCallMessage(
        [ReasoningContent("I should plot."), "I plot."],
        tool_calls=[ToolCall(id="c", name="plot", arguments={"kind": "line"})],
    ),
    ToolResultMessage(tool_call_id="c", tool_name="plot", content=(TextContent("plotted"), IMAGE)),
    AssistantMessage(CODE),
    CustomMessage(kind="note"),
    AssistantMessage("half", stop_reason="aborted"),
    AssistantMessage("", stop_reason="error", error_message="No connection. [CONNECTION]"),
]


def cells_of(messages: Sequence[Message], title: str = "") -> list[dict[str, Any]]:
    notebook = cast("Any", nbformat).reads(export_notebook(messages, title), as_version=4)
    cast("Any", nbformat).validate(notebook)
    return notebook.cells


def test_markdown_holds_what_was_said_and_done_in_its_order() -> None:
    text = export_markdown(CONVERSATION, "My plot")
    parts = [
        *("# My plot", "**You**", "Plot *it*", "<details><summary>Attached file</summary>", "a & b.csv", "x,y\n1,2"),
        *(f"![image](data:image/png;base64,{PIXEL})", "**Agent**", "<summary>Thought</summary>", "I should plot."),
        *("I plot.", "*Call*", 'plot(kind="line")', "*Result*", "plotted", "```python\nprint('<b>')\n```"),
        *("```sh\nls\n```", "note", "half", "*Stopped*", "Error: No connection."),
    ]
    at = 0
    for part in parts:
        at = text.index(part, at) + len(part)


def test_a_notebook_is_valid_and_has_code_in_python_as_cells_that_nobody_ran() -> None:
    cells = cells_of(CONVERSATION, "My plot")
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["source"] for cell in code] == ["print('<b>')"]
    assert code[0]["outputs"] == []
    assert code[0]["metadata"]["tags"] == ["skip-execution"]
    assert cells[0]["source"] == "# My plot"
    assert cells[1]["attachments"] == {"image0.png": {"image/png": PIXEL}}
    assert "![image](attachment:image0.png)" in cells[1]["source"]
    assert "```sh\nls\n```" in cells[6]["source"]


def test_an_empty_conversation_is_an_empty_file_that_is_valid() -> None:
    assert cells_of([]) == []
    assert export_markdown([]) == "\n"


def test_a_denied_call_is_told_as_denied() -> None:
    result = ToolResultMessage(
        tool_call_id="c",
        tool_name="x",
        content=(TextContent("The person denied this call."),),
        is_error=True,
        details={"blocked": True, "hook": "approve"},
    )
    assert export_markdown([result]) == "*Denied*\n\n```text\nThe person denied this call.\n```\n"


def test_keys_of_connections_are_masked_in_every_form() -> None:
    key = "sk-marked-0123456789abcdef"
    connection = Redactor()
    connection.add(key)
    messages = [UserMessage(f"my key is {key}"), AssistantMessage(f"```python\nkey = '{key}'\n```")]
    for text in (export_markdown(messages, key), export_notebook(messages, key)):
        assert key not in text
        assert "[key]" in text
    assert connection(key) == "[key]"


def test_the_file_for_a_page_has_a_name_and_a_type() -> None:
    markdown = conversation_file(CONVERSATION, "markdown")
    assert markdown.name.startswith("conversation-")
    assert markdown.name.endswith(".md")
    assert markdown.mime_type == "text/markdown"
    notebook = conversation_file(CONVERSATION, "notebook")
    assert notebook.name.endswith(".ipynb")
    assert json.loads(notebook.text)["nbformat"] == 4


async def test_an_agent_is_saved_by_the_suffix_of_the_path(tmp_path: Path) -> None:
    async with Agent(Scripted(["hello"])) as agent:
        await agent.prompt("hi")
        path = save_conversation(agent, tmp_path / "talk.md", title="A talk")
        assert path.read_text(encoding="utf-8") == "# A talk\n\n**You**\n\nhi\n\n**Agent**\n\nhello\n"
        notebook = save_conversation(agent, str(tmp_path / "talk.ipynb"))
        assert json.loads(notebook.read_text(encoding="utf-8"))["cells"][0]["source"] == ["**You**\n", "\n", "hi"]


def test_a_file_that_is_there_is_replaced_only_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "talk.md"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(InvalidParametersError, match=r"is there already. Pass overwrite=True"):
        save_conversation(CONVERSATION, path)
    assert path.read_text(encoding="utf-8") == "mine"
    save_conversation(CONVERSATION, path, overwrite=True)
    assert path.read_text(encoding="utf-8") == export_markdown(CONVERSATION)


def test_another_suffix_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidParametersError, match=r"'talk.docx': its suffix says no known form. Let the path end in"
    ):
        save_conversation(CONVERSATION, tmp_path / "talk.docx")
    assert list(tmp_path.iterdir()) == []


def test_halves_of_characters_become_replacement_characters_wherever_they_stand(tmp_path: Path) -> None:
    half = "a\ud800b"
    call = ToolCall(id="c", name="x", arguments={"text": half})
    for name in ("talk.md", "talk.ipynb"):
        path = save_conversation([AssistantToolCallMessage(tool_calls=[call])], tmp_path / name, title=half)
        assert path.read_text(encoding="utf-8").count("\ufffd") == 2


def test_a_file_stays_as_it_was_until_the_new_one_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "talk.md"
    path.write_text("mine", encoding="utf-8")

    def fail(_self: Path, _target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        save_conversation(CONVERSATION, path, overwrite=True)
    assert path.read_text(encoding="utf-8") == "mine"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="needs links and modes of POSIX")
def test_replacing_a_file_keeps_its_mode_and_a_link_to_it(tmp_path: Path) -> None:
    path, link = tmp_path / "talk.md", tmp_path / "link.md"
    path.write_text("mine", encoding="utf-8")
    path.chmod(0o640)
    link.symlink_to(path)
    save_conversation(CONVERSATION, link, overwrite=True)
    assert link.is_symlink()
    assert path.read_text(encoding="utf-8") == export_markdown(CONVERSATION)
    assert path.stat().st_mode & 0o777 == 0o640
