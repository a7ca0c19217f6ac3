"""Schemas with a value that fits each, and what a person does to enter it into the schema's form."""

from __future__ import annotations

import contextlib
import json
import re
import unicodedata
import zlib
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

__all__ = ["ABSENT", "Case", "agrees", "fits", "generate", "same"]

ABSENT = object()
"""In place of a value: there is none."""

Plan = dict[str, Any]
Schema = dict[str, Any] | bool


@dataclass(frozen=True)
class Case:
    """A schema, a value that fits it, the steps that enter it, and what a form holds that nobody touched."""

    schema: Schema
    value: Any
    plan: Plan
    untouched: Any


@dataclass(frozen=True)
class _Piece:
    schema: Schema
    value: Any
    plan: Plan
    default: bool = True
    """Whether the value may be the schema's default: what is entered then is entered over it."""
    start: Any = ABSENT
    """What stands in its form before it is touched, where it is required."""


Pieces = st.SearchStrategy[_Piece]

_NAMES = st.sampled_from(
    [
        "a",
        "b",
        "name",
        "max_results",
        "Wörter",
        "two words",
        "0",
        "10",
        "2",
        "__proto__",
        "constructor",
        "$ref",
        'q"',
        "x" * 70,
    ]
)
_TEXT = st.text(
    st.characters(exclude_categories=["Cc", "Cf", "Cs", "Co", "Cn", "Mn"], include_characters="\n\t"), max_size=12
)
_FORMATS: dict[str, st.SearchStrategy[str]] = {
    "date": st.dates().map(str),
    "time": st.times().map(lambda time: f"{time.replace(microsecond=0)}Z"),
    "date-time": st.datetimes().map(lambda time: f"{time.isoformat()}+02:00"),
    "email": st.sampled_from(["a@b.org", "first.last+tag@sub.example.org"]),
    "uri": st.sampled_from(["https://example.org/a?b=c#d", "urn:isbn:1"]),
    "uuid": st.uuids().map(str),
    "ipv4": st.ip_addresses(v=4).map(str),
    "hostname": st.sampled_from(["localhost", "sub.example.org"]),
    "made-up": st.just("anything"),
}
_PATTERNS = {
    r"^[A-Z]{2}\d{1,4}$": ["AB1", "ZZ1234"],
    r"^(red|green)$": ["red", "green"],
    r"b+": ["b", "abba", "über b"],
    r"^[a-z]+(-[a-z]+)*$": ["a", "one-two-three"],
}
_NUMBERS = st.one_of(
    st.integers(-1000, 1000),
    st.integers(-(10**40), 10**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-1000, 1000, places=2).map(float),
)
_SCALARS = st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXT)
_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_NAMES | _TEXT, inner, max_size=3)),
    max_leaves=8,
)


def generate(count: int, *, seed: int | None = None) -> list[Case]:
    """Cases of which no two are the same: always the same ones, or with a seed those of another run."""
    cases: dict[str, Case] = {}

    @settings(
        max_examples=count * 2,
        derandomize=seed is None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.filter_too_much,
            HealthCheck.large_base_example,
            HealthCheck.data_too_large,
        ],
    )
    @given(_cases())
    def collect(case: Case) -> None:
        if len(cases) == count:
            raise _EnoughError
        cases[json.dumps([case.schema, case.value])] = case

    with contextlib.suppress(_EnoughError):
        (collect if seed is None else seeded(seed)(collect))()
    return list(cases.values())


class _EnoughError(Exception):
    """There are as many cases as were asked for."""


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON, true told from 1, and 1 from 1.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def agrees(seen: Any, value: Any) -> bool:
    """Whether what the controls show is the value."""
    match seen:
        case {"text": text}:
            return same(text, value)
        case {"json": text}:
            return same(json.loads(text), value)
        case {"choice": label}:
            plain = [_shown(json.dumps(value, ensure_ascii=False)), _shown(str(value))]
            return any(label == each or label.endswith(f"({each})") for each in plain)
        case {"list": items}:
            return (
                isinstance(value, list)
                and len(items) == len(cast("list[Any]", value))
                and all(agrees(*pair) for pair in zip(items, cast("list[Any]", value), strict=True))
            )
        case {"object": members}:
            names = [name for name, _ in members]
            return (
                isinstance(value, dict)
                and sorted(names) == sorted(cast("dict[str, Any]", value))
                and all(agrees(shown, value[name]) for name, shown in members)
            )
        case _:
            return False


