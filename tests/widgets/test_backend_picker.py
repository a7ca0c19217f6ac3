"""The header shows which backend answers, and lets a person take another that was found."""

from __future__ import annotations

from typing import Any

import pytest
from widgets.page import Page

from yiemagent_nb.backends.demo import Demo
from yiemagent_nb.backends.discovery import Candidate, DefaultBackend, Found
from yiemagent_nb.backends.vllm import VLLM
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.backend import DescribedBackend, LlmCall
from yiemagent_nb.core.errors import InvalidParametersError

SERVER = Candidate("vllm", "vLLM: llama", "vLLM answers on port 8000.", "http://127.0.0.1:8000/v1", ("llama", "qwen"))
DEMO = Candidate("demo", "Demo (built-in script)", "It is always there.")


async def find() -> Found:
    return Found(DEMO.build(), DEMO.label, "Nothing else is here.", (SERVER,), choice=DEMO)


def new_function() -> LlmCall:
    def my_model(_messages: object) -> str:
        return "hi"

    return my_model


def picked(form: dict[str, Any]) -> dict[str, Any]:
    return {name: form[name] for name in ("label", "choices", "key", "note", "model")}


async def look(agent: Agent) -> tuple[Page, dict[str, Any]]:
    page = Page(agent)
    page.hello()
    await page.until("alive")
    shown = page.batches[0]["snapshot"]["backend"]
    if not (shown["choices"] or shown["note"]):
        await page.until("backend")
        shown = page.events("backend")[-1]
    return page, picked(shown)


async def press(page: Page, ticket: str, **message: Any) -> dict[str, Any]:
    page.host.receive({"ticket": ticket, **message})
    return await page.reply(ticket)


async def test_what_was_found_is_shown_with_what_else_could_answer() -> None:
    _, shown = await look(Agent(DefaultBackend(find)))
    assert shown == {
        "label": "Demo (built-in script)",
        "choices": [{"key": "1", "label": "Demo (built-in script)"}, {"key": "2", "label": "vLLM"}],
        "key": "1",
        "note": "Nothing else is here.",
        "model": "demo",
    }


async def test_a_person_takes_another_and_comes_back() -> None:
    agent = Agent(DefaultBackend(find))
    page, _ = await look(agent)
    assert (await press(page, "t", type="set_backend", key="2"))["type"] == "accepted"
    chosen = agent.llm_call
    assert isinstance(chosen, VLLM)
    assert chosen.model is not None
    assert chosen.model.id == "llama"
    assert picked(page.host.backend.form())["key"] == "2"
    await press(page, "t2", type="set_backend", key="1")
    assert isinstance(agent.llm_call, DefaultBackend)


async def test_another_model_of_a_backend_is_picked_and_is_still_picked_after_coming_back() -> None:
    agent = Agent(DefaultBackend(find))
    page, _ = await look(agent)
    await press(page, "t", type="set_backend", key="2")
    assert (await press(page, "t2", type="set_model", model="qwen"))["type"] == "accepted"
    assert agent.state.model is not None
    assert (agent.state.model.id, agent.state.model.provider) == ("qwen", "vllm")
    await press(page, "t3", type="set_backend", key="1")
    assert page.host.backend.form()["model"] == "demo"
    await press(page, "t4", type="set_backend", key="2")
    assert page.host.backend.form()["model"] == "qwen"


async def test_a_model_for_a_function_that_takes_none_is_refused() -> None:
    page, _ = await look(Agent(new_function()))
    refused = await press(page, "t", type="set_model", model="qwen")
    assert "takes no model" in refused["message"]


async def test_a_choice_that_is_not_offered_is_refused() -> None:
    agent = Agent(DefaultBackend(find))
    page, _ = await look(agent)
    assert (await press(page, "t", type="set_backend", key="../../etc"))["code"] == "INVALID_PARAMETERS"
    assert isinstance(agent.llm_call, DefaultBackend)


async def test_a_backend_set_in_code_is_a_choice_of_its_own_and_can_be_gone_back_to() -> None:
    agent = Agent(DefaultBackend(find))
    page, _ = await look(agent)

    def my_model(_messages: object, *, model: object = None) -> str:
        return f"hi from {model}"

    agent.set_llm_call(my_model, "mine")
    shown = page.host.backend.form()
    assert [choice["label"] for choice in shown["choices"]] == ["my_model", "Demo (built-in script)", "vLLM"]
    assert (shown["key"], shown["label"], shown["model"]) == ("3", "my_model", "mine")
    await press(page, "t", type="set_backend", key="1")
    await press(page, "t2", type="set_backend", key="3")
    assert agent.llm_call is my_model
    assert page.host.backend.form()["model"] == "mine"


async def test_code_that_sets_many_backends_leaves_a_few_to_go_back_to() -> None:
    agent = Agent(DefaultBackend(find))
    page, _ = await look(agent)
    for _ in range(20):
        agent.set_llm_call(new_function())
        page.host.backend.form()
    shown = page.host.backend.form()
    assert shown["key"] in {choice["key"] for choice in shown["choices"]}
    assert len(shown["choices"]) == 2 + 5
    assert len({choice["label"] for choice in shown["choices"]}) == 7


async def test_a_backend_that_a_person_gave_is_shown_alone_until_they_look_around(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("YIEMAGENT_BACKEND", "http://127.0.0.1:9/v1")
    agent = Agent(Demo())
    page, shown = await look(agent)
    assert shown["choices"] == [{"key": "1", "label": "Demo (built-in script)"}]
    assert "/tour" in page.batches[0]["snapshot"]["tools"]["suggestions"]
    told = len(page.events("backend"))
    await press(page, "t", type="check_backend")
    while len(page.host.backend.form()["choices"]) < 2:
        told += 1
        await page.until("backend", told)
    assert [choice["label"] for choice in page.host.backend.form()["choices"]] == [
        "Demo (built-in script)",
        "127.0.0.1",
    ]
    await press(page, "t2", type="set_backend", key="2")
    assert isinstance(agent.llm_call, DescribedBackend)
    assert agent.llm_call.provider == "127.0.0.1:9"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InvalidParametersError("The environment variable X holds no web address.", "Set it anew."), "no web address"),
        (RuntimeError("no lamp"), "Looking for backends failed: RuntimeError: no lamp"),
    ],
)
async def test_an_environment_that_is_not_understood_is_told(error: Exception, words: str) -> None:
    async def fail() -> Found:
        raise error

    _, shown = await look(Agent(DefaultBackend(fail)))
    assert words in shown["note"]


@pytest.mark.parametrize("seen_before", [True, False])
async def test_a_choice_made_before_the_page_came_is_shown(*, seen_before: bool) -> None:
    backend = DefaultBackend(find)
    if seen_before:
        await backend.resolve()
    _, shown = await look(Agent(backend))
    assert shown["label"] == "Demo (built-in script)"
