"""LM Studio: its OpenAI-compatible endpoints answer, its own REST API says what is in memory.

Sources: LM Studio's developer documentation (OpenAI compatibility, REST API v1 and v0, "Idle TTL and
auto-evict", "Authentication"), and its bug tracker for what that leaves open: chat completions ask
for thinking by ``reasoning_effort``, ``medium`` for on and ``none`` for off (2057); a choice of tools
is a word (670); the Responses endpoint takes no response format (1396).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, Unpack

from yiemagent_nb.backends.engine.habits import AGAIN, Api, Habits, Lessons, RequestPlan, Thinking
from yiemagent_nb.backends.engine.model_server import ModelServer
from yiemagent_nb.backends.engine.options import ServerOptions, normalised_url, with_fields
from yiemagent_nb.backends.http.connection import HttpConnection
from yiemagent_nb.backends.kinds import LM_STUDIO
from yiemagent_nb.backends.lm_studio.loaded_models import LoadedModels
from yiemagent_nb.core.errors import BackendError, BackendNotFoundError, ContextLengthError, InvalidParametersError
from yiemagent_nb.core.models import LlmModel, ThinkingLevel, nearest_thinking_level
from yiemagent_nb.core.reading.fields import as_mapping

__all__ = ["LMStudio", "LMStudioHabits"]

_NATIVE_BASE = re.compile(r"/api/v[01]$")
_WRONG_PATH = re.compile(r"unexpected endpoint")
_NOT_IN_MEMORY = re.compile(r"no models? (is |are )?(currently )?loaded|model (is |was )?(not loaded|unloaded)")
_CRASHED = re.compile(r"model has crashed")
_NO_ROOM = re.compile(
    r"failed to load|error loading model|insufficient system resources|not enough resources|out of memory"
    r"|unable to allocate"
)
_EFFORTS: Final[Mapping[str, tuple[ThinkingLevel, str]]] = {
    "on": ("medium", "medium"),
    "off": ("off", "none"),
    "low": ("low", "low"),
    "medium": ("medium", "medium"),
    "high": ("high", "high"),
}
"""The level and the ``reasoning_effort`` for each setting of a model's reasoning."""


