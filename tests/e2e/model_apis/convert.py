"""A program that converts tools, read as JSON from standard input, as programs for model APIs do.

It prints a JSON object: for each tool and converter, the error that the converter raised, or null.
It runs in the environment that `make model-apis` creates, which has no rootsd.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jsonschema  # type: ignore[import-untyped]
from agents.strict_schema import (  # type: ignore[import-not-found]
    ensure_strict_json_schema,
)
from google.genai import _mcp_utils as google  # type: ignore[import-not-found]

Tool = dict[str, Any]


def to_google(tool: Tool) -> None:
    """Convert a tool as google-genai does for an MCP session."""
    schema = copy.deepcopy(tool["inputSchema"])
    google.mcp_to_gemini_tool(
        SimpleNamespace(name=tool["name"], description=tool["description"], input_schema=schema)
    )


def to_openai(tool: Tool) -> None:
    """Convert a tool as openai-agents does in strict mode."""
    ensure_strict_json_schema(copy.deepcopy(tool["inputSchema"]))


def in_draft_7(tool: Tool) -> None:
    """Check both schemas of a tool."""
    for name in ("inputSchema", "outputSchema"):
        jsonschema.Draft7Validator.check_schema(tool.get(name, {}))


def in_draft_2020_12(tool: Tool) -> None:
    """Check both schemas of a tool."""
    for name in ("inputSchema", "outputSchema"):
        jsonschema.Draft202012Validator.check_schema(tool.get(name, {}))


def error_of(convert: Callable[[Tool], None], tool: Tool) -> str | None:
    """Return the error that the converter raises, or None if it accepts the tool."""
    try:
        convert(tool)
    except Exception as error:  # noqa: BLE001 - a converter may raise anything
        return f"{type(error).__name__}: {error}"
    return None


def main() -> None:
    """Convert all tools, and print the errors."""
    converters = (to_google, to_openai, in_draft_7, in_draft_2020_12)
    found = {
        tool["name"]: {each.__name__: error_of(each, tool) for each in converters}
        for tool in json.load(sys.stdin)
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
