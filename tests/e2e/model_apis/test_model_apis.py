"""Programs that pass tools on to model APIs convert the schemas of our tools.

`make model-apis` runs this, and installs the converters first.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rootsd.mcp.tools import all_tools
from support.needs import TOP

CONVERT = Path(__file__).parent / "convert.py"
PYTHON = TOP / "build" / "model-apis" / "bin" / "python"
"""The environment that `make model-apis` makes."""
HANG_GUARD_S = 300


def errors(tools: list[dict[str, Any]]) -> dict[str, dict[str, str | None]]:
    """Return the error of each converter for each tool."""
    done = subprocess.run(
        [str(PYTHON), str(CONVERT)],
        input=json.dumps(tools),
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_GUARD_S,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, str | None]] = json.loads(done.stdout)
    return found


def as_sent() -> list[dict[str, Any]]:
    return [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in all_tools()]


def test_every_converter_accepts_every_tool() -> None:
    found = errors(as_sent())
    assert len(found) == len(all_tools())
    for tool, said in found.items():
        assert len(said) == 4
        assert [error for error in said.values() if error] == [], tool


@pytest.mark.parametrize(
    ("schema", "refused_by"),
    [
        ({"properties": {}, "additionalProperties": False}, ["to_google"]),
        ({"properties": {}, "additionalProperties": True}, ["to_google", "to_openai"]),
        ({"properties": {"a": {"type": 7}}}, ["to_google", "in_draft_7", "in_draft_2020_12"]),
    ],
)
def test_control_a_bad_schema_is_refused(schema: dict[str, Any], refused_by: list[str]) -> None:
    tool = {"name": "t", "description": "d", "inputSchema": {"type": "object", **schema}}
    said = errors([tool])["t"]
    assert [name for name, error in said.items() if error] == refused_by
