"""Structured output: an answer as a value of a type, by the type's JSON Schema.

The schema goes to the backend as the keyword ``response_format``; a backend that does not take it
is told in words. The answer's text is then read as JSON and validated by pydantic.

Source of the form: OpenAI's API reference, "Create chat completion", ``response_format``.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, TypeVar, cast, overload

from pydantic import TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from yiemagent_nb.core.errors import InvalidParametersError, OutputInvalidError, describe_error
from yiemagent_nb.core.json_values import clean_text
from yiemagent_nb.core.messages import AssistantMessage, StopReason, UserMessage
from yiemagent_nb.core.validation import MAX_SENTENCES, cut, explain_validation_error, shorten

__all__ = ["DOES_NOT_FIT", "OutputFormat", "in_words"]

T = TypeVar("T")

DOES_NOT_FIT: Final = "The answer does not fit "
"""How a correction begins, so that a backend can tell it from what a person says."""

WRAPPED = "value"
"""The property that holds what is no object itself."""

MAX_TRIES = 1_000
"""Places of an answer at which an object is looked for."""

_NAME_LENGTH = 64
_OBJECT = re.compile(r"\{\s*+[\"}]")
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]+")
_HINT = "The answer is in error.answer and in the history. Say more of what is wanted, or raise output_retries."
_ENDINGS: Mapping[StopReason, tuple[str, str]] = {
    "tool_calls": ("ended before the model answered: the last it did was to call tools", "Prompt again to go on."),
    "length": ("ended at the length limit of an answer", "Raise the backend's max_tokens, or ask for less."),
    "content_filter": ("ended by the server's content filter", "Ask in other words."),
    "aborted": ("was aborted", "Prompt again."),
    "error": ("failed", "Nothing was lost: prompt again."),
}


def in_words(system_prompt: str, schema: Mapping[str, Any]) -> str:
    """A system prompt that asks for an answer by a JSON Schema, where nothing else can."""
    words = (
        "Your final answer must be one JSON object that fits this JSON Schema, and nothing around it: "
        f"no prose, no code fence.\n{json.dumps(schema, ensure_ascii=False)}"
    )
    return f"{system_prompt}\n\n{words}" if system_prompt else words


class _Schema(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        """Leave out the titles that pydantic makes of names; they cost tokens and say nothing."""
        return False


class OutputFormat(Generic[T]):
    """The form that the answer to a prompt must have. ``Agent.prompt(output_type=…)`` makes its own.

    Args:
        output_type: What is wanted: a pydantic model, a dataclass, a ``TypedDict``, or any annotation
            that pydantic has a JSON Schema for, such as ``list[Person]`` or ``Literal["yes", "no"]``.
            What is no object there is asked for as an object with the one property ``value``.
        retries: How often in a run the model is told what does not fit, and asked again.

    Attributes:
        name: The type's name as servers take it: ``[a-zA-Z0-9_-]{1,64}``.
        schema: The JSON Schema of an object. Read-only.
        response_format: The keyword that backends are given, in OpenAI's chat form:
            ``{"type": "json_schema", "json_schema": {"name": …, "schema": …}}``. Read-only.

    Example::

        output = OutputFormat(Person)
        stream = agent_loop([UserMessage("…")], AgentContext(), LoopConfig(llm_call=backend, output=output))
        person = output.read((await stream.result())[-1])

    Raises:
        InvalidParametersError: The type has no JSON Schema, or ``retries`` is no number from 0 on.
    """

    @overload
    def __init__(self, output_type: type[T], *, retries: int = 2) -> None: ...
    @overload
    def __init__(self: OutputFormat[Any], output_type: object, *, retries: int = 2) -> None: ...
    def __init__(self, output_type: Any, *, retries: int = 2) -> None:
        if not isinstance(cast("object", retries), int) or retries < 0:
            raise InvalidParametersError(f"output_retries is {retries!r}; expected a whole number, 0 or more.")
        self.retries: Final = retries
        self._bare: TypeAdapter[Any] | None = None
        self._adapter, schema = _adapt(output_type)
        if schema.get("type") != "object":
            self._bare = self._adapter
            self._adapter, schema = _adapt(create_model("Output", value=(output_type, ...)))
        is_class = isinstance(output_type, type)
        self._label = output_type.__name__ if is_class else cut(inspect.formatannotation(output_type))
        self.name: Final = _NOT_IN_NAMES.sub("_", self._label)[:_NAME_LENGTH] if is_class and self._label else "output"
        self.schema: Final = schema
        self.response_format: Final[Mapping[str, Any]] = {
            "type": "json_schema",
            "json_schema": {"name": self.name, "schema": schema},
        }

    def __repr__(self) -> str:
        """The type and the number of retries."""
        return f"OutputFormat({self._label}, retries={self.retries})"

    def instruct(self, system_prompt: str) -> str:
        """A system prompt that asks for this form, for backends that do not take ``response_format``."""
        return in_words(system_prompt, self.schema)

    def parse(self, text: str) -> T:
        """Read a text: JSON as a whole, in a code fence, or the first object in prose that fits.

        Raises:
            OutputInvalidError: None fits; it says which field, what was expected and what came.
        """
        text = clean_text(text)
        failure = ""
        cause: Exception | None = None
        for candidate, value in _candidates(text):
            try:
                return self._validate(candidate)
            except ValidationError as error:
                failure, cause = failure or self._explain(error, value), cause or error
            except Exception as error:  # a validator of the type's own, which may raise anything
                failure, cause = failure or f"it was refused: {describe_error(error)}", cause or error
        message = f"{DOES_NOT_FIT}{self._label}: {failure or _no_json(text)}."
        raise OutputInvalidError(message, _HINT) from cause

    def read(self, answer: AssistantMessage, error_message: str | None = None) -> T:
        """Read the last answer of a run.

        Args:
            answer: The answer.
            error_message: What else is known of why the run ended.

        Raises:
            OutputInvalidError: It does not fit, or it is no whole answer in words; it carries the answer.
        """
        why = answer.error_message or error_message or ""
        if answer.stop_reason != "end_turn":
            happened, hint = _ENDINGS[answer.stop_reason]
            message = f"There is no {self._label}: the run {happened}{f' ({why})' if why else ''}."
            raise OutputInvalidError(message, hint, answer)
        try:
            return self.parse(answer.text)
        except OutputInvalidError as error:
            raise OutputInvalidError(f"{error.message} {why}".rstrip(), error.hint, answer) from error.__cause__

    def correction(self, answer: AssistantMessage) -> UserMessage | None:
        """What to tell the model where a whole answer does not fit; None where nothing is to be told."""
        if answer.stop_reason != "end_turn":
            return None
        try:
            self.parse(answer.text)
        except OutputInvalidError as error:
            return UserMessage(
                f"{error.message} Answer again with JSON only: one object that fits the JSON Schema below, "
                f"and nothing around it.\n{self._schema_text}"
            )
        return None

    @property
    def _schema_text(self) -> str:
        return json.dumps(self.schema, ensure_ascii=False)

    def _validate(self, candidate: str) -> T:
        if self._bare is None:
            return self._adapter.validate_json(candidate)
        try:
            return getattr(self._adapter.validate_json(candidate), WRAPPED)
        except ValidationError as error:
            if not _lacks_wrapper(error):
                raise
            try:
                return self._bare.validate_json(candidate)
            except ValidationError:
                raise error from None

    def _explain(self, error: ValidationError, value: object) -> str:
        sentences = explain_validation_error(error, value, self.schema.get("properties", ()), whole="the answer")
        more = len(sentences) - MAX_SENTENCES
        return "; ".join(sentences[:MAX_SENTENCES]) + (f"; and {more} more" if more > 0 else "")


def _adapt(output_type: Any) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    """What validates a type, and its schema, without a reference at the root."""
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(output_type)
        schema = adapter.json_schema(schema_generator=_Schema)
    except (PydanticUserError, PydanticUndefinedAnnotation, TypeError, NameError, SyntaxError) as error:
        reason = cut(str(error).partition("\n")[0])
        raise InvalidParametersError(
            f"output_type is {shorten(output_type)}, which has no JSON Schema: {reason}.",
            "Use a pydantic model, a dataclass, a TypedDict, or types that JSON can hold.",
        ) from error
    definitions = schema.get("$defs", {})
    target = definitions.get(str(schema.get("$ref", "")).removeprefix("#/$defs/"))
    if target is not None:
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return adapter, schema


def _lacks_wrapper(error: ValidationError) -> bool:
    """Whether what was given is no object, or has not the property that wraps a value."""
    failures = error.errors(include_url=False, include_context=False, include_input=False)
    return any((each["type"], each["loc"]) in {("missing", (WRAPPED,)), ("model_type", ())} for each in failures)


def _candidates(text: str) -> Iterator[tuple[str, object]]:
    """The JSON texts in a text with their values: all of it, else what stands in code fences, else objects."""
    if whole := _decode(text):
        yield whole
        return
    for fenced in text.split("```")[1::2]:
        if inner := _decode(re.sub(r"\A\s*json", "", fenced, flags=re.IGNORECASE)):
            yield inner
    yield from _objects(text)


def _decode(text: str) -> tuple[str, object] | None:
    text = text.strip()
    try:
        return text, json.loads(text)
    except (ValueError, RecursionError):
        return None


_decoder = json.JSONDecoder()


def _objects(text: str) -> Iterator[tuple[str, object]]:
    """The whole JSON objects in a text, outermost only.

    Each attempt goes on where the last one stopped, so an object that is cut or broken does not
    pass for one of its parts, and no text is read twice.
    """
    end = 0
    for _ in range(MAX_TRIES):
        found = _OBJECT.search(text, end)
        if found is None:
            return
        start = found.start()
        try:
            value, end = _decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            end = max(error.pos, start + 1)
        except ValueError:  # a number of more digits than Python reads
            end = start + 1
        except RecursionError:
            return
        else:
            yield text[start:end], value


def _no_json(text: str) -> str:
    """Why nothing in a text could be read."""
    text = text.strip()
    start = text.find("{")
    if start < 0:
        return f"it holds no JSON object, got {shorten(text)}" if text else "it is empty"
    reason = ""
    try:
        _decoder.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        reason = f" ({error.msg if isinstance(error, json.JSONDecodeError) else cut(str(error))})"
    return f"it is no valid JSON{reason}, got {shorten(text[start:])}"
