"""The arguments of `rootsd run`."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.proxy.run.main import RunOptions, RunUsageError, main, parse_arguments
from rootsd.proxy.run.roots import AccessPolicy, ClientRootsPolicy


@pytest.mark.parametrize(
    ("words", "order"),
    [
        ("-- s", RunOptions(("s",))),
        ("s --only x", RunOptions(("s", "--only", "x"))),
        ("-- s -- x", RunOptions(("s", "--", "x"))),
        ("--only a --only=tag:b -- s", RunOptions(("s",), only=("a", "tag:b"))),
        ("--client-roots narrow s", RunOptions(("s",), client_roots=ClientRootsPolicy.NARROW)),
        ("--advisory-access s", RunOptions(("s",), access=AccessPolicy.ADVISORY)),
        ("--env A={roots} --env B= s", RunOptions(("s",), (("A", "{roots}"), ("B", "")))),
        ("--env=A=b=c s", RunOptions(("s",), (("A", "b=c"),))),
        ("--name x s --name y", RunOptions(("s", "--name", "y"), name="x")),
    ],
)
def test_arguments_become_options(words: str, order: RunOptions) -> None:
    assert parse_arguments(words.split()) == order


@pytest.mark.parametrize(
    "words",
    ["", "--", "--only a", "--only a --", "--nonsense s", "--only", "--client-roots some s",
     "--env A s", "--env =b s", "--advisory-access=yes s", "--name= s", "-x s"],
)  # fmt: skip
def test_unknown_arguments_are_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RunUsageError):
        parse_arguments(words.split())
    assert main(words.split()) == 2
    assert "usage: rootsd run" in capsys.readouterr().err


def test_a_tag_needs_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "tag:", "--", "s"]) == 2
    assert "needs the name of a tag" in capsys.readouterr().err


def test_a_deleted_working_directory_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["--only", "cwd", "--", "true"]) == 2
    assert "the working directory is gone" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_is_no_error(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([flag]) == 0
    assert "usage: rootsd run" in capsys.readouterr().out


def test_an_invalid_placeholder_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROOTSD_DIR", "relative")
    assert main(["--", "true"]) == 78
    assert "ROOTSD_DIR is not an absolute path" in capsys.readouterr().err
