"""What models cost, as data that a user can replace.

The shipped prices stand in ``data/prices.json``. A table of one's own has the same form, or is a
plain mapping of model id to prices; one laid over the other with ``|`` changes some and adds more::

    PriceTable.shipped() | {"my-model": {"input": 0.5, "output": 2.0}}
"""

from __future__ import annotations

import json
import os
import re
import reprlib
import sys
from collections.abc import Container, Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import cast

from yiemagent_nb.core.errors import InvalidParametersError, describe_error
from yiemagent_nb.core.models import ModelCost
from yiemagent_nb.core.reading.server_errors import quote

__all__ = ["PriceTable", "known_id"]

_SHIPPED = Path(__file__).parent / "data" / "prices.json"
_CURRENCY = "USD per million tokens"
_PARTS = tuple(ModelCost.model_fields)
_NEEDED = ("input", "output")
_CACHED = ("cache_read", "cache_write")
_FORM = 'Expected {"input": 2.5, "output": 15.0}, with "cache_read" and "cache_write" where they differ from the input.'
_SHOWN = 3
_VERSION = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|latest)\Z", re.ASCII)


def known_id(model_id: str, known: Container[str]) -> str | None:
    """The id under which ``known`` has a model, or None.

    Tried in this order: the id itself, the id without the provider before its last ``/``
    (``openai/gpt-5.4``), and both without a trailing date or ``-latest`` (``gpt-5.4-2026-03-05``).
    A mere prefix is never enough: ``gpt-5.4-mini`` is not ``gpt-5.4``.
    """
    bare = model_id.rpartition("/")[2]
    names = (model_id, bare, _VERSION.sub("", model_id), _VERSION.sub("", bare))
    return next((name for name in names if name in known), None)


class PriceTable(Mapping[str, ModelCost]):
    """Prices by model, in US dollars per million tokens. It never changes once made.

    Looking up (``get``, ``[]``, ``in``) follows ``known_id``, so that ``openai/gpt-5.4`` and
    ``gpt-5.4-2026-03-05`` find ``gpt-5.4``; an unknown model has no price rather than a guessed one.

    A price without ``cache_read`` or ``cache_write`` takes its ``input`` price for it: such tokens
    are input all the same, and never free. That holds for a ``ModelCost`` too whose field was not
    given; a 0 that was given counts.

    Args:
        prices: By model id, a ``ModelCost`` or a mapping with ``input``, ``output`` and, where
            they differ from the input, ``cache_read`` and ``cache_write``.

    Raises:
        InvalidParametersError: A model or a price does not have that form.
    """

    __slots__ = ("_prices",)

    def __init__(self, prices: Mapping[str, ModelCost | Mapping[str, float]]) -> None:
        self._prices = {_read_id(model_id): _read_cost(model_id, entry) for model_id, entry in prices.items()}

    @classmethod
    def shipped(cls) -> PriceTable:
        """The prices that come with the package, read on first use."""
        return _shipped()

    @classmethod
    def of(
        cls, source: PriceTable | Mapping[str, ModelCost | Mapping[str, float]] | str | os.PathLike[str]
    ) -> PriceTable:
        """The table that ``source`` is or describes.

        Args:
            source: A table; a mapping as for the class; or the path of a JSON file with such a
                mapping, or with one under ``models`` as in the shipped file.

        Raises:
            InvalidParametersError: It is none of these, cannot be read, or has a bad entry.
        """
        if isinstance(source, PriceTable):
            return source
        if isinstance(source, Mapping):
            return cls(source)
        return _read_file(source)

    def __getitem__(self, model_id: str) -> ModelCost:
        name = known_id(model_id, self._prices)
        if name is None:
            raise KeyError(model_id)
        return self._prices[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._prices)

    def __len__(self) -> int:
        return len(self._prices)

    def __or__(self, other: Mapping[str, ModelCost | Mapping[str, float]]) -> PriceTable:
        return PriceTable({**self._prices, **PriceTable.of(other)})

    def __ror__(self, other: Mapping[str, ModelCost | Mapping[str, float]]) -> PriceTable:
        return PriceTable.of(other) | self

    def __repr__(self) -> str:
        first = [*islice(self._prices, _SHOWN), *(["…"] if len(self) > _SHOWN else [])]
        return f"PriceTable({', '.join(first)}; {len(self)} in all)"


@cache
def _shipped() -> PriceTable:
    return _read_file(_SHIPPED)


def _read_file(source: str | os.PathLike[str]) -> PriceTable:
    try:
        path = Path(source).expanduser()
    except (TypeError, RuntimeError) as error:
        raise InvalidParametersError(
            f"prices are {quote(reprlib.repr(source))}, no readable path: {describe_error(error)}.",
            "Expected a PriceTable, a mapping of model id to prices, or the path of a JSON file.",
        ) from error
    where = f"The price file {str(path)!r}"
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise InvalidParametersError(
            f"{where} cannot be read: {describe_error(error)}.", "Give another path."
        ) from error
    try:
        content: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidParametersError(f"{where} holds no JSON: {describe_error(error)}.", _FORM) from error
    try:
        return PriceTable(_models_of(content))
    except InvalidParametersError as error:
        raise InvalidParametersError(f"{where}: {error.message}", error.hint) from error


def _models_of(content: object) -> Mapping[str, Mapping[str, float]]:
    """The prices by model in a file's content, of either form; each is checked when it is read."""
    models = content
    if isinstance(content, dict) and "models" in content:
        file = cast("dict[str, object]", content)
        models, currency = file["models"], file.get("currency", _CURRENCY)
        if currency != _CURRENCY:
            raise InvalidParametersError(f"Its currency is {reprlib.repr(currency)}; expected {_CURRENCY!r}.")
    if not isinstance(models, dict):
        raise InvalidParametersError("It holds no mapping of model id to prices.", _FORM)
    return cast("dict[str, Mapping[str, float]]", models)


def _read_id(model_id: object) -> str:
    if not isinstance(model_id, str) or not model_id:
        raise InvalidParametersError(f"A model id is {reprlib.repr(model_id)}; expected a text that is not empty.")
    return model_id


def _read_cost(model_id: str, entry: object) -> ModelCost:
    if isinstance(entry, ModelCost):
        return entry.model_copy(update=dict.fromkeys(set(_CACHED) - entry.model_fields_set, entry.input))
    where = f"The price of the model {quote(model_id)!r}"
    if not isinstance(entry, Mapping):
        raise InvalidParametersError(f"{where} is {type(entry).__name__}, no mapping.", _FORM)
    given = cast("Mapping[object, object]", entry)
    prices = {part: _read_price(where, part, given[part]) for part in _PARTS if part in given}
    if unknown := [key for key in given if key not in _PARTS]:
        raise InvalidParametersError(f"{where} has an unknown field {reprlib.repr(unknown[0])}.", _FORM)
    if missing := [part for part in _NEEDED if part not in prices]:
        raise InvalidParametersError(f"{where} has no {missing[0]!r}.", _FORM)
    return ModelCost(**(dict.fromkeys(_CACHED, prices["input"]) | prices))


def _read_price(where: str, part: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        wrong = f"is {type(value).__name__}, no number"
    elif not 0 <= value <= sys.float_info.max:
        wrong = "is negative" if value < 0 else "is not finite"
    else:
        return float(value)
    raise InvalidParametersError(f"{where} is wrong: {part!r} {wrong}.", f"Expected {_CURRENCY}, 0 or more.")
