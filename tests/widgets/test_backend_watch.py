"""The header says how the backend is and which models it has; no server elsewhere is asked unbidden."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import httpx2
import pytest
from backends.web import LIST, closed_port, json_page, serving, silent
from widgets.page import Page

from yiemagent_nb.backends.openai_compatible import Health, OpenAICompatible
from yiemagent_nb.backends.state import BackendState, ask_state
from yiemagent_nb.backends.vllm import VLLM
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.errors import BackendConnectionError
from yiemagent_nb.core.models import LlmModel

Messages = Sequence[Mapping[str, Any]]


def form(page: Page) -> dict[str, Any]:
    """The newest that the page knows."""
    told = page.events("backend")
    return told[-1] if told else page.batches[0]["snapshot"]["backend"]


async def until(page: Page, *states: str) -> dict[str, Any]:
    """Wait until the page is told of one of these states."""
    while True:
        told = len(page.events("backend"))
        if form(page)["health"]["state"] in states:
            return form(page)
        await page.until("backend", told + 1)


def answer(_messages: Messages) -> str:
    return "hi"


async def look(agent: Agent) -> Page:
    page = Page(agent)
    page.hello()
    await page.until("alive")
    return page


async def test_a_server_on_this_machine_is_asked_when_a_page_comes() -> None:
    async with serving({"/v1/models": LIST}) as web:
        page = await look(Agent(OpenAICompatible(web.url(), "small")))
        shown = await until(page, "ok")
        assert shown["models"] == ["small"]
        assert "is ready and serves small" in shown["health"]["message"]
        assert web.asked == ["/v1/models"]


async def test_a_server_elsewhere_is_asked_nothing_before_a_person_does_something() -> None:
    asked: list[str] = []

    async def list_models(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return httpx2.Response(200, json={"data": [{"id": "far"}]})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(list_models)) as client:
        agent = Agent(OpenAICompatible("http://far.example/v1", "far", http_client=client))
        page = await look(agent)
        page.hello()
        agent.set_thinking_level("low")
        await page.until("backend")
        assert form(page)["health"] == {"state": "unknown", "message": "", "hint": ""}
        assert asked == []
        page.host.receive({"type": "check_backend", "ticket": "t"})
        assert (await page.reply("t"))["type"] == "accepted"
        assert (await until(page, "ok", "bad"))["models"] == ["far"]
        assert asked == ["http://far.example/v1/models"]


async def test_while_a_server_is_asked_the_page_is_told_and_the_kernel_goes_on() -> None:
    async with silent() as web:
        page = await look(Agent(OpenAICompatible(web.url())))
        await until(page, "checking")
        async with asyncio.timeout(1):
            for _ in range(20):
                await asyncio.sleep(0)


async def test_nothing_at_a_port_is_said_in_a_sentence() -> None:
    port = closed_port()
    page = await look(Agent(VLLM("small", base_url=f"http://127.0.0.1:{port}/v1")))
    shown = await until(page, "bad")
    assert str(port) in shown["health"]["message"]
    assert shown["models"] == []


@pytest.mark.parametrize("key", [None, "a-key-of-the-test"])
async def test_a_key_that_is_missing_is_said(key: str | None) -> None:
    async with serving({"/v1/models": LIST}, key="a-key-of-the-test") as web:
        page = await look(Agent(OpenAICompatible(web.url(), "small", api_key=key)))
        shown = await until(page, "ok", "bad")
        assert shown["health"]["state"] == ("bad" if key is None else "ok")
        assert ("key" in shown["health"]["message"]) is (key is None)


async def test_an_error_of_a_run_makes_the_state_bad_with_its_own_sentence_and_an_answer_makes_it_good() -> None:
    async def broken(_messages: Messages) -> str:
        raise BackendConnectionError("Nothing listens there.", "Start it.")

    agent = Agent(broken)
    page = await look(agent)
    await agent.prompt("hello")
    shown = await until(page, "bad")
    assert shown["health"] == {"state": "bad", "message": "Nothing listens there.", "hint": "Start it."}

    async def fine(_messages: Messages) -> str:
        return "hello"

    agent.set_llm_call(fine)
    assert (await until(page, "unknown"))["health"]["message"] == ""
    await agent.prompt("hello")
    assert (await until(page, "ok"))["health"]["message"] == "It answered the last message."


class Own:
    """A backend of a user's own that lists its models in one of the ways that it may."""

    def __init__(self, models: Callable[[], Any]) -> None:
        self.models = models

    async def __call__(self, _messages: Messages, *, model: object = None) -> AsyncIterator[str]:
        raise NotImplementedError


async def _later() -> list[LlmModel]:
    return [LlmModel(id="one"), LlmModel(id="two")]


async def _failing() -> list[str]:
    raise RuntimeError("no shelf")


