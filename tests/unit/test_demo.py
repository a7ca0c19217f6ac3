"""The embedded demo: what it understands, and what it says."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import pytest
from unit.demo_answers import (
    ADD,
    ALL,
    PIXEL,
    ROLL,
    TEXT,
    TIME,
    TRANSLATE,
    Answer,
    Message,
    ask,
    function,
    results,
    said_after,
    user,
)

from yiemagent_nb.backends.demo import Demo
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.backend import describe_backend
from yiemagent_nb.core.messages import ImageContent
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import tool

UNDERSTOOD: list[tuple[str, list[tuple[str, dict[str, Any]]]]] = [
    ("add 17 and 25", [("add", {"a": 17, "b": 25})]),
    ("what is 17 + 25?", [("add", {"a": 17, "b": 25})]),
    ("add seventeen and twenty-five", [("add", {"a": 17, "b": 25})]),
    ("Add two numbers: a = 17, b = 25", [("add", {"a": 17, "b": 25})]),
    ("call add with a=1, b=2", [("add", {"a": 1, "b": 2})]),
    ("add(1, 2)", [("add", {"a": 1, "b": 2})]),
    ("add(b=3, a=-4.5)", [("add", {"b": 3, "a": -4.5})]),
    ('call add {"a": 1, "b": 2}', [("add", {"a": 1, "b": 2})]),
    ("subtract 3 from 10", [("subtract", {"a": 10, "b": 3})]),
    ("What's 12 minus 5?", [("subtract", {"a": 12, "b": 5})]),
    ("multiply 3 by 4 and add 5 and 6", [("multiply", {"a": 3, "b": 4}), ("add", {"a": 5, "b": 6})]),
    ("what is 3 times 4 and 5 times 6", [("multiply", {"a": 3, "b": 4}), ("multiply", {"a": 5, "b": 6})]),
    ("what time is it in Lisbon", [("get_time", {"city": "Lisbon"})]),
    ("weather in Paris and in Rome", [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Rome"})]),
    (
        "weather in Paris, Rome and New York",
        [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Rome"}), ("get_weather", {"city": "New York"})],
    ),
    ("the weather and the time in Lisbon", [("get_weather", {"city": "Lisbon"}), ("get_time", {"city": "Lisbon"})]),
    ("weather in Oslo in Fahrenheit", [("get_weather", {"city": "Oslo", "unit": "fahrenheit"})]),
    ("weather in Oslo on 3 May 2027", [("get_weather", {"city": "Oslo", "day": "2027-05-03"})]),
    ("is it raining in Oslo?", [("get_weather", {"city": "Oslo"})]),
    ("roll a die with 20 sides", [("roll_die", {"sides": 20})]),
    ("roll a 20-sided die", [("roll_die", {"sides": 20})]),
    ("roll a die", [("roll_die", {})]),
    ("translate good morning to French", [("translate", {"text": "good morning", "target_language": "French"})]),
    ('translate "a b" into Thai', [("translate", {"text": "a b", "target_language": "Thai"})]),
    ("search for cats in hats", [("search_web", {"query": "cats in hats"})]),
    ("search the web for tea, limit 3", [("search_web", {"query": "tea", "limit": 3})]),
    ("mean of 1, 2, 3 and 4", [("mean", {"values": [1, 2, 3, 4]})]),
    ("what is the average of [1, 2.5]", [("mean", {"values": [1, 2.5]})]),
    ("register a person named Ada, age 36", [("register", {"person": {"name": "Ada", "age": 36}})]),
    ("register Ada, age 36, urgent", [("register", {"person": {"name": "Ada", "age": 36}, "urgent": True})]),
    ("register Ada, age 36, not urgent", [("register", {"person": {"name": "Ada", "age": 36}, "urgent": False})]),
    ("Greet Ada and Grace", [("greet", {"name": "Ada"}), ("greet", {"name": "Grace"})]),
    ("plot a sine wave with frequency 3", [("plot_sine", {"frequency": 3})]),
    ("delete the file notes.txt", [("delete_file", {"path": "notes.txt"})]),
    (
        "send an email to ada@x.org with subject 'Hi' and body 'Well?'",
        [("send_email", {"recipient": "ada@x.org", "subject": "Hi", "body": "Well?"})],
    ),
]


@pytest.mark.parametrize(("request_", "calls"), UNDERSTOOD, ids=[text for text, _ in UNDERSTOOD])
async def test_it_calls_what_a_request_asks_for(request_: str, calls: list[tuple[str, dict[str, Any]]]) -> None:
    answer = await ask([user(request_)], ALL)
    assert answer.made == calls
    assert answer.finish == "tool_calls"


async def test_tomorrow_is_the_day_after_the_clocks() -> None:
    answer = await ask([user("weather in Oslo tomorrow")], ALL)
    assert answer.made == [("get_weather", {"city": "Oslo", "day": str(date.today() + timedelta(days=1))})]  # noqa: DTZ011 - as the demo counts


async def test_a_city_names_its_time_zone() -> None:
    zoned = function("now_in", "The current time in a time zone.", timezone=TEXT)
    assert (await ask([user("what time is it in Lisbon")], [zoned])).made == [("now_in", {"timezone": "Europe/Lisbon"})]


async def test_arithmetic_goes_whole_to_a_calculator() -> None:
    calculate = function("calculate", "Evaluate arithmetic.", expression=TEXT)
    assert (await ask([user("what is 3*(4+5)?")], [calculate])).made == [("calculate", {"expression": "3*(4+5)"})]


async def test_references_in_a_schema_are_followed() -> None:
    schema = {
        "type": "object",
        "properties": {"shade": {"$ref": "#/$defs/Shade"}},
        "required": ["shade"],
        "$defs": {"Shade": {"type": "string", "enum": ["red", "dark_blue"]}},
    }
    paint = {"type": "function", "function": {"name": "paint", "description": "Paint it.", "parameters": schema}}
    assert (await ask([user("paint it dark blue")], [paint])).made == [("paint", {"shade": "dark_blue"})]


@pytest.mark.parametrize("text", ["I had a great time", "tell me a joke about numbers", "who wrote Hamlet?", "ok"])
async def test_what_fits_no_tool_calls_none(text: str) -> None:
    assert (await ask([user(text)], ALL)).calls == []


async def test_an_answer_has_extras_first_an_end_and_usage() -> None:
    answer = await ask([user("add 1 and 2")], ALL)
    assert answer.extras == {"api": "demo", "provider": "demo", "model": "demo"}
    assert answer.usage["prompt_tokens"] > 0
    assert answer.usage["completion_tokens"] > 0


async def test_it_says_before_a_call_why() -> None:
    answer = await ask([user("add 1 and 2")], ALL)
    assert "add" in answer.thought
    assert "a = 1, b = 2" in answer.thought


async def test_it_thinks_before_words_only_when_asked_to() -> None:
    assert (await ask([user("hello")], ALL)).thought == ""
    assert (await ask([user("hello")], ALL, thinking_level="low")).thought


async def test_words_come_one_at_a_time() -> None:
    answer = await ask([user("hello")], ALL)
    assert answer.pieces >= len(answer.text.split())


async def test_the_same_request_gives_the_same_answer() -> None:
    first, second = [await ask([user("weather in Paris and in Rome")], ALL) for _ in range(2)]
    assert first == second


async def test_it_answers_from_the_result() -> None:
    answer = await said_after("add 17 and 25", "42")
    assert answer.text == "`add` says **42** (a = 17, b = 25)."
    assert answer.finish == "stop"


async def test_it_puts_structured_results_into_lists_and_tables() -> None:
    flat = await said_after("weather in Oslo", '{"sky": "clear", "degrees": 3}')
    assert "- degrees: **3**" in flat.text
    rows = await said_after("search for tea", '[{"title": "Tea", "hits": 3}, {"title": "Green | tea", "hits": 1}]')
    assert "| title | hits |" in rows.text
    assert "Green \\| tea" in rows.text


async def test_a_long_result_is_cut_and_says_so() -> None:
    answer = await said_after("search for tea", "word\n" * 2000)
    assert "more characters stand in the tool's card" in answer.text
    assert len(answer.text) < 2500


async def test_a_result_cannot_end_its_own_fence() -> None:
    answer = await said_after("search for tea", "a\n```\n# loud\n```\nb")
    assert "````text\na\n```" in answer.text


async def test_an_error_is_shown_with_what_could_be_done() -> None:
    answer = await said_after("add 1 and 2", "add raised ValueError: too small [TOOL_FAILED]")
    assert "did not work: add raised ValueError: too small." in answer.text
    assert "*add 17 and 25*" in answer.text
    assert "TOOL_FAILED" not in answer.text


async def test_a_denied_call_is_reported_with_its_reason() -> None:
    answer = await said_after("delete the file notes.txt", "The person denied this call: not that one")
    assert "was not run: The person denied this call: not that one." in answer.text


async def test_it_never_repeats_a_call_that_has_its_result() -> None:
    answer = await said_after("add 1 and 2", "add did not finish within 1 s. [EXECUTION_TIMEOUT]")
    assert answer.calls == []
    assert "longer `timeout`" in answer.text


async def test_a_call_that_needs_a_result_waits_for_it() -> None:
    request = user("add 2 and 3 and multiply the result by 4")
    first = await ask([request], ALL)
    assert first.made == [("add", {"a": 2, "b": 3})]
    history = [request, *results(first, "5")]
    second = await ask(history, ALL)
    assert second.made == [("multiply", {"a": 5, "b": 4})]
    last = await ask([*history, *results(second, "20")], ALL)
    assert last.calls == []
    assert "**20**" in last.text


async def test_a_chain_stops_at_an_error() -> None:
    answer = await said_after("add 2 and 3 and multiply the result by 4", "add raised OverflowError [TOOL_FAILED]")
    assert answer.calls == []
    assert "`multiply` needed that result, so I stopped there." in answer.text


async def test_it_goes_on_from_the_last_result_of_the_conversation() -> None:
    first = await ask([user("add 2 and 3")], ALL)
    history = [user("add 2 and 3"), *results(first, "5"), {"role": "assistant", "content": "5"}]
    assert (await ask([*history, user("multiply it by 2")], ALL)).made == [("multiply", {"a": 5, "b": 2})]


async def test_call_ids_are_new_in_the_conversation() -> None:
    first = await ask([user("add 1 and 2")], ALL)
    done = [user("add 1 and 2"), *results(first, "3"), {"role": "assistant", "content": "3"}]
    second = await ask([*done, user("add 3 and 4")], ALL)
    assert first.calls[0]["id"] != second.calls[0]["id"]


async def test_it_asks_for_what_is_missing_and_takes_the_answer() -> None:
    asked = await ask([user("weather please")], ALL)
    assert asked.calls == []
    assert "I need `city`" in asked.text
    history = [user("weather please"), asked.message]
    assert (await ask([*history, user("in Lisbon")], ALL)).made == [("get_weather", {"city": "Lisbon"})]
    assert (await ask([*history, user("add 1 and 2")], ALL)).made == [("add", {"a": 1, "b": 2})]
    assert (await ask([*history, user("never mind")], ALL)).text == "All right."


async def test_a_request_that_names_a_tool_is_no_answer_to_a_question() -> None:
    asked = await ask([user("weather please")], ALL)
    answer = await ask([user("weather please"), asked.message, user("call get_time")], ALL)
    assert "To call `get_time` I need `city`" in answer.text


async def test_an_object_is_asked_for_with_its_fields() -> None:
    asked = await ask([user("register a person")], ALL)
    assert "`person` (with `name`, `age`)" in asked.text
    answer = await ask([user("register a person"), asked.message, user("Ada, age 36")], ALL)
    assert answer.made == [("register", {"person": {"name": "Ada", "age": 36}})]


async def test_it_asks_again_for_the_rest() -> None:
    history = [user("add")]
    for said, left in (("1", "`b`"), ("2", "")):
        answer = await ask(history, ALL)
        history += [answer.message, user(said)]
        answer = await ask(history, ALL)
        assert left in answer.text
    assert answer.made == [("add", {"a": 1, "b": 2})]


async def test_one_answer_serves_every_call_that_waits_for_it() -> None:
    asked = await ask([user("the weather and the time")], ALL)
    answer = await ask([user("the weather and the time"), asked.message, user("Oslo")], ALL)
    assert answer.made == [("get_weather", {"city": "Oslo"}), ("get_time", {"city": "Oslo"})]


async def test_a_choice_is_asked_for_with_its_values() -> None:
    paint = function("paint", "Paint it.", shade={"enum": ["red", "blue"]})
    assert "one of `red`, `blue`" in (await ask([user("paint it")], [paint])).text


async def test_numbers_without_a_place_are_not_dropped_in_silence() -> None:
    answer = await said_after("add 1, 2 and 3", "3")
    assert "no place for 3" in answer.text


async def test_what_was_said_meanwhile_is_answered_with_the_results() -> None:
    first = await ask([user("add 1 and 2")], ALL)
    history = [user("add 1 and 2"), *results(first, "3"), user("and multiply 2 by 5"), user("thanks")]
    second = await ask(history, ALL)
    assert second.made == [("multiply", {"a": 2, "b": 5})]
    last = await ask([*history, *results(second, "10")], ALL)
    assert [part in last.text for part in ("**3**", "**10**", "welcome")] == [True, True, True]


async def test_what_was_stopped_is_not_taken_up_again() -> None:
    first = await ask([user("add 1 and 2")], ALL)
    stopped = "add did not run, because the person aborted the run. [EXECUTION_ABORTED]"
    answer = await ask([user("add 1 and 2"), *results(first, stopped), user("hello")], ALL)
    assert answer.calls == []
    assert "stopped" not in answer.text


def image_result(answer: Answer) -> Message:
    label = f"Images from the result of plot_sine (call {answer.calls[0]['id']}):"
    return {
        "role": "user",
        "content": [{"type": "text", "text": label}, {"type": "image_url", "image_url": {"url": PIXEL}}],
    }


async def test_an_image_is_shown_where_it_was_asked_for() -> None:
    request = user("plot a sine wave")
    first = await ask([request], ALL)
    answer = await ask([request, *results(first, "The images of this result follow."), image_result(first)], ALL)
    assert answer.images == [PIXEL]
    assert "Here is what `plot_sine` drew" in answer.text


async def test_an_image_is_mentioned_where_it_was_not_asked_for() -> None:
    request = user("call plot_sine_wave")
    tool = function("plot_sine_wave", "A wave.")
    first = await ask([request], [tool])
    answer = await ask([request, *results(first, ""), image_result(first)], [tool])
    assert answer.images == []
    assert "an image (PNG)" in answer.text


async def test_images_can_be_shown_again() -> None:
    first = await ask([user("plot a sine wave")], ALL)
    history = [
        user("plot a sine wave"),
        *results(first, ""),
        image_result(first),
        {"role": "assistant", "content": "!"},
    ]
    assert (await ask([*history, user("show me the image again")], [ADD])).images == [PIXEL]


async def test_an_image_of_a_person_is_not_guessed_at() -> None:
    message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]}
    assert "cannot look at it" in (await ask([message], ALL)).text


@pytest.mark.parametrize(
    "text", ["hello", "who are you?", "are you an AI?", "what is love", "are you a language model?"]
)
async def test_it_says_that_it_is_a_script(text: str) -> None:
    assert "script" in (await ask([user(text)], ALL)).text


async def test_it_does_not_say_so_in_every_answer() -> None:
    assert "script" not in (await said_after("add 1 and 2", "3")).text
    assert "script" not in (await ask([user("thanks")], ALL)).text


@pytest.mark.parametrize("text", ["what can you do?", "help", "which tools do you have?", "/help", "list the tools"])
async def test_it_lists_the_tools(text: str) -> None:
    answer = await ask([user(text)], [ADD, TIME])
    assert "`add(a, b)`: Add two numbers." in answer.text
    assert "`get_time(city)`" in answer.text


async def test_without_tools_it_says_how_to_give_some() -> None:
    for text in ("hello", "help", "add 1 and 2"):
        assert "agent.set_tools" in (await ask([user(text)])).text


async def test_it_explains_a_tool() -> None:
    answer = await ask([user("what does get_weather do?")], ALL)
    assert "one of `celsius`, `fahrenheit`, optional" in answer.text


async def test_it_remembers_the_conversation() -> None:
    first = await ask([user("add 1 and 2")], ALL)
    history = [user("add 1 and 2"), *results(first, "3"), {"role": "assistant", "content": "It is 3."}, user("thanks")]
    history.append({"role": "assistant", "content": "You are welcome!"})
    for text, said in (
        ("what did I ask first?", "> add 1 and 2"),
        ("what did I say before?", "> thanks"),
        ("recap our conversation", "1. add 1 and 2\n2. thanks"),
        ("what did you say?", "> You are welcome!"),
        ("which tools did you use?", "`add` (1\u00d7)"),
        ("what was the last result?", "> 3"),
        ("how many questions did I ask?", "message 3 of yours"),
    ):
        assert said in (await ask([*history, user(text)], ALL)).text


async def test_again_repeats_the_last_request() -> None:
    history = [
        user("add 1 and 2"),
        {"role": "assistant", "content": "3"},
        user("thanks"),
        {"role": "assistant", "content": "!"},
    ]
    assert (await ask([*history, user("again")], ALL)).made == [("add", {"a": 1, "b": 2})]


async def test_the_tour_goes_on_back_and_ends() -> None:
    history: list[Message] = []
    for word, said in (
        ("/tour", "step 1 of 8"),
        ("next", "step 2 of 8"),
        ("next", "step 3 of 8"),
        ("back", "step 2 of 8"),
        ("stop", "over for now"),
        ("next", "beyond me"),
    ):
        history.append(user(word))
        answer = await ask(history, ALL)
        assert said in answer.text
        history.append(answer.message)


async def test_the_tour_comes_to_its_end() -> None:
    history = [user("/tour")]
    for _ in range(8):
        history += [(await ask(history, ALL)).message, user("next")]
    answer = await ask(history, ALL)
    assert answer.text.startswith("That was the tour.")


async def test_what_the_tour_suggests_works() -> None:
    answer = await ask([user("/tour")], [TRANSLATE, ROLL])
    suggestion = answer.text.split("Try: *")[1].split("*")[0]
    assert (await ask([user(suggestion)], [TRANSLATE, ROLL])).calls


@pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool["function"]["name"])
async def test_the_example_of_each_tool_calls_that_tool(tool: Mapping[str, Any]) -> None:
    name = tool["function"]["name"]
    about = await ask([user(f"what does {name} do?")], ALL)
    example = about.text.split("For example: *")[1].removesuffix("*")
    made = (await ask([user(example)], ALL)).made
    assert [called for called, _ in made] == [name]


async def test_the_markdown_page_has_one_of_each() -> None:
    page = (await ask([user("/markdown")], ALL)).text
    assert all(mark in page for mark in ("## ", "| :--- |", "```python", "$$", "> ", "1. "))


async def test_an_unknown_command_names_those_there_are() -> None:
    assert "`/tour`" in (await ask([user("/dance")], ALL)).text


async def test_it_stops_when_the_signal_says_so() -> None:
    signal = AbortSignal()
    chunks = await Demo(delay=0)([user("/markdown")], signal=signal)
    seen = 0
    async for _ in chunks:
        seen += 1
        if seen == 5:
            signal.abort()
    assert seen == 5


async def test_it_stops_when_it_is_cancelled() -> None:
    began = asyncio.Event()

    async def listen() -> None:
        async for _ in await Demo(delay=60)([user("hello")]):
            began.set()

    task = asyncio.create_task(listen())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_agent_runs_on_it_from_the_request_to_the_image() -> None:
    @tool
    def plot(frequency: float) -> ImageContent:
        """Plot a wave."""
        return ImageContent(data=base64.b64encode(f"wave {frequency}".encode()).decode(), mime_type="image/png")

    async with Agent(Demo(delay=0), tools=[plot]) as agent:
        answer = await agent.prompt("plot a wave with frequency 2 and with frequency 3")
    assert [call.arguments for message in agent.messages for call in getattr(message, "tool_calls", ())] == [
        {"frequency": 2},
        {"frequency": 3},
    ]
    assert len([block for block in answer.content if isinstance(block, ImageContent)]) == 2
    assert answer.provider == "demo"
    assert answer.usage is not None


def test_it_says_what_it_is() -> None:
    assert describe_backend(Demo()) == "demo: built-in script"
    assert repr(Demo(delay=0)) == "Demo(delay=0)"
