"""What a Python function takes: as the JSON Schema that a model sees, and as a check of what it sends."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Union, cast, get_args, get_origin, get_type_hints

from pydantic import Field, GetCoreSchemaHandler, Secret, SecretBytes, SecretStr, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema, to_jsonable_python

from yiemagent_nb.core.docstrings import parse_docstring
from yiemagent_nb.core.errors import ToolNotSupportedError
from yiemagent_nb.core.validation import explain_validation_error, invalid_arguments

__all__ = ["FunctionSchema", "underlying_function"]


def underlying_function(function: Callable[..., Any]) -> Any:
    """What holds a callable's name, docstring and annotations, behind ``partial`` and ``__call__``."""
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return inspect.unwrap(function) if hasattr(function, "__wrapped__") else type(function).__call__


class FunctionSchema:
    """The parameters of a function.

    Args:
        function: Any callable but a class: a function, a bound method, a ``partial``, an object
            with ``__call__``. What a ``partial`` fixes by keyword is neither shown nor taken.
        tool_name: The name under which errors speak of it.
        injected: A parameter of this type, or of it or None, is filled in by ``bind`` and hidden.

    Raises:
        ToolNotSupportedError: A parameter cannot be told to a model; the error names it.

    Attributes:
        input_schema: The JSON Schema of its arguments, an object.
        description: The docstring's prose; empty where there is none.
    """

    def __init__(self, function: Callable[..., Any], *, tool_name: str, injected: type) -> None:
        self._tool_name: Final = tool_name
        source = underlying_function(function)
        docstring = parse_docstring(_docstring(function, source))
        self.description: Final = docstring.description
        hints = _type_hints(source, tool_name)
        parameters = _visible_parameters(function, tool_name)
        self._injected = [name for name in parameters if _accepts(hints.get(name), injected)]
        self._positional = {
            name: parameter.default
            for name, parameter in parameters.items()
            if parameter.kind is parameter.POSITIONAL_ONLY
        }
        fields: dict[str, _Field] = {}
        extra: _Field | None = None
        for name, parameter in parameters.items():
            hint = hints.get(name, Any)
            if parameter.kind is parameter.VAR_KEYWORD:
                extra = _Field(hint, parameter.empty, None)
            elif name not in self._injected:
                fields[name] = _Field(hint, parameter.default, docstring.parameters.get(name))
        self._known = tuple(fields)
        self._adapter: TypeAdapter[dict[str, Any]] = _build_adapter(fields, extra, source, tool_name)
        self.input_schema: Final = _json_schema(self._adapter, fields, extra, tool_name)

    def check(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Check arguments and give them back as JSON, in the form in which the function will see them.

        So ``"5"`` for an ``int`` is 5 already when a hook looks at it. Where a value's JSON form
        does not lead back to the same value (a secret, say), it stays as it came.

        Raises:
            InvalidParametersError: They do not fit; the error says what was expected and what came.
        """
        values = self._validate(arguments)
        if all(values[name] is value for name, value in arguments.items()):
            return arguments  # the way through JSON would lead back to the same
        try:
            dumped = self._adapter.dump_python(values, mode="json", exclude_unset=True, warnings="none")
            if dumped == arguments:
                return dumped
            again = self._adapter.validate_python(dumped)
            return {name: dumped[name] if again[name] == values[name] else arguments[name] for name in arguments}
        except Exception:  # a type of the user's that has no JSON form, or cannot be compared
            return arguments

    def bind(self, arguments: Mapping[str, Any], injected: Callable[[], object]) -> tuple[list[Any], dict[str, Any]]:
        """The positional and the keyword arguments to call the function with.

        Args:
            arguments: As a model or a hook gives them.
            injected: Makes the value of the hidden parameter; called only where there is one.

        Raises:
            InvalidParametersError: They do not fit.
        """
        keywords = self._validate(arguments)
        for name in self._injected:
            keywords[name] = injected()
        positional = [keywords.pop(name, default) for name, default in self._positional.items()]
        return positional, keywords

    def _validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        hidden = [name for name in self._injected if name in arguments]
        if hidden:
            raise invalid_arguments(self._tool_name, [f"{name} is not known" for name in hidden])
        try:
            return self._adapter.validate_python(arguments)
        except ValidationError as error:
            sentences = explain_validation_error(error, arguments, self._known)
            raise invalid_arguments(self._tool_name, sentences) from error


class _Field:
    """One parameter as pydantic reads it."""

    def __init__(self, hint: Any, default: object, description: str | None) -> None:
        base, *metadata = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if default is None and base is not Any:
            base = Union[base, None]  # noqa: UP007 - `|` fails for a forward reference
        # The docstring goes first, since what stands later wins in pydantic.
        notes: list[object] = [Field(description=description)] if description else []
        notes += [Field(description=note) if isinstance(note, str) else note for note in metadata]
        if isinstance(default, FieldInfo):
            notes.append(default)
        self.annotation: Any = Annotated[(base, *notes)] if notes else base
        self.required: Final = default is inspect.Parameter.empty
        self.default: Final = None if self.required or isinstance(default, FieldInfo) else default


def _docstring(function: Callable[..., Any], source: Any) -> str | None:
    if isinstance(source, types.WrapperDescriptorType):  # what every callable object inherits
        return type(function).__doc__
    doc: str | None = source.__doc__
    return doc or (type(function).__doc__ if source is type(function).__call__ else None)


def _visible_parameters(function: Callable[..., Any], tool_name: str) -> dict[str, inspect.Parameter]:
    try:
        parameters = dict(inspect.signature(function).parameters)
    except (TypeError, ValueError) as error:
        raise ToolNotSupportedError(
            f"{tool_name} cannot be a tool: Python does not tell what it takes ({error}).",
            "Wrap it in a function with named, annotated parameters.",
        ) from error
    while isinstance(function, functools.partial):
        partial = cast("functools.partial[Any]", function)
        parameters = {name: item for name, item in parameters.items() if name not in partial.keywords}
        function = partial.func
    for position, (name, parameter) in enumerate(parameters.items()):
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise ToolNotSupportedError(
                f"{tool_name} cannot be a tool: it takes *{name}, and a model's arguments all have names.",
                f"Take a list instead, such as `{name}: list[str]`.",
            )
        if position == 0 and name in {"self", "cls"} and parameter.annotation is parameter.empty:
            raise ToolNotSupportedError(
                f"{tool_name} cannot be a tool: it is a method without its object ({name}).",
                "Make the tool of the bound method: tool(instance.method).",
            )
    return parameters


def _type_hints(source: Any, tool_name: str) -> dict[str, Any]:
    try:
        try:
            return get_type_hints(source, include_extras=True)
        except NameError:
            return get_type_hints(source, localns=_local_names(source), include_extras=True)
    except NameError as error:
        raise _undefined(tool_name, str(error)) from error
    except (SyntaxError, TypeError) as error:
        raise ToolNotSupportedError(
            f"{tool_name} cannot be a tool: its annotations cannot be read ({error}).", "Annotate it with types."
        ) from error


def _local_names(source: Any) -> dict[str, Any]:
    """The names around a function that was defined inside another one, as far as they can be found.

    With postponed annotations a local class is known by its name only; it stands in a variable of
    a function of the same file that still runs, or that the function itself refers to.
    """
    function = inspect.unwrap(source)
    function = getattr(function, "__func__", function)
    if not inspect.isfunction(function):
        return {}
    names: dict[str, Any] = {}
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_filename == function.__code__.co_filename and frame.f_locals is not frame.f_globals:
            names = {**frame.f_locals, **names}
        frame = frame.f_back
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # an empty cell, such as the function's own name
            names[name] = cell.cell_contents
    return names


def _undefined(tool_name: str, what: str) -> ToolNotSupportedError:
    return ToolNotSupportedError(
        f"{tool_name} cannot be a tool: an annotation names something that is not defined ({what}).",
        "Define or import it before the function, at the top level of the module or cell.",
    )


def _accepts(hint: object, injected: type) -> bool:
    """Whether an annotation is the injected type, or it or None."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in {Union, types.UnionType}:
        return injected in get_args(hint)
    return hint is injected


def _build_adapter(
    fields: Mapping[str, _Field], extra: _Field | None, source: Any, tool_name: str
) -> TypeAdapter[dict[str, Any]]:
    class Arguments:
        @classmethod
        def __get_pydantic_core_schema__(cls, _source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
            members: dict[str, core_schema.TypedDictField] = {}
            for name, field in fields.items():
                schema = handler.generate_schema(field.annotation)
                # A default inside the annotation is pydantic's to fill in.
                required = field.required and schema["type"] != "default"
                members[name] = core_schema.typed_dict_field(schema, required=required)
            if extra is None:
                return core_schema.typed_dict_schema(members, extra_behavior="forbid")
            return core_schema.typed_dict_schema(
                members, extra_behavior="allow", extras_schema=handler.generate_schema(extra.annotation)
            )

    try:
        adapter = TypeAdapter[dict[str, Any]](cast("type[dict[str, Any]]", Arguments))
        if not adapter.pydantic_complete:
            adapter.rebuild(_types_namespace=_local_names(source))
    except PydanticUndefinedAnnotation as error:
        raise _undefined(tool_name, str(error.name)) from error
    except PydanticUserError as error:
        raise _unsupported(tool_name, fields, extra, error) from error
    return adapter


def _unsupported(
    tool_name: str, fields: Mapping[str, _Field], extra: _Field | None, error: PydanticUserError
) -> ToolNotSupportedError:
    """Find the parameter to blame."""
    for name, field in [*fields.items(), *([("**", extra)] if extra is not None else [])]:
        try:
            TypeAdapter[Any](field.annotation).json_schema()
        except PydanticUserError:
            return ToolNotSupportedError(
                f"{tool_name} cannot be a tool: its parameter {name!r} is annotated "
                f"{inspect.formatannotation(field.annotation)}, which a model cannot give as JSON.",
                "Annotate it with types that JSON can hold, fix it by functools.partial, or take its annotation away.",
            )
    return ToolNotSupportedError(f"{tool_name} cannot be a tool: {error}.")


def _json_schema(
    adapter: TypeAdapter[dict[str, Any]], fields: Mapping[str, _Field], extra: _Field | None, tool_name: str
) -> dict[str, Any]:
    try:
        schema = _without_titles(adapter.json_schema())
    except PydanticUserError as error:
        raise _unsupported(tool_name, fields, extra, error) from error
    for name, field in fields.items():
        if field.default is not None and not isinstance(field.default, Secret | SecretStr | SecretBytes):
            try:
                default = to_jsonable_python(field.default)
                json.dumps(default, allow_nan=False)
            except Exception:  # noqa: S112 - a default that JSON cannot hold is the function's own business
                continue
            schema["properties"][name]["default"] = default
    order = ("type", "properties", "required", "additionalProperties")
    return {keyword: schema[keyword] for keyword in (*order, *(schema.keys() - order)) if keyword in schema}


_SCHEMAS = frozenset({"items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_MAPS = frozenset({"properties", "patternProperties", "$defs", "dependentSchemas"})


def _without_titles(schema: Any) -> Any:
    """A schema without the titles that pydantic makes of names; they cost tokens and say nothing."""
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for keyword, value in cast("dict[str, Any]", schema).items():
        if keyword == "title":
            continue
        if keyword in _SCHEMAS:
            kept[keyword] = _without_titles(value)
        elif keyword in _LISTS:
            kept[keyword] = [_without_titles(item) for item in value]
        elif keyword in _MAPS:
            kept[keyword] = {name: _without_titles(item) for name, item in value.items()}
        else:
            kept[keyword] = value
    return kept
