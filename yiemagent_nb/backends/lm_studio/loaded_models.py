"""What LM Studio has in memory: finding out, loading, unloading.

Sources: LM Studio's pages "Load a model" and "Unload a model" (REST API v1), and its bug tracker: a
model that is loaded already is loaded a second time beside the first (1582), and of requests that
come together each loads one of its own (1751).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from yiemagent_nb.backends.engine.encoding import dump
from yiemagent_nb.backends.http.bodies import read_response
from yiemagent_nb.backends.http.connection import HttpConnection
from yiemagent_nb.backends.lm_studio.across_loops import SharedWork, Turns
from yiemagent_nb.backends.lm_studio.listed_models import Catalogue, Instance, ListedModel, list_models
from yiemagent_nb.core.errors import (
    AuthenticationError,
    BackendConnectionError,
    BackendError,
    BackendNotFoundError,
    BackendTimeoutError,
    BadRequestError,
    MalformedResponseError,
)
from yiemagent_nb.core.models import LlmModel
from yiemagent_nb.core.reading.fields import as_mapping

__all__ = ["Known", "LoadedModels"]

_FRESH = 2.0
"""Seconds for which a list of models is not asked for again before a first question."""


class Known(NamedTuple):
    """What a name in requests means: a model, and what answers of it; None where it is not in memory."""

    listed: ListedModel
    instance: Instance | None

    def facts(self, model: LlmModel) -> LlmModel:
        """The model with what was said of it."""
        listed, instance = self
        facts: dict[str, Any] = {
            "name": listed.name or model.name,
            "input": ("text", "image") if listed.sees else ("text",),
            "context_window": (instance.context_length if instance else None) or listed.max_context,
            "loaded": None if listed.instances is None and instance is None else instance is not None,
        }
        if listed.reasoning is not None:
            facts["reasoning"] = bool(listed.reasoning)
        return model.model_copy(update=facts)


class LoadedModels:
    """The models of one server, as far as one backend knows of them.

    Args:
        context_length: Tokens of context that a model must have at least.
        loads: Whether a model that is not in memory is loaded before it is first asked.
    """

    def __init__(self, context_length: int | None, *, loads: bool) -> None:
        self._context_length = context_length
        self._loads = loads
        self._known: dict[str, Known] = {}
        self._ready: dict[str, LlmModel] = {}
        self._catalogue: tuple[float, Catalogue] | None = None
        self._turns = Turns()
        self._loading: SharedWork[LlmModel] = SharedWork()

    def known(self, name: str) -> Known | None:
        """What a name means; None where nothing was said of it yet."""
        return self._known.get(name)

    def forget(self, model: LlmModel | None = None) -> None:
        """Look anew before the next question; for one model, unless that was done since it was made ready."""
        if model is not None:
            if self._ready.get(model.id) is not model:
                return
            self._known.pop(model.id, None)
        self._ready.clear()
        self._catalogue = None

    async def look(self, http: HttpConnection) -> Catalogue:
        """Ask what there is.

        Raises:
            BackendError: The server could not be asked.
        """
        catalogue = await list_models(http, _native(http))
        self._catalogue = (time.monotonic(), catalogue)
        for listed in catalogue.models:
            for name in (*listed.names, *listed.variants):
                self._known[name] = Known(listed, listed.instance(name))
        return catalogue

    async def ready(self, model: LlmModel, http: HttpConnection) -> LlmModel:
        """A model that can be asked, with what is known of it.

        Questions that come together wait for one loading, from whatever thread they come.

        Raises:
            BackendError: It cannot be loaded, or not with the context that it must have.
        """

        async def make_ready() -> LlmModel:
            async with self._turns.turn():
                if model.id not in self._ready:
                    self._ready[model.id] = await self._make_ready(model, http, self._context_length, load=self._loads)
                return self._ready[model.id]

        return self._ready.get(model.id) or await self._loading.get(model.id, make_ready)

    async def load(self, model: LlmModel, http: HttpConnection, context_length: int | None) -> LlmModel:
        """Load a model, unless it is in memory with enough context.

        Raises:
            BackendError: It cannot be loaded.
        """
        wanted = context_length or self._context_length

        async def load() -> LlmModel:
            async with self._turns.turn():
                self.forget()
                ready = await self._make_ready(model, http, wanted, load=True)
                if not ready.loaded:
                    raise _too_old(f"load {model.id}", f"run `lms load {model.id}`")
                self._ready[model.id] = ready
                return ready

        return await self._loading.get((model.id, wanted), load)

    async def unload(self, name: str | None, http: HttpConnection) -> None:
        """Take out of memory what a name means; None means the first model that is loaded.

        Raises:
            BackendError: There is no such model, or it cannot be unloaded.
        """
        async with self._turns.turn():
            catalogue = await self.look(http)
            if not catalogue.loads:
                raise _too_old("unload models", "run `lms unload`")
            if name is None:
                listed = next((each for each in catalogue.models if each.chats and each.instances), None)
            elif (listed := catalogue.find(name)) is None:
                raise BackendNotFoundError(f"LM Studio has no model {name!r}.")
            if listed is not None:
                await self._drop(listed.instances_of(name or listed.key), http)

    async def _make_ready(
        self, model: LlmModel, http: HttpConnection, context_length: int | None, *, load: bool
    ) -> LlmModel:
        name = model.id
        is_fresh = self._catalogue is not None and time.monotonic() < self._catalogue[0] + _FRESH
        catalogue = self._catalogue[1] if self._catalogue is not None and is_fresh else await self.look(http)
        listed = catalogue.find(name)
        if listed is not None and not listed.chats:
            raise BadRequestError(
                f"{name} makes embeddings and cannot chat.", "Choose one of `await backend.models()`."
            )
        instance = None if listed is None else listed.instance(name)
        wanted = context_length
        if wanted is not None and listed is not None:
            wanted = min(wanted, listed.max_context or wanted)
        fits = instance is not None and instance.holds(wanted)
        if not fits and load and catalogue.loads:
            instance = await self._load(name, listed, wanted, http)
        elif not fits and wanted is not None:
            raise _too_old(
                f"load {name} with {wanted:,} tokens of context", f"run `lms load {name} --context-length {wanted}`"
            )
        if listed is None and instance is None:
            return model  # the server may know the name all the same
        known = self._known[name] = Known(listed or ListedModel(name), instance)
        return known.facts(model)

    async def _load(
        self, name: str, listed: ListedModel | None, context_length: int | None, http: HttpConnection
    ) -> Instance:
        """Load a model, in place of what is in memory of it. LM Studio knows more names than it lists."""
        if listed is not None:
            await self._drop(listed.instances_of(name), http)
        target = name if listed is None or name in listed.variants else listed.key
        self._catalogue = None
        fields: dict[str, Any] = {"model": target, "echo_load_config": True}
        if context_length is not None:
            fields["context_length"] = context_length
        try:
            loaded = await _post("/api/v1/models/load", fields, http)
        except (AuthenticationError, BackendConnectionError, BackendTimeoutError):
            raise
        except BackendError as error:
            error.message = f"LM Studio did not load {target}. {error.message}"
            raise
        if not isinstance(instance_id := loaded.get("instance_id"), str):
            raise MalformedResponseError(
                f"LM Studio's answer to the loading of {target} has no instance_id.", "See whether it is LM Studio."
            )
        given = (as_mapping(loaded.get("load_config")) or {}).get("context_length")
        return Instance(instance_id, given if isinstance(given, int) else context_length)

    async def _drop(self, instances: tuple[Instance, ...], http: HttpConnection) -> None:
        for instance in instances:
            self.forget()
            try:
                await _post("/api/v1/models/unload", {"instance_id": instance.id}, http)
            except BackendNotFoundError:
                continue  # another program was faster


def _native(http: HttpConnection) -> HttpConnection:
    """Where LM Studio's own REST API stands: beside ``/v1``, not below it."""
    return http.beside(urlsplit(http.base_url).path.removesuffix("/v1"))


def _too_old(what: str, instead: str) -> BadRequestError:
    return BadRequestError(
        f"This version of LM Studio cannot be told to {what}.", f"Update it to 0.4.0 or newer, or {instead}."
    )


async def _post(path: str, fields: Mapping[str, Any], http: HttpConnection) -> Mapping[str, Any]:
    """Send a command once: what failed after a minute is not repeated unasked.

    Raises:
        BackendError: It failed.
    """
    native = _native(http)
    async with await native.open(path, dump(fields)) as answer:
        return read_response(await answer.read(), answer.media_type, http.redacted)
