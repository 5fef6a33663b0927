"""`rootsd ui` without what it needs."""

from __future__ import annotations

import pytest

from rootsd.cli.commands import ui
from rootsd.core.errors import Exit
from support.terminal import Shell


def test_without_textual_it_says_how_to_get_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ui, "find_spec", lambda _: None)
    done = shell.run("ui")
    assert done.status == Exit.FAILED
    assert done.err.count("\n") <= 2
    assert "install textual" in done.err


@pytest.mark.parametrize(
    ("folder", "command"),
    [
        ("/home/ann/.local/share/pipx/venvs/rootsd", "pipx inject rootsd textual"),
        ("/home/ann/.local/share/uv/tools/rootsd", "uv pip install --python"),
        ("/home/ann/venv", "-m pip install textual"),
    ],
)
def test_the_command_fits_the_installation(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, folder: str, command: str
) -> None:
    monkeypatch.setattr(ui, "find_spec", lambda _: None)
    monkeypatch.setattr("sys.prefix", folder)
    assert command in shell.run("ui").err


def test_it_needs_a_terminal_that_can_draw(shell: Shell) -> None:
    assert shell.run("ui").status == Exit.REFUSED
    dumb = shell.run_on_terminal("ui", TERM="dumb")
    assert dumb.status == Exit.REFUSED
    assert "rootsd pending" in dumb.out


def test_without_a_daemon_it_does_not_start(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    done = shell.run_on_terminal("ui")
    assert done.status == Exit.UNREACHABLE
    assert "rootsd up" in done.out
