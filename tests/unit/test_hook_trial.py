"""Trying a hook shows what it would have changed, and changes nothing; the ready hooks do what they say."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.errors import BackendError
from yiemagent_nb.core.messages import AssistantMessage, Message, ToolResultMessage
from yiemagent_nb.core.models import Usage
from yiemagent_nb.core.redaction import Redactor
from yiemagent_nb.core.tools import ToolAnnotations, tool
from yiemagent_nb.hooks import trial as trial_module
from yiemagent_nb.hooks.kinds import KINDS, HookName
from yiemagent_nb.hooks.ready import READY_HOOKS
from yiemagent_nb.hooks.recorded import Recording
from yiemagent_nb.hooks.trial import Trial, try_hook
from yiemagent_nb.hooks.versions import HookBench
from yiemagent_nb.testing import Scripted, assistant, call, result, user

CALLS = [call("add", a=1, b=2), call("delete", path="notes/x")]

HISTORY: list[Message] = [
    user("Add, and write to ada@example.org"),
    assistant("Let me see.", CALLS),
    result(CALLS[0], "3"),
    result(CALLS[1], "no such file", is_error=True),
    AssistantMessage("It is 3.", usage=Usage(input_tokens=12, output_tokens=5)),
    user("Thanks"),
    AssistantMessage("You are welcome."),
]

ran: list[object] = []


@tool(annotations=ToolAnnotations(read_only=True))
def add(a: int, b: int, note: str = "") -> int:
    """Add."""
    ran.append((a, b, note))
    return a + b


@tool
def delete(path: str) -> str:
    """Delete."""
    ran.append(path)
    return path


def agent_of(history: list[Message] = HISTORY) -> Agent:
    async def never(_messages: object) -> str:
        ran.append("the backend")
        return ""

    return Agent(never, "Be kind.", tools=[add, delete], messages=history)


async def attempt(hook: HookName, code: str, agent: Agent | None = None, seconds: float = 0.3) -> Trial:
    ran.clear()
    agent = agent or agent_of()
    before = agent.hooks, agent.messages
    trial = await try_hook(Recording(agent), hook, code, seconds)
    assert (agent.hooks, agent.messages) == before
    assert ran == []
    return trial


def effects(trial: Trial) -> list[str]:
    assert trial.problems == []
    return [each.effect for each in trial.calls]


async def test_calls_are_blocked_changed_or_left_alone() -> None:
    code = """
from yiemagent_nb.core.hooks import BeforeToolCallResult
def before_tool_call(context, signal):
    print("looking at", context.tool.name, context.arguments)
    if context.tool.name == "delete":
        return BeforeToolCallResult(block=True, reason="Nothing is deleted.")
    return {**context.arguments, "a": 10}
"""
    trial = await attempt("before_tool_call", code)
    assert effects(trial) == ["changed", "blocked"]
    adding, deleting = trial.calls
    assert adding.title == "add(a=1, b=2)"
    assert ('"a": 1,' in adding.before, '"a": 10,' in adding.after) == (True, True)
    assert deleting.message == "Nothing is deleted."
    assert trial.printed.startswith("looking at add {'a': 1, 'b': 2")
    assert trial.printed.count("\n") == 2


async def test_nobody_is_asked_and_the_trial_says_who_would_be() -> None:
    code = "from yiemagent_nb.core.approval import approve\nbefore_tool_call = approve()\n"
    agent = agent_of()
    trial = await attempt("before_tool_call", code, agent)
    assert effects(trial) == ["unchanged", "unchanged"]
    assert [("A person would be asked" in each.detail) for each in trial.calls] == [False, True]
    assert agent.approvals.pending == ()
    assert isinstance(
        (await HookBench.of(agent).apply("before_tool_call", code), agent.hooks)[1].before_tool_call, tuple
    )


async def test_results_are_shown_as_the_model_would_read_them() -> None:
    code = """
from yiemagent_nb.core.results import ToolResult
def after_tool_call(context):
    if context.is_error:
        return ToolResult("Ask for another path.")
"""
    trial = await attempt("after_tool_call", code)
    assert effects(trial) == ["unchanged", "changed"]
    assert (trial.calls[1].before, trial.calls[1].after) == ("no such file [error]", "Ask for another path.")


async def test_requests_are_built_anew_and_compared_message_by_message() -> None:
    code = """
from yiemagent_nb.core.hooks import AgentContext
def prepare_context(state):
    return AgentContext("Be brief.", state.messages[-2:], {"add": state.tools["add"]})