def _shown(text: str) -> str:
    """A text as a label shows it: what cannot be seen stands as an escape."""
    return "".join(f"\\u{ord(char):04x}" if unicodedata.category(char) in {"Cc", "Zl", "Zp"} else char for char in text)


def fits(schema: Schema, value: Any) -> bool:
    """Whether another library takes a value for one that fits."""
    validator: Any = Draft202012Validator(schema)
    return bool(validator.is_valid(value))


@st.composite
def _cases(draw: st.DrawFn) -> Case:
    piece = draw(_pieces(2) if draw(st.integers(0, 3)) == 0 else _objects(2))
    schema = piece.schema
    definitions = _referred(schema)
    if definitions and isinstance(schema, dict):
        schema = {**schema, "$defs": definitions}
    assume(fits(schema, piece.value))
    return Case(schema, piece.value, piece.plan, piece.start)


_REFERENCE = re.compile(r'"#/\$defs/(\w+)"')
_NODE: Schema = {
    "type": "object",
    "properties": {
        "label": {"type": "string"},
        "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
        "nodes": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
    },
    "required": ["label"],
}
_definitions: dict[str, Schema] = {"Node": _NODE}


def _referred(schema: Schema) -> dict[str, Schema]:
    """What a schema refers to, and what that refers to."""
    found: dict[str, Schema] = {}
    names = _REFERENCE.findall(json.dumps(schema))
    while names:
        name = names.pop()
        if name not in found:
            found[name] = _definitions[name]
            names += _REFERENCE.findall(json.dumps(found[name]))
    return found


@cache
def _pieces(depth: int) -> Pieces:
    """Schemas of all kinds, with so many levels of objects, lists and unions in one another."""
    simple = [_strings(), _numbers(), _booleans(), _enums(), _constants(), _titled(), _anything(), _nothing()]
    deep = [_objects, _objects, _lists, _tuples, _unions, _tagged, _nullable, _merged, _references]
    kinds: list[Pieces] = [
        *simple,
        *([each(depth - 1) for each in deep] if depth > 0 else []),
        *([_recursive()] if depth > 0 else []),
    ]

    @st.composite
    def one(draw: st.DrawFn) -> _Piece:
        piece = draw(kinds[draw(st.integers(0, len(kinds) - 1))])
        if isinstance(piece.schema, bool) or "$ref" in piece.schema:
            return piece
        told: dict[str, Any] = {}
        start = piece.start
        match draw(st.integers(0, 7)):
            case 0:
                told["title"] = "A title"
            case 1:
                told["description"] = "About <b>it</b>"
            case 2 | 3 if piece.default:
                told["default"] = start = piece.value
            case _:
                pass
        return _Piece({**piece.schema, **told}, piece.value, piece.plan, start=start)

    return one()


@st.composite
def _strings(draw: st.DrawFn) -> _Piece:
    kind = draw(st.sampled_from(["plain", "length", "format", "pattern"]))
    schema: dict[str, Any] = {"type": "string"}
    if kind == "format":
        schema["format"] = draw(st.sampled_from(sorted(_FORMATS)))
        value = draw(_FORMATS[schema["format"]])
    elif kind == "pattern":
        schema["pattern"] = draw(st.sampled_from(sorted(_PATTERNS)))
        value = draw(st.sampled_from(_PATTERNS[schema["pattern"]]))
    else:
        value = draw(_TEXT)
        if kind == "length":
            schema |= {"minLength": draw(st.integers(0, len(value))), "maxLength": draw(st.integers(len(value), 99))}
    return _Piece(schema, value, {"do": "text", "text": value})


