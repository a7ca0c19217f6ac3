"""The options that all backends over HTTP share."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypedDict

from pydantic import SecretStr

from yiemagent_nb.backends.http import AsyncHttpClient, Timeouts
from yiemagent_nb.backends.prices import PriceTable
from yiemagent_nb.backends.retry import RetryPolicy
from yiemagent_nb.core.models import ModelCost

__all__ = ["PriceSource", "ServerOptions", "spelled_out"]

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


def spelled_out(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a method whose ``**options`` are ``ServerOptions``, each by its name.

    Notebooks show signatures and complete keywords from them.
    """
    parameters = list(inspect.signature(function).parameters.values())
    named = {parameter.name: parameter for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD}
    for name, annotation in ServerOptions.__annotations__.items():
        keyword = inspect.Parameter.KEYWORD_ONLY
        option = inspect.Parameter(name, keyword, default=_DEFAULTS.get(name), annotation=annotation.__forward_arg__)
        named.setdefault(name, option)
    return inspect.Signature(list(named.values()))
