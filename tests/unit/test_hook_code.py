"""A hook's code is checked without running, and its function found; names are completed without running."""

from __future__ import annotations

import inspect
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import pytest

from yiemagent_nb.hooks.code import HookCodeError, check_code, forget_source, load_hook, remember_source
from yiemagent_nb.hooks.completion import complete_code
from yiemagent_nb.hooks.kinds import HookName
from yiemagent_nb.hooks.ready import redact

GOOD = "def before_tool_call(context, signal):\n    return None\n"


async def load(code: str, hook: HookName = "before_tool_call", **names: Any) -> Any:
    filename = remember_source("a hook", code)
    try:
        return await load_hook(hook, code, filename, names, 0.2)
    finally:
        forget_source(filename)


@pytest.mark.parametrize(
    "code",
    [
        GOOD,
        "async def before_tool_call(context, signal): ...\n",
        "def before_tool_call(*everything): ...\n",
        "def helper(): ...\ndef my_own_name(context, signal): ...\n",
        "def before_tool_call(context, signal): ...\ndef helper(): ...\n",
        "class Policy:\n    def __call__(self, context, signal): ...\nbefore_tool_call = Policy()\n",
        "from yiemagent_nb.core.approval import approve\nbefore_tool_call = approve()\n",
        "if True:\n    def before_tool_call(context, signal): ...\n",
        "before_tool_call = lambda context, signal: None\n",
    ],
)
async def test_the_function_of_the_hooks_name_or_the_last_one_is_the_hook(code: str) -> None:
    hook = await load(code)
    assert callable(hook)
    assert getattr(hook, "__name__", "") != "helper"


@pytest.mark.parametrize(
    ("code", "line", "column", "words"),
    [
        ("def before_tool_call(context, signal)\n    pass\n", 1, 38, "expected ':'"),
        ("x = '😀' = 1\n", 1, 5, "cannot assign"),
        ("x = (\n", 1, 5, "never closed"),
        ("await x\n", 1, 1, "'await' outside function"),
        ("%time 1\n", 1, 1, "invalid syntax"),
        ("a = 1\nb = a / 0\n", 2, 1, "ZeroDivisionError: division by zero"),
        ("import yiemagent_nb.not_there\n", 1, 1, "ModuleNotFoundError"),
        ("while True:\n    pass\n", 1, 1, "did not return within 0.2 s"),
        ("\nraise SystemExit(3)\n", 2, 1, "SystemExit: 3"),
        ("", 1, 1, "expected `def before_tool_call(context, signal):`"),
        ("\nx = 1\n", 2, 1, "expected `def before_tool_call(context, signal):`"),
        ("\n\ndef before_tool_call(context): ...\n", 3, 1, "is called with context, signal"),
        ("def other(): ...\n", 1, 1, "other is called with context, signal"),
        ("before_tool_call = 5\n", 1, 1, "before_tool_call is no function"),
        ("x\0y", 1, 1, "null bytes"),
        (f"{'(' * 5000}1{')' * 5000}", 1, 1, ""),
        (f"{'-' * 20_000}1", 1, 1, ""),
    ],
)
async def test_what_is_wrong_is_told_with_its_place(code: str, line: int, column: int, words: str) -> None:
    with pytest.raises(HookCodeError) as caught:
        await load(code)
    problem = caught.value.problem
    assert words in problem.message
    if words:
        assert (problem.line, problem.column) == (line, column) or (words.startswith("did not") and problem.line <= 2)


def test_checking_runs_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    code = f"import pathlib\npathlib.Path({str(marker)!r}).touch()\n@print\nclass A(print(1)): ...\n"
    assert check_code(code) == []
    assert [problem.line for problem in check_code(f"{code}def broken(:\n")] == [5]
    assert not marker.exists()


