"""What a server asks of its client: to let a model answer, to ask a person, and which folders there are.

A ``RequestHandler`` answers for one server, with the functions that a person gave it or else through
``Answerer`` objects, such as ``yiemagent_nb.mcp.agent_answerer``'s.
"""

from __future__ import annotations

import inspect
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from yiemagent_nb.core.concurrency import run_in_thread
from yiemagent_nb.core.errors import InvalidParametersError, McpError, describe_error
from yiemagent_nb.core.execution import is_async_callable
from yiemagent_nb.core.messages import AssistantMessage
from yiemagent_nb.core.questions import Answer
from yiemagent_nb.core.validation import shorten
from yiemagent_nb.mcp.elicitation import ELICITATION, Elicitation, read_elicitation
from yiemagent_nb.mcp.sampling import SAMPLING, read_sampling, sampling_result

__all__ = [
    "INTERNAL_ERROR",
    "REJECTED",
    "Answerer",
    "OnElicitation",
    "OnSampling",
    "RequestHandler",
    "Root",
    "Unanswered",
    "read_roots",
    "too_many",
]

ROOTS = "roots/list"

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
REJECTED = -1
"""What MCP says for a request to sample that a person rejected."""

MAX_CALLS = 32
"""How many calls of ``on_sampling``, and of ``on_elicitation``, go on at once for one server."""

SampledAnswer = Mapping[str, Any] | AssistantMessage | str | None
OnSampling = Callable[[dict[str, Any]], SampledAnswer | Awaitable[SampledAnswer]]
"""``on_sampling(params)``: takes the params of ``sampling/createMessage`` and gives a text, an
``AssistantMessage``, or a result in MCP's form; None rejects the request. A sync one runs in a thread."""

ElicitedAnswer = Mapping[str, Any] | Answer | bool | None
OnElicitation = Callable[..., ElicitedAnswer | Awaitable[ElicitedAnswer]]
"""``on_elicitation(message, schema)``: gives values by the names of the schema's fields, None to decline, or an
``Answer``. It is given those of ``url`` and ``source`` (the server's name) that it declares; one that does not
declare ``url`` is not asked to visit addresses. For those ``schema`` is None, and True says that the person goes
there. A sync one runs in a thread."""

Root = str | Path | Mapping[str, Any]
"""A folder or file that a server may work on: a path, a ``file://`` address, or ``{"uri": …, "name": …}``."""

_log = logging.getLogger("yiemagent_nb")


