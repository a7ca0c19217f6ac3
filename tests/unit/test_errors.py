from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections import defaultdict
from typing import Any

import pytest

from yiemagent_nb.core import errors
from yiemagent_nb.core.errors import (
    BackendRateLimitedError,
    RateLimitedError,
    YiemAgentError,
    describe_error,
)


def classes() -> list[type[YiemAgentError]]:
    found = [YiemAgentError]
    for each in found:
        found += [child for child in each.__subclasses__() if child not in found]
    return [each for each in found if each.__module__ == errors.__name__]


CLASSES = classes()

CODES_OF_THE_CONTRACT = {
    "AGENT_BUSY",
    "INVALID_MESSAGE_ROLE",
    "AGENT_NOT_FOUND",
    "TOOL_NOT_FOUND",
    "EXECUTION_TIMEOUT",
    "EXECUTION_ABORTED",
    "TOOL_NOT_SUPPORTED",
    "INVALID_PARAMETERS",
    "RATE_LIMITED",
    "CHANNEL_FULL",
    "HOOK_ERROR",
    "SESSION_INVALID",
}

SHARED = {"RATE_LIMITED": {"RateLimitedError", "BackendRateLimitedError"}}
"""A server's limit and one of ours are told alike."""


def drawn_tree() -> dict[str, tuple[str, int]]:
    """The code and the depth of each class in the drawing of the module's docstring."""
    lines = re.findall(r"^( *[│ ]*)[├└]── (\w+) +([A-Z_]+)", errors.__doc__ or "", re.MULTILINE)
    return {name: (code, len(indent) // 4) for indent, name, code in lines}


@pytest.mark.requirement("A SPEC-7.1")
def test_every_code_of_the_contract_has_a_class() -> None:
    assert {each.code for each in CLASSES} >= CODES_OF_THE_CONTRACT


@pytest.mark.requirement("A SPEC-7.1", "A SPEC-7.2")
def test_the_docstring_draws_every_class_with_its_code() -> None:
    assert {name: code for name, (code, _) in drawn_tree().items()} == {
        each.__name__: each.code for each in CLASSES if each is not YiemAgentError
    }


@pytest.mark.requirement("A SPEC-7.2")
def test_the_docstring_draws_every_class_under_its_base() -> None:
    depths = {name: depth for name, (_, depth) in drawn_tree().items()}
    assert depths == {
        each.__name__: depths.get(each.__bases__[0].__name__, depths["AgentBusyError"] - 1) + 1
        for each in CLASSES
        if each is not YiemAgentError
    }


@pytest.mark.requirement("A SPEC-7.1")
def test_no_two_classes_share_a_code_but_those_that_should() -> None:
    by_code: dict[str, set[str]] = defaultdict(set)
    for each in CLASSES:
        by_code[each.code].add(each.__name__)
    assert {code: names for code, names in by_code.items() if len(names) > 1} == SHARED


@pytest.mark.requirement("A SPEC-7.1")
@pytest.mark.parametrize("kind", CLASSES)
def test_a_code_is_said_by_the_class_itself(kind: type[YiemAgentError]) -> None:
    assert "code" in vars(kind)
    assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", kind.code)


@pytest.mark.requirement("A SPEC-7.2")
@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_says_what_happened_what_to_do_and_its_code(kind: type[YiemAgentError]) -> None:
    error = kind("It broke.", "Mend it.")
    assert (error.message, error.hint) == ("It broke.", "Mend it.")
    assert str(error) == f"It broke. Mend it. [{kind.code}]"
    assert str(kind("It broke.")) == f"It broke. [{kind.code}]"


@pytest.mark.requirement("A SPEC-7.2")
@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_survives_copies_and_other_processes(kind: type[YiemAgentError]) -> None:
    parameters = inspect.signature(kind).parameters
    extras: dict[str, Any] = {"status": 429, "retry_after": 2.5}
    error = kind("It broke.", "Mend it.", **{name: extras[name] for name in extras.keys() & parameters.keys()})
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301 - pickled right here
        assert type(again) is kind
        assert vars(again) == vars(error)
        assert str(again) == str(error)


@pytest.mark.requirement("A SPEC-7.2")
@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_is_public_and_explained(kind: type[YiemAgentError]) -> None:
    assert kind.__name__ in errors.__all__
    assert kind.__doc__


@pytest.mark.requirement("A SPEC-7.2")
def test_a_servers_limit_is_caught_as_either_kind() -> None:
    error = BackendRateLimitedError("Slow down.", status=429, retry_after=3.0)
    assert isinstance(error, RateLimitedError)
    assert (error.status, error.retry_after) == (429, 3.0)
    assert BackendRateLimitedError("Slow down.").retry_after is None


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_any_exception_can_be_described() -> None:
    assert describe_error(ValueError("odd")) == "ValueError: odd"
    assert describe_error(KeyError()) == "KeyError"
    assert describe_error(SystemExit(3)) == "SystemExit: 3"
    assert describe_error(MuteError()) == "MuteError: (it has no readable text)"