"""
    trial = await attempt("prepare_context", code)
    assert effects(trial) == ["changed", "changed", "changed"]
    first, second, third = trial.calls
    assert first.title == "Request 1: Add, and write to ada@example.org"
    assert first.detail == "Without the tools delete. 1 of 2 messages is changed."
    assert (first.before, first.after) == ("system: Be kind.", "system: Be brief.")
    assert second.detail.startswith("Without the tools delete. ")
    assert "user: Add, and write" in third.before
    assert "user: Add, and write" not in third.after
    code = "def format_messages(context):\n    return [{'role': 'user', 'content': m.text} for m in context.messages]\n"
    trial = await attempt("format_messages", code)
    assert effects(trial) == ["changed", "changed", "changed"]
    assert "system: Be kind." in trial.calls[0].before


async def test_a_hook_around_the_model_gets_the_recorded_answers_and_never_the_backend() -> None:
    code = """
async def around_llm_call(call, messages, options):
    messages = [message for message in messages if message["role"] != "system"]
    async for piece in await call(messages, **options, temperature=0):
        yield {**piece, "content": piece["content"].upper()}
"""
    trial = await attempt("around_llm_call", code)
    assert effects(trial) == ["changed", "changed", "changed"]
    assert trial.calls[1].detail == (
        "With other options: temperature. Request: 1 of 5 messages is left out. The answer is another."
    )
    assert trial.calls[1].after.endswith("IT IS 3.")
    passing = "async def around_llm_call(call, messages, options):\n    return await call(messages, **options)\n"
    assert effects(await attempt("around_llm_call", passing)) == ["unchanged"] * 3
    none = "def around_llm_call(call, messages, options):\n    return 'Always this.'\n"
    trial = await attempt("around_llm_call", none)
    assert trial.calls[0].detail == "No model is asked. The answer is another."


@pytest.mark.parametrize("hook", KINDS)
async def test_what_goes_wrong_is_shown_at_its_line(hook: HookName) -> None:
    takes = ", ".join(KINDS[hook].takes)
    trial = await attempt(hook, f"def {hook}({takes}):\n    x = 1\n    return x / 0\n")
    assert set(effects(trial)) == {"failed"}
    assert {(each.line, each.message) for each in trial.calls} == {
        (3, "It raised ZeroDivisionError: division by zero.")
    }
    trial = await attempt(hook, f"def {hook}({takes}):\n    return 5\n")
    assert set(effects(trial)) == {"failed"}
    assert trial.calls[0].message == f"It returned 5, of type int. Expected {KINDS[hook].wanted}."
    for word in ("", "async "):
        trial = await attempt(hook, f"{word}def {hook}({takes}):\n    while True: pass\n", seconds=0.05)
        assert effects(trial) == ["failed"]  # the others were not tried
        assert trial.calls[0].line == 2
        assert "not tried" in trial.note
    trial = await attempt(hook, f"def {hook}({takes}:\n")
    assert [(problem.line, trial.calls) for problem in trial.problems] == [(1, [])]


@pytest.mark.parametrize("hook", KINDS)
async def test_without_a_history_an_example_is_tried(hook: HookName) -> None:
    takes = ", ".join(KINDS[hook].takes)
    trial = await attempt(
        hook, f"def {hook}({takes}):\n    print({takes.split(', ')[0]})\n    raise KeyError\n", agent_of([])
    )
    assert len(trial.calls) == 1
    assert "Nothing of this kind is in the history yet" in trial.note
    if hook == "before_tool_call":
        assert trial.calls[0].title == "add(a=1, b=1)"
    assert (await attempt(hook, KINDS[hook].template, agent_of([]))).problems == []


@pytest.mark.parametrize("hook", KINDS)
async def test_the_template_of_each_hook_changes_nothing_that_matters(hook: HookName) -> None:
    trial = await attempt(hook, KINDS[hook].template)
    assert "failed" not in effects(trial)
    if hook != "after_tool_call":
        assert set(effects(trial)) == {"unchanged"}


async def test_the_newest_calls_are_tried_in_a_copy_of_the_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_module, "MOST_CALLS", 2)
    calls = [call("add", a=number, b=0) for number in range(5)]
    history: list[Message] = [user("go"), assistant(calls=calls), *(result(each) for each in calls)]
    import __main__  # noqa: PLC0415

    code = "left_by_a_trial = 1\ndef before_tool_call(context, signal):\n    assert left_by_a_trial\n"
    trial = await attempt("before_tool_call", code, agent_of(history))
    assert [each.title for each in trial.calls] == ["add(a=3, b=0)", "add(a=4, b=0)"]
    assert trial.note == "The newest 2 are shown; 3 older ones were left out."
    assert not hasattr(__main__, "left_by_a_trial")


async def test_tools_that_are_gone_have_a_stand_in() -> None:
    gone, odd = call("gone", x=1), call("not a name", x=1)
    history: list[Message] = [user("go"), assistant(calls=[gone, odd]), result(gone), result(odd)]
    trial = await attempt("before_tool_call", "def before_tool_call(c, s):\n    return {'x': 2}\n", agent_of(history))
    assert effects(trial) == ["changed", "unchanged"]
    assert trial.calls[1].detail.startswith("This call reached no hook: No tool can have the name")


async def test_calls_that_reached_no_hook_are_told_so_and_leave_no_thread() -> None:
    unfit = [call("add", a="x", b=2)] * 5
    agent = agent_of([user("go"), assistant(calls=unfit)])
    trial = await attempt("before_tool_call", "def before_tool_call(c, s):\n    return None\n", agent)
    assert effects(trial) == ["unchanged"] * 5
    assert all(each.detail.startswith("This call reached no hook: ") for each in trial.calls)
    watching = [thread for thread in threading.enumerate() if "watchdog" in thread.name]
    for thread in watching:
        await asyncio.to_thread(thread.join, 10)
        assert not thread.is_alive()


async def test_what_shows_a_change_is_limited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_module, "SHOW_SECONDS", 0.3)
    code = """
