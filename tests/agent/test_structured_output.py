"""``prompt(output_type=…)``: a run whose last answer is a value of a type."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import pytest
from agent.grammar import users_texts
from agent.script import LENGTH, Gate, Model, Recorder, call, check_agent, eventually, forever, history_of, stop
from pydantic import BaseModel

from yiemagent_nb.backends.scripted import Scripted
from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.config import LoopConfig
from yiemagent_nb.core.errors import AgentBusyError, InvalidParametersError, OutputInvalidError, ServerError
from yiemagent_nb.core.events import AgentEnd, Trace
from yiemagent_nb.core.hooks import AgentContext
from yiemagent_nb.core.limits import Limits
from yiemagent_nb.core.loop import agent_loop, stream_assistant_response
from yiemagent_nb.core.messages import AssistantMessage, UserMessage
from yiemagent_nb.core.output import OutputFormat
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.core.signal import AbortSignal

pytestmark = pytest.mark.requirement("Y FR-002", "Y US-005", "Y FR-003")


class Person(BaseModel):
    name: str
    age: int


ADA = '{"name": "Ada", "age": 36}'
WRONG = '{"name": "Ada", "age": "old"}'
FORMAT = OutputFormat(Person).response_format


def corrections(agent: Agent) -> list[str]:
    """What the model was told of answers that do not fit."""
    return [text for text in users_texts(agent.messages) if text.startswith("The answer does not fit")]


def short(words: str, agent: Agent) -> str:
    """The words of the specification's table, with ``c`` for a correction."""
    for text in corrections(agent):
        words = words.replace(text, "c")
    return words


async def refused(agent: Agent, **keywords: Any) -> OutputInvalidError:
    """The error of a prompt that gives no output."""
    with pytest.raises(OutputInvalidError) as caught:
        await agent.prompt("u", output_type=Person, **keywords)
    assert caught.value.answer in agent.messages
    return caught.value


async def test_an_answer_that_fits_is_returned_as_a_value_of_the_type() -> None:
    model = Model(ADA)
    agent = Agent(model)
    recorder = Recorder(agent)

    person: Person = await agent.prompt("u", output_type=Person)

    assert person == Person(name="Ada", age=36)
    assert recorder.order == "AS TS MS(u) ME(u) MS(a) MU ME(a) TE AE"
    assert model.requests[0].options["response_format"] == FORMAT
    await check_agent(agent, recorder)


async def test_a_prompt_without_a_type_asks_for_none_and_returns_the_message() -> None:
    model = Model(ADA, ADA)
    agent = Agent(model)
    await agent.prompt("u", output_type=Person)

    answer = await agent.prompt("v")

    assert isinstance(answer, AssistantMessage)
    assert "response_format" not in model.requests[1].options


async def test_a_wrong_answer_is_corrected_within_the_run() -> None:
    model = Model(WRONG, ADA)
    agent = Agent(model)
    recorder = Recorder(agent)

    person = await agent.prompt("u", output_type=Person)

    assert person.age == 36
    assert short(recorder.order, agent) == ("AS TS MS(u) ME(u) MS(a) MU ME(a) TE TS MS(c) ME(c) MS(a) MU ME(a) TE AE")
    assert short(history_of(agent), agent) == "u a c a"
    assert 'age should be a valid integer, unable to parse string as an integer, got "old"' in corrections(agent)[0]
    assert [request.options["response_format"] for request in model.requests] == [FORMAT, FORMAT]
    assert model.requests[1].texts == ["u", WRONG, corrections(agent)[0]]
    assert len(recorder.of_type(AgentEnd)[0].messages) == 4
    await check_agent(agent, recorder)


async def test_an_answer_in_words_is_followed_by_the_json() -> None:
    agent = Agent(Model("Ada is 36 years old.", f"Of course:\n```json\n{ADA}\n```"))
    assert await agent.prompt("u", output_type=Person) == Person(name="Ada", age=36)


@pytest.mark.parametrize(("retries", "requests"), [(0, 1), (1, 2), (2, 3)])
async def test_the_model_is_asked_again_as_often_as_is_said(retries: int, requests: int) -> None:
    model = Model(WRONG, WRONG, WRONG, ADA)
    agent = Agent(model)

    error = await refused(agent, output_retries=retries)

    assert len(model.requests) == requests
    assert error.message.startswith("The answer does not fit Person: age should be")
    assert error.answer is agent.messages[-1]
    assert short(history_of(agent), agent) == " ".join(["u a", *["c a"] * retries])
    await check_agent(agent)


async def test_two_retries_are_the_default() -> None:
    model = Model("one", "two", "three", ADA)
    await refused(Agent(model))
    assert len(model.requests) == 3


