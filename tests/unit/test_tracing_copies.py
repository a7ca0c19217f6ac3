"""A request is told apart from another, and made again: as a cell, and as a test that fails when something changes."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import yiemagent_nb
from yiemagent_nb import Agent, AssistantMessage, Demo, Limits, tool
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.hooks import AgentContext
from yiemagent_nb.core.redaction import Redactor
from yiemagent_nb.testing import Scripted, assistant, call, user
from yiemagent_nb.tracing.copies import copy_of
from yiemagent_nb.tracing.difference import Difference, difference
from yiemagent_nb.tracing.recorder import TraceRecorder
from yiemagent_nb.tracing.rows import Row
from yiemagent_nb.tracing.test_file import write_test

pytestmark = pytest.mark.requirement("Y FR-006")

AWKWARD = "It's a \"test\" with \\ back\\nslashes, `ticks`, $HOME, {braces}, %s, 'quotes''' and \"\"\" é 🎉\n\ttab"


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def traced(answers: Sequence[Any], *prompts: str, **options: Any) -> TraceRecorder:
    agent = Agent(Scripted(answers), "Be brief.", tools=[add], **options)
    trace = TraceRecorder.of(agent)
    for prompt in prompts:
        await agent.prompt(prompt)
    AGENTS.append(agent)
    return trace


AGENTS: list[Agent] = []
"""A recorder lives as long as its agent."""


def models(trace: TraceRecorder) -> list[Row]:
    return [row for row in trace.rows() if row.kind == "model"]


def titles(found: Difference) -> list[str]:
    return [section.title for section in found.sections]


def lines(found: Difference, title: str) -> list[tuple[str, str]]:
    section = next(each for each in found.sections if each.title == title)
    return [(line.kind, line.text) for line in section.lines]


# The difference


async def test_a_longer_history_differs_by_what_is_new() -> None:
    trace = await traced([[call("add", a=1, b=2)], "3"], "1 + 2?")
    first, second = models(trace)
    assert difference(trace, first).against is None
    found = difference(trace, second)
    assert found.against == first.number
    assert titles(found) == ["Message 2, assistant: added", "Message 3, tool: added"]
    assert found.unchanged == "The same: the system prompt, the first 1 message, 1 tool, the options."


async def test_prompt_tools_options_and_changed_lines_are_told_apart() -> None:
    texts = iter(["one\ntwo\nthree", "one\n2\nthree"])

    def changing(context: AgentContext) -> list[Mapping[str, Any]]:
        return [{"role": "system", "content": context.system_prompt}, {"role": "user", "content": next(texts)}]

    agent = Agent(Scripted(["a", "b"]), "Be brief.", tools=[add], format_messages=changing)
    trace = TraceRecorder.of(agent)
    await agent.prompt("x")
    agent.set_system_prompt("Be rude.")
    agent.set_tools([])
    agent.set_options({"temperature": 1})
    await agent.prompt("y")
    found = difference(trace, models(trace)[1])
    assert titles(found) == ["System prompt", "Message 1, user: changed", "Tool add: removed", "Options"]
    assert lines(found, "System prompt") == [("removed", "Be brief."), ("added", "Be rude.")]
    assert lines(found, "Message 1, user: changed") == [
        ("same", "one"),
        ("removed", "two"),
        ("added", "2"),
        ("same", "three"),
    ]


async def test_a_history_that_was_cut_in_front_differs_by_what_is_gone() -> None:
    def last_two(state: Any) -> AgentContext:
        return AgentContext(state.system_prompt, state.messages[-3:], state.tools)

    trace = await traced(["a", "b", "c"], "1", "2", "3", prepare_context=last_two)
    found = difference(trace, models(trace)[2])
    assert [title.split(": ")[1] for title in titles(found)] == ["removed", "removed", "added", "added"]
    assert "1 message" in found.unchanged


async def test_two_long_histories_are_compared_in_no_time() -> None:
    def history(word: str) -> list[Any]:
        return [user(f"{word} {n}") if n % 2 else assistant(f"{word} {n}") for n in range(1, 4001)]

    limits = Limits(messages_per_session=None, messages_per_minute=None)
    trace = await traced(["a", "b"], "go", "on", messages=history("one"), limits=limits)
    other = await traced(["a"], "go", messages=history("two"), limits=limits)
    first, second = models(trace)
    began = time.process_time()
    assert len(difference(trace, second).sections) == 2
    assert len(difference(trace, second, first).sections) == 2
    assert len(difference(other, models(other)[0], first).sections) == 200
    assert time.process_time() - began < 2.0


async def test_only_calls_of_the_model_are_compared() -> None:
    trace = await traced(["a"], "go")
    with pytest.raises(InvalidParametersError, match="no call of the model"):
        difference(trace, trace.rows()[0])


# As a cell


async def run_cell(text: str) -> dict[str, Any]:
    """Run a cell as IPython does, with ``await`` at its top; gives its names, and its value as ``_``."""
    tree = ast.parse(text)
    last = tree.body[-1]
    assert isinstance(last, ast.Expr)
    tree.body[-1] = ast.copy_location(ast.Assign([ast.Name("_", ast.Store())], last.value), last)
    code = compile(ast.fix_missing_locations(tree), "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    names: dict[str, Any] = {}
    await eval(code, names)  # noqa: S307 - the cell that is tested
    return names


async def test_a_cell_makes_the_same_request_and_runs_as_it_stands() -> None:
    trace = await traced([[call("add", a=1, b=2)], AWKWARD], AWKWARD, thinking_level="low")
    for row in models(trace):
        names = await run_cell(copy_of(trace, row, "python").text)
        assert isinstance(names["_"], AssistantMessage)
        answer = row.model.answer
        assert answer is not None
        assert names["_"].text == answer.text
        assert [each.arguments for each in names["_"].tool_calls] == [each.arguments for each in answer.tool_calls]
        assert names["messages"] == row.model.requests[0].messages
        assert names["backend"].requests[0].options == {"thinking_level": "low"}


async def test_a_backend_of_the_package_is_built_anew() -> None:
    agent = Agent(Demo(delay=0), tools=[add])
    trace = TraceRecorder.of(agent)
    answer = await agent.prompt("add 17 and 25")
    text = copy_of(trace, models(trace)[-1], "python").text
    assert "from yiemagent_nb import Demo" in text
    assert (await run_cell(text))["_"].text == answer.text


async def test_a_backend_without_a_name_cannot_be_copied_and_says_so() -> None:
    def counting(messages: Sequence[Mapping[str, Any]]) -> str:
        return f"{len(messages)}"

    agent = Agent(counting)
    trace = TraceRecorder.of(agent)
    await agent.prompt("hi")
    with pytest.raises(InvalidParametersError, match="cannot be named"):
        copy_of(trace, models(trace)[0], "python")
    with pytest.raises(InvalidParametersError, match="no HTTP request"):
        copy_of(trace, models(trace)[0], "curl")


async def test_rows_without_a_request_cannot_be_copied() -> None:
    trace = await traced([[call("add", a=1, b=2)], "3"], "go")
    run = trace.rows()[0]
    called = next(row for row in trace.rows() if row.kind == "tool")
    for form in ("python", "curl"):
        with pytest.raises(InvalidParametersError, match="only calls of the model"):
            copy_of(trace, run, form)
    with pytest.raises(InvalidParametersError, match="a model call or a run"):
        copy_of(trace, called, "test")


# As a test


def run_pytest(folder: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    root = str(Path(yiemagent_nb.__file__).parents[1])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, files)]
    environment = {**os.environ, "PYTHONPATH": root}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)


async def test_a_test_passes_and_fails_when_what_is_sent_or_read_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answers = [[call("add", a=1, b=2), call("add", a=1, b="x"), call("nothing")], "It is 3."]
    trace = await traced(answers, "What is 1 + 2?", AWKWARD)
    run = trace.rows()[0]
    of_run = write_test(trace, run, "tests/test_run.py")
    of_model = write_test(trace, models(trace)[1], "tests/test_run.py")
    of_failure = write_test(trace, trace.rows()[-3], "tests/test_run.py")
    assert [path.name for path in (of_run, of_model, of_failure)] == ["test_run.py", "test_run_2.py", "test_run_3.py"]
    passing = run_pytest(tmp_path, of_run, of_model, of_failure)
    assert passing.returncode == 0, passing.stdout[-3000:]
    assert "3 passed" in passing.stdout
    text = of_run.read_text("utf-8")
    changes = {
        "prompt": ("'text': 'What is 1 + 2?'", "'text': 'What is 2 + 2?'"),
        "system": ("SYSTEM_PROMPT = 'Be brief.'", "SYSTEM_PROMPT = 'Be long.'"),
        "answer": ("{'content': '3.'}", "{'content': '4.'}"),
        "arguments": ("{'arguments': '1, '}", "{'arguments': '7, '}"),
        "result": ("{'type': 'text', 'text': '3'}", "{'type': 'text', 'text': '4'}"),
    }
    changed: list[Path] = []
    for name, (old, new) in changes.items():
        assert old in text, name
        path = tmp_path / f"test_changed_{name}.py"
        path.write_text(text.replace(old, new, 1), "utf-8")
        changed.append(path)
    failing = run_pytest(tmp_path, *changed)
    assert failing.returncode == 1
    assert f"{len(changes)} failed" in failing.stdout, failing.stdout[-3000:]


async def test_what_hooks_made_of_a_history_is_given_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def shouting(context: AgentContext) -> list[Mapping[str, Any]]:
        return [{"role": "user", "content": f"{len(context.messages)}!"}]

    trace = await traced([[call("add", a=1, b=2)], "3"], "go", format_messages=shouting)
    path = write_test(trace, trace.rows()[0], "test_shouting.py")
    assert "hooks of the agent made it" in path.read_text("utf-8")
    done = run_pytest(tmp_path, path)
    assert done.returncode == 0, done.stdout[-3000:]


def names_in(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


@pytest.mark.parametrize(
    "path", ["../test_out.py", "/nowhere/test_out.py", "a/../../test_out.py", "out/test_link.py", "tests", "notes.py"]
)
async def test_a_test_stays_below_the_folder(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "out").symlink_to(tmp_path)
    monkeypatch.chdir(folder)
    trace = await traced(["hi"], "hello")
    with pytest.raises(InvalidParametersError):
        write_test(trace, trace.rows()[0], path)
    assert names_in(tmp_path) == ["folder"]
    assert names_in(folder) == ["out"]


async def test_a_test_of_what_goes_on_is_refused() -> None:
    trace = await traced([], "go")
    row = trace.rows()[0]
    row.duration = None
    with pytest.raises(InvalidParametersError, match="has not ended"):
        copy_of(trace, row, "test")


async def recorded_by(backend: Any, **options: Any) -> TraceRecorder:
    agent = Agent(backend, "Be brief.", tools=[add], **options)
    AGENTS.append(agent)
    trace = TraceRecorder.of(agent)
    await agent.prompt("go")
    return trace


async def test_what_is_not_read_of_the_pieces_as_they_were_is_tested_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    key = "sk-proj-Zq8Lw3Xv9Rt2Yp5Nb7Mc4Kd6"
    redactor = Redactor()
    redactor.add(key)

    async def hostile(messages: Sequence[Any]) -> Any:
        if len(messages) > 3:
            yield {"choices": [{"index": 0, "delta": {"content": "done"}, "finish_reason": "stop"}]}
            return
        arguments = f'{{"a": 1, "b": "{key}"}}'
        function = {"name": "add", "arguments": ""}
        yield {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c1", "function": function}]}}]}
        for at in range(0, len(arguments), 7):
            part = {"index": 0, "function": {"arguments": arguments[at : at + 7]}}
            yield {"choices": [{"index": 0, "delta": {"content": key[at : at + 7], "tool_calls": [part]}}]}
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}

    def writes_calls(messages: Sequence[Any]) -> dict[str, Any]:
        text = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'
        return {"content": text if len(messages) < 3 else "done"}

    async def rewrite(ask: Any, messages: Any, options: dict[str, Any]) -> Any:
        said = "".join(
            [piece["choices"][0]["delta"].get("content", "") async for piece in await ask(messages, **options)]
        )
        return f"{said}, says the hook"

    async def first_of_two(ask: Any, messages: Any, options: dict[str, Any]) -> Any:
        first = await ask(messages, **options)
        await ask([*messages, {"role": "user", "content": "other"}], **options)
        return first

    traces = {
        "split": await recorded_by(hostile),
        "text_calls": await recorded_by(writes_calls, text_tool_calls=True),
        "rewritten": await recorded_by(Scripted([[call("add", a=1, b=2)], "3"]), around_llm_call=rewrite),
        "twice": await recorded_by(Scripted(["one", "two"]), around_llm_call=first_of_two),
    }
    files: list[Path] = []
    for name, trace in traces.items():
        for row in (trace.rows()[0], models(trace)[0]):
            files.append(write_test(trace, row, f"test_{name}_{row.kind}.py"))
            text = copy_of(trace, row, "test").text
            assert not [key[at : at + 7] for at in range(0, 28, 7) if repr(key[at : at + 7]) in text], text
            assert ("made its own" in text) == (name == "rewritten")
    done = run_pytest(tmp_path, *files)
    assert done.returncode == 0, done.stdout[-3000:]
    assert f"{len(files)} passed" in done.stdout


def round_trips(rounds: int, result: str) -> tuple[Any, Any]:
    @tool
    def look(number: int) -> str:
        """Look."""
        return result if number == 2 else f"result {number}"

    return look, Scripted([*([call("look", number=number)] for number in range(rounds)), "done"])


async def test_a_test_of_a_long_run_takes_time_in_step_with_its_length() -> None:
    async def seconds(rounds: int) -> float:
        look, backend = round_trips(rounds, "short")
        agent = Agent(backend, tools=[look], limits=Limits(max_turns=None))
        trace = TraceRecorder.of(agent)
        await agent.prompt("go")
        took: list[float] = []
        text = ""
        for _ in range(3):
            began = time.process_time()
            text = copy_of(trace, trace.rows()[0], "test").text
            took.append(time.process_time() - began)
        assert text.count("'role': 'tool'") == rounds
        return min(took)

    assert await seconds(600) < 10 * await seconds(100)


async def test_a_copy_that_is_too_long_for_a_page_is_refused_at_once() -> None:
    look, backend = round_trips(20, "r" * 20_000_000)
    agent = Agent(backend, tools=[look], limits=Limits(max_turns=None))
    trace = TraceRecorder.of(agent)
    await agent.prompt("go")
    began = time.process_time()
    for row in (trace.rows()[0], models(trace)[-1]):
        for form in ("test", "python") if row.kind == "model" else ("test",):
            with pytest.raises(InvalidParametersError, match=r"million characters; up to 1\.0 are copied"):
                copy_of(trace, row, form, most=1_000_000)
    assert time.process_time() - began < 1.0
    assert copy_of(trace, models(trace)[0], "test", most=1_000_000).text