@st.composite
def _numbers(draw: st.DrawFn) -> _Piece:
    if draw(st.booleans()):
        value: int | float = draw(st.integers(-(10**30), 10**30) | st.integers(-99, 99))
        schema: dict[str, Any] = {"type": "integer"}
        if draw(st.booleans()):
            divisor = draw(st.integers(1, 9))
            value, schema["multipleOf"] = value * divisor, divisor
    else:
        value, schema = draw(_NUMBERS), {"type": "number"}
    if draw(st.booleans()):
        schema |= draw(st.sampled_from([{"minimum": value}, {"maximum": value}, {"exclusiveMinimum": -(10**310)}]))
    return _Piece(schema, value, {"do": "number", "text": json.dumps(value)}, default=abs(value) < 2**53)


@st.composite
def _booleans(draw: st.DrawFn) -> _Piece:
    value = draw(st.booleans())
    return _Piece({"type": "boolean"}, value, {"do": "choose", "at": 0 if value else 1})


@st.composite
def _enums(draw: st.DrawFn) -> _Piece:
    values = draw(
        st.lists(_SCALARS | st.just([1, "a"]) | st.just({"a": None}), min_size=2, max_size=5, unique_by=json.dumps)
    )
    values = [value for at, value in enumerate(values) if not any(value == other for other in values[:at])]
    at = draw(st.integers(0, len(values) - 1))
    schema: dict[str, Any] = {"enum": values}
    if draw(st.booleans()):
        schema["x-enumNames"] = [f"Name {number}" for number in range(len(values))]
    return _Piece(schema, values[at], {"do": "choose", "at": at})


@st.composite
def _constants(draw: st.DrawFn) -> _Piece:
    value = draw(_SCALARS)
    return _Piece({"const": value}, value, {"do": "fixed"}, start=value)


@st.composite
def _titled(draw: st.DrawFn) -> _Piece:
    values = draw(st.lists(_TEXT | st.integers(), min_size=2, max_size=4, unique=True))
    at = draw(st.integers(0, len(values) - 1))
    variants = [{"const": value, "title": f"Title of {number}"} for number, value in enumerate(values)]
    return _Piece({"oneOf": variants}, values[at], {"do": "choose", "at": at})


@st.composite
def _anything(draw: st.DrawFn) -> _Piece:
    value = draw(_JSON)
    schema: Schema = draw(st.sampled_from([True, {}, {"type": "weird-type"}, {"description": "No type"}]))
    if isinstance(schema, dict) and "type" in schema:
        schema = {}  # another library refuses what has an unknown type: that is tested by itself
    return _Piece(schema, value, {"do": "json", "text": json.dumps(value, indent=draw(st.sampled_from([None, 2])))})


def _nothing() -> Pieces:
    return st.just(_Piece({"type": "null"}, None, {"do": "choose", "at": 0}))


@cache
@st.composite
def _objects(draw: st.DrawFn, depth: int) -> _Piece:
    names = draw(st.lists(_NAMES, max_size=3, unique=True))
    properties: dict[str, Schema] = {}
    required: list[str] = []
    value: dict[str, Any] = {}
    steps: list[list[Any]] = []
    cleared: list[list[Any]] = []
    start: dict[str, Any] = {}
    for name in names:
        piece = draw(_pieces(depth))
        properties[name] = piece.schema
        use = draw(st.sampled_from(["required", "set", "absent", "cleared"]))
        if use == "required":
            required.append(name)
            start |= {} if piece.start is ABSENT else {name: piece.start}
        if use in {"required", "set"}:
            value[name] = piece.value
            steps.append([name, piece.plan])
        if use == "cleared":
            cleared.append([name, piece.plan])
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    extras: list[list[Any]] = []
    more = draw(st.sampled_from(["closed", "untold", "map", "patterns"]))
    if more == "closed":
        schema["additionalProperties"] = False
    elif more != "untold":
        pieces = draw(st.lists(_pieces(min(depth, 1)), min_size=1, max_size=2))
        schema |= {"additionalProperties": pieces[0].schema}
        fresh = ["extra", "an extra", "__proto__" if "__proto__" not in names else "toString"]
        if more == "patterns":
            schema |= {"patternProperties": {"^s_": pieces[0].schema}, "additionalProperties": False}
            fresh = ["s_1", "s_ 2"]
        for name in draw(st.lists(st.sampled_from(fresh), max_size=1)):
            value[name] = pieces[0].value
            extras.append([name, pieces[0].plan])
    plan = {"do": "object", "properties": draw(st.permutations(steps)), "cleared": cleared, "extras": extras}
    return _Piece(schema, value, plan, default=False, start=start)


