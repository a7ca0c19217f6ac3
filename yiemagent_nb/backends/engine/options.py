"""The options that all backends over HTTP share, and what they may be."""

from __future__ import annotations

import difflib
import inspect
import math
import os
import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, NoReturn, TypedDict, cast

from pydantic import SecretStr

from yiemagent_nb.backends.http.connection import AsyncHttpClient, Timeouts
from yiemagent_nb.backends.http.retry import RetryPolicy
from yiemagent_nb.backends.http.urls import split_url
from yiemagent_nb.backends.prices import PriceTable
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.models import LlmModel, ModelCost
from yiemagent_nb.core.reading.server_errors import quote

__all__ = [
    "PriceSource",
    "ServerOptions",
    "checked",
    "explained",
    "normalised_url",
    "spelled_out",
    "with_fields",
]

PriceSource = PriceTable | Mapping[str, ModelCost | Mapping[str, float]] | str | os.PathLike[str]
"""Prices by model: a table, a mapping, or the path of a JSON file."""


class ServerOptions(TypedDict, total=False):
    """How a backend asks its server; every option may be left out.

    Args:
        api_key: The key. Never shown, logged or kept in plain text.
        api_key_env: The environment variable that holds the key, read at each request.
        stream: Whether answers come in pieces. Default: yes.
        timeout: Seconds for each phase of a request, or one number for all that wait for the server.
        retries: How often a request is repeated after errors that may pass, never after something
            of the answer was shown.
        headers: Sent with each request.
        extra_body: Fields added to each request, as the server names them.
        temperature: Sent if given, as are ``top_p``, ``seed``, ``stop`` and ``max_tokens``.
        response_format: What form the answer has, as in chat completions; an agent's ``output_type``
            sets it by itself.
        tool_choice: ``auto``, ``none``, ``required``, or a tool's name; sent only with tools.
        include_usage: Whether to ask for token counts in streams. Default: yes; a server that
            refuses the question is not asked again.
        text_tool_calls: Whether calls that the model writes as text, because its server has no
            parser for them, are understood.
        prices: What models cost, in place of the shipped table.
        http_client: An ``httpx.AsyncClient`` or ``httpx2.AsyncClient`` of your own. Its timeouts
            count, and closing it is yours.
    """

    api_key: str | SecretStr | None
    api_key_env: str | None
    stream: bool
    timeout: float | Timeouts | None
    retries: int | RetryPolicy | None
    headers: Mapping[str, str] | None
    extra_body: Mapping[str, Any] | None
    temperature: float | None
    top_p: float | None
    seed: int | None
    stop: str | Sequence[str] | None
    max_tokens: int | None
    response_format: Mapping[str, Any] | None
    tool_choice: str | Mapping[str, Any] | None
    include_usage: bool
    text_tool_calls: bool
    prices: PriceSource | None
    http_client: AsyncHttpClient | None


_DEFAULTS: Final[Mapping[str, bool]] = {"stream": True, "include_usage": True, "text_tool_calls": False}
"""What an option is that was left out; None where nothing stands here."""

_ENDPOINTS = re.compile(r"/chat/completions$|/responses$|(?<=/v\d)/models$")
"""What is asked behind a base URL. ``/models`` alone is a base URL at Azure, so it goes behind ``/v1`` only."""

_OTHER_NAMES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("key", "token", "api_token", "openai_api_key"), "api_key"),
    **dict.fromkeys(("url", "host", "endpoint", "api_base", "openai_api_base", "azure_endpoint"), "base_url"),
    **dict.fromkeys(("default_headers", "extra_headers"), "headers"),
    **dict.fromkeys(("max_completion_tokens", "max_output_tokens", "max_new_tokens", "num_predict"), "max_tokens"),
    **dict.fromkeys(("model_name", "deployment", "azure_deployment"), "model"),
    **dict.fromkeys(("verify", "proxy", "proxies"), "http_client"),
    "max_retries": "retries",
    "streaming": "stream",
    "organization": 'headers={"OpenAI-Organization": …}',
    "project": 'headers={"OpenAI-Project": …}',
    "reasoning_effort": "the agent's thinking_level",
    "top_k": 'extra_body={"top_k": …}',
}
"""What other libraries call these options."""

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ADDRESS = re.compile(r"\s*https?://", re.IGNORECASE)
_APIS: Final = ("auto", "chat-completions", "responses")


