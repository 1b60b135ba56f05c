"""`@tool`: a function of the program that the agent calls, with a JSON schema from its type hints."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types as python_types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict, overload

from .errors import invalid


@dataclass(frozen=True)
class ToolContext:
    """A parameter with this type gets it. It is not a part of the input."""

    session_id: str
    tool_use_id: str


class Tool:
    """Still a function: a call of it calls the function."""

    def __init__(self, function: Callable[..., Any], name: str, description: str, timeout_s: float | None) -> None:
        self.function = function
        self.name = name
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters.values()
        self._context = [each.name for each in parameters if hints.get(each.name) is ToolContext]
        self._hints: dict[str, Any] = {}
        self._required: list[str] = []
        for each in parameters:
            if each.name in self._context:
                continue
            if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY):
                raise invalid(f"Tool {name}: {each} cannot be a parameter. Name each field of the input.")
            if each.name not in hints:
                raise invalid(f"Tool {name}: the parameter {each.name} needs a type, from which its schema is made.")
            self._hints[each.name] = hints[each.name]
            if each.default is each.empty:
                self._required.append(each.name)
        schema = _object(self._hints, self._required, name)
        self.declaration: dict[str, Any] = {"name": name, "description": description, "input_schema": schema}
        if timeout_s is not None:
            self.declaration["timeout"] = timeout_s

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.function(*args, **options)

    def arguments(self, given: object, context: ToolContext) -> dict[str, Any]:
        """Raises a `ValueError` for an input that does not fit the schema."""
        values = _read_object(self._hints, self._required, given, "input")
        return {**values, **dict.fromkeys(self._context, context)}


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, timeout_s: float | None = None
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout_s: float | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """The name and the docstring of the function are those of the tool. `timeout_s`: seconds that a call may take."""

    def make(made: Callable[..., Any]) -> Tool:
        about = description or inspect.getdoc(made)
        if not about:
            raise invalid(f"Tool {made.__name__} needs a docstring: the agent reads it to decide when to call it.")
        return Tool(made, name or made.__name__, about, timeout_s)

    return make(function) if function else make


def schema_of(hint: Any, where: str = "the type") -> dict[str, Any]:
    """The JSON Schema of a type. Raises for a type that JSON has no values of."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return {}
    if origin is Annotated:
        texts = [each for each in hint.__metadata__ if isinstance(each, str)]
        return {**schema_of(args[0], where), **({"description": texts[0]} if texts else {})}
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, python_types.UnionType):
        return {"anyOf": [schema_of(each, where) for each in args]}
    if origin in _LISTS or hint in _LISTS:
        return {"type": "array", "items": schema_of(args[0] if args else Any, where)}
    if origin in _RECORDS or hint in _RECORDS:
        return {"type": "object", "additionalProperties": schema_of(args[1] if args else Any, where)}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [each.value for each in hint]}
    if fields := _fields(hint):
        return _object(*fields, where)
    raise invalid(
        f"{where}: {hint} has no JSON schema. Use str, int, float, bool, None, list, dict, Literal, enums, dataclasses "
        "and TypedDicts."
    )


def read(hint: Any, value: Any, where: str) -> Any:
    """Returns a JSON value as its type says. Raises a `ValueError` that says what is wrong with it."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return value
    if origin is Annotated:
        return read(args[0], value, where)
    if origin in (Union, python_types.UnionType):
        for each in args:
            try:
                return read(each, value, where)
            except ValueError:
                continue
    elif origin is Literal:
        if any(value == each and type(value) is type(each) for each in args):
            return value
    elif hint in _SIMPLE:
        # JSON has one kind of numbers, and for Python true is one of them.
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if hint is float and is_number:
            return float(value)
        if hint is int and is_number and value == int(value):
            return int(value)
        if type(value) is (type(None) if hint is None else hint) and hint not in (int, float):
            return value
    elif origin in _LISTS or hint in _LISTS:
        if isinstance(value, list):
            return [read(args[0] if args else Any, each, f"{where}[{at}]") for at, each in enumerate(value)]
    elif origin in _RECORDS or hint in _RECORDS:
        if isinstance(value, dict):
            return {name: read(args[1] if args else Any, each, f"{where}.{name}") for name, each in value.items()}
    elif isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    elif fields := _fields(hint):
        values = _read_object(*fields, value, where)
        return hint(**values)
    raise ValueError(f"{where} must fit {schema_of(hint)}")


_SIMPLE: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    None: "null",
    type(None): "null",
}
_LISTS: tuple[Any, ...] = (list, Sequence)
_RECORDS: tuple[Any, ...] = (dict, Mapping)


def _fields(hint: Any) -> tuple[dict[str, Any], list[str]] | None:
    """The types of the fields of a dataclass or a TypedDict, and the names of those that must be given."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        missing = dataclasses.MISSING
        fields = [each for each in dataclasses.fields(hint) if each.init]
        needed = [each.name for each in fields if each.default is missing and each.default_factory is missing]
        hints = get_type_hints(hint, include_extras=True)
        return {each.name: hints[each.name] for each in fields}, needed
    if is_typeddict(hint):
        hints = get_type_hints(hint)
        return hints, sorted(getattr(hint, "__required_keys__"))  # noqa: B009  # A type checker may take it for a dataclass.
    return None


def _object(hints: Mapping[str, Any], required: list[str], where: str) -> dict[str, Any]:
    properties = {name: schema_of(hint, f"{where}.{name}") for name, hint in hints.items()}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _read_object(hints: Mapping[str, Any], required: list[str], given: object, where: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ValueError(f"{where} must be an object")
    if missing := [name for name in required if name not in given]:
        raise ValueError(f"{where} lacks {', '.join(missing)}")
    if unknown := [name for name in given if name not in hints]:
        raise ValueError(f"{where} has no field {', '.join(unknown)}; they are {', '.join(hints)}")
    return {name: read(hints[name], value, f"{where}.{name}") for name, value in given.items()}