@cache
@st.composite
def _lists(draw: st.DrawFn, depth: int) -> _Piece:
    piece = draw(_pieces(depth))
    count = draw(st.integers(0, 3))
    schema = {"type": "array", "items": piece.schema, "maxItems": count + draw(st.integers(1, 3))}
    if draw(st.booleans()):
        schema["minItems"] = count
    plan = {"do": "list", "fixed": 0, "items": [piece.plan] * count, "detour": draw(st.booleans())}
    return _Piece(schema, [piece.value] * count, plan, default=False, start=[])


@cache
@st.composite
def _tuples(draw: st.DrawFn, depth: int) -> _Piece:
    pieces = draw(st.lists(_pieces(depth), min_size=1, max_size=3))
    least = draw(st.sampled_from([0, len(pieces)]))
    rest = draw(st.sampled_from([False, True]))
    more = draw(st.integers(0, 2)) if rest else 0
    schema: dict[str, Any] = {"type": "array", "prefixItems": [piece.schema for piece in pieces], "minItems": least}
    schema["items"] = {"type": "integer"} if rest else False
    plans = [piece.plan for piece in pieces] + [{"do": "number", "text": str(number)} for number in range(more)]
    value = [piece.value for piece in pieces] + list(range(more))
    plan = {"do": "list", "fixed": len(pieces), "items": plans, "detour": rest and draw(st.booleans())}
    start = [piece.start for piece in pieces[:least]]
    while start and start[-1] is ABSENT:
        start.pop()
    start = [None if item is ABSENT else item for item in start]
    return _Piece(schema, value, plan, default=False, start=start)


@cache
@st.composite
def _unions(draw: st.DrawFn, depth: int) -> _Piece:
    pieces = draw(st.lists(_objects(depth) | _strings() | _numbers() | _lists(depth), min_size=2, max_size=3))
    at = draw(st.integers(0, len(pieces) - 1))
    variants = [piece.schema for piece in pieces]
    chosen = {"do": "variant", "at": at, "plan": pieces[at].plan}
    value = _with_tags(pieces, at)
    if draw(st.integers(0, 3)) == 0:
        variants.insert(draw(st.integers(0, len(variants))), {"type": "null"})
        if draw(st.booleans()):
            chosen, value = {"do": "variant", "at": len(pieces), "plan": None}, None
    return _Piece({draw(st.sampled_from(["anyOf", "oneOf"])): variants}, value, chosen, default=False)


@cache
@st.composite
def _tagged(draw: st.DrawFn, depth: int) -> _Piece:
    """Models that are told apart by a constant, as pydantic writes them: it has a default, and is not required."""
    pieces = draw(st.lists(_objects(depth), min_size=2, max_size=3))
    variants: list[Schema] = []
    for number, piece in enumerate(pieces):
        kind = {"type": "string", "default": f"kind{number}"}
        kind |= {"const": f"kind{number}"} if draw(st.booleans()) else {"enum": [f"kind{number}"]}
        schema = cast("dict[str, Any]", piece.schema)
        variants.append({**schema, "properties": {**schema["properties"], "kind": kind}})
    at = draw(st.integers(0, len(pieces) - 1))
    tagged = [_Piece(schema, piece.value, piece.plan) for schema, piece in zip(variants, pieces, strict=True)]
    whole: dict[str, Any] = {draw(st.sampled_from(["anyOf", "oneOf"])): variants}
    if draw(st.booleans()):
        whole["discriminator"] = {"propertyName": "kind"}
    plan = {"do": "variant", "at": at, "plan": pieces[at].plan}
    return _Piece(whole, _with_tags(tagged, at), plan, default=False)