async def test_every_run_has_its_own_retries_and_its_own_type() -> None:
    model = Model(WRONG, WRONG, ADA, "no", '{"value": "yes"}', "plain words")
    agent = Agent(model)

    assert await agent.prompt("u", output_type=Person) == Person(name="Ada", age=36)
    assert await agent.prompt("v", output_type=Literal["yes", "no"], output_retries=1) == "yes"
    assert (await agent.prompt("w")).text == "plain words"

    assert [request.options.get("response_format") for request in model.requests] == [
        *[FORMAT] * 3,
        *[OutputFormat(Literal["yes", "no"]).response_format] * 2,
        None,
    ]


async def test_an_output_may_be_no_object() -> None:
    agent = Agent(Model('{"value": [1, 2]}', "[3]", '{"value": null}'))
    assert await agent.prompt("u", output_type=list[int]) == [1, 2]
    assert await agent.prompt("v", output_type=list[int]) == [3]
    assert await agent.prompt("w", output_type=int | None) is None


async def test_tools_work_in_the_run_and_an_answer_with_calls_is_not_read() -> None:
    model = Model(["Let me see {", call("look_up")], WRONG, [call("look_up", call_id="AGAIN")], ADA)

    def look_up() -> str:
        """Look something up."""
        return "36"

    agent = Agent(model, tools=[look_up])
    recorder = Recorder(agent)

    assert (await agent.prompt("u", output_type=Person)).age == 36

    assert short(history_of(agent), agent) == "u a tLOOK_UP a c a tAGAIN a"
    assert [request.tools for request in model.requests] == [("look_up",)] * 4
    assert all(request.options["response_format"] == FORMAT for request in model.requests)
    await check_agent(agent, recorder)


async def test_steering_comes_before_a_correction_and_follow_ups_after_it() -> None:
    agent = Agent(Model([lambda: agent.steer("s"), lambda: agent.follow_up("f"), WRONG], WRONG, ADA, ADA))
    recorder = Recorder(agent)

    await agent.prompt("u", output_type=Person)

    assert short(history_of(agent), agent) == "u a s a c a f a"
    assert len(recorder.of_type(AgentEnd)) == 1
    await check_agent(agent, recorder)


async def test_the_output_is_that_of_the_runs_last_answer() -> None:
    agent = Agent(Model([lambda: agent.follow_up("f"), ADA], '{"name": "Bob", "age": 1}'))
    assert (await agent.prompt("u", output_type=Person)).name == "Bob"


async def test_follow_ups_are_served_after_the_last_retry_too() -> None:
    agent = Agent(Model([lambda: agent.follow_up("f"), WRONG], ADA))
    assert await agent.prompt("u", output_type=Person, output_retries=0) == Person(name="Ada", age=36)


async def test_what_is_put_on_a_channel_afterwards_runs_without_a_type() -> None:
    model = Model(ADA, "words")
    agent = Agent(model)
    await agent.prompt("u", output_type=Person)
    agent.steer("v")
    await agent.wait_idle()
    assert "response_format" not in model.requests[1].options
    assert history_of(agent) == "u a v a"


async def test_going_on_after_a_failure_asks_for_no_type() -> None:
    model = Model(ServerError("It is on fire."), "words")
    agent = Agent(model)
    await refused(agent)
    assert (await agent.prompt("v")).text == "words"
    assert "response_format" not in model.requests[1].options


async def test_an_aborted_run_gives_an_error_and_keeps_what_came() -> None:
    agent = Agent(Model([ADA, lambda: stop(agent), forever]))
    error = await refused(agent)
    assert "There is no Person: the run was aborted" in error.message
    assert history_of(agent) == "u a,aborted"
    await check_agent(agent)


async def test_a_run_aborted_during_its_tools_says_so() -> None:
    gate = Gate()

    async def wait() -> object:
        """Wait."""
        return await gate()

    agent = Agent(Model([call("wait")], ADA), tools=[wait])
    running = asyncio.create_task(refused(agent))
    await gate.started.wait()
    agent.abort()
    assert "The run was aborted." in (await running).message
    assert history_of(agent) == "u a tWAIT"


async def test_a_run_aborted_while_it_is_corrected_ends_there() -> None:
    agent = Agent(Model(WRONG, [lambda: stop(agent), forever]))
    assert "the run was aborted" in (await refused(agent)).message
    assert short(history_of(agent), agent) == "u a c a,aborted"
    await check_agent(agent)


