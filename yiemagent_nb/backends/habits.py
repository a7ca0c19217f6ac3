"""Habits: what one kind of model server takes and says in a way of its own.

The engine (``model_server``) does what is the same for all; whatever a server wants otherwise it
asks the server's habits, which stand in one small module each. ``Habits`` itself knows no server:
it sends what OpenAI's chat completions are known for everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, NamedTuple

from yiemagent_nb.backends.http import NOTHING_LISTENS, HttpConnection
from yiemagent_nb.backends.model_list import read_models
from yiemagent_nb.core.errors import AuthenticationError, BackendError
from yiemagent_nb.core.models import LlmModel, ThinkingLevel, nearest_thinking_level

__all__ = ["ALL_EFFORTS", "Api", "Habits", "RequestPlan", "Thinking"]

Api = Literal["chat-completions", "responses"]

ALL_EFFORTS: Final[Mapping[ThinkingLevel, str]] = {
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
"""All words for efforts, as servers with a chat template take them."""


class Thinking(NamedTuple):
    """How a request asks for thinking: the fields that do, and the word that stands in the message."""

    fields: Mapping[str, Any]
    sent: str


class RequestPlan(NamedTuple):
    """What is known of a request before its fields are written.

    ``api_is_given`` says whether the user chose the endpoint, ``thinks`` whether the request asks
    for thinking, ``has_tools`` whether it offers tools, ``lessons`` how often this question was
    written anew before, since the server refused something of it.
    """

    model: LlmModel
    api: Api
    api_is_given: bool
    thinks: bool
    has_tools: bool
    lessons: int = 0


class Habits:
    """A server of which nothing is known.

    One object serves one backend, so it may remember what its server taught it.
    """

    provider: str = "openai-compatible"
    """The name that stands in messages."""
    title: ClassVar[str] = "The server"
    """What people call it, at the start of a sentence."""
    base_url: ClassVar[str] = ""
    """Where it usually is."""
    efforts: Mapping[ThinkingLevel, str] = {"low": "low", "medium": "medium", "high": "high"}
    """The levels that it knows, and the ``reasoning_effort`` that asks for each.

    Any other level becomes the next higher of these, else the next lower; ``off`` sends nothing
    where it does not stand here.
    """
    tool_choices: ClassVar[frozenset[str]] = frozenset({"auto", "none", "required", "name"})
    """The choices of tools that it knows; ``name`` is that of one tool."""
    switches: tuple[str, ...] = ()
    """The arguments of chat templates that turn thinking on and off."""
    key_variable: ClassVar[str] = ""
    """The environment variable that holds its key; empty where it usually needs none."""
    start_hint: ClassVar[str] = NOTHING_LISTENS
    """What to do where nothing listens."""
    key_hint: ClassVar[str] = "Check the API key: api_key gives one, api_key_env the variable that holds it."
    """What to do where the server wants a key."""

    def __init__(self, provider: str | None = None) -> None:
        if provider is not None:
            self.provider = provider

    def describe(self, model_id: str, base_url: str) -> LlmModel:
        """What is known of a model by its name alone. Whether it can think is not, so it is asked to."""
        return LlmModel(id=model_id, provider=self.provider, base_url=base_url, reasoning=True)

    async def models(self, http: HttpConnection) -> list[LlmModel]:
        """The models that the server lists, those that can chat and are loaded first.

        Raises:
            BackendError: It could not be asked, or answered something else.
        """
        return read_models(await http.read_json("/models"), self.provider, http.base_url)

    async def prepare(self, model: LlmModel, http: HttpConnection) -> LlmModel:
        """What must be there before a model is first asked; gives the model with what was learned of it.

        Raises:
            BackendError: The model cannot be made ready.
        """
        del http
        return model

    def api_of(self, model: LlmModel, *, thinks: bool, has_tools: bool) -> Api:
        """Which endpoint a request goes to where the user leaves it open."""
        del thinks, has_tools
        return model.api

    def thinking(self, level: ThinkingLevel, model: LlmModel) -> Thinking:
        """What asks for a thinking level, in the names of chat completions."""
        if not model.reasoning:
            return Thinking({}, "off")
        fields: dict[str, Any] = {}
        if self.switches:
            fields["chat_template_kwargs"] = dict.fromkeys(self.switches, level != "off")
        efforts = self.efforts
        word = efforts[nearest_thinking_level(level, efforts)] if level != "off" else efforts.get("off")
        if word is None:
            return Thinking(fields, "off")
        return Thinking({**fields, "reasoning_effort": word}, "off" if level == "off" else word)

    def fields(self, fields: dict[str, Any], plan: RequestPlan) -> dict[str, Any]:
        """The last word on a request's fields, which have the names of chat completions."""
        if plan.api == "responses" and (effort := fields.pop("reasoning_effort", None)) is not None:
            fields["reasoning"] = {"effort": effort}
        return fields

    def learn(self, error: BackendError, plan: RequestPlan) -> bool:
        """Take a refusal as a lesson; says whether the request, written anew, may succeed now."""
        del error, plan
        return False

    def hint(self, error: BackendError, model: str) -> str:
        """What to do about an error, in this server's own words; empty where the general hint will do."""
        del model
        if isinstance(error, AuthenticationError):
            return self.key_hint
        return self.start_hint if error.hint == NOTHING_LISTENS else ""