def _with_tags(pieces: list[_Piece], at: int) -> Any:
    """The value of one of several forms, with the constants that tell it apart from the others."""

    def values(schema: Schema, name: str) -> list[Any] | None:
        each: Any = schema.get("properties", {}).get(name) if isinstance(schema, dict) else None
        while isinstance(each, dict) and "$ref" in each:
            each = _definitions[str(cast("Plan", each)["$ref"]).removeprefix("#/$defs/")]
        if not isinstance(each, dict):
            return None
        known = cast("Plan", each)
        return [known["const"]] if "const" in known else known.get("enum")

    schema, value, plan = pieces[at].schema, pieces[at].value, pieces[at].plan
    if not isinstance(schema, dict) or "properties" not in schema:
        return value
    others = [piece.schema for number, piece in enumerate(pieces) if number != at]
    tags: dict[str, Any] = {}
    for name in schema["properties"]:
        own = values(schema, name) or []
        theirs = [found for other in others if (found := values(other, name)) is not None]
        if len(own) == 1 and any(all(not _equal(own[0], each) for each in found) for found in theirs):
            tags[name] = own[0]
    cleared = [name for name, _ in plan["cleared"]]
    return {**{name: tag for name, tag in tags.items() if name not in cleared}, **value}


def _equal(one: Any, other: Any) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


@cache
@st.composite
def _nullable(draw: st.DrawFn, depth: int) -> _Piece:
    piece = draw(_strings() | _numbers() | _objects(depth) | _lists(depth) | _booleans())
    schema = cast("dict[str, Any]", piece.schema)
    if draw(st.booleans()):
        schema = {**schema, "type": [schema["type"], "null"]}
    else:
        schema = {"anyOf": draw(st.permutations([schema, {"type": "null"}]))}
    if draw(st.booleans()):
        return _Piece(schema, piece.value, piece.plan, default=piece.default, start=piece.start)
    flag = piece.plan["do"] == "choose"
    plan = {"do": "choose", "at": 2} if flag else {"do": "null"}
    return _Piece(schema, None, plan, start=piece.start)


@cache
@st.composite
def _merged(draw: st.DrawFn, depth: int) -> _Piece:
    piece = draw(st.one_of(_objects(depth), _strings(), _numbers()))
    schema = cast("dict[str, Any]", piece.schema)
    if "properties" in schema and schema.get("additionalProperties", True) is not False:
        part = {"properties": {"merged": {"type": "integer"}}, "required": ["merged"]}
        whole = {"allOf": [schema, part]}
        if schema.get("additionalProperties", True) is True:
            plan = {**piece.plan, "properties": [*piece.plan["properties"], ["merged", {"do": "number", "text": "7"}]]}
            return _Piece(whole, {**piece.value, "merged": 7}, plan, default=False, start=piece.start)
    whole = {"allOf": [schema, {"description": "More about it"}]}
    return _Piece(whole, piece.value, piece.plan, default=piece.default, start=piece.start)


@cache
@st.composite
def _references(draw: st.DrawFn, depth: int) -> _Piece:
    piece = draw(_pieces(depth))
    name = f"D{zlib.crc32(json.dumps(piece.schema).encode()):x}"
    _definitions[name] = piece.schema
    return _Piece({"$ref": f"#/$defs/{name}"}, piece.value, piece.plan, default=False, start=piece.start)


@st.composite
def _recursive(draw: st.DrawFn) -> _Piece:
    def node(levels: int) -> tuple[Any, Plan]:
        value: dict[str, Any] = {"label": f"level {levels}"}
        steps: list[list[Any]] = [["label", {"do": "text", "text": value["label"]}]]
        if levels > 0:
            inner, plan = node(levels - 1)
            if levels % 2:
                value["next"] = inner
                steps.append(["next", plan])
            else:
                value["nodes"] = [inner]
                steps.append(["nodes", {"do": "list", "fixed": 0, "items": [plan], "detour": False}])
        return value, {"do": "object", "properties": steps, "cleared": [], "extras": []}

    value, plan = node(draw(st.integers(0, 2)))
    return _Piece({"$ref": "#/$defs/Node"}, value, plan, default=False, start={})