async def test_a_backends_error_is_repeated() -> None:
    agent = Agent(Model(ServerError("It is on fire.", "Call someone.")))
    error = await refused(agent)
    assert error.message == "There is no Person: the run failed (It is on fire. Call someone. [SERVER_ERROR])."
    assert error.answer is not None
    assert error.answer.stop_reason == "error"
    await check_agent(agent)


@pytest.mark.parametrize(
    ("ending", "words"),
    [(LENGTH, "the length limit"), ({"finish_reason": "content_filter"}, "the server's content filter")],
)
async def test_a_cut_answer_is_an_error_and_is_not_corrected(ending: Mapping[str, Any], words: str) -> None:
    model = Model([ADA, ending])
    agent = Agent(model)
    assert words in (await refused(agent)).message
    assert len(model.requests) == 1


async def test_the_limit_of_turns_binds_corrections_too() -> None:
    model = Model(WRONG, WRONG, ADA)
    agent = Agent(model, limits=Limits(max_turns=2))
    recorder = Recorder(agent)

    error = await refused(agent)

    assert "The run reached Limits.max_turns = 2" in error.message
    assert len(model.requests) == 2
    assert recorder.of_type(AgentEnd)[0].reason == "max_turns"
    assert agent.state.error_message


async def test_the_limit_of_turns_reached_by_tools_is_said() -> None:
    def look_up() -> str:
        """Look something up."""
        return "36"

    error = await refused(Agent(Model([call("look_up")]), tools=[look_up], limits=Limits(max_turns=1)))
    assert "the last it did was to call tools" in error.message
    assert "Limits.max_turns = 1" in error.message


async def test_a_tool_that_ends_the_run_leaves_no_output() -> None:
    def finish() -> ToolResult:
        """End the run."""
        return ToolResult("over", terminate=True)

    error = await refused(Agent(Model([call("finish")]), tools=[finish]))
    assert "the last it did was to call tools" in error.message


async def test_misuse_is_told_before_anything_is_sent() -> None:
    model = Model()
    agent = Agent(model)
    with pytest.raises(InvalidParametersError, match="has no JSON Schema"):
        await agent.prompt("u", output_type=Callable[[], int])
    with pytest.raises(InvalidParametersError, match="output_retries is -1"):
        await agent.prompt("u", output_type=Person, output_retries=-1)
    assert not model.requests
    assert not agent.messages


async def test_a_busy_agent_refuses_as_ever() -> None:
    agent = Agent(Model([forever]))
    running = asyncio.create_task(agent.prompt("u"))
    await eventually(lambda: agent.is_running)
    with pytest.raises(AgentBusyError):
        await agent.prompt("v", output_type=Person)
    agent.abort()
    await running


async def test_a_caller_that_gives_up_aborts_the_run() -> None:
    agent = Agent(Model(WRONG, ["Hel", forever]))
    running = asyncio.create_task(agent.prompt("u", output_type=Person))
    await eventually(lambda: bool(corrections(agent)))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await agent.wait_idle()
    assert short(history_of(agent), agent) == "u a c a,aborted"
    await check_agent(agent)


# How a backend is told


Messages = Sequence[Mapping[str, Any]]


async def test_a_plain_function_is_told_in_the_system_prompt_of_its_requests_alone() -> None:
    seen: list[Messages] = []

    def answer(messages: Messages) -> str:
        seen.append(messages)
        return WRONG if len(seen) == 1 else ADA

    agent = Agent(answer, "Be brief.")
    assert (await agent.prompt("u", output_type=Person)).name == "Ada"
    await agent.prompt("v")

    told = OutputFormat(Person).instruct("Be brief.")
    assert [messages[0]["content"] for messages in seen] == [told, told, "Be brief."]
    assert agent.state.system_prompt == "Be brief."
    assert short(history_of(agent), agent) == "u a c a v a"


async def test_a_backend_that_takes_the_keyword_is_not_told_in_words() -> None:
    seen: list[tuple[Messages, object]] = []

    async def answer(messages: Messages, *, response_format: object = None) -> str:
        seen.append((messages, response_format))
        return ADA

    await Agent(answer, "Be brief.").prompt("u", output_type=Person)
    assert seen == [([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "u"}], FORMAT)]


async def test_hooks_that_choose_what_is_sent_have_their_say() -> None:
    seen: list[Messages] = []

    def answer(messages: Messages) -> str:
        seen.append(messages)
        return ADA

    def prepare(_: object) -> AgentContext:
        return AgentContext("Prepared.", [UserMessage("p")])

    def form(context: AgentContext) -> Messages:
        return [{"role": "user", "content": f"{context.system_prompt} {len(context.messages)}"}]

    agent = Agent(answer, prepare_context=prepare, format_messages=form)
    await agent.prompt("u", output_type=Person)
    assert seen == [[{"role": "user", "content": f"{OutputFormat(Person).instruct('Prepared.')} 1"}]]


