"""A test types each command of the console blocks as printed, or this file says why not.

`test_documents.py` types those of the README and of the guide, and lists its own exceptions.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.documents import blocks

TOP = Path(__file__).parent.parent
FOLDERS = ("docs", "examples", "packaging")
STRANGER = "tests/e2e/stranger/test_first_ten_minutes.py"
TYPED_BY = {
    "docs/DEVCONTAINERS.md": "tests/e2e/test_devcontainer.py",
    "docs/HOSTS.md": "tests/e2e/test_remote_host.py",
    "docs/SYNC.md": STRANGER,
    "docs/TEAMS.md": "tests/e2e/test_policy.py",
    "docs/WSL.md": "tests/e2e/test_sandbox.py",
    "docs/reference/json.md": "tests/test_reference.py",
    "docs/reference/protocol.md": "tests/test_reference.py",
    "packaging/README.md": STRANGER,
}
NOT_TYPED = {
    "docs/BENCHMARKS.md": "all benchmarks take an hour, and CI measures nothing",
    "docs/CLIENTS.md": "each line needs another client; test_documents.py checks the command that"
    " each of them adds, and tests/e2e/agents starts the clients with it",
}


def pages() -> set[str]:
    """Return the documents with console blocks that `test_documents.py` does not type."""
    found = [*TOP.glob("*.md"), *(page for name in FOLDERS for page in (TOP / name).rglob("*.md"))]
    guide = {TOP / "README.md", *(TOP / "docs" / "guide").glob("*.md")}
    return {str(page.relative_to(TOP)) for page in {*found} - guide if blocks(page, "console")}


def test_each_console_block_is_typed_or_has_a_reason() -> None:
    assert pages() == {*TYPED_BY, *NOT_TYPED}
    assert not {*TYPED_BY} & {*NOT_TYPED}


@pytest.mark.parametrize("file", sorted({*TYPED_BY.values()}))
def test_the_test_reads_the_commands_from_the_page(file: str) -> None:
    assert "console" in (TOP / file).read_text()
