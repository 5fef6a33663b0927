"""A list that is longer than the terminal goes through a pager."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.fake_daemon import FakeDaemon, a_listing, an_item
from support.terminal import Shell

MARK = "PAGED"


@pytest.fixture
def pager(tmp_path: Path) -> str:
    """A pager that prints a mark before the text."""
    program = tmp_path / "pager"
    program.write_text(f"#!/bin/sh\necho {MARK} $LESS\ncat\n")
    program.chmod(0o755)
    return str(program)


def items(daemon: FakeDaemon, count: int) -> None:
    daemon.answers["projects"] = a_listing(*(an_item(f"p{number}") for number in range(count)))


def test_a_list_is_paged_only_if_it_is_longer_than_the_terminal(
    daemon: FakeDaemon, shell: Shell, pager: str
) -> None:
    items(daemon, 60)
    paged = shell.terminal("ls", PAGER=pager)
    assert f"{MARK} FRX\n" in paged.out
    assert paged.out.count("pending") == 60
    assert MARK not in shell.terminal("ls", "--no-pager", PAGER=pager).out
    assert MARK not in shell.terminal("ls", TERM="dumb", PAGER=pager).out
    assert MARK not in shell.terminal("ls", rows=0, PAGER=pager).out  # as script(1) has
    items(daemon, 5)
    assert MARK not in shell.terminal("ls", PAGER=pager).out


def test_the_configured_pager_comes_before_the_variable(
    daemon: FakeDaemon, shell: Shell, pager: str, rootsd_dir: Path
) -> None:
    items(daemon, 60)
    config = rootsd_dir / "config" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"[ui]\npager = '{pager}'\n")
    assert MARK in shell.terminal("ls", PAGER="/bin/false").out
    config.write_text("[ui]\npager = 'off'\n")
    assert MARK not in shell.terminal("ls", PAGER=pager).out


@pytest.mark.parametrize("missing", ["/no/such/pager", "'unbalanced"])
def test_without_a_pager_the_whole_list_is_printed(
    daemon: FakeDaemon, shell: Shell, missing: str
) -> None:
    items(daemon, 60)
    assert shell.terminal("ls", PAGER=missing).out.count("pending") == 60
