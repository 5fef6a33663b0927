"""The click command of `rootsd bridge`: its help, and arguments after global flags."""

from __future__ import annotations

import pytest

from support.terminal import Shell


def test_the_help_says_where_the_command_belongs(shell: Shell) -> None:
    done = shell.run("bridge", "--help")
    assert done.status == 0
    assert "configuration of an MCP client" in done.out
    assert 'mcp add rootsd -- "$(command -v rootsd)" bridge' in done.out


@pytest.mark.parametrize(
    "words",
    [(), ("--client", "x"), ("--only", "a", "--only", "tag:b", "--client", "x", "--any-uri")],
)
def test_the_arguments_are_passed_on(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    seen: list[list[str]] = []

    def pump(arguments: list[str]) -> int:
        seen.append(arguments)
        return 69

    monkeypatch.setattr("rootsd.proxy.bridge.main.main", pump)
    assert shell.run("--json", "bridge", *words).status == 69
    assert seen == [list(words)]