@pytest.mark.parametrize(
    ("models", "state", "names"),
    [
        (_later, "ok", ["one", "two"]),
        (lambda: ("one", "two", "one"), "ok", ["one", "two"]),
        (lambda: ["fine", "line\nbreak", 7, "", "x" * 500], "ok", ["fine"]),
        (list, "bad", []),
        (_failing, "bad", []),
    ],
)
async def test_any_object_with_models_has_them_listed(
    models: Callable[[], Awaitable[list[str]]], state: str, names: list[str]
) -> None:
    page = await look(Agent(Own(models)))
    assert form(page)["health"]["state"] == "unknown"
    page.host.receive({"type": "check_backend", "ticket": "t"})
    shown = await until(page, "ok", "bad")
    assert (shown["health"]["state"], shown["models"]) == (state, names)


class Asked:
    """A backend of a user's own that can be asked how it is."""

    def __init__(self, health: Callable[[], Any]) -> None:
        self.health = health

    def __call__(self, _messages: Messages) -> str:
        return "hi"


async def test_a_backend_that_never_says_how_it_is_is_given_up() -> None:
    ended = threading.Event()

    async def never() -> Health:
        await asyncio.Event().wait()
        raise NotImplementedError

    for health in (never, ended.wait):
        told = await ask_state(Asked(health), 0.05)
        assert (told.state, told.message) == ("bad", "Asked did not say within 0.05 seconds how it is.")
    ended.set()


async def test_a_widget_that_is_closed_asks_no_more() -> None:
    asking, over = threading.Event(), threading.Event()

    async def never() -> Health:
        asking.set()
        try:
            await asyncio.Event().wait()
        finally:
            over.set()
        raise NotImplementedError

    page = await look(Agent(Asked(never)))
    page.host.receive({"type": "check_backend", "ticket": "t"})
    assert await asyncio.to_thread(asking.wait, 5)
    page.host.close()
    assert await asyncio.to_thread(over.wait, 5)


async def test_a_loop_on_which_nothing_can_be_asked_ends_the_checking(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_work: object) -> None:
        raise RuntimeError("no loop")

    async with httpx2.AsyncClient() as client:
        agent = Agent(OpenAICompatible("http://far.example/v1", "far", http_client=client))
        monkeypatch.setattr(agent, "alongside", fail)
        page = await look(agent)
        page.host.receive({"type": "check_backend", "ticket": "t"})
        while "no loop" not in form(page)["health"]["message"]:
            await page.until("backend", len(page.events("backend")) + 1)
        assert form(page)["health"]["state"] == "unknown"


async def test_what_a_backend_says_of_itself_is_shown_at_a_length_that_fits() -> None:
    async def long() -> Health:
        return Health(ok=True, message="m" * 1_000_000)

    page = await look(Agent(Asked(long)))
    page.host.receive({"type": "check_backend", "ticket": "t"})
    message = (await until(page, "ok"))["health"]["message"]
    assert message.startswith("mmm")
    assert len(message) < 1100


async def test_a_form_that_was_built_before_another_does_not_arrive_after_it() -> None:
    gate, building = threading.Event(), threading.Event()
    gate.set()

    class Slow:
        @property
        def suggestions(self) -> list[str]:
            building.set()
            gate.wait(5)
            return []

        def __call__(self, _messages: Messages) -> str:
            return "hi"

    backend = Slow()
    page = await look(Agent(backend))
    gate.clear()
    building.clear()
    know = page.host.backend.watch.know
    first = threading.Thread(target=know, args=(backend, BackendState("bad", "first")))
    second = threading.Thread(target=know, args=(backend, BackendState("ok", "second")))
    first.start()
    assert building.wait(5)
    second.start()
    await asyncio.to_thread(second.join, 0.2)  # it waits for the first, or would be done by then
    gate.set()
    for thread in (first, second):
        await asyncio.to_thread(thread.join)
    await until(page, "ok")
    page.host.receive({"type": "heartbeat", "last_seq": page.seq})
    await page.until("alive", 2)
    assert form(page)["health"]["message"] == "second"


async def test_what_was_asked_of_one_backend_is_not_taken_for_another() -> None:
    release = asyncio.Event()
    loop = asyncio.get_running_loop()

    class Slow:
        async def __call__(self, _messages: Messages) -> str:
            raise NotImplementedError

        async def health(self) -> Health:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(release.wait(), loop))
            return Health(ok=True, message="slow is fine")

    agent = Agent(Slow())
    page = await look(agent)
    page.host.receive({"type": "check_backend", "ticket": "t"})
    await until(page, "checking")
    agent.set_llm_call(answer)
    await until(page, "unknown")
    release.set()
    page.host.receive({"type": "check_backend", "ticket": "t2"})
    await page.reply("t2")
    assert "slow is fine" not in str(page.batches)


async def test_a_list_of_models_that_repeats_the_key_does_not_show_it() -> None:
    key = "sk-a-marked-key-0123456789"
    async with serving({"/v1/models": json_page({"data": [{"id": key}, {"id": "m"}]})}, key=key) as web:
        page = await look(Agent(OpenAICompatible(web.url(), api_key=key)))
        assert "m" in (await until(page, "ok"))["models"]
        assert key not in str(page.batches)
