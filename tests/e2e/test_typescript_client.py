"""The TypeScript SDK's client through `rootsd bridge`, with all features in every mode."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import node_packages
from support.mcp_harness import FakeSource, root
from support.threaded_publisher import published

HANG_GUARD_S = 60
API, WEB = root("/src/api"), root("/src/web")


def heard(process: subprocess.Popen[str], what: str) -> Any:  # noqa: ANN401
    """Return the value of the next line, which must be about `what`."""
    assert process.stdout
    line = process.stdout.readline()
    assert line, f"the client ended before it told of {what}"
    said = json.loads(line)
    assert said["what"] == what
    return said["value"]


@pytest.mark.needs("npm")
@pytest.mark.parametrize(
    ("mode", "version"),
    [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")],
)
def test_it_uses_everything_offered_and_is_notified_of_a_change(
    tmp_path: Path, mode: str, version: str
) -> None:
    source = FakeSource(API, WEB)
    words = [str(node_packages.node()), str(node_packages.program("client.mjs")), mode]
    with published(source) as roots:
        process = subprocess.Popen(
            [*words, sys.executable, "-m", "rootsd", "bridge"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "HOME": str(tmp_path)},
        )
        try:
            assert heard(process, "version") == version
            assert heard(process, "tools") == ["list_roots", "resolve_root", "request_root"]
            assert heard(process, "list_roots") == [
                "2 approved folders:",
                "- api: /src/api (read-write)",
                "- web: /src/web (read-write)",
            ]
            assert heard(process, "resolve_root") == "x"
            assert heard(process, "request_root") is False
            assert heard(process, "resources") == [
                "roots://approved",
                "roots://root/api",
                "roots://root/web",
            ]
            assert heard(process, "templates") == ["roots://root/{+name}"]
            assert heard(process, "completion") == ["api"]
            assert heard(process, "read") == ["file:///src/api", "file:///src/web"]
            assert heard(process, "listening") is True
            roots.set(WEB)
            assert heard(process, "updated") == "roots://approved"
            assert heard(process, "read") == ["file:///src/web"]
            assert process.wait(HANG_GUARD_S) == 0
        finally:
            process.kill()
            process.communicate()
    assert [client for _, client, _ in source.requests] == ["typescript"]