class LMStudioHabits(Habits, kind=LM_STUDIO):
    """What LM Studio takes.

    Args:
        loaded: What is known of its models, and how they are loaded.
    """

    start_hint: ClassVar[str] = (
        "Start the server in LM Studio's Developer tab or with `lms server start`, or check host and port."
    )
    key_hint: ClassVar[str] = (
        "LM Studio requires an API token: make one in its Developer tab (Server Settings, Manage Tokens), and "
        "give it as api_key or in LM_API_TOKEN."
    )
    tool_choices: ClassVar[frozenset[str]] = frozenset({"auto", "none", "required"})

    def __init__(self, loaded: LoadedModels) -> None:
        super().__init__()
        self.loaded: Final = loaded

    def describe(self, model_id: str, base_url: str) -> LlmModel:
        """What the server said of a model, once it was asked."""
        model = super().describe(model_id, base_url)
        known = self.loaded.known(model_id)
        return model if known is None else known.facts(model)

    async def models(self, http: HttpConnection) -> list[LlmModel]:
        """The models that chat: what is loaded first, then what was trained to call tools.

        A model stands under its name, and each further instance in memory under its own.

        Raises:
            BackendError: The server could not be asked.
        """
        chatting = [listed for listed in (await self.loaded.look(http)).models if listed.chats]
        chatting.sort(key=lambda listed: (not listed.instances, not listed.calls_tools))
        return [self.describe(name, http.base_url) for listed in chatting for name in listed.names]

    async def prepare(self, model: LlmModel, http: HttpConnection) -> LlmModel:
        """Load a model that is not in memory, unless that is left to the server.

        Raises:
            BackendError: It cannot be loaded, or not with the context that it must have.
        """
        return await self.loaded.ready(model, http)

    def thinking(self, level: ThinkingLevel, model: LlmModel, lessons: Lessons) -> Thinking:
        """An effort, as the model's own settings name it; nothing for a model without any."""
        known = self.loaded.known(model.id)
        settings = None if known is None else known.listed.reasoning
        if settings is None:
            return super().thinking(level, model, lessons)
        efforts: dict[ThinkingLevel, str] = dict(_EFFORTS[setting] for setting in settings if setting in _EFFORTS)
        nearest = level if level == "off" else nearest_thinking_level(level, efforts)
        word = efforts.get(nearest)
        if word is None:
            return Thinking({}, "off")
        return Thinking({"reasoning_effort": word}, "off" if nearest == "off" else word)

    def takes_format(self, plan: RequestPlan) -> bool:
        """Its Responses endpoint leaves a format out without a word."""
        return plan.api != "responses" and super().takes_format(plan)

    def fields(self, fields: dict[str, Any], plan: RequestPlan) -> dict[str, Any]:
        """The instance that is asked, and a response format that is understood."""
        known = self.loaded.known(plan.model.id)
        if known is not None and known.instance is not None:
            fields["model"] = known.instance.id
        kind = (as_mapping(fields.get("response_format")) or {}).get("type")
        if kind == "json_object":
            any_object = {"name": "answer", "schema": {"type": "object"}}
            fields["response_format"] = {"type": "json_schema", "json_schema": any_object}
        return super().fields(fields, plan)

    def learn(self, error: BackendError, plan: RequestPlan) -> Lessons:
        """A model that was in memory is there no longer: it is made ready anew, once a question."""
        words = error.message.lower()
        is_gone = _NOT_IN_MEMORY.search(words) or _CRASHED.search(words)
        is_unknown = isinstance(error, BackendNotFoundError) and not _WRONG_PATH.search(words)
        if AGAIN in plan.lessons or plan.model.loaded is not True or not (is_gone or is_unknown):
            return super().learn(error, plan)
        self.loaded.forget(plan.model)
        return {AGAIN: True}

    def hint(self, error: BackendError, model: str) -> str:
        """Where in LM Studio help is to be found."""
        words = error.message.lower()
        if isinstance(error, ContextLengthError):
            return self._context_hint(model)
        if _NO_ROOM.search(words):
            return (
                "Unload other models (`await backend.unload(name)`), ask for a smaller context_length, or take a "
                "smaller model. LM Studio sets how much memory models may take: Settings, Model loading guardrails."
            )
        if _NOT_IN_MEMORY.search(words):
            return (
                f"Load it in LM Studio or with `await backend.load({model!r})`, or turn on Just-in-Time Model Loading "
                "in its Developer tab, Server Settings."
            )
        if _WRONG_PATH.search(words):
            return f"The base URL of LM Studio ends in /v1: {self.base_url}."
        if isinstance(error, BackendNotFoundError) and model:
            return f"Ask `await backend.models()` for the names that it has, or get it with `lms get {model}`."
        return super().hint(error, model)

    def _context_hint(self, model: str) -> str:
        known = self.loaded.known(model)
        has = None if known is None or known.instance is None else known.instance.context_length
        can = None if known is None else known.listed.max_context
        if has is None:
            return "Shorten the conversation, or load the model with more context: LMStudio(…, context_length=32768)."
        if can is None or can <= has:
            return f"{model} is loaded with {has:,} tokens of context. Shorten the conversation."
        return (
            f"{model} is loaded with {has:,} tokens of context and can have {can:,}. Shorten the conversation, or load "
            f"it with more: LMStudio(…, context_length={min(can, 4 * has)})."
        )


