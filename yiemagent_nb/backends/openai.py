"""OpenAI itself, over chat completions and the Responses API.

Sources: OpenAI's API reference ("Create chat completion", "Create a model response") and its guide
"Reasoning models"; what each model takes stands in ``data/openai_models.json``.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, ClassVar, Final, Literal, Unpack

from yiemagent_nb.backends.discovery import OPENAI_MODEL
from yiemagent_nb.backends.habits import Api, Habits, RequestPlan, Thinking
from yiemagent_nb.backends.http import HttpConnection
from yiemagent_nb.backends.model_list import read_models
from yiemagent_nb.backends.model_server import ModelServer
from yiemagent_nb.backends.options import ServerOptions
from yiemagent_nb.backends.prices import known_id
from yiemagent_nb.backends.strict_schema import strict_schema
from yiemagent_nb.core.errors import BackendError, InvalidParametersError
from yiemagent_nb.core.models import LlmModel, ThinkingLevel, nearest_thinking_level
from yiemagent_nb.core.reading.fields import as_mapping

__all__ = ["EFFORTS", "OpenAI", "OpenAIHabits"]

EFFORTS: Final[Mapping[ThinkingLevel, str]] = {
    "off": "none",
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
"""The ``reasoning_effort`` of each level; a model has some of them."""

_USUAL_EFFORTS = ("none", "low", "medium", "high", "xhigh")
"""What a reasoning model takes that is newer than the table."""
_NEWER = re.compile(r"(o\d|gpt-([5-9]|\d\d))")
_PLAIN = re.compile(r"chat-latest|search|audio|realtime|image|tts")
_NOT_IN_RESPONSES = ("seed", "stop", "frequency_penalty", "presence_penalty", "logit_bias", "n")
_NOT_WITH_THINKING = ("temperature", "top_p")
_QUOTED = re.compile(r"'(\w+)'")

_log = logging.getLogger(__name__)


class OpenAIHabits(Habits):
    """What OpenAI's servers take.

    Args:
        summary: How reasoning is summed up in answers of the Responses API; None leaves it out.
    """

    provider = "openai"
    title: ClassVar[str] = "OpenAI"
    base_url: ClassVar[str] = "https://api.openai.com/v1"
    key_variable: ClassVar[str] = "OPENAI_API_KEY"
    key_hint: ClassVar[str] = "Set OPENAI_API_KEY before the notebook starts, or give api_key."

    def __init__(self, summary: str | None = "auto") -> None:
        super().__init__()
        self._summary = summary
        self._efforts: dict[str, tuple[str, ...]] = {}
        """The efforts that the server named when it refused another, by model."""
        self._responses_only: set[str] = set()
        self._told: set[str] = set()

    def describe(self, model_id: str, base_url: str) -> LlmModel:
        """What the table says of a model; one that is newer is taken for what its name says."""
        known = _known(model_id)
        reasoning = bool(_efforts_by_name(model_id))
        return LlmModel(
            id=model_id,
            provider=self.provider,
            base_url=base_url,
            api="responses" if reasoning else "chat-completions",
            reasoning=reasoning,
            input=known.get("input", ("text", "image")),
            context_window=known.get("context_window"),
            max_tokens=known.get("max_tokens"),
        )

    async def models(self, http: HttpConnection) -> list[LlmModel]:
        """The models of the account, those that can chat first, with what the table says of them."""
        listed = read_models(await http.read_json("/models"), self.provider, http.base_url)
        return [self.describe(model.id, http.base_url) for model in listed]

    def api_of(self, model: LlmModel, *, thinks: bool, has_tools: bool) -> Api:
        """Responses for models that reason: with tools, chat completions refuse to let them."""
        del thinks, has_tools
        return "responses" if model.id in self._responses_only else model.api

    def thinking(self, level: ThinkingLevel, model: LlmModel) -> Thinking:
        """The effort nearest to the level among those that the model has."""
        words = self._efforts.get(model.id) or _efforts_by_name(model.id) or _USUAL_EFFORTS
        available: list[ThinkingLevel] = [each for each, word in EFFORTS.items() if word in words]
        if not model.reasoning or not available:
            return Thinking({}, "off")
        effort = EFFORTS[nearest_thinking_level(level, available)]
        return Thinking({"reasoning_effort": effort}, "off" if effort == "none" else effort)

    def fields(self, fields: dict[str, Any], plan: RequestPlan) -> dict[str, Any]:
        """OpenAI's newer names; nothing is stored; what thinking forbids is left out.

        Raises:
            InvalidParametersError: An option that the Responses API does not have.
        """
        effort: object = fields.get("reasoning_effort")
        if plan.thinks:
            self._leave_out(fields, plan.model.id)
        if (output := as_mapping(fields.get("response_format"))) is not None:
            fields["response_format"] = _strict_output(output)
        if plan.api == "chat-completions":
            if "max_tokens" in fields:
                fields["max_completion_tokens"] = fields.pop("max_tokens")
            return fields
        if missing := [name for name in _NOT_IN_RESPONSES if name in fields]:
            raise InvalidParametersError(
                f"OpenAI's Responses API, which {plan.model.id} is asked over, has no {' and no '.join(missing)}.",
                'Leave it out, or use api="chat-completions" where the model allows it.',
            )
        fields.setdefault("store", False)
        if effort is not None:
            summary = {"summary": self._summary} if self._summary and plan.thinks else {}
            del fields["reasoning_effort"]
            fields["reasoning"] = {"effort": effort, **summary, **(as_mapping(fields.get("reasoning")) or {})}
        if plan.model.reasoning:
            fields.setdefault("include", ["reasoning.encrypted_content"])
        return fields

    def learn(self, error: BackendError, plan: RequestPlan) -> bool:
        """Learn from a refusal which efforts a model has, that it needs Responses, or gives no summaries."""
        words, model = error.message.lower(), plan.model.id
        if "/v1/responses" in words and plan.api == "chat-completions" and not plan.api_is_given:
            known = model in self._responses_only
            self._responses_only.add(model)
            return not known
        _, found, supported = words.partition("supported values are")
        if found and "effort" in words.replace("reasoning_effort", "effort") and model not in self._efforts:
            self._efforts[model] = tuple(_QUOTED.findall(supported))
            return True
        if self._summary and "summar" in words and error.status is not None:
            self._summary = None  # some models give them to verified organisations only
            return True
        return False

    def _leave_out(self, fields: dict[str, Any], model: str) -> None:
        dropped = [name for name in _NOT_WITH_THINKING if fields.pop(name, None) is not None]
        if dropped and model not in self._told:
            self._told.add(model)
            _log.warning("%s thinks without %s: they are left out while thinking is on", model, " and ".join(dropped))


class OpenAI(ModelServer):
    """OpenAI's models.

    Models that reason are asked over the Responses API, where they may think and call tools; their
    reasoning is kept, encrypted, in the history and goes back with it. Nothing is stored on the
    server. All others are asked over chat completions.

    Args:
        model: The model that answers when the agent names none.
        base_url: Another address with OpenAI's own API. Default: the environment's
            ``OPENAI_BASE_URL``, else OpenAI's.
        api: ``chat-completions`` or ``responses`` for all models; ``auto`` chooses as above.
        organization: Whose quota is used, where the key belongs to several.
        project: Likewise.
        reasoning_summary: How detailed summaries of the reasoning are: ``auto``, ``concise``,
            ``detailed``; None asks for none.
        **options: See ``ServerOptions``. The key is read from ``OPENAI_API_KEY`` unless given.

    Example::

        agent = Agent(OpenAI("gpt-5.4"), thinking_level="medium")
    """

    def __init__(
        self,
        model: str | LlmModel = OPENAI_MODEL,
        *,
        base_url: str | None = None,
        api: Api | Literal["auto"] = "auto",
        organization: str | None = None,
        project: str | None = None,
        reasoning_summary: str | None = "auto",
        **options: Unpack[ServerOptions],
    ) -> None:
        named = {"OpenAI-Organization": organization, "OpenAI-Project": project}
        headers = {name: value for name, value in named.items() if value} | dict(options.get("headers") or {})
        if options.get("api_key") is None and options.get("api_key_env") is None:
            options["api_key_env"] = OpenAIHabits.key_variable
        super().__init__(
            model,
            base_url=base_url or os.environ.get("OPENAI_BASE_URL", "").strip() or OpenAIHabits.base_url,
            habits=OpenAIHabits(reasoning_summary),
            api=api,
            **{**options, "headers": headers},
        )


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    text = resources.files("yiemagent_nb.backends").joinpath("data", "openai_models.json").read_text("utf-8")
    return json.loads(text)["models"]


def _known(model_id: str) -> Mapping[str, Any]:
    name = known_id(model_id, _table())
    return {} if name is None else _table()[name]


def _efforts_by_name(model_id: str) -> tuple[str, ...]:
    if known := _known(model_id):
        return tuple(known["efforts"])
    name = model_id.rpartition("/")[2]
    return _USUAL_EFFORTS if _NEWER.match(name) and not _PLAIN.search(name) else ()


def _strict_output(output: Mapping[str, Any]) -> Mapping[str, Any]:
    """A response format whose schema binds the model, where it has such a form."""
    inner = as_mapping(output.get("json_schema"))
    schema = None if inner is None or "strict" in inner else as_mapping(inner.get("schema"))
    strict = None if schema is None else strict_schema(schema)
    return output if strict is None else {**output, "json_schema": {**(inner or {}), "schema": strict, "strict": True}}