def _is(*types: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, types)


def _any_of(*rules: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: any(fits(value) for fits in rules)


def _number(low: float = -math.inf, high: float = math.inf, *, whole: bool = False) -> Callable[[object], bool]:
    def fits(value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            return False
        return low <= value <= high and math.isfinite(value)

    return fits


def _is_seconds(value: object) -> bool:
    return value != 0 and _number(0)(value)


def _is_timeouts(value: object) -> bool:
    if not isinstance(value, Timeouts):
        return False
    phases = (value.connect, value.first_byte, value.between_bytes, value.write)
    return all(phase is None or _is_seconds(phase) for phase in phases)


def _is_policy(value: object) -> bool:
    if not isinstance(value, RetryPolicy):
        return False
    return _number(0, whole=True)(value.retries) and all(map(_number(0), (value.first_delay, value.max_delay)))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_text, cast("Sequence[object]", value)))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _are_fields(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(_is(str), cast("Mapping[object, object]", value)))


def _are_headers(value: object) -> bool:
    return isinstance(value, Mapping) and _odd_header(cast("Mapping[object, object]", value)) is None


def _odd_header(headers: Mapping[object, object]) -> tuple[object, object] | None:
    """The first whose name or value is no text, or empty."""
    return next((pair for pair in headers.items() if not all(map(_is_text, pair))), None)


def _is_async_client(value: object) -> bool:
    return inspect.iscoroutinefunction(getattr(value, "send", None)) and callable(getattr(value, "build_request", None))


class _Rule(NamedTuple):
    """What an option may be, besides None where it has no default of its own."""

    fits: Callable[[object], bool]
    expected: str


_FLAG = _Rule(_is(bool), "True or False")
_RULES: Final[Mapping[str, _Rule]] = {
    "api_key": _Rule(_is(str, SecretStr), "a text or a SecretStr"),
    "api_key_env": _Rule(_is_name, "the name of an environment variable; a key itself goes into api_key"),
    "stream": _FLAG,
    "timeout": _Rule(_any_of(_is_seconds, _is_timeouts), "seconds, more than 0, or Timeouts(…) of such"),
    "retries": _Rule(
        _any_of(_number(0, whole=True), _is_policy), "a whole number, 0 or more, or a RetryPolicy(…) of such"
    ),
    "headers": _Rule(_are_headers, "a mapping of names to texts, none of them empty"),
    "extra_body": _Rule(_are_fields, "a mapping of names to values"),
    "temperature": _Rule(_number(0), "a number, 0 or more"),
    "top_p": _Rule(_number(0, 1), "a number from 0 to 1"),
    "seed": _Rule(_number(whole=True), "a whole number"),
    "stop": _Rule(_any_of(_is(str), _are_texts), "a text or a list of texts"),
    "max_tokens": _Rule(_number(1, whole=True), "a whole number, 1 or more; left out, there is no limit"),
    "response_format": _Rule(_are_fields, 'a mapping such as {"type": "json_object"}; types go to output_type'),
    "tool_choice": _Rule(_any_of(_is_text, _are_fields), "auto, none, required, or a tool's name"),
    "include_usage": _FLAG,
    "text_tool_calls": _FLAG,
    "prices": _Rule(
        _is(Mapping, str, os.PathLike), "a PriceTable, a mapping of model id to prices, or the path of a JSON file"
    ),
    "http_client": _Rule(_is_async_client, "an httpx.AsyncClient or httpx2.AsyncClient"),
    "model": _Rule(_any_of(_is_text, _is(LlmModel)), "a model's name or an LlmModel"),
    "api": _Rule(_APIS.__contains__, ", ".join(_APIS[:-1]) + f" or {_APIS[-1]}"),
}
"""The options, and the model and endpoint that every backend has."""
_MAY_HOLD_KEYS: Final = frozenset({"api_key", "api_key_env", "headers", "extra_body"})


