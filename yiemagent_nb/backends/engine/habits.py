"""Habits: what one kind of model server takes and says in a way of its own.

The engine (``model_server``) does what is the same for all; whatever a server wants otherwise it
asks the server's habits, which stand in one small module each. ``Habits`` itself knows no server:
it sends what OpenAI's chat completions are known for everywhere.

What a server refuses is a lesson: a name and a value that every later request to that model is
written with. Lessons belong to a question until a request that heeds them was answered, so one that
was drawn in vain is forgotten, and questions asked side by side do not disturb one another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple

from yiemagent_nb.backends.engine.model_list import read_models
from yiemagent_nb.backends.http.network_errors import NOTHING_LISTENS, Cause, cause_of
from yiemagent_nb.backends.kinds import Kind
from yiemagent_nb.core.errors import AuthenticationError, BackendError
from yiemagent_nb.core.models import LlmModel, ThinkingLevel, nearest_thinking_level

if TYPE_CHECKING:
    from yiemagent_nb.backends.http.connection import HttpConnection

__all__ = ["AGAIN", "ALL_EFFORTS", "Api", "Habits", "Lessons", "RequestPlan", "Thinking", "is_refusal"]

Api = Literal["chat-completions", "responses"]

Lessons = Mapping[str, Any]
"""What refusals taught: see the module."""

AGAIN: Final = "again"
"""A lesson that is not kept: the model must be made ready anew, and the same request may succeed."""

ALL_EFFORTS: Final[Mapping[ThinkingLevel, str]] = {
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
"""All words for efforts, as servers with a chat template take them."""

_REFUSALS = frozenset({400, 404, 422})
_FAILURES = frozenset({500, 501})
"""What some servers answer where they cannot make a grammar of a schema."""
_ABOUT_FORMATS = re.compile(
    r"response_?format|json_?schema|json schema|structured|grammar|guided|text\.format|output_config|constrain"
)
_REASONING_FIELD = re.compile(
    r"(['\"`])(?:messages\S*[. ])?(reasoning|reasoning_content|reasoning_text|reasoning_details|thinking)\1"
    r".{0,60}\b(unsupported|not supported|unexpected|unknown|unrecognized|extra|not (allowed|permitted))"
    r"|(unsupported|unexpected|unknown|unrecognized|extra|additional)\b.{0,60}"
    r"(['\"`])(?:messages\S*[. ])?(reasoning|reasoning_content|reasoning_text|reasoning_details|thinking)\6"
)
_FOREIGN_REASONING = re.compile(
    r"encrypted.content.{0,80}(could not be|cannot be|not|un)\s?(verified|decrypted|valid)|invalid_encrypted"
)


def is_refusal(error: BackendError) -> bool:
    """Whether a server read a request and did not like something in it."""
    return error.status in _REFUSALS


class Thinking(NamedTuple):
    """How a request asks for thinking: the fields that do, and the word that stands in the message."""

    fields: Mapping[str, Any]
    sent: str


class RequestPlan(NamedTuple):
    """What is known of a request before its fields are written.

    ``api_is_given`` says whether the user chose the endpoint, ``thinks`` whether the request asks
    for thinking, ``has_format`` whether it asks for a form of the answer; ``lessons`` are those that
    it heeds.
    """

    model: LlmModel
    api: Api
    api_is_given: bool
    thinks: bool
    has_format: bool
    lessons: Lessons


class Habits:
    """A server of which nothing is known."""

    provider: str = "openai-compatible"
    """The name that stands in messages; of a server of which nothing is known, its host's takes its place."""
    base_url: ClassVar[str] = ""
    """Where it usually is."""
    is_local: ClassVar[bool] = False
    """Whether it runs on people's own machines, where an answer has no price."""
    efforts: ClassVar[Mapping[ThinkingLevel, str]] = {"low": "low", "medium": "medium", "high": "high"}
    """The levels that it knows, and the ``reasoning_effort`` that asks for each.

    Any other level becomes the next higher of these, else the next lower; ``off`` sends nothing
    where it does not stand here.
    """
    tool_choices: ClassVar[frozenset[str]] = frozenset({"auto", "none", "required", "name"})
    """The choices of tools that it knows; ``name`` is that of one tool."""
    switches: ClassVar[tuple[str, ...]] = ()
    """The arguments of chat templates that turn thinking on and off."""
    key_variable: ClassVar[str] = ""
    """The environment variable that holds its key; empty where it usually needs none."""
    start_hint: ClassVar[str] = NOTHING_LISTENS
    """What to do where nothing listens."""
    key_hint: ClassVar[str] = "Check the API key: api_key gives one, api_key_env the variable that holds it."
    """What to do where the server wants a key."""

    def __init_subclass__(cls, kind: Kind | None = None) -> None:
        if kind is not None:
            cls.provider, cls.base_url, cls.key_variable = kind.provider, kind.base_url, kind.key_variable
            cls.is_local = bool(kind.ports)

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

    def api_of(self, model: LlmModel, lessons: Lessons) -> Api:
        """Which endpoint a request goes to where the user leaves it open."""
        del lessons
        return model.api

    def thinking(self, level: ThinkingLevel, model: LlmModel, lessons: Lessons) -> Thinking:
        """What asks for a thinking level, in the names of chat completions."""
        del lessons
        return self.ask_for(level, model, self.efforts, self.switches)

    def ask_for(
        self,
        level: ThinkingLevel,
        model: LlmModel,
        efforts: Mapping[ThinkingLevel, str],
        switches: tuple[str, ...] = (),
    ) -> Thinking:
        """The effort nearest to a level among ``efforts``, beside the chat template's ``switches``."""
        if not model.reasoning:
            return Thinking({}, "off")
        fields: dict[str, Any] = {}
        if switches:
            fields["chat_template_kwargs"] = dict.fromkeys(switches, level != "off")
        word = efforts.get("off") if level == "off" else efforts.get(nearest_thinking_level(level, efforts))
        if word is None:
            return Thinking(fields, "off")
        return Thinking({**fields, "reasoning_effort": word}, "off" if level == "off" else word)

    def takes_format(self, plan: RequestPlan) -> bool:
        """Whether a form of the answer can be asked for; where not, the model is told in words."""
        return "format_in_words" not in plan.lessons

    def fields(self, fields: dict[str, Any], plan: RequestPlan) -> dict[str, Any]:
        """The last word on a request's fields, which have the names of chat completions."""
        if plan.api == "responses" and (effort := fields.pop("reasoning_effort", None)) is not None:
            fields["reasoning"] = {"effort": effort}
        return fields

    def learn(self, error: BackendError, plan: RequestPlan) -> Lessons:
        """What a refusal teaches; empty where nothing of it helps."""
        words = " ".join([error.message, *error.labels]).lower()
        if "stream_options" in words and is_refusal(error):
            return {"no_usage": True}
        if plan.api == "responses" and _FOREIGN_REASONING.search(words):
            return {"reasoning_since": datetime.now(UTC)}
        if is_refusal(error) and _REASONING_FIELD.search(words):
            return {"no_reasoning_fields": True}
        may_be_about_it = is_refusal(error) or error.status in _FAILURES
        if plan.has_format and may_be_about_it and _ABOUT_FORMATS.search(words):
            return {"format_in_words": True}
        return {}

    def hint(self, error: BackendError, model: str) -> str:
        """What to do about an error, in this server's own words; empty where the general hint will do."""
        del model
        if isinstance(error, AuthenticationError):
            return self.key_hint
        return self.start_hint if cause_of(error) is Cause.REFUSED else ""
