"""The click command of `rootsd run`: its help, and arguments after global flags."""

from __future__ import annotations

import pytest

from support.terminal import Shell


def test_the_help_explains_the_placeholders(shell: Shell) -> None:
    done = shell.run("run", "--help")
    assert done.status == 0
    for words in (
        "{roots}",
        "{root:NAME}",
        "--client-roots",
        "--advisory-access",
        "never add",
    ):
        assert words in done.out
    assert "rootsd run -- npx" in done.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--", "s"), ("--", "s")),
        (("s", "--only", "x", "--help"), ("s", "--only", "x", "--help")),
        (("--name", "n", "--", "s", "--", "-x"), ("--name", "n", "--", "s", "--", "-x")),
        (
            ("--only", "a", "--only", "tag:b", "--client-roots", "narrow", "--advisory-access",
             "--env", "A={roots}", "--", "s", "--json"),
            ("--only", "a", "--only", "tag:b", "--client-roots", "narrow", "--advisory-access",
             "--env", "A={roots}", "--", "s", "--json"),
        ),
    ],
)  # fmt: skip
def test_the_arguments_are_passed_on(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], told: tuple[str, ...]
) -> None:
    seen: list[list[str]] = []

    def pump(arguments: list[str]) -> int:
        seen.append(arguments)
        return 3

    monkeypatch.setattr("rootsd.proxy.run.main.main", pump)
    assert shell.run("--no-color", "run", *words).status == 3
    assert seen == [list(told)]