class Slow:
    def __repr__(self):
        while True: pass
async def around_llm_call(call, messages, options):
    return await call([{"role": "user", "content": "hi", "more": Slow()}], **options)
"""
    trial = await attempt("around_llm_call", code)
    assert effects(trial) == ["failed"]
    assert (trial.calls[0].line, trial.calls[0].message[:28]) == (4, "It did not return in time, a")


async def test_a_hook_that_holds_up_the_event_loop_is_told_to_wait_otherwise() -> None:
    code = "import time\nasync def before_tool_call(context, signal):\n    time.sleep(0.7)\n"
    trial = await attempt("before_tool_call", code, seconds=5)
    assert effects(trial) == ["unchanged"] * 2
    assert all("It held up everything else for more than 0.5 s." in each.detail for each in trial.calls)


KEY = "sk-proj-Zq8Lw3Xv9Rt2Yp5Nb7Mc4Kd6"


@pytest.mark.requirement("Y NFR-201")
@pytest.mark.parametrize("before", [0, 20, 95])
async def test_no_key_of_a_connection_stands_in_a_trial(before: int) -> None:
    redactor = Redactor()
    redactor.add(KEY)
    filled = f"{'n' * before}{KEY}"
    calls = [call("delete", path=filled), call("gone", deep={"list": [filled]})]
    agent = agent_of([user(filled), assistant(calls=calls), result(calls[0], filled)])
    codes = {
        "changes": f"def before_tool_call(c, s):\n    print(c.arguments)\n    return {{'path': '{KEY} too'}}\n",
        "raises": "def before_tool_call(c, s):\n    raise ValueError(str(c.arguments))\n",
        "refuses": "def before_tool_call(c, s):\n    return c.arguments, 5\n",
        "does not load": f"raise ValueError('{filled}')\n",
    }
    for code in codes.values():
        shown = repr((await attempt("before_tool_call", code, agent)).form())
        for start in range(len(KEY) - 8):
            assert KEY[start : start + 8] not in shown
    shown = repr((await attempt("prepare_context", KINDS["prepare_context"].template, agent)).form())
    assert KEY[:8] not in shown


async def test_the_notebook_goes_on_while_a_hook_is_tried() -> None:
    held = threading.Event()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while not held.is_set():
            ticks += 1
            await asyncio.sleep(0.005)

    ticking = asyncio.ensure_future(tick())
    code = "async def before_tool_call(context, signal):\n    while True: pass\n"
    await attempt("before_tool_call", code, seconds=0.2)
    held.set()
    await ticking
    assert ticks > 3


# Ready hooks

CODES = {ready.name: ready for ready in READY_HOOKS}


async def tried(name: str, agent: Agent | None = None, *changes: tuple[str, str]) -> Trial:
    ready = CODES[name]
    code = ready.code
    for old, new in changes:
        assert old in code
        code = code.replace(old, new)
    return await attempt(ready.hook, code, agent)


def test_the_text_of_each_ready_hook_is_its_module() -> None:
    folder = Path(trial_module.__file__).parent / "ready"
    assert {path.stem for path in folder.glob("*.py")} == {"__init__", *CODES}
    for ready in READY_HOOKS:
        assert ready.code == (folder / f"{ready.name}.py").read_text("utf-8")
        assert ready.hook in ready.code
        assert ready.form()["tells"]


@pytest.mark.parametrize("name", CODES)
async def test_each_ready_hook_can_be_applied_as_it_stands(name: str) -> None:
    ready = CODES[name]
    agent = Agent(Scripted([[call("add", a=1, b=2)], "three"]), tools=[add])
    bench = HookBench.of(agent)
    await bench.apply(ready.hook, ready.code, on_error=ready.on_error)
    assert (await agent.prompt("1 + 2?")).text == "three"
    assert bench.failures.of(ready.hook) == []


async def test_ask_first_asks_for_what_is_not_read_only() -> None:
    trial = await tried("ask_first")
    assert [bool(each.detail) for each in trial.calls] == [False, True]


async def test_deny_by_pattern_refuses_by_what_the_arguments_hold() -> None:
    calls = [call("delete", path="rm -rf /"), call("delete", path="notes.txt"), call("delete", path="/home/a/.ssh/id")]
    trial = await tried("deny_by_pattern", agent_of([user("go"), assistant(calls=calls)]))
    assert effects(trial) == ["blocked", "unchanged", "blocked"]
    assert trial.calls[0].message == "Calls with 'rm -rf' are not allowed here."


async def test_cap_result_keeps_the_beginning_and_the_end() -> None:
    once = call("add", a=1, b=2)
    history: list[Message] = [user("go"), assistant(calls=[once]), result(once, f"begin{'x' * 9_000}end")]
    (capped,) = (await tried("cap_result", agent_of(history))).calls
    assert capped.effect == "changed"
    assert capped.after.startswith("begin")
    assert capped.after.endswith("end")
    assert "5,008 characters left out" in capped.after


async def test_log_calls_prints_a_line_a_call() -> None:
    trial = await tried("log_calls")
    assert set(effects(trial)) == {"unchanged"}
    assert trial.printed.splitlines() == [
        'add({"a": 1, "b": 2}) gave 3',
        'delete({"path": "notes/x"}) failed no such file',
    ]


async def test_keep_last_never_parts_a_result_from_its_call() -> None:
    for kept in range(1, 6):
        trial = await tried("keep_last", None, ("KEPT = 20", f"KEPT = {kept}"))
        assert set(effects(trial)) <= {"unchanged", "changed"}
        from yiemagent_nb.hooks.ready import keep_last  # noqa: PLC0415

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(keep_last, "KEPT", kept)
            for end in range(1, len(HISTORY) + 1):
                agent = agent_of(HISTORY[:end])
                sent = keep_last.prepare_context(agent.state).messages
                assert not isinstance(sent[0], ToolResultMessage)
                assert len(sent) >= min(kept, end)


async def test_redact_leaves_keys_and_addresses_out_of_what_is_sent() -> None:
    secret = call("add", a=1, b=2, note="sk-abcdefghijklmnop and Bearer abcdef.ghijkl123")
    history: list[Message] = [
        user("I am ada@example.org"),
        assistant(calls=[secret]),
        result(secret, "AKIAABCDEFGHIJKLMNOP"),
    ]
    (first,) = (await tried("redact", agent_of([*history[:1], assistant("hi")]))).calls
    assert first.after == "user: I am [e-mail]"
    from yiemagent_nb.hooks.ready import redact  # noqa: PLC0415

    sent = redact.prepare_context(agent_of(history).state)
    text = repr(sent.messages)
    assert [text.count(word) for word in ("[e-mail]", "[key]", "[token]")] == [1, 2, 1]
    for part in ("ada@", "sk-abc", "abcdef.ghi", "AKIAABC"):
        assert part not in text
    assert CODES["redact"].on_error == "end"


async def test_time_and_tokens_prints_a_line_an_answer() -> None:
    trial = await tried("time_and_tokens")
    assert set(effects(trial)) == {"unchanged"}
    assert [line.partition(", ")[2] for line in trial.printed.splitlines()] == [
        "tokens were not told",
        "12 tokens in, 5 out",
        "tokens were not told",
    ]


async def test_fall_back_asks_the_other_backend_where_the_first_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    from yiemagent_nb.hooks.ready import fall_back  # noqa: PLC0415

    async def fails_at_once(_messages: object) -> Any:
        raise BackendError("gone")
        yield ""

    async def other(_messages: object, **_options: object) -> str:
        return "from the other one"

    agent = Agent(fails_at_once, around_llm_call=fall_back.around_llm_call)
    assert (await agent.prompt("hi")).stop_reason == "error"
    monkeypatch.setattr(fall_back, "OTHER", other)
    assert (await agent.prompt("hi")).text == "from the other one"
    agent.set_llm_call(Scripted(["from the first one"]))
    assert (await agent.prompt("hi")).text == "from the first one"
