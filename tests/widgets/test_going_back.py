"""What a page asks of the course of a conversation."""

from __future__ import annotations

import asyncio

from agent.script import eventually
from widgets.page import Page

from yiemagent_nb.core.agent import Agent


async def test_the_page_edits_regenerates_and_switches_and_learns_the_branches_from_snapshots() -> None:
    answers = iter(["one", "two", "three"])

    def answer(_messages: object) -> str:
        return next(answers)

    agent = Agent(answer)
    page = Page(agent)
    page.hello()
    await agent.prompt("u")
    page.host.receive({"type": "edit", "ticket": "e", "index": 0, "text": "other"})
    assert (await page.reply("e"))["type"] == "accepted"
    await page.until("run_end", 2)
    await agent.wait_idle()
    page.host.receive({"type": "regenerate", "ticket": "r", "index": 1})
    assert (await page.reply("r"))["type"] == "accepted"
    await page.until("run_end", 3)
    await agent.wait_idle()
    page.host.receive({"type": "switch_branch", "ticket": "s", "index": 1, "position": 0})
    assert (await page.reply("s"))["type"] == "accepted"
    await page.until("renewed", 3)
    await eventually(lambda: page.texts == ["other", "two"])
    chat = page.batches[-1]["snapshot"]["chat"]
    assert [message.get("branch") for message in chat["messages"]] == [
        {"position": 1, "count": 2},
        {"position": 0, "count": 2},
    ]
    assert page.problems == []


async def test_what_waits_has_a_name_by_which_the_page_takes_it_back_or_lets_it_steer() -> None:
    gate = asyncio.Event()

    async def slow(_messages: object) -> str:
        await gate.wait()
        return "done"

    agent = Agent(slow)
    page = Page(agent)
    page.hello()
    going = asyncio.ensure_future(agent.prompt("u"))
    await page.until("run_start")
    agent.follow_up("first")
    agent.follow_up("second")
    await eventually(lambda: any(len(event["follow_ups"]) == 2 for event in page.events("queue")))
    first, second = page.events("queue")[-1]["follow_ups"]
    page.host.receive({"type": "take_back", "ticket": "t", "key": first["key"]})
    assert (await page.reply("t"))["type"] == "accepted"
    assert page.events("taken_back")[0]["content"] == [{"type": "text", "text": "first"}]
    page.host.receive({"type": "steer_now", "ticket": "n", "key": second["key"]})
    assert (await page.reply("n"))["type"] == "accepted"
    await eventually(lambda: [item["text"] for item in page.events("queue")[-1]["steering"]] == ["second"])
    page.host.receive({"type": "take_back", "ticket": "again", "key": first["key"]})
    assert (await page.reply("again"))["message"] == "This message does not wait any more."
    gate.set()
    await going
    await agent.wait_idle()
    assert [message.text for message in agent.messages if message.role == "user"] == ["u", "second"]


async def test_a_change_of_course_is_accepted_only_when_it_has_begun() -> None:
    gate = asyncio.Event()

    async def slow(_messages: object) -> str:
        await gate.wait()
        return "done"

    agent = Agent(slow)
    gate.set()
    await agent.prompt("u")
    gate.clear()
    page = Page(agent)
    page.hello()
    page.host.receive(
        {"type": "send", "ticket": "s", "text": "another"}
    )  # the run begins with the next step of the loop
    page.host.receive({"type": "edit", "ticket": "e", "index": 0, "text": "EDITED"})
    page.host.receive({"type": "switch_branch", "ticket": "w", "index": 0, "position": 0})
    assert (await page.reply("e"))["code"] == "AGENT_BUSY"
    assert (await page.reply("w"))["code"] == "AGENT_BUSY"
    gate.set()
    await agent.wait_idle()
    page.host.receive({"type": "switch_branch", "ticket": "n", "index": 0, "position": 7})
    assert "No branch 7" in (await page.reply("n"))["message"]


async def test_a_long_message_that_waits_is_told_in_short() -> None:
    agent = Agent(lambda: "never")
    page = Page(agent)
    agent.abort()
    page.hello()
    agent.follow_up_channel.put_nowait("x" * 300_000)
    await page.until("queue")
    assert len(page.events("queue")[-1]["follow_ups"][0]["text"]) < 600
