"""Builds the package with flit, after it has generated agent_server/types.py from the description in the checkout."""

import json
import re
from collections.abc import Iterator
from keyword import iskeyword
from pathlib import Path
from typing import Any

from flit_core import buildapi

HERE = Path(__file__).parent
CHECKOUT = HERE / "../.."
TARGET = HERE / "agent_server/types.py"

HEAD = '''"""The objects of the REST API. Generated from openapi/openapi.json by build_backend.py: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, final

if TYPE_CHECKING:
    from typing_extensions import NotRequired
'''
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def build_wheel(*args: Any, **options: Any) -> str:
    prepare()
    return str(buildapi.build_wheel(*args, **options))


def build_editable(*args: Any, **options: Any) -> str:
    prepare()
    return str(buildapi.build_editable(*args, **options))


def build_sdist(*args: Any, **options: Any) -> str:
    prepare()
    return str(buildapi.build_sdist(*args, **options))


def prepare() -> None:
    """Makes the files that are not in the repository. A source distribution has them."""
    description = CHECKOUT / "openapi/openapi.json"
    if description.exists():
        schemas = json.loads(description.read_text("utf8"))["components"]["schemas"]
        TARGET.write_text("\n\n".join([HEAD, *Types(schemas).definitions()]), "utf8")
        (HERE / "LICENSE").write_bytes((CHECKOUT / "LICENSE").read_bytes())


class Types:
    def __init__(self, schemas: dict[str, Any]) -> None:
        self._schemas = schemas
        # Objects without a name of their own are called after the field that they are the value of.
        self._nested: list[str] = []

    def definitions(self) -> Iterator[str]:
        for name, schema in self._schemas.items():
            text = self._definition(name, schema)
            yield from self._nested
            self._nested.clear()
            yield text

    def _definition(self, name: str, schema: dict[str, Any]) -> str:
        if "properties" not in schema:
            return f'{name}: TypeAlias = "{self._type(schema, name)}"\n'
        required = schema.get("required", [])
        fields = {}
        for field, value in schema["properties"].items():
            inner = self._type(value, name + re.sub(r"(?:^|_)(\w)", lambda match: match[1].upper(), field))
            fields[field] = inner if field in required else f"NotRequired[{inner}]"
        if any(map(iskeyword, fields)):
            return f"{name} = TypedDict({name!r}, {fields!r})\n"
        lines = ["@final", f"class {name}(TypedDict):", *_doc(schema)]
        for field, text in fields.items():
            lines.extend([f"    {field}: {text}", *_doc(schema["properties"][field])])
        return "\n".join(lines if fields else [*lines, "    pass"]) + "\n"

    def _type(self, schema: dict[str, Any], name: str) -> str:
        if "$ref" in schema:
            return str(schema["$ref"].rsplit("/", 1)[1])
        if "const" in schema or "enum" in schema:
            return f"Literal[{', '.join(map(repr, schema.get('enum', [schema.get('const')])))}]"
        for union in ("oneOf", "anyOf"):
            if union in schema:
                parts = [self._type(part, f"{name}{at}") for at, part in enumerate(schema[union], 1)]
                return " | ".join(dict.fromkeys(parts))
        kind = schema.get("type")
        if isinstance(kind, list):
            return " | ".join(self._type({**schema, "type": each}, name) for each in kind)
        if kind == "array":
            return f"list[{self._type(schema.get('items', {}), f'{name}Item')}]"
        if kind == "object" and schema.get("properties"):
            self._nested.append(self._definition(name, schema))
            return name
        if kind == "object":
            values = schema.get("additionalProperties")
            return f"dict[str, {self._type(values, f'{name}Value') if isinstance(values, dict) else 'Any'}]"
        return SIMPLE.get(kind or "", "Any")


def _doc(schema: dict[str, Any]) -> list[str]:
    text = schema.get("description", "").replace("\\", "\\\\").replace('"""', "'''")
    return [f'    """{text} """' if text.endswith('"') else f'    """{text}"""'] if text else []


if __name__ == "__main__":
    prepare()
