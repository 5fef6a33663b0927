"""An agent is told about more folders by its own flag."""

from __future__ import annotations

import pytest

from rootsd.agents.folder_flags import with_folders

A, B = "/p/a b", "/p/b"


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (("claude", "-p", "x"), ("claude", "-p", "x", f"--add-dir={A}", f"--add-dir={B}")),
        (("/bin/codex", "exec"), ("/bin/codex", "exec", f"--add-dir={A}", f"--add-dir={B}")),
        (
            ("gemini", "-i", "--", "--add-dir"),
            (
                "gemini",
                "-i",
                f"--include-directories={A}",
                f"--include-directories={B}",
                "--",
                "--add-dir",
            ),
        ),
        (
            ("npx", "-y", "@openai/codex@0.171.0", "x"),
            ("npx", "-y", "@openai/codex@0.171.0", "x", f"--add-dir={A}", f"--add-dir={B}"),
        ),
    ],
)
def test_each_folder_comes_behind_the_words_of_the_agent(
    typed: tuple[str, ...], told: tuple[str, ...]
) -> None:
    assert with_folders(typed, [A, B]) == told
    assert with_folders(typed, []) == typed


@pytest.mark.parametrize(
    "typed", [("bash",), ("claude-agent-acp",), ("vibe-acp",), ("goose", "session"), ("npx",)]
)
def test_a_program_without_such_a_flag_is_not_changed(typed: tuple[str, ...]) -> None:
    assert with_folders(typed, [A]) is None