@pytest.mark.parametrize("action", ["default", "error"])
async def test_what_python_warns_of_is_a_problem_of_its_own_kind(
    action: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    code = f"{GOOD}x = 1\nx is 1\n'\\d'\n"
    with warnings.catch_warnings():
        warnings.simplefilter(action)
        problems = check_code(code)
        await load(code)
    assert {(problem.line, problem.severity) for problem in problems} == {(4, "warning"), (5, "warning")}
    assert [problem.severity for problem in check_code("x =")] == ["error"]
    assert capsys.readouterr().err == ""


async def test_tracebacks_and_inspect_show_the_code() -> None:
    code = "def before_tool_call(context, signal):\n    return context / signal\n"
    filename = remember_source("before_tool_call, version 7", code)
    assert filename == "<before_tool_call, version 7>"
    hook = await load_hook("before_tool_call", code, filename, {}, 1)
    assert inspect.getsource(hook) == code
    with pytest.raises(ZeroDivisionError) as caught:
        hook(1, 0)
    assert "return context / signal" in "".join(traceback.format_exception(caught.value))
    assert remember_source("before_tool_call, version 7", "other = 1\n") == "<before_tool_call, version 7 (2)>"
    for name in (filename, "<before_tool_call, version 7 (2)>"):
        forget_source(name)


async def test_code_runs_in_the_namespace_that_it_is_given() -> None:
    names = {"known": 5}
    code = "def before_tool_call(context, signal):\n    return known\nleft = known + 1\n"
    hook = await load_hook("before_tool_call", code, "<a hook>", names, 1)
    assert hook(None, None) == 5
    assert names["left"] == 6


# Completion


def complete(code: str, **names: Any) -> list[str]:
    before, _, after = code.partition("|")
    found = complete_code(before + after, len(before), names)
    assert all(item.lower().startswith(before[found.start :].lower()) for item in found.items)
    return found.items


class Data:
    """With an attribute of each kind."""

    kept = 1

    def __init__(self) -> None:
        self.own = 2

    def method(self) -> None: ...


def test_names_of_the_text_of_the_notebook_and_of_python_are_completed() -> None:
    assert complete("alphabet = 1\nalp|", alpine=1) == ["alphabet", "alpine"]
    assert complete("Non|") == ["None", "nonlocal"]
    assert "isinstance" in complete("isin|")
    assert complete("größe = 1\ngr|") == ["größe"]
    assert complete("import js|")[:1] == ["json"]
    assert complete("from yiemagent_nb.core.hooks import BeforeToolCallR|") == ["BeforeToolCallResult"]
    assert complete("data.|", data=Data()) == ["kept", "method", "own"]
    assert complete("nothing.|") == []
    assert len(complete("|", **{f"name_{number}": 0 for number in range(5000)})) == 200


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("def before_tool_call(context, signal):\n    context.|", "tool_call"),
        ("async def before_tool_call(call, signal):\n    call.tool.annotations.|", "read_only"),
        ("def before_tool_call(context, stop):\n    stop.|", "aborted"),
        ("def after_tool_call(done):\n    done.result.te|", "text"),
        ("def after_tool_call(done):\n    done.message.usage.inp|", "input_tokens"),
        ("def prepare_context(state):\n    state.sys|", "system_prompt"),
        ("async def around_llm_call(call, messages, options):\n    options.se|", "setdefault"),
    ],
)
def test_parameters_of_a_hook_are_completed_by_their_types(code: str, name: str) -> None:
    assert name in complete(code)


class Trap:
    """Notes whatever runs."""

    ran: list[str]

    def __init__(self, ran: list[str]) -> None:
        object.__setattr__(self, "ran", ran)

    @property
    def attribute(self) -> object:
        object.__getattribute__(self, "ran").append("property")
        return self

    def __getattribute__(self, name: str) -> Any:
        object.__getattribute__(self, "ran").append(f"__getattribute__ {name}")
        return object.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        object.__getattribute__(self, "ran").append(f"__getattr__ {name}")
        return self

    def __dir__(self) -> list[str]:
        object.__getattribute__(self, "ran").append("__dir__")
        return ["x"]

    def __getitem__(self, key: object) -> Any:
        object.__getattribute__(self, "ran").append("__getitem__")
        return self

    def __call__(self) -> Any:
        object.__getattribute__(self, "ran").append("__call__")
        return self


class TrapType(type):
    """A class whose own attributes are traps."""

    ran: list[str] = []  # noqa: RUF012 - shared on purpose

    def __getattribute__(cls, name: str) -> Any:
        TrapType.__dict__["ran"].append(name)
        return type.__getattribute__(cls, name)


class Trapped(metaclass=TrapType):
    inside = 1


