"""Request bodies held against what the makers of each server publish about them.

Where each schema comes from:

* ``openai-chat`` and ``openai-responses``: the request types of the ``openai`` package, which are generated from
  OpenAI's OpenAPI file.
* all others: ``published/*.json``, written down from each maker's request types or documentation; the ``$comment`` at
  the top of each file names the source, its version and what was decided where it leaves something open.

An object whose fields are listed takes no others here, whatever the server does with them: most servers drop an unknown
field silently, which is the mistake that these checks are for.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from jsonschema import Draft202012Validator, ValidationError
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter
from referencing import Registry
from referencing.jsonschema import DRAFT202012

Server = Literal[
    "openai-chat",
    "openai-responses",
    "lmstudio",
    "lmstudio-responses",
    "vllm",
    "vllm-responses",
    "ollama",
    "llamacpp",
    "openrouter",
    "sglang",
]

_FOLDER = Path(__file__).parent / "published"
_KIND_FIELDS = ("type", "role")
"""The fields that tell the members of a union apart in all of these schemas."""


def check_body(server: Server, body: Mapping[str, object]) -> None:
    """Check a request body against the published schema of a server.

    Args:
        server: Which server and which of its endpoints the body goes to.
        body: The body, before it is turned into JSON.

    Raises:
        AssertionError: The body is not what the publisher documents. Each line names the place, what was expected
            there and what came.
    """
    sent = json.loads(json.dumps(body, allow_nan=False))
    problems = dict.fromkeys(line for error in _validator(server).iter_errors(sent) for line in _explain(error))
    if problems:
        raise AssertionError(f"{server}: not the published request\n" + "\n".join(f"  {line}" for line in problems))


class _Validator(Protocol):
    """A jsonschema validator, as far as it is used here."""

    def iter_errors(self, instance: Any) -> Iterator[ValidationError]: ...


@cache
def _validator(server: Server) -> _Validator:
    return cast("_Validator", Draft202012Validator({"$ref": f"urn:published:{server}"}, registry=registry()))


@cache
def registry() -> Registry[Any]:
    """All schemas, each under ``urn:published:`` and its name, since they refer to one another."""
    schemas = {
        "openai-chat": _generated(CompletionCreateParamsNonStreaming),
        "openai-responses": _generated(ResponseCreateParamsNonStreaming),
    } | {path.stem: json.loads(path.read_text("utf-8")) for path in _FOLDER.glob("*.json")}
    resources = ((f"urn:published:{name}", DRAFT202012.create_resource(_closed(s))) for name, s in schemas.items())
    return Registry[Any]().with_resources(resources)


def _generated(request: type) -> dict[str, Any]:
    """The JSON Schema of one of the openai package's request types, for streamed and whole answers alike."""
    schema = TypeAdapter[Any](request).json_schema()
    schema["properties"]["stream"] = {"type": ["boolean", "null"]}
    return schema


def _closed(node: Any) -> Any:
    """The same schema, in which every object that lists its fields takes no others unless it says so."""
    if isinstance(node, list):
        return [_closed(item) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    closed = {key: _closed(value) for key, value in cast("dict[str, Any]", node).items()}
    kinds = closed.get("type")
    if "properties" in closed and (kinds == "object" or (isinstance(kinds, list) and "object" in kinds)):
        closed.setdefault("additionalProperties", False)
    return closed


def _explain(error: ValidationError) -> Iterator[str]:
    """One line for each thing that is wrong, of a union only what is wrong with the member that was meant."""
    if error.validator not in {"anyOf", "oneOf"} or not error.context:
        yield _line(error)
        return
    members: dict[object, list[ValidationError]] = defaultdict(list)
    for inner in error.context:
        members[inner.schema_path[0]].append(inner)
    meant = min(members.values(), key=lambda errors: (sum(map(_of_another_kind, errors)), len(errors)))
    if any(map(_of_another_kind, meant)):
        yield from _no_member(error, members.values())
    else:
        for inner in meant:
            yield from _explain(inner)


def _of_another_kind(error: ValidationError) -> bool:
    """Whether an error inside a union says that another member of it was meant."""
    place = list(error.relative_path)
    if place:
        return len(place) == 1 and place[0] in _KIND_FIELDS and error.validator in {"const", "enum"}
    schema, came = cast("dict[str, Any]", error.schema), cast("Any", error.instance)
    match error.validator:
        case "required":
            return any(field in schema["required"] and field not in came for field in _KIND_FIELDS)
        case "additionalProperties":
            return any(field in came and field not in schema["properties"] for field in _KIND_FIELDS)
        case validator:
            return validator in {"type", "const", "enum"}


def _no_member(error: ValidationError, members: Iterable[list[ValidationError]]) -> Iterator[str]:
    """What is said of a value that is of no member's kind: all the kinds that there are."""
    expected: dict[str, dict[str, None]] = defaultdict(dict)
    came: dict[str, object] = {}
    for inner in (inner for errors in members for inner in errors if inner.validator in {"type", "const", "enum"}):
        if _of_another_kind(inner):
            came[inner.json_path] = inner.instance
            value = inner.validator_value
            options = cast("list[object]", value) if isinstance(value, list) else [value]
            expected[inner.json_path].update(dict.fromkeys(map(json.dumps, options)))
    if not came:
        yield _line(error)
    for path, value in came.items():
        yield f"{_place(path)}: expected one of {', '.join(expected[path])}; came {_short(value)}"


def _line(error: ValidationError) -> str:
    place = _place(error.json_path)
    schema = cast("dict[str, Any]", error.schema)
    match error.validator:
        case "additionalProperties" if error.validator_value is False:
            known = sorted(schema["properties"])
            unknown = sorted(set(cast("dict[str, object]", error.instance)) - set(known))
            return f"{place}: expected only the fields {', '.join(known)}; came {', '.join(unknown)}"
        case "required":
            fields = sorted(cast("dict[str, object]", error.instance))
            return f"{place}: expected all of {', '.join(schema['required'])}; came {', '.join(fields) or 'none'}"
        case _:
            return f"{place}: expected {error.validator} {_short(error.validator_value)}; came {_short(error.instance)}"


def _place(json_path: str) -> str:
    return json_path.removeprefix("$").removeprefix(".") or "the body"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"
