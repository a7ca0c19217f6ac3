from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.events import Event, QuestionAnswered, QuestionAsked
from yiemagent_nb.core.questions import Answer, Questions
from yiemagent_nb.core.signal import AbortSignal

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Desk:
    """Where questions come to be answered."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.questions = Questions(self.events.append)
        self.signal = AbortSignal()

    async def ask(self, name: str = "q1", read: Any = None) -> asyncio.Task[Answer]:
        """A question that waits for its answer."""
        question = QuestionAsked(name, "weather", "Where are you?", SCHEMA)
        task = asyncio.create_task(self.questions.ask(question, self.signal, read))
        await asyncio.sleep(0)
        assert question in self.questions.pending
        return task

    @property
    def answered(self) -> list[QuestionAnswered]:
        return [event for event in self.events if isinstance(event, QuestionAnswered)]


async def test_an_answer_reaches_who_asked_and_both_are_told() -> None:
    desk = Desk()
    task = await desk.ask()
    desk.questions.answer("q1", {"city": "Lisbon"})
    assert await task == Answer("accept", {"city": "Lisbon"})
    assert desk.events == [QuestionAsked("q1", "weather", "Where are you?", SCHEMA), QuestionAnswered("q1", "accept")]
    assert desk.questions.pending == ()


async def test_what_was_answered_stands_in_no_event() -> None:
    desk = Desk()
    task = await desk.ask()
    desk.questions.answer("q1", {"city": "Lisbon"})
    await task
    assert "Lisbon" not in repr(desk.events)


@pytest.mark.parametrize("content", [None, {}, {"city": 3}], ids=repr)
async def test_an_answer_that_does_not_fit_is_refused_and_the_question_waits_on(content: Any) -> None:
    desk = Desk()
    task = await desk.ask()
    with pytest.raises(InvalidParametersError, match=r"The answer does not fit: .*city"):
        desk.questions.answer("q1", content)
    assert [question.request_id for question in desk.questions.pending] == ["q1"]
    assert desk.answered == []
    desk.questions.answer("q1", {"city": "Lisbon"})
    assert (await task).content == {"city": "Lisbon"}


async def test_who_asks_may_read_the_answer_in_another_way() -> None:
    def read(content: Mapping[str, Any]) -> dict[str, Any]:
        if not content:
            raise InvalidParametersError("Say something.")
        return {"city": str(content["place"]).title()}

    desk = Desk()
    task = await desk.ask(read=read)
    with pytest.raises(InvalidParametersError, match=r"Say something\."):
        desk.questions.answer("q1")
    desk.questions.answer("q1", {"place": "lisbon"})
    assert await task == Answer("accept", {"city": "Lisbon"})


async def test_an_answer_is_a_copy_of_what_was_given() -> None:
    desk = Desk()
    task = await desk.ask()
    given = {"city": "Lisbon"}
    desk.questions.answer("q1", given)
    given["city"] = "Porto"
    assert (await task).content == {"city": "Lisbon"}


async def test_a_question_without_a_form_takes_a_bare_yes() -> None:
    desk = Desk()
    question = QuestionAsked("q1", "bank", "Sign in, please.", url="https://example.org/sign-in")
    task = asyncio.create_task(desk.questions.ask(question, desk.signal))
    await asyncio.sleep(0)
    desk.questions.answer("q1")
    assert await task == Answer("accept")


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_question_can_be_declined_or_put_away(action: Any) -> None:
    desk = Desk()
    task = await desk.ask()
    getattr(desk.questions, action)("q1")
    assert await task == Answer(action)
    assert desk.answered == [QuestionAnswered("q1", action)]


@pytest.mark.requirement("Y SP-022")
async def test_an_abort_cancels_what_waits() -> None:
    desk = Desk()
    first, second = await desk.ask("q1"), await desk.ask("q2")
    desk.signal.abort()
    assert [(await task).action for task in (first, second)] == ["cancel", "cancel"]
    assert desk.questions.pending == ()


async def test_a_question_of_an_aborted_run_is_not_waited_for() -> None:
    desk = Desk()
    desk.signal.abort()
    answer = await desk.questions.ask(QuestionAsked("q1", "weather", "Where?", SCHEMA), desk.signal)
    assert answer == Answer("cancel")
    assert desk.answered == [QuestionAnswered("q1", "cancel")]


async def test_a_question_whose_asker_is_cancelled_is_told_as_over() -> None:
    desk = Desk()
    task = await desk.ask()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert desk.questions.pending == ()
    assert desk.answered == [QuestionAnswered("q1", "cancel")]


async def test_questions_wait_in_their_order_and_are_answered_in_any() -> None:
    desk = Desk()
    tasks = {name: await desk.ask(name) for name in ("q1", "q2", "q3")}
    assert [question.request_id for question in desk.questions.pending] == ["q1", "q2", "q3"]
    for name in ("q2", "q3", "q1"):
        desk.questions.answer(name, {"city": name})
        assert (await tasks[name]).content == {"city": name}


ANSWERS: list[Callable[[Questions], None]] = [
    lambda questions: questions.answer("q1", {"city": "Lisbon"}),
    lambda questions: questions.decline("q1"),
    lambda questions: questions.cancel("q1"),
]


@pytest.mark.parametrize("say", ANSWERS)
async def test_a_question_is_answered_once(say: Callable[[Questions], None]) -> None:
    desk = Desk()
    task = await desk.ask()
    desk.questions.answer("q1", {"city": "Lisbon"})
    with pytest.raises(InvalidParametersError, match="No question 'q1' waits for an answer"):
        say(desk.questions)
    assert (await task).action == "accept"
    with pytest.raises(InvalidParametersError, match="It was answered, or its call ended"):
        say(desk.questions)


async def test_an_answer_may_come_from_another_thread() -> None:
    desk = Desk()
    task = await desk.ask()
    thread = threading.Thread(target=desk.questions.answer, args=("q1", {"city": "Lisbon"}))
    thread.start()
    async with asyncio.timeout(5):
        assert (await task).content == {"city": "Lisbon"}
    thread.join()


async def test_of_many_threads_one_answers() -> None:
    desk = Desk()
    task = await desk.ask()
    refused: list[int] = []
    start = threading.Barrier(8)

    def answer(number: int) -> None:
        start.wait()
        try:
            desk.questions.answer("q1", {"city": str(number)})
        except InvalidParametersError:
            refused.append(number)

    threads = [threading.Thread(target=answer, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    async with asyncio.timeout(5):
        winner = (await task).content["city"]
    for thread in threads:
        thread.join()
    assert sorted([*refused, int(winner)]) == [*range(8)]


def test_an_answer_after_the_loop_was_closed_does_no_harm() -> None:
    desk = Desk()
    asking = desk.questions.ask(QuestionAsked("q1", "weather", "Where?", SCHEMA), desk.signal)

    async def begin() -> None:
        asking.send(None)

    asyncio.run(begin())
    assert len(desk.questions.pending) == 1
    desk.questions.answer("q1", {"city": "Lisbon"})
    assert desk.questions.pending == ()
    asking.close()


async def test_an_abort_takes_the_question_away_at_once() -> None:
    desk = Desk()
    task = await desk.ask()
    desk.signal.abort()
    assert desk.questions.pending == ()
    with pytest.raises(InvalidParametersError, match="No question 'q1' waits"):
        desk.questions.answer("q1", {"city": "Lisbon"})
    assert await task == Answer("cancel")
