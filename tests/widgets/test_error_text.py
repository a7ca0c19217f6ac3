"""An error's text is taken apart into what happened, what to do, and its code."""

from __future__ import annotations

import pytest

from yiemagent_nb.core.errors import (
    AuthenticationError,
    BackendConnectionError,
    BackendError,
    ContextLengthError,
    ToolFailedError,
    YiemAgentError,
)
from yiemagent_nb.widgets.error_text import read_error

ERRORS = [
    BackendConnectionError(
        "No connection to http://127.0.0.1:1234/v1: refused.", "Start the server, or check the port."
    ),
    AuthenticationError('The server said (status 401): "Bad key. Get one. Now!".', "Check the API key."),
    ContextLengthError('The server said (status 400): "Too long: 8,192 of 4.096 tokens".', "Shorten it. Or load more."),
    BackendError("What is it?", "Nobody knows."),
    ToolFailedError("The tool failed."),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_the_sentence_the_hint_and_the_code_are_told_apart(error: YiemAgentError) -> None:
    assert read_error(str(error)) == (error.message, error.hint, error.code)


@pytest.mark.parametrize(
    "text", ["", "no sentence", 'an open "quotation. Then more.', "e.g. [not a code]", "Line one\nline two"]
)
def test_a_text_in_another_form_loses_nothing(text: str) -> None:
    error = read_error(text)
    assert " ".join(filter(None, error)) == text
    assert error.code == ""


def test_a_long_text_is_read_at_once() -> None:
    text = '"' * 20_001 + "." * 20_000 + " " * 20_000 + "x"
    assert len(read_error(text).message) > 0