class Answerer(Protocol):
    """Answers what servers ask. Called on the server's event loop; cancelled when nobody wants the answer any more."""

    @property
    def busy(self) -> bool:
        """Whether it is at work, so that what a server asks now is likely on its behalf."""
        ...

    async def sampling(self, server: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """The result of ``sampling/createMessage`` in MCP's form; None where it cannot answer now.

        Raises:
            McpError: It was rejected, or failed.
        """
        ...

    async def elicitation(self, server: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """The result of ``elicitation/create`` in MCP's form; None where it cannot answer now.

        Raises:
            McpError: The params have not the form of MCP.
        """
        ...


class RequestHandler:
    """Answers what one server asks.

    Where nobody is there to answer, sampling is rejected, and an elicitation is answered with
    ``cancel``: MCP has ``decline`` for a person who said no, and ``cancel`` for one who made no choice.

    Args:
        name: The server's name.
        on_sampling: Answers ``sampling/createMessage`` in place of the answerers.
        on_elicitation: Answers ``elicitation/create`` in place of the answerers.
        roots: What ``roots/list`` gives.
        answerers: Those who answer else, read anew at each request: first one that is at work, then
            the newest, which is the last in the list.

    Raises:
        InvalidParametersError: A root is none, or a function cannot be called.
    """

    def __init__(
        self,
        name: str,
        *,
        on_sampling: OnSampling | None = None,
        on_elicitation: OnElicitation | None = None,
        roots: Iterable[Root] = (),
        answerers: Sequence[Answerer] = (),
    ) -> None:
        for what, function in (("on_sampling", on_sampling), ("on_elicitation", on_elicitation)):
            if function is not None and not callable(function):
                raise InvalidParametersError(
                    f"{what} must be a function or None, not {shorten(function)}.", "Pass it without calling it."
                )
        self._server = name
        self._on_sampling = on_sampling
        self._on_elicitation = on_elicitation
        self.roots = read_roots(roots)
        self._answerers = answerers
        self._unanswered = Unanswered()

    async def handle(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a request; returns its result in MCP's form.

        Raises:
            McpError: It is not answered; ``rpc_code`` and the message are for the server.
        """
        if method == ROOTS:
            return {"roots": [dict(root) for root in self.roots]}
        if method not in (SAMPLING, ELICITATION):
            raise McpError(f"This client does not answer {shorten(method)}.", rpc_code=METHOD_NOT_FOUND)
        try:
            return await (self._sample(params) if method == SAMPLING else self._elicit(params))
        except McpError:
            raise
        except Exception as error:
            _log.warning("%s of %s could not be answered: %s", method, self._server, describe_error(error))
            # The server is not trusted with what went wrong on this side.
            raise McpError(f"The client failed to answer {method}.", rpc_code=INTERNAL_ERROR) from error

    async def _sample(self, params: Mapping[str, Any]) -> dict[str, Any]:
        read_sampling(params)
        if self._on_sampling is not None:
            with self._unanswered.one(SAMPLING, MAX_CALLS) as admitted:
                if not admitted:
                    raise too_many(MAX_CALLS)
                answer = await _call(self._on_sampling, dict(params))
            if answer is None or answer is False:
                raise McpError("The request was rejected.", rpc_code=REJECTED)
            return _as_sampling_result(answer)
        for answerer in self._in_order():
            if (result := await answerer.sampling(self._server, params)) is not None:
                return result
        raise McpError("The request was rejected: nobody is there who could approve it.", rpc_code=REJECTED)

    async def _elicit(self, params: Mapping[str, Any]) -> dict[str, Any]:
        asked = read_elicitation(params)
        if self._on_elicitation is not None:
            return await self._elicit_by_function(self._on_elicitation, asked)
        for answerer in self._in_order():
            if (result := await answerer.elicitation(self._server, params)) is not None:
                return result
        return {"action": "cancel"}

    async def _elicit_by_function(self, function: OnElicitation, asked: Elicitation) -> dict[str, Any]:
        offered = _declared(function, {"url": asked.url, "source": self._server})
        if asked.form is None and "url" not in offered:
            return {"action": "cancel"}
        schema = None if asked.form is None else dict(asked.form.schema)
        with self._unanswered.one(ELICITATION, MAX_CALLS) as admitted:
            if not admitted:
                return {"action": "cancel"}
            answer = await _call(function, asked.message, schema, **offered)
        try:
            return _elicitation_result(asked, _as_answer(answer))
        except InvalidParametersError as error:
            _log.warning("on_elicitation of %s: %s The server was told that it was cancelled.", self._server, error)
            return {"action": "cancel"}

    def _in_order(self) -> list[Answerer]:
        newest_first = self._answerers[::-1]
        return sorted(newest_first, key=lambda answerer: not answerer.busy)


class Unanswered:
    """Counts what is not answered yet, so that a server cannot ask without end."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    @contextmanager
    def one(self, what: str, limit: int) -> Generator[bool]:
        """Whether one more is within the limit; it counts while it is."""
        if self._counts[what] >= limit:
            yield False
            return
        self._counts[what] += 1
        try:
            yield True
        finally:
            self._counts[what] -= 1


def too_many(limit: int) -> McpError:
    """What a server is told whose request to sample is one too many."""
    return McpError(f"The request was rejected: {limit} others are not answered yet.", rpc_code=REJECTED)


async def _call(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call a person's function: an async one on this loop, any other in a thread."""
    if is_async_callable(function):
        answer = function(*arguments, **keywords)
    else:
        answer = await run_in_thread(lambda: function(*arguments, **keywords))
    return await answer if inspect.isawaitable(answer) else answer


def _declared(function: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Those keywords that a function declares, behind its first two parameters."""
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):  # some that are written in C do not say
        return {}
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return dict(offered)
    names = {parameter.name for parameter in parameters[2:]}
    return {name: value for name, value in offered.items() if name in names}


def _as_sampling_result(answer: object) -> dict[str, Any]:
    if isinstance(answer, str | AssistantMessage):
        return sampling_result(AssistantMessage(answer) if isinstance(answer, str) else answer)
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", answer) if isinstance(answer, Mapping) else {}
    content: object = fields.get("content")
    if isinstance(content, str):
        content = {"type": "text", "text": content}
    if isinstance(content, Mapping | list):
        return {"role": "assistant", "model": "unknown", **fields, "content": content}
    raise InvalidParametersError(
        f"on_sampling returned {shorten(cast('object', answer))}; "
        "expected a text, an AssistantMessage, or a mapping with content."
    )


def _as_answer(answer: object) -> Answer:
    if isinstance(answer, Answer):
        return answer
    if answer is None or answer is False:
        return Answer("decline")
    if answer is True:
        return Answer("accept")
    if isinstance(answer, Mapping):
        return Answer("accept", cast("Mapping[str, Any]", answer))
    raise InvalidParametersError(
        f"It returned {shorten(answer)}; expected values by the names of fields, None, or an Answer."
    )


def _elicitation_result(asked: Elicitation, answer: Answer) -> dict[str, Any]:
    if answer.action != "accept" or asked.form is None:
        return {"action": answer.action}
    return {"action": "accept", "content": asked.form.read(answer.content)}


def read_roots(roots: Iterable[Root]) -> tuple[Mapping[str, Any], ...]:
    """Roots in MCP's form, ``{"uri": "file://…", "name": …}``. ``~`` is the home folder.

    Raises:
        InvalidParametersError: One is neither a path nor a ``file://`` address.
    """
    if isinstance(roots, str | Path | Mapping):
        raise InvalidParametersError("roots is a list of folders, not a single one.", "Write [folder].")
    return tuple(map(_read_root, roots))


def _read_root(root: object) -> Mapping[str, Any]:
    if isinstance(root, Mapping):
        fields = cast("Mapping[str, Any]", root)
        named = {"name": fields["name"]} if isinstance(fields.get("name"), str) else {}
        return {**_read_root(fields.get("uri")), **named}
    if isinstance(root, Path) or (isinstance(root, str) and root and "://" not in root):
        path = Path(root).expanduser().absolute()
        return {"uri": path.as_uri(), "name": path.name or str(path)}
    if isinstance(root, str) and urlsplit(root).scheme == "file":
        return {"uri": root, "name": urlsplit(root).path.rstrip("/").rpartition("/")[2] or root}
    raise InvalidParametersError(
        f"{shorten(root)} is no root.", "Expected a path, a file:// address, or {'uri': 'file://…', 'name': …}."
    )
