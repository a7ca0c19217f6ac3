"""Files of a page become content that a model reads; what is no such file is refused in words."""

from __future__ import annotations

import base64
import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from widgets.page import Page

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.messages import ImageContent, TextContent, UserMessage
from yiemagent_nb.testing import Scripted
from yiemagent_nb.widgets.attachments import MAX_TEXT_FILE, read_attachments
from yiemagent_nb.widgets.protocol import Attachment

PNG = b"\x89PNG\r\n\x1a\n" + b"rest of it"


def attachment(name: str, mime_type: str, data: bytes) -> Attachment:
    return Attachment(name=name, mime_type=mime_type, data=base64.b64encode(data).decode())


def test_the_words_come_first_and_the_files_in_their_order() -> None:
    message = read_attachments(
        "Look:", [attachment("a.csv", "text/csv", b"x,y\n1,2"), attachment("b.png", "image/png", PNG)]
    )
    assert message.content == (
        TextContent("Look:"),
        TextContent('<file name="a.csv">\nx,y\n1,2\n</file>'),
        ImageContent.from_bytes(PNG),
    )


def test_files_need_no_words() -> None:
    assert len(read_attachments("  \n", [attachment("b.png", "image/png", PNG)]).content) == 1


def test_words_need_no_files_and_stay_as_they_are() -> None:
    assert read_attachments(" a\n", []).content == (TextContent(" a\n"),)


@given(st.text(max_size=60), st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60))
def test_no_name_escapes_its_place_and_no_text_is_changed(name: str, text: str) -> None:
    text = text.removeprefix("\ufeff")
    [block] = read_attachments("", [attachment(name, "text/plain", text.encode())]).content
    assert isinstance(block, TextContent)
    found = re.fullmatch(r'<file name="([^"<>\n]+)">\n(.*)\n</file>', block.text, re.DOTALL)
    assert found is not None
    assert found[2] == text
    assert html.unescape(found[1]) == (" ".join(name.split()) or "unnamed")


def test_a_byte_order_mark_is_not_part_of_the_text() -> None:
    [block] = read_attachments("", [attachment("a", "", "\ufeffé".encode())]).content
    assert block == TextContent('<file name="a">\né\n</file>')


@pytest.mark.parametrize(
    ("file", "reason", "hint"),
    [
        (Attachment(name="a.csv", mime_type="text/csv", data="a b!"), "'a.csv' is no base64", "Attach it again"),
        (Attachment(name="a.csv", mime_type="text/csv", data="é==="), "'a.csv' is no base64", "Attach it again"),
        (attachment("a.xlsx", "", b"PK\xff\xfe"), "neither an image nor text in UTF-8", "beside the notebook"),
        (attachment("a.bin", "", b"a\0b"), "NUL characters", "beside the notebook"),
        (attachment("a.txt", "text/plain", b"x" * (MAX_TEXT_FILE + 1)), "200,001 bytes", "beside the notebook"),
        (attachment("a.png", "image/png", b"<svg onload='alert(1)'>"), "PNG, JPEG, GIF or WebP", "Convert"),
        (attachment("a.svg", "image/svg+xml", b"<svg/>"), "PNG, JPEG, GIF or WebP", "Convert"),
        (attachment("a.png", "image/png", b""), "PNG, JPEG, GIF or WebP", "Convert"),
    ],
)
def test_what_cannot_be_sent_is_refused_with_what_to_do(file: Attachment, reason: str, hint: str) -> None:
    with pytest.raises(InvalidParametersError) as caught:
        read_attachments("Look:", [file])
    assert reason in caught.value.message
    assert hint in caught.value.hint


def test_nothing_at_all_is_no_message() -> None:
    with pytest.raises(InvalidParametersError, match="empty"):
        read_attachments("\n", [])


async def test_a_page_sends_files_and_takes_them_back_whole() -> None:
    agent = Agent(Scripted(["yes"]))
    page = Page(agent)
    page.hello()
    agent.abort()  # holds what waits
    text = "x" * 120_000
    files = [attachment("a<b>.txt", "text/plain", text.encode()), attachment("b.png", "image/png", PNG)]
    message = {"type": "follow_up", "ticket": "1", "text": "Look:", "attachments": [f.model_dump() for f in files]}
    agent.follow_up_channel.put_nowait(UserMessage("other"))
    agent.abort()
    page.host.receive(message)
    agent.abort()
    assert (await page.reply("1"))["type"] == "accepted"
    waiting = agent.follow_up_channel.items()[-1]
    await page.until("queue")
    queued = page.events("queue")[-1]["follow_ups"][-1]
    assert (queued["text"], queued["images"], queued["files"]) == ("Look:", 1, ["a<b>.txt"])
    page.host.receive({"type": "take_back", "ticket": "2", "key": queued["key"]})
    assert (await page.reply("2"))["type"] == "accepted"
    assert isinstance(waiting, UserMessage)
    assert page.events("taken_back")[-1]["content"] == [block.model_dump() for block in waiting.content]
    assert waiting not in agent.follow_up_channel.items()
    page.host.close()


async def test_a_file_that_is_refused_sends_nothing() -> None:
    agent = Agent(Scripted(["yes"]))
    page = Page(agent)
    page.hello()
    bad = attachment("a.bin", "", b"\xff").model_dump()
    page.host.receive({"type": "send", "ticket": "1", "text": "Look:", "attachments": [bad]})
    reply = await page.reply("1")
    assert (reply["type"], reply["code"]) == ("refused", "INVALID_PARAMETERS")
    assert "beside the notebook" in reply["hint"]
    assert agent.input_channel.items() == ()
    page.host.close()


@pytest.mark.parametrize("claimed", ["image/png", "image/jpg", "IMAGE/PNG", "image/x y"])
def test_an_image_is_of_the_type_that_its_bytes_have(claimed: str) -> None:
    message = read_attachments("", [attachment("a.png", claimed, PNG)])
    assert [getattr(block, "mime_type", "") for block in message.content] == ["image/png"]
