"""OpenAI itself, over chat completions and the Responses API.

Sources: OpenAI's API reference ("Create chat completion", "Create a model response") and its guide
"Reasoning models"; what each model takes stands in ``data/openai_models.json``.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, ClassVar, Final, Literal, Unpack

from yiemagent_nb.backends.engine.habits import Api, Habits, Lessons, RequestPlan, Thinking, is_refusal
from yiemagent_nb.backends.engine.model_list import read_models
from yiemagent_nb.backends.engine.model_server import ModelServer
from yiemagent_nb.backends.engine.options import ServerOptions, with_fields
from yiemagent_nb.backends.engine.strict_schema import strict_schema
from yiemagent_nb.backends.http.connection import HttpConnection
from yiemagent_nb.backends.kinds import OPENAI
from yiemagent_nb.backends.prices import known_id
from yiemagent_nb.core.errors import BackendError
from yiemagent_nb.core.models import LlmModel, ThinkingLevel, nearest_thinking_level
from yiemagent_nb.core.reading.fields import as_mapping

__all__ = ["EFFORTS", "OpenAI", "OpenAIHabits", "known_models"]

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


class OpenAIHabits(Habits, kind=OPENAI):
    """What OpenAI's servers take.

    Args:
        summary: How reasoning is summed up in answers of the Responses API; None leaves it out.
    """

    key_hint: ClassVar[str] = "Set OPENAI_API_KEY before the notebook starts, or give api_key."

    def __init__(self, summary: str | None = "auto") -> None:
        super().__init__()
        self._summary = summary
        self._told: set[str] = set()
        """What was said of options that were left out."""

    def describe(self, model_id: str, base_url: str) -> LlmModel:
        """What the table says of a model; one that is newer is taken for what its name says."""
        known = _known(model_id)
        reasoning = bool(_efforts_by_name(model_id))
        return LlmModel(
            id=model_id,
            provider=self.provider,
            base_url=base_url,
            api="responses" if reasoning or known.get("responses_only") else "chat-completions",
            reasoning=reasoning,
            input=known.get("input", ("text", "image")),
            context_window=known.get("context_window"),
            max_tokens=known.get("max_tokens"),
        )

    async def models(self, http: HttpConnection) -> list[LlmModel]:
        """The models of the account, those that can chat first, with what the table says of them."""
        listed = read_models(await http.read_json("/models"), self.provider, http.base_url)
        return [self.describe(model.id, http.base_url) for model in listed]

    def api_of(self, model: LlmModel, lessons: Lessons) -> Api:
        """Responses for models that reason: with tools, chat completions refuse to let them."""
        return "responses" if "responses" in lessons else model.api

    def thinking(self, level: ThinkingLevel, model: LlmModel, lessons: Lessons) -> Thinking:
        """The effort nearest to the level among those that the model has."""
        words = lessons.get("efforts") or _efforts_by_name(model.id) or _USUAL_EFFORTS
        available: list[ThinkingLevel] = [each for each, word in EFFORTS.items() if word in words]
        if not model.reasoning or not available:
            return Thinking({}, "off")
        effort = EFFORTS[nearest_thinking_level(level, available)]
        return Thinking({"reasoning_effort": effort}, "off" if effort == "none" else effort)

    def fields(self, fields: dict[str, Any], plan: RequestPlan) -> dict[str, Any]:
        """OpenAI's newer names; nothing is stored; what the model or the endpoint lacks is left out."""
        if plan.thinks:
            self._leave_out(fields, _NOT_WITH_THINKING, f"{plan.model.id} takes no {{}} while it thinks")
        if (output := as_mapping(fields.get("response_format"))) is not None and "not_strict" not in plan.lessons:
            fields["response_format"] = _strict_output(output)
        if plan.api == "chat-completions":
            if "max_tokens" in fields:
                fields["max_completion_tokens"] = fields.pop("max_tokens")
            return fields
        self._leave_out(
            fields, _NOT_IN_RESPONSES, f"the Responses API, over which {plan.model.id} is asked, has no {{}}"
        )
        fields.setdefault("store", False)
        if (effort := fields.pop("reasoning_effort", None)) is not None:
            wants_summary = self._summary and plan.thinks and "no_summary" not in plan.lessons
            summary = {"summary": self._summary} if wants_summary else {}
            fields["reasoning"] = {"effort": effort, **summary, **(as_mapping(fields.get("reasoning")) or {})}
        if plan.model.reasoning:
            fields.setdefault("include", ["reasoning.encrypted_content"])
        return fields

    def learn(self, error: BackendError, plan: RequestPlan) -> Lessons:
        """Which efforts a model has, that it needs Responses, gives no summaries, or takes no strict schema."""
        if not is_refusal(error):
            return super().learn(error, plan)
        words = error.message.lower()
        if "/v1/responses" in words and plan.api == "chat-completions" and not plan.api_is_given:
            return {"responses": True}
        efforts = tuple(_QUOTED.findall(words.partition("supported values are")[2]))
        if efforts and set(efforts) <= set(EFFORTS.values()):
            return {"efforts": efforts}
        if "reasoning summar" in words or error.param == "reasoning.summary":
            return {"no_summary": True}  # some models give them to verified organisations only
        if "invalid schema for response_format" in words and "not_strict" not in plan.lessons:
            return {"not_strict": True}
        return super().learn(error, plan)

    def _leave_out(self, fields: dict[str, Any], names: Sequence[str], why: str) -> None:
        dropped = [name for name in names if fields.pop(name, None) is not None]
        message = why.format(" and no ".join(dropped))
        if dropped and message not in self._told:
            self._told.add(message)
            _log.warning("%s: left out", message)


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
        model: str | LlmModel = OPENAI.model,
        *,
        base_url: str | None = None,
        api: Api | Literal["auto"] = "auto",
        organization: str | None = None,
        project: str | None = None,
        reasoning_summary: str | None = "auto",
        **options: Unpack[ServerOptions],
    ) -> None:
        named = {"OpenAI-Organization": organization, "OpenAI-Project": project}
        with_fields(options, "headers", {name: value for name, value in named.items() if value})
        if options.get("api_key") is None and options.get("api_key_env") is None:
            options["api_key_env"] = OPENAI.key_variable
        super().__init__(
            model,
            base_url=base_url or os.environ.get("OPENAI_BASE_URL", "").strip() or OPENAI.base_url,
            habits=OpenAIHabits(reasoning_summary),
            api=api,
            **options,
        )


def known_models() -> tuple[str, ...]:
    """The names of OpenAI's models that are known without asking, the newest first."""
    return tuple(_table())


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
