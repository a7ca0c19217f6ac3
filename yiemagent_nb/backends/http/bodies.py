"""Bodies of answers that should be JSON, and what stands there instead.

What a server said may repeat a key, and tracebacks show the variables of a function that raises. So
nothing is raised here beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from yiemagent_nb.core.errors import BackendError, MalformedResponseError
from yiemagent_nb.core.reading.error_words import plain_text
from yiemagent_nb.core.reading.fields import as_mapping
from yiemagent_nb.core.reading.server_errors import error_body, quote, server_error
from yiemagent_nb.core.redaction import Redactor

__all__ = ["no_json", "parse_json", "read_response", "response_or_error"]

_MAX_SHOWN_BYTES = 65_536


def read_response(content: bytes, media_type: str, redactor: Redactor) -> Mapping[str, Any]:
    """The response that is the body of an answer, in any form that ``extract`` may read.

    Raises:
        BackendError: It is an error, against the status of the answer.
        MalformedResponseError: It is no JSON object.
    """
    response = response_or_error(content, media_type, redactor)
    del content
    if isinstance(response, BackendError):
        raise response
    return response


def response_or_error(content: bytes, media_type: str, redactor: Redactor) -> Mapping[str, Any] | BackendError:
    """The same, its error not raised."""
    try:
        value: object = json.loads(content)
    except (ValueError, RecursionError):
        return no_json(content, media_type, redactor)
    if (said := error_body(value)) is not None:
        return server_error(redactor.clean(said))
    response = as_mapping(value)
    if response is None:
        return MalformedResponseError(
            "The server's answer is JSON, but no object; expected a response with choices or output.",
            "Check the base URL: it usually ends in /v1.",
        )
    if not response:
        return MalformedResponseError(
            "The server's answer is an empty JSON object; expected a response with choices or output.",
            "Look at the server's log.",
        )
    return redactor.clean_labels(response)


def parse_json(content: bytes, media_type: str, redactor: Redactor) -> Any:
    """The JSON of a body, without keys.

    Raises:
        MalformedResponseError: It is none; the error says what came instead.
    """
    try:
        return redactor.clean(json.loads(content))
    except (ValueError, RecursionError):
        error = no_json(content, media_type, redactor)
    del content
    raise error


def no_json(content: bytes, media_type: str, redactor: Redactor) -> MalformedResponseError:
    """The error for a body that is no JSON."""
    text = redactor(content[:_MAX_SHOWN_BYTES].decode("utf-8", "replace"))
    if not text.strip():
        return MalformedResponseError("The server's answer is empty; expected JSON.", "Look at the server's log.")
    if media_type == "text/html" or text.lstrip().startswith("<"):
        return MalformedResponseError(
            f'The server answered with a web page ("{quote(plain_text(text), 60)}"); expected JSON.',
            "Check the base URL: it usually ends in /v1.",
        )
    return MalformedResponseError(
        f'The server\'s answer is no JSON: "{quote(text, 120)}".', "Check that a model server answers there."
    )