def checked(options: Mapping[str, Any], backend: type, *, model: object = None, api: object = "auto") -> ServerOptions:
    """The options of a backend, where each has a known name and a value of the right form.

    Args:
        options: As they were given.
        backend: The backend's class, whose own parameters a misspelt name may mean too.
        model: The model that was given.
        api: The endpoint that was given.

    Raises:
        InvalidParametersError: A name is unknown, or a value has another type or is out of range; what
            may be a key is not repeated.
    """
    given = {**options, "model": model, "api": api}
    if isinstance(model, str) and _ADDRESS.match(model):
        raise InvalidParametersError(
            f"{backend.__name__} was given a web address as its model.",
            f'Name it: {backend.__name__}(base_url="http://host:port/v1").',
        )
    for name, value in given.items():
        rule = _RULES.get(name)
        if rule is None:
            _refuse(name, backend)
        may_be_none = name not in _DEFAULTS
        if not (may_be_none if value is None else rule.fits(value)):
            raise InvalidParametersError(f"{name} is {_came(name, value)}; expected {rule.expected}.")
    return cast("ServerOptions", dict(options))


def _refuse(name: str, backend: type) -> NoReturn:
    known = [*inspect.signature(backend).parameters, *ServerOptions.__annotations__]
    alike = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.7)
    elsewhere = f'Fields of the server\'s own go into extra_body={{"{quote(name, 50)}": …}}.'
    if name in _OTHER_NAMES:
        hint = f"Did you mean {_OTHER_NAMES[name]}?"
    else:
        hint = f"Did you mean {alike[0]}? {elsewhere}" if alike else elsewhere
    raise InvalidParametersError(f"{backend.__name__} has no option {quote(name, 50)!r}.", hint)


def _came(name: str, value: object) -> str:
    """What was given, as far as it may be shown."""
    if isinstance(value, Mapping):
        odd = _odd_header(cast("Mapping[object, object]", value)) if name == "headers" else None
        if odd is None:
            return "a mapping with other names"
        what = "empty" if isinstance(odd[1], str) else type(odd[1]).__name__
        return f"a mapping in which {quote(reprlib.repr(odd[0]))} is {what}"
    if isinstance(value, Timeouts | RetryPolicy):
        return repr(value)
    if name in _MAY_HOLD_KEYS or not (value is None or isinstance(value, bool | int | float | str)):
        return type(value).__name__
    return quote(reprlib.repr(value))


def with_fields(options: ServerOptions, name: Literal["headers", "extra_body"], fields: Mapping[str, Any]) -> None:
    """Put ``fields`` into an option that is a mapping, behind those that the user gave there."""
    given = options.get(name)
    if given is None or isinstance(given, Mapping):  # anything else is refused by ``checked``
        cast("dict[str, Any]", options)[name] = {**fields, **(given or {})}


def normalised_url(base_url: object) -> str:
    """A base URL without the endpoint that may stand at its end, and with ``/v1`` where it has no path.

    Raises:
        InvalidParametersError: It is no text, or no web address.
    """
    if not isinstance(base_url, str):
        what = "None" if base_url is None else type(base_url).__name__
        raise InvalidParametersError(f"base_url is {what}; expected a web address.", "Give it as http://host:port/v1.")
    url = _ENDPOINTS.sub("", base_url.strip().rstrip("/"))
    return url if split_url(url).path else f"{url}/v1"


def spelled_out(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function whose ``**options`` are ``ServerOptions``, each by its name.

    Notebooks show signatures and complete keywords from them.
    """
    parameters = list(inspect.signature(function).parameters.values())
    named = {parameter.name: parameter for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD}
    for name, annotation in ServerOptions.__annotations__.items():
        keyword = inspect.Parameter.KEYWORD_ONLY
        option = inspect.Parameter(name, keyword, default=_DEFAULTS.get(name), annotation=annotation.__forward_arg__)
        named.setdefault(name, option)
    return inspect.Signature(list(named.values()))


def explained(text: str | None) -> str | None:
    """A docstring that says "See ``ServerOptions``", with their explanation at its end."""
    reference = "See ``ServerOptions``"
    if text is None or reference not in text or not ServerOptions.__doc__:
        return text
    options = inspect.cleandoc(ServerOptions.__doc__).partition("Args:\n")[2]
    return f"{inspect.cleandoc(text).replace(reference, 'See below')}\n\nOptions:\n{options}\n"
