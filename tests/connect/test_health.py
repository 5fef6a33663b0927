"""The state of rootsd in a client's own list of servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.connect.health import ClientAnswer, ClientHealth, check_health
from support.client_home import ClientHome, client_named

# The output of the real programs in November 2026.
CONNECTED = {
    "claude-code": "Checking MCP server health…\n\nrootsd: /opt/rootsd bridge - ✔ Connected",
    "opencode": "\x1b[0m\n┌  MCP Servers\n●  ✓ rootsd \x1b[90mconnected",
    "qwen": "Configured MCP servers:\n\x1b[32m✓\x1b[0m rootsd: /x bridge (stdio) - Connected",
}
LISTED = {
    "codex": "Name    Command  Args\nrootsd  /opt/rootsd  bridge  -  -  enabled",
    "copilot": "User servers:\n  rootsd (local)\n",
}
FAILED = {
    "claude-code": "rootsd: /opt/rootsd bridge - ✗ Failed to connect",
    "gemini": "○ rootsd: /x bridge (stdio) - Disabled",
    "codex": "No MCP servers configured yet.",
    "opencode": "●  ✗ rootsd \x1b[90mfailed",
}


def check(tmp_path: Path, name: str, text: str, stream: int = 1) -> ClientHealth:
    home = ClientHome(tmp_path)
    client = client_named(name)
    (tmp_path / "listing").write_text(text + "\n")
    script = f"""
if test "$1" = --version; then echo "it 1.2.3. (x)"; exit; fi
while IFS= read -r line; do printf '%s\\n' "$line" >&{stream}; done <"{tmp_path}/listing"
"""
    home.program(client.facts.programs[0], script)
    return check_health(client, home.environment)


@pytest.mark.parametrize("name", [*CONNECTED, *LISTED])
def test_a_listing_without_a_check_proves_only_the_entry(tmp_path: Path, name: str) -> None:
    """Other clients say that they reached rootsd."""
    answer = ClientAnswer.CONNECTED if name in CONNECTED else ClientAnswer.LISTED
    found = check(tmp_path, name, {**CONNECTED, **LISTED}[name])
    assert found == ClientHealth("1.2.3", answer)


@pytest.mark.parametrize("name", FAILED)
def test_a_failure_has_a_reason(tmp_path: Path, name: str) -> None:
    found = check(tmp_path, name, FAILED[name], stream=2)
    assert found.answer is ClientAnswer.FAILED
    assert found.reason


def test_a_client_without_a_program_or_a_check_is_not_asked(tmp_path: Path) -> None:
    environment = ClientHome(tmp_path).environment
    assert check_health(client_named("claude-code"), environment).answer is ClientAnswer.UNKNOWN
    assert check(tmp_path, "cursor", "").answer is ClientAnswer.UNKNOWN
