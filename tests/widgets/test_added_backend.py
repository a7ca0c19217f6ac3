"""A person adds a server in the page; its key comes beside the message, and is seen nowhere."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from backends.web import LIST, Page, closed_port, json_page, serving
from widgets.page import Page as WidgetPage

from yiemagent_nb.backends.demo import Demo
from yiemagent_nb.backends.openai_compatible import OpenAICompatible
from yiemagent_nb.backends.state import BackendState
from yiemagent_nb.backends.vllm import VLLM
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.backend import LlmCall
from yiemagent_nb.core.events import BackendChanged, Event
from yiemagent_nb.core.signal import AbortSignal

KEY = "sk-a-marked-key-0123456789"
OF_VLLM = {"/v1/models": json_page({"data": [{"id": "small", "owned_by": "vllm", "max_model_len": 4096}]})}
OTHER: dict[str, Page] = {"/v1/models": LIST}


async def look(agent: Agent) -> WidgetPage:
    page = WidgetPage(agent)
    page.hello()
    await page.until("alive")
    return page


async def add(page: WidgetPage, base_url: str, *buffers: bytes, ticket: str = "t", **more: Any) -> dict[str, Any]:
    message = {"type": "add_backend", "ticket": ticket, "base_url": base_url, **more}
    page.host.receive(message, [memoryview(buffer) for buffer in buffers])
    return await page.reply(ticket)


async def test_a_server_is_recognised_offered_and_answers_from_now_on() -> None:
    before = Demo()
    agent = Agent(before)
    page = await look(agent)
    async with serving(OF_VLLM, key=KEY) as web:
        assert (await add(page, web.url(""), KEY.encode()))["type"] == "accepted"
        assert isinstance(agent.llm_call, VLLM)
        shown = page.host.backend.form()
        assert shown["label"] == f"vLLM at 127.0.0.1:{web.port}"
        assert shown["key"] == shown["choices"][-1]["key"]
        assert (shown["health"]["state"], shown["models"]) == ("ok", ["small"])
        assert KEY not in str(page.batches)
        assert KEY not in repr(vars(page.host))
    page.host.receive({"type": "set_backend", "ticket": "back", "key": shown["choices"][0]["key"]})
    await page.reply("back")
    assert agent.llm_call is before


async def test_a_key_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_THE_TEST", KEY)
    agent = Agent(Demo())
    page = await look(agent)
    async with serving(OTHER, key=KEY) as web:
        assert (await add(page, web.url(), model="small", key_env="KEY_OF_THE_TEST"))["type"] == "accepted"
    assert isinstance(agent.llm_call, OpenAICompatible)


async def test_the_same_server_again_takes_the_place_of_the_first() -> None:
    agent = Agent(Demo())
    page = await look(agent)
    async with serving(OTHER, key=KEY) as web:
        await add(page, web.url(), KEY.encode())
        await add(page, web.url(), KEY.encode(), ticket="again")
    assert len(page.host.backend.form()["choices"]) == 2


async def test_a_server_that_cannot_be_used_is_refused_with_what_is_wrong_and_nothing_changes() -> None:
    agent = Agent(Demo())
    page = await look(agent)
    before = agent.llm_call
    port = closed_port()
    assert str(port) in (await add(page, f"http://127.0.0.1:{port}", ticket="closed"))["message"]
    async with serving(OTHER, key=KEY) as web:
        said = await add(page, web.url(), b"another-key-0123456789", ticket="wrong")
        assert "key" in said["message"]
        assert "another-key" not in str(page.batches)
        said = await add(page, web.url(), KEY.encode(), ticket="model", model="smal")
        assert "Did you mean 'small'?" in said["message"]
    unset = await add(page, web.url(), ticket="unset", key_env="NOT_SET_IN_THE_TEST")
    assert "NOT_SET_IN_THE_TEST is not set" in unset["message"]
    assert agent.llm_call is before
    assert len(page.host.backend.form()["choices"]) == 1


@pytest.mark.parametrize(
    ("base_url", "buffers", "words"),
    [
        ("ftp://somewhere", (), "no web address"),
        ("http://ada:secret@127.0.0.1:1/v1", (), "holds a name or a password"),
        ("http://[::1/a-secret/v1", (), "base_url 'http://[::1' is no web address"),
        ("http://127.0.0.1:1", ("a secret text",), "no buffer"),
        ("http://127.0.0.1:1", (b"two words",), "cannot be sent"),
        ("http://127.0.0.1:1", (b"one", b"two"), "one key"),
        ("http://127.0.0.1:1", (b"x" * 10_001,), "one key"),
    ],
)
async def test_what_cannot_be_meant_is_refused_at_once(base_url: str, buffers: tuple[Any, ...], words: str) -> None:
    page = await look(Agent(Demo()))
    page.host.receive({"type": "add_backend", "ticket": "t", "base_url": base_url}, buffers)
    refused = await page.reply("t")
    assert words in refused["message"]
    assert "secret" not in str(page.batches)


async def test_a_key_in_the_path_of_an_address_is_not_repeated() -> None:
    page = await look(Agent(Demo()))
    async with serving({"*": json_page({"error": {"message": f"No such route: /{KEY}/v1/models"}}, 404)}) as web:
        refused = await add(page, f"{web.url('')}/{KEY}/v1")
    assert f"http://127.0.0.1:{web.port}" in refused["message"]
    assert KEY not in str(page.batches)


async def test_visitors_of_an_app_add_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_SOFTWARE", "voila/0.5")
    monkeypatch.setenv("KEY_OF_THE_TEST", KEY)
    page = await look(Agent(Demo()))
    async with serving(OTHER) as web:
        refused = await add(page, web.url(), key_env="KEY_OF_THE_TEST")
        assert "served as an app" in refused["message"]
        assert web.asked == []


async def test_a_request_that_is_repeated_while_it_is_carried_out_is_answered_once() -> None:
    page = await look(Agent(Demo()))
    async with serving(OTHER) as web:
        message = {"type": "add_backend", "ticket": "t", "base_url": web.url()}
        for _ in range(3):
            page.host.receive(message)
        await page.reply("t")
        asked = web.asked.count("/v1/models")
        page.host.receive(message)
        await page.until("accepted", 2)
        assert web.asked.count("/v1/models") == asked == 2
    assert len(page.host.backend.form()["choices"]) == 2


async def test_a_server_that_was_added_is_not_asked_once_more_when_it_begins_to_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = Agent(Demo())
    page = await look(agent)
    watch = page.host.backend.watch
    know, changed = watch.know, threading.Event()

    def know_late(backend: LlmCall, state: BackendState) -> None:
        assert changed.wait(10)  # the agent's event comes before the one who added the server has gone on
        know(backend, state)

    def observe(event: Event, _signal: AbortSignal) -> None:
        if isinstance(event, BackendChanged):
            changed.set()

    monkeypatch.setattr(watch, "know", know_late)
    agent.subscribe(observe)
    async with serving(OTHER) as web:
        page.host.receive({"type": "add_backend", "ticket": "t", "base_url": web.url()})
        assert (await page.reply("t"))["type"] == "accepted"
        assert web.asked.count("/v1/models") == 2
    assert watch.state.state == "ok"
