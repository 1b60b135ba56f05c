"""The schema of a tool comes from its type hints, and its input is read by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

import pytest

from agent_server import AgentServerError, ToolContext, tool


class Unit(Enum):
    METRE = "m"
    FOOT = "ft"


@dataclass
class Place:
    name: str
    height: float = 0


class Range(TypedDict, total=False):
    first: int
    last: int


@tool(name="measure", timeout_s=5)
def measured(
    place: Place,
    unit: Unit,
    pages: Range,
    names: Sequence[str] | None = None,
    style: Annotated[Literal["long", "short"], "How it is written."] = "long",
    more: dict[str, Any] | None = None,
    *,
    context: ToolContext,
) -> tuple[object, ...]:
    """Measures a place."""
    return (place, unit, pages, names, style, more, context)


def test_the_schema_says_what_the_hints_say() -> None:
    schema = measured.declaration["input_schema"]
    assert measured.declaration["timeout"] == 5
    assert measured.declaration["description"] == "Measures a place."
    assert schema["required"] == ["place", "unit", "pages"]
    assert schema["properties"] == {
        "place": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "height": {"type": "number"}},
            "required": ["name"],
            "additionalProperties": False,
        },
        "unit": {"enum": ["m", "ft"]},
        "pages": {
            "type": "object",
            "properties": {"first": {"type": "integer"}, "last": {"type": "integer"}},
            "required": [],
            "additionalProperties": False,
        },
        "names": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        "style": {"enum": ["long", "short"], "description": "How it is written."},
        "more": {"anyOf": [{"type": "object", "additionalProperties": {}}, {"type": "null"}]},
    }


def test_the_input_is_read_by_the_hints() -> None:
    context = ToolContext("session", "call")
    given = {"place": {"name": "tower", "height": 3}, "unit": "ft", "pages": {"first": 1.0}, "names": ["a"]}
    arguments = measured.arguments(given, context)
    assert measured(**arguments) == (Place("tower", 3.0), Unit.FOOT, {"first": 1}, ["a"], "long", None, context)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"place": {"height": 1}}, "input.place lacks name"),
        ({"place": "tower"}, "input.place must be an object"),
        ({"unit": "mile"}, "'mile' is not a valid Unit"),
        ({"pages": {"first": True}}, "input.pages.first must fit"),
        ({"pages": {"first": 1.5}}, "input.pages.first must fit"),
        ({"names": ["a", 1]}, "input.names must fit"),
        ({"colour": "red"}, "input has no field colour"),
    ],
)
def test_an_input_that_does_not_fit_is_refused(change: dict[str, Any], fault: str) -> None:
    given = {"place": {"name": "tower"}, "unit": "m", "pages": {}, **change}
    with pytest.raises(ValueError, match=fault):
        measured.arguments(given, ToolContext("session", "call"))


def test_a_tool_without_a_schema_or_a_description_is_refused() -> None:
    def silent(number: str) -> None: ...

    def unknown(number: complex) -> None:
        """Has a type that JSON does not have."""

    def untyped(number) -> None:  # type: ignore[no-untyped-def]
        """Has no type."""

    for function, fault in ((silent, "docstring"), (unknown, "complex"), (untyped, "needs a type")):
        with pytest.raises(AgentServerError, match=fault):
            tool(function)
