"""The arguments of `rootsd acp`, and what it starts."""

from __future__ import annotations

import os

import pytest

from rootsd.proxy.acp import main as acp

REFUSED = [
    "",
    "--",
    "--only a",
    "--client-roots auto a",
    "--env A=b a",
    "--keep-cwd a",
    "--show a",
]


@pytest.mark.parametrize("words", REFUSED)
def test_unknown_arguments_are_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert acp.main(words.split()) == 2
    assert capsys.readouterr().err.endswith("; try: rootsd acp --help\n")


@pytest.mark.parametrize(
    ("words", "started"),
    [
        ("--no-confine -- agent --login", ["agent", "--login"]),
        (
            "--confine --gpg --only a --only tag:b -- npx -y @x/claude-agent-acp",
            ["confine", "--only", "a", "--only", "tag:b", "--gpg", "--name", "@x/claude-agent-acp",
             "--", "npx", "-y", "@x/claude-agent-acp"],
        ),
        ("--confine --all --name n -- agent", ["confine", "--all", "--name", "n", "--", "agent"]),
    ],
)  # fmt: skip
def test_on_a_terminal_the_agent_itself_is_started(
    words: str, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []

    def start(_: str, typed: tuple[str, ...]) -> None:
        found.extend(typed)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "isatty", lambda _: True)
    monkeypatch.setattr(os, "execvp", start)
    with pytest.raises(KeyboardInterrupt):
        acp.main(words.split())
    assert found[-len(started) :] == started