class LMStudio(ModelServer):
    """LM Studio's server, on this machine or another.

    A model that is not in memory is loaded before it is first asked, which can take minutes
    (``timeout=Timeouts(first_byte=…)`` bounds it), and stays there until ``unload`` or LM Studio
    takes it out.

    Args:
        model: The model that answers when the agent names none, by its name in LM Studio or that of
            an instance in memory; None takes what is loaded, else the first that LM Studio lists.
        base_url: Its address.
        api: ``chat-completions`` or ``responses``. The latter takes no structured output, so ``auto``
            is the former.
        context_length: Tokens of context that the model must have at least, or all that it can have.
            What is in memory with less is unloaded and loaded anew, for other programs that use it
            too; with more, it is used as it is. Default: what LM Studio is set to.
        load: Whether models are loaded through LM Studio's API (0.4.0 and newer). If not, LM Studio
            loads them on request, where its Just-in-Time loading is on, and unloads them by its own
            rules.
        ttl: Seconds without a request after which LM Studio unloads the model. It heeds them only for
            models that it loads on request, so they are left to it, as with ``load=False``.
        **options: See ``ServerOptions``. Where no key is given, ``LM_API_TOKEN`` may hold it.

    Example::

        agent = Agent(LMStudio("qwen/qwen3-8b", context_length=32_768))

    Raises:
        InvalidParametersError: ``base_url`` is no web address, a number is out of range, or
            ``context_length`` is given although this backend may load nothing.
    """

    def __init__(
        self,
        model: str | LlmModel | None = None,
        *,
        base_url: str = LMStudioHabits.base_url,
        api: Api | Literal["auto"] = "auto",
        context_length: int | None = None,
        load: bool = True,
        ttl: int | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        if context_length is not None:
            _check_positive("context_length", context_length)
            if ttl is not None or not load:
                raise InvalidParametersError(
                    "LM Studio takes a context_length only where this backend loads the model.",
                    "Leave out ttl and load=False, or set the context in LM Studio.",
                )
        if ttl is not None:
            _check_positive("ttl", ttl)
            with_fields(options, "extra_body", {"ttl": ttl})
        self._loaded = LoadedModels(context_length, loads=load and ttl is None)
        address = _NATIVE_BASE.sub("/v1", normalised_url(base_url))
        super().__init__(model, base_url=address, habits=LMStudioHabits(self._loaded), api=api, **options)

    async def _listed(self, http: HttpConnection) -> list[LlmModel]:
        models = await super()._listed(http)
        own = self._models.chosen
        if own is None or any(model.id == own.id for model in models) or self._loaded.known(own.id) is None:
            return models
        # A quantization is not listed by its own name, but may be asked for by it.
        return sorted([self.describe_model(own.id), *models], key=lambda model: model.loaded is not True)

    async def load(self, model: str | LlmModel | None = None, context_length: int | None = None) -> LlmModel:
        """Load a model now, unless it is in memory with enough context.

        Args:
            model: Which; None takes this backend's.
            context_length: Tokens of context that it must have at least, as for the class.

        Returns:
            The model, with its context.

        Raises:
            BackendError: It cannot be loaded; the hint says what may help.
            InvalidParametersError: ``context_length`` is no positive number.
        """
        if context_length is not None:
            _check_positive("context_length", context_length)
        chosen = await self._models.first(self._http) if model is None else self._models.describe(model)
        self._models.forget(chosen)
        try:
            return await self._loaded.load(chosen, self._http, context_length)
        except BackendError as error:
            raise self._explained(error, chosen.id) from None

    async def unload(self, model: str | LlmModel | None = None) -> None:
        """Take a model out of memory, with all its instances. Nothing happens where it is not there.

        Args:
            model: Which, or the name of one instance; None takes this backend's, or where it has
                none the first that is loaded.

        Raises:
            BackendError: There is no such model, or LM Studio is older than 0.4.0.
        """
        chosen = self._models.default if model is None else model
        name = chosen.id if isinstance(chosen, LlmModel) else chosen
        self._models.forget_all()
        try:
            await self._loaded.unload(name, self._http)
        except BackendError as error:
            raise self._explained(error, name or "") from None


def _check_positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise InvalidParametersError(f"{name} is {value!r}; expected a positive whole number.")