@pytest.mark.requirement("Y NFR-202")
@pytest.mark.parametrize(
    "code",
    [
        "trap.|",
        "trap.attribute.|",
        "trap.attribute.attribute.at|",
        "trap.missing.|",
        "trap().|",
        "trap[0].|",
        "trap['x'].at|",
        "f'{trap()}|",
        "f'{trap.|",
        "f'{trap.attribute.|",
        "(trap.attribute).|",
        "[trap() for _ in 'x'].|",
        "(x := trap()).|",
        "lambda: trap().|",
        "Trapped.|",
        "Trapped.inside.|",
        "open('marker', 'w').|",
        "__import__('os').system('true').|",
        "trap. attribute .|",
        "import trap.|",
        "from trap import |",
    ],
)
def test_completing_runs_nothing(code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    ran: list[str] = []
    TrapType.__dict__["ran"].clear()
    complete(code, trap=Trap(ran), Trapped=Trapped)
    assert ran == []
    assert TrapType.__dict__["ran"] == []
    assert list(tmp_path.iterdir()) == []


class Liar:
    """Says of itself what it is not, by code."""

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        liar_ran.append("__class__")
        raise RuntimeError("outside of request context")


class OwnNames:
    """Computes the names that it holds."""

    @property
    def __dict__(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        liar_ran.append("__dict__")
        return {"computed": 1}


def _noting(name: str) -> property:
    def compute(_: object) -> Any:
        liar_ran.append(name)
        return ()

    return property(compute)


LyingType: Any = type("LyingType", (type,), {name: _noting(name) for name in ("__mro__", "__dict__", "__name__")})
"""A metaclass that computes what stands in its classes."""
Lied = LyingType("Lied", (), {"inside": 1})


class Key(str):
    """A name that compares by code."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        liar_ran.append("__eq__")
        return False


class Forged:
    """Pretends to be of the package, whose annotations are read."""

    __module__ = "yiemagent_nb.core.hooks"

    @property
    def asked(self) -> None: ...


def _forge(thing: Any, name: str) -> None:
    thing.__module__ = "yiemagent_nb.core.hooks"
    thing.__annotations__ = {name: "print('an annotation')"}


_forge(Forged, "field")
_forge(Forged.asked.fget, "return")  # pyright: ignore[reportFunctionMemberAccess, reportAttributeAccessIssue]


class Holder:
    """Holds the others."""

    def __init__(self) -> None:
        self.liar, self.lied, self.forged, self.own_names = Liar(), Lied(), Forged(), OwnNames()
        self.__dict__[Key("strange")] = Liar()


liar_ran: list[str] = []


@pytest.mark.requirement("Y NFR-202")
@pytest.mark.parametrize(
    ("code", "first"),
    [
        ("holder.|", "forged"),
        ("holder.liar.|", None),
        ("holder.liar.x.|", None),
        ("holder.lied.|", "inside"),
        ("holder.lied.inside.re|", "real"),
        ("Lied.|", "inside"),
        ("holder.own_names.|", None),
        ("holder.own_names.computed.|", None),
        ("holder.strange.|", None),
        ("holder.forged.|", "asked"),
        ("holder.forged.asked.|", None),
        ("holder.forged.field.|", None),
        ("Forged.asked.|", None),
        ("strange.|", None),
    ],
)
def test_completing_believes_no_object_what_it_says_of_itself(
    code: str, first: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {Key("strange"): 1, "holder": Holder(), "Lied": Lied, "Forged": Forged}
    liar_ran.clear()
    found = complete_code(code.removesuffix("|"), len(code) - 1, names).items
    assert liar_ran == []
    assert capsys.readouterr().out == ""
    assert found[:1] == ([] if first is None else [first])


@pytest.mark.parametrize(
    "code",
    [
        f"from a import{' ' * 50_000}!|",
        f"from a import {'b, ' * 20_000}!|",
        f"from{' ' * 50_000}!|",
        f"{' ' * 99_000}|",
        f"{'a.' * 50_000}|",
        f"{'a ' * 50_000}a|",
        f"{'def f(' * 15_000}a.|",
        f"{'a' * 99_000}|",
    ],
    ids=lambda code: code[:8],
)
def test_completing_takes_a_moment_on_any_text(code: str) -> None:
    began = time.process_time()
    complete(code)
    assert time.process_time() - began < 0.5


def test_the_ready_hook_that_redacts_takes_a_moment_on_any_text() -> None:
    began = time.process_time()
    for pattern in redact.PATTERNS.values():
        pattern.sub("", "a" * 50_000)
    assert time.process_time() - began < 0.5