async def test_a_backend_set_in_mid_run_is_told_in_its_own_way() -> None:
    seen: list[Messages] = []

    def plain(messages: Messages) -> str:
        seen.append(messages)
        agent.set_llm_call(last)
        return WRONG

    first = Model([lambda: agent.set_llm_call(plain), WRONG])
    last = Model(ADA)
    agent = Agent(first, "Be brief.")

    assert (await agent.prompt("u", output_type=Person)).age == 36

    assert first.requests[0].options["response_format"] == last.requests[0].options["response_format"] == FORMAT
    assert first.requests[0].texts[0] == last.requests[0].texts[0] == "Be brief."
    assert seen[0][0]["content"] == OutputFormat(Person).instruct("Be brief.")


async def test_the_type_goes_before_an_option_of_the_same_name() -> None:
    model = Model(ADA, "words")
    agent = Agent(model, options={"response_format": {"type": "text"}})
    await agent.prompt("u", output_type=Person)
    await agent.prompt("v")
    assert [request.options["response_format"] for request in model.requests] == [FORMAT, {"type": "text"}]


async def test_a_script_keeps_what_it_was_asked_for() -> None:
    backend = Scripted([ADA])
    assert (await Agent(backend).prompt("u", output_type=Person)).name == "Ada"
    assert backend.requests[0].options["response_format"] == FORMAT


async def test_corrections_are_traced() -> None:
    steps: list[str] = []
    agent = Agent(Model(WRONG, ADA), event_sink=lambda e: steps.append(e.step) if isinstance(e, Trace) else None)
    await agent.prompt("u", output_type=Person)
    assert steps.count("output.corrected") == 1


# Other ways to run


def test_ask_takes_a_type_too() -> None:
    agent = Agent(Model(WRONG, ADA, "words"))
    person: Person = agent.ask("u", output_type=Person)
    assert person.age == 36
    assert agent.ask("v").text == "words"
    with pytest.raises(OutputInvalidError):
        agent.ask("w", output_type=Person, output_retries=0)
    asyncio.run(agent.shutdown())


NESTED = """
import asyncio
from pydantic import BaseModel
from yiemagent_nb import Agent, OutputInvalidError

class Person(BaseModel):
    name: str
    age: int

answers = ["words", '{"name": "Ada", "age": 36}', "more words"]

async def main():
    agent = Agent(lambda messages: answers.pop(0))
    assert agent.ask("u", output_type=Person) == Person(name="Ada", age=36)
    try:
        agent.ask("v", output_type=Person, output_retries=0)
    except OutputInvalidError as error:
        print(error.answer.text)

asyncio.run(main())
"""


def test_ask_inside_a_running_loop_takes_a_type_too() -> None:
    run = subprocess.run([sys.executable, "-c", NESTED], check=False, capture_output=True, text=True, timeout=60)
    assert (run.stdout, run.stderr) == ("more words\n", "")


async def test_an_agent_in_a_thread_of_its_own_gives_outputs_and_errors() -> None:
    agent = Agent(Model(WRONG, ADA, "no"), runtime="thread")
    assert await agent.prompt("u", output_type=Person) == Person(name="Ada", age=36)
    error = await refused(agent, output_retries=0)
    assert error.answer is agent.messages[-1]
    await agent.shutdown()


async def test_the_functional_loop_takes_a_format() -> None:
    output = OutputFormat(Person)
    model = Model(WRONG, ADA)
    stream = agent_loop([UserMessage("u")], AgentContext(), LoopConfig(llm_call=model, output=output))

    answer = (await stream.result())[-1]

    assert isinstance(answer, AssistantMessage)
    assert output.read(answer).age == 36
    assert [request.options["response_format"] for request in model.requests] == [FORMAT, FORMAT]


async def test_a_single_request_takes_a_format() -> None:
    model = Model(WRONG)
    config = LoopConfig(llm_call=model, output=OutputFormat(Person))
    answer = await stream_assistant_response(
        AgentContext("", [UserMessage("u")]), config, AbortSignal(), lambda _: None
    )
    assert answer.text == WRONG
    assert model.requests[0].options["response_format"] == FORMAT


async def test_agents_with_other_types_do_not_meet() -> None:
    agents = [Agent(Model("words", f'{{"value": {number}}}')) for number in range(10)]
    numbers = await asyncio.gather(*(agent.prompt("u", output_type=int) for agent in agents))
    assert numbers == list(range(10))
