"""Ask a client about rootsd, by the client's own command that lists its servers."""

from __future__ import annotations

import re
import subprocess
from enum import StrEnum
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from rootsd.connect.base import ClientEnvironment, McpClient
from rootsd.core.labels import safe_label

_TIMEOUT_S = 60.0
_VERSION_TIMEOUT_S = 20.0
_MAX_TEXT = 100_000
_REASON_LIMIT = 120
_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_VERSION = re.compile(r"\d+\.\d+(?:[.-]\w+)*")


class ClientAnswer(StrEnum):
    """What a client says about rootsd."""

    CONNECTED = "connected"
    LISTED = "listed"
    FAILED = "failed"
    UNKNOWN = "not asked"


class ClientHealth(Struct, frozen=True):
    """A client's version, or an empty text, and its answer. `reason` explains a failure."""

    version: str
    answer: ClientAnswer
    reason: str = ""


def check_health(client: McpClient, environment: ClientEnvironment) -> ClientHealth:
    """Run the client's program for its version and its list of servers.

    The client then starts its servers, as it does in a session.
    """
    program = environment.program(client.facts.programs)
    if program is None:
        return ClientHealth("", ClientAnswer.UNKNOWN)
    version = read_version(client, environment)
    check = client.facts.health
    if check is None:
        return ClientHealth(version, ClientAnswer.UNKNOWN)
    variables = {**environment.variables, **check.variables}
    text = _output(program, check.words, replace(environment, variables=variables), _TIMEOUT_S)
    if text is None:
        return ClientHealth(version, ClientAnswer.FAILED, "it does not list its servers")
    if check.connected and re.search(check.connected, text):
        return ClientHealth(version, ClientAnswer.CONNECTED)
    for pattern, reason in check.problems.items():
        if re.search(pattern, text):
            return ClientHealth(version, ClientAnswer.FAILED, reason)
    if not re.search(check.listed, text):
        first = safe_label(text.strip().partition("\n")[0], _REASON_LIMIT)
        return ClientHealth(version, ClientAnswer.FAILED, f"it does not list rootsd: {first}")
    if check.connected:
        return ClientHealth(version, ClientAnswer.FAILED, "it lists rootsd as not connected")
    return ClientHealth(version, ClientAnswer.LISTED)


def read_version(client: McpClient, environment: ClientEnvironment) -> str:
    """Return the version that the client's program prints, or an empty text."""
    program = environment.program(client.facts.programs)
    if program is None:
        return ""
    text = _output(program, ("--version",), environment, _VERSION_TIMEOUT_S)
    found = _VERSION.search(text or "")
    return safe_label(found[0]) if found else ""


def _output(
    program: Path, words: tuple[str, ...], environment: ClientEnvironment, timeout_s: float
) -> str | None:
    """Return what a program prints, without styles; None if it fails to run in time."""
    try:
        done = subprocess.run(  # noqa: S603 - the client's own program, no shell
            (program, *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # Gemini CLI lists its servers there
            env=dict(environment.variables),
            cwd=environment.home,
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _STYLE.sub("", done.stdout[:_MAX_TEXT].decode("utf-8", "replace"))
