"""What LM Studio lists: its models, what is loaded of them, and what they can.

Sources: LM Studio's pages "List your models" (REST API v1, from 0.4.0 on), "REST API v0" (from
0.3.6 on) and "List Models" (OpenAI's form, all versions).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from yiemagent_nb.backends.engine.model_list import read_models
from yiemagent_nb.backends.http.connection import HttpConnection
from yiemagent_nb.core.errors import BackendNotFoundError
from yiemagent_nb.core.reading.fields import as_mapping
from yiemagent_nb.core.reading.server_errors import error_body, server_error

__all__ = ["Catalogue", "Instance", "ListedModel", "list_models"]


@dataclass(frozen=True, slots=True)
class Instance:
    """A model in memory. ``id`` is its name in requests; ``context_length`` counts tokens, None if nobody says."""

    id: str
    context_length: int | None = None

    def holds(self, tokens: int | None) -> bool:
        """Whether its context has room for so many tokens, as far as is known."""
        return tokens is None or (self.context_length or 0) >= tokens


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model on LM Studio's disk.

    Args:
        key: Its name.
        name: What people read.
        chats: Whether it answers; models for embeddings do not.
        sees: Whether it takes images.
        calls_tools: Whether it was trained to.
        reasoning: The settings of its reasoning, of ``off``, ``on``, ``low``, ``medium``, ``high``;
            empty where it has none, None where the list does not say.
        max_context: Tokens of context that it can have.
        instances: What is in memory of it; None where the list does not say.
        variants: Names of its quantizations; the selected one stands first.
    """

    key: str
    name: str = ""
    chats: bool = True
    sees: bool = False
    calls_tools: bool = False
    reasoning: tuple[str, ...] | None = None
    max_context: int | None = None
    instances: tuple[Instance, ...] | None = None
    variants: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The model's name, and those of its instances that have others."""
        return tuple(dict.fromkeys((self.key, *(instance.id for instance in self.instances or ()))))

    def answers_to(self, name: str) -> bool:
        """Whether a request may mean this model by ``name``."""
        return name in self.names or name in self.variants

    def instances_of(self, name: str) -> tuple[Instance, ...]:
        """What is in memory of what ``name`` means: one instance, one quantization, or any of this model."""
        if name != self.key:
            named = tuple(each for each in self.instances or () if each.id == name)
            if named or name in self.variants[1:]:
                return named
        return self.instances or ()

    def instance(self, name: str) -> Instance | None:
        """The instance that should answer under a name: the one with the most context."""
        return max(self.instances_of(name), key=lambda each: each.context_length or 0, default=None)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All models that LM Studio lists.

    ``loads`` says whether this version takes requests to load and unload models.
    """

    models: tuple[ListedModel, ...]
    loads: bool

    def find(self, name: str) -> ListedModel | None:
        """The model that a name means; None where it is not listed."""
        return next((model for model in self.models if model.answers_to(name)), None)


async def list_models(http: HttpConnection, native: HttpConnection) -> Catalogue:
    """Ask for the list that says most, and for an older one where there is none.

    Args:
        http: The server's OpenAI-compatible endpoints.
        native: The same server, with LM Studio's own REST API below it.

    Raises:
        BackendError: The server could not be asked, or answered something else.
    """
    for path, key, read in (("/api/v1/models", "models", _read_v1), ("/api/v0/models", "data", _read_v0)):
        entries = await _entries(native, path, key)
        if entries is not None:
            return Catalogue(tuple(read(entry) for entry in entries), loads=path == "/api/v1/models")
    answer = await http.read_json("/models")
    if (said := error_body(answer)) is not None:
        raise server_error(said)
    plain = read_models(answer, "", http.base_url)
    return Catalogue(tuple(ListedModel(key=model.id) for model in plain), loads=False)


async def _entries(native: HttpConnection, path: str, key: str) -> list[Mapping[str, Any]] | None:
    """The entries of a list; None where this version has no such path, which it says with status 200."""
    try:
        answer = await native.read_json(path)
        if (said := error_body(answer)) is not None:
            raise server_error(said)
    except BackendNotFoundError:
        return None
    listed = (as_mapping(answer) or {}).get(key)
    if not isinstance(listed, list):
        return None
    entries = [as_mapping(each) or {} for each in cast("list[object]", listed)]
    return [entry for entry in entries if entry.get("key" if key == "models" else "id")]


def _read_v1(entry: Mapping[str, Any]) -> ListedModel:
    can = as_mapping(entry.get("capabilities")) or {}
    instances = [as_mapping(each) or {} for each in _list(entry.get("loaded_instances"))]
    selected = entry.get("selected_variant")
    variants = [str(each) for each in _list(entry.get("variants"))]
    return ListedModel(
        key=str(entry["key"]),
        name=str(entry.get("display_name") or ""),
        chats=entry.get("type") != "embedding",
        sees=can.get("vision") is True,
        calls_tools=can.get("trained_for_tool_use") is True,
        reasoning=tuple(str(each) for each in _list((as_mapping(can.get("reasoning")) or {}).get("allowed_options"))),
        max_context=_tokens(entry.get("max_context_length")),
        instances=tuple(
            Instance(str(each["id"]), _tokens((as_mapping(each.get("config")) or {}).get("context_length")))
            for each in instances
            if each.get("id")
        ),
        variants=tuple(sorted(variants, key=lambda each: each != selected)),
    )


def _read_v0(entry: Mapping[str, Any]) -> ListedModel:
    key = str(entry["id"])
    loaded = Instance(key, _tokens(entry.get("loaded_context_length")))
    return ListedModel(
        key=key,
        chats=entry.get("type") != "embeddings",
        sees=entry.get("type") == "vlm",
        calls_tools="tool_use" in _list(entry.get("capabilities")),
        max_context=_tokens(entry.get("max_context_length")),
        instances=(loaded,) if entry.get("state") == "loaded" else (),
    )


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _tokens(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
