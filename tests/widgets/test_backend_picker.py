"""The header shows which backend answers, and lets a person take another that was found."""

from __future__ import annotations

from typing import Any

import pytest
from widgets.page import Page

from yiemagent_nb.backends.demo import Demo
from yiemagent_nb.backends.discovery import Candidate, DefaultBackend, Found
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.backend import DescribedBackend
from yiemagent_nb.core.errors import InvalidParametersError

SERVER = Candidate("vllm", "vLLM: llama", "vLLM answers on port 8000.", "http://127.0.0.1:8000/v1", ("llama", "qwen"))
DEMO = Candidate("demo", "Demo (built-in script)", "It is always there.")


async def find() -> Found:
    return Found(DEMO.build(), DEMO.label, "Nothing else is here.", (SERVER,), choice=DEMO)


async def look(agent: Agent) -> tuple[Page, dict[str, Any]]:
    page = Page(agent)
    page.hello()
    await page.until("alive")
    shown = page.batches[0]["snapshot"]["backend"]
    if not (shown["choices"] or shown["note"]):
        await page.until("backend")
        shown = page.events("backend")[-1]
    return page, {name: value for name, value in shown.items() if name not in {"type", "thinking"}}


async def test_what_was_found_is_shown_with_what_else_could_answer() -> None:
    _, shown = await look(Agent(DefaultBackend(find)))
    assert shown == {
        "label": "Demo (built-in script)",
        "choices": [
            {"key": "0", "label": "Demo (built-in script)"},
            {"key": "1", "label": "vLLM: llama"},
            {"key": "2", "label": "vLLM: qwen"},
        ],
        "key": "0",
        "note": "Nothing else is here.",
    }


async def test_a_person_takes_another_and_comes_back() -> None:
    agent = Agent(DefaultBackend(find))
    page, _ = await look(agent)
    page.host.receive({"type": "set_backend", "ticket": "t", "key": "2"})
    assert (await page.reply("t"))["type"] == "accepted"
    chosen = agent.llm_call
    assert isinstance(chosen, DescribedBackend)
    assert chosen.provider == "vllm"
    assert chosen.model is not None
    assert chosen.model.id == "qwen"
    assert page.host.picker.form()["key"] == "2"
    page.host.receive({"type": "set_backend", "ticket": "t2", "key": "0"})
    await page.reply("t2")
    assert isinstance(agent.llm_call, DefaultBackend)


async def test_a_choice_that_is_not_offered_is_refused() -> None:
    agent = Agent(DefaultBackend(find))
    page, _ = await look(agent)
    page.host.receive({"type": "set_backend", "ticket": "t", "key": "../../etc"})
    assert (await page.reply("t"))["code"] == "INVALID_PARAMETERS"
    assert isinstance(agent.llm_call, DefaultBackend)


async def test_a_backend_set_in_code_is_shown_beside_the_choices() -> None:
    agent = Agent(DefaultBackend(find))
    page, _ = await look(agent)

    def my_model(_messages: object) -> str:
        return "hi"

    agent.set_llm_call(my_model)
    shown = page.host.picker.form()
    assert (shown["key"], shown["choices"][0]) == ("", {"key": "", "label": "my_model"})


async def test_a_backend_that_a_person_gave_is_shown_alone() -> None:
    agent = Agent(Demo())
    page = Page(agent)
    page.hello()
    await page.until("alive")
    snapshot = page.batches[0]["snapshot"]
    assert snapshot["backend"]["choices"] == []
    assert snapshot["backend"]["label"] == agent.backend_label
    assert "/tour" in snapshot["tools"]["suggestions"]


async def test_an_environment_that_is_not_understood_is_told() -> None:
    async def fail() -> Found:
        raise InvalidParametersError("The environment variable X holds no web address.", "Set it anew.")

    _, shown = await look(Agent(DefaultBackend(fail)))
    assert "holds no web address" in shown["note"]


@pytest.mark.parametrize("seen_before", [True, False])
async def test_a_choice_made_before_the_page_came_is_shown(*, seen_before: bool) -> None:
    backend = DefaultBackend(find)
    if seen_before:
        await backend.resolve()
    _, shown = await look(Agent(backend))
    assert shown["label"] == "Demo (built-in script)"
