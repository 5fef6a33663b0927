"""The arguments of `rootsd run`."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from rootsd.core.wall import RevokePolicy
from rootsd.proxy.run.main import main
from rootsd.proxy.run.options import ConfinePolicy, RunOptions, RunUsageError, parse_arguments
from rootsd.proxy.run.root_policies import AccessPolicy, ClientRootsPolicy
from rootsd.wall.session.options import WALL_FLAGS, ConfineOptions, Opening


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
        ("--no-confine s", RunOptions(("s",), confine=ConfinePolicy.NO_CONFINE)),
    ],
)
def test_arguments_become_options(words: str, order: RunOptions) -> None:
    assert parse_arguments(words.split()) == order


@pytest.mark.parametrize(
    "words",
    ["", "--", "--only a", "--only a --", "--nonsense s", "--only", "--client-roots override s",
     "--env A s", "--env =b s", "--advisory-access=yes s", "--name= s", "-x s",
     "--confine --no-confine s", "--no-confine --gpg s", "--confine --on-revoke some s",
     "--confine --show s", "--confine=yes s", "--confine --read= s"],
)  # fmt: skip
def test_unknown_arguments_are_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RunUsageError):
        parse_arguments(words.split())
    assert main(words.split()) == 2
    assert capsys.readouterr().err.endswith("; try: rootsd run --help\n")


def test_a_misspelled_option_names_the_one_that_was_meant() -> None:
    for typed, meant in (
        ("--onyl", "--only"),
        ("--confne", "--confine"),
        ("--worktree", "--worktrees"),
    ):
        with pytest.raises(RunUsageError, match=f"'{typed}'; did you mean {meant}\\?$"):
            parse_arguments([typed, "s"])


@pytest.mark.parametrize("flag", WALL_FLAGS)
def test_each_switch_of_the_wall_follows_confine(flag: str) -> None:
    options = parse_arguments(["--confine", flag, "--", "s"])
    assert options.confine is ConfinePolicy.CONFINE
    assert options.wall.flags == {Opening(flag)}


def test_the_values_of_the_wall_follow_confine() -> None:
    words = "--read a --read=b --write c --keep d --hide e --on-revoke kill --name n --only o s"
    options = parse_arguments(["--confine", *words.split()])
    assert options.wall == ConfineOptions(
        read=("a", "b"), write=("c",), keep=("d",), hide=("e",), on_revoke=RevokePolicy.KILL
    )
    assert (options.name, options.only) == ("n", ("o",))


@pytest.mark.parametrize("flag", WALL_FLAGS)
def test_an_option_of_the_wall_needs_a_wall(
    flag: str, rootsd_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([flag, "--", "s"]) == 2
    assert f"{flag} needs --confine" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "platform", "status", "said"),
    [
        (
            "default = true", "darwin", 7,
            ("Linux only", "try: rootsd doctor, or rootsd run --no-confine"),
        ),
        ("default = true", "linux", 69, ("rootsd up, or rootsd run --no-confine",)),  # no daemon
        ("default = 1", "linux", 78, ("rootsd run --no-confine",)),
        ("default", "linux", 78, ("rootsd run --no-confine",)),
    ],
)  # fmt: skip
def test_where_no_wall_can_be_built_the_default_starts_no_server(
    rootsd_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    platform: str,
    status: int,
    said: tuple[str, ...],
) -> None:
    (rootsd_dir / "config").mkdir(parents=True)
    (rootsd_dir / "config" / "config.toml").write_text(f"[confine]\n{text}\n")
    monkeypatch.setattr("sys.platform", platform)
    started = rootsd_dir / "started"
    assert main(["--", "touch", str(started)]) == status
    error = capsys.readouterr().err
    assert [each for each in said if each not in error] == []
    assert not started.exists()


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A policy that requires the wall. It is broken unless root runs the test."""
    file = tmp_path / "policy.toml"
    file.write_text("version = 1\n[confine]\nrequired = true\n")
    monkeypatch.setattr("rootsd.proxy.run.main.POLICY_FILE", bytes(file))
    return file


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize(
    ("flag", "status"),
    [
        ("--no-confine", 7), ("--confine --gpg", 7), ("--ssh-agent", 7), ("--docker", 7),
        ("--nested", 7), ("--no-protect", 7), ("--read /srv", 7), ("--write /srv", 7),
        ("--keep /srv", 7), ("", 69), ("--confine", 69), ("--no-network --hide /srv", 69),
        ("--static", 69), ("--on-revoke kill", 69),
    ],
)  # fmt: skip
def test_under_a_policy_no_server_starts_without_the_wall(
    rootsd_dir: Path, flag: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    # Without a daemon, there is no wall.
    started = rootsd_dir / "started"
    assert main([*flag.split(), "--", "touch", str(started)]) == status
    error = capsys.readouterr().err
    assert "policy.toml" in error
    # The policy leaves no way around the wall to offer.
    assert ("--no-confine" in error) is (flag == "--no-confine")
    if status == 7:
        assert set(flag.split()) - {"--confine", "/srv"} <= set(re.split(r"[\s,;]+", error))
    assert not started.exists()


@pytest.mark.needs("root")  # anybody else could have removed the file
@pytest.mark.usefixtures("signals")
def test_without_a_policy_a_server_starts_without_the_wall(
    policy: Path, rootsd_dir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    policy.unlink()
    assert main(["--no-confine", "--", "/no/such/server"]) == 127
    assert "policy" not in capfd.readouterr().err


@pytest.mark.usefixtures("policy")
def test_where_the_wall_cannot_work_a_policy_starts_no_server(
    rootsd_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert main(["--", "true"]) == 7
    error = capsys.readouterr().err
    assert "Linux only" in error
    assert "policy.toml" in error
    assert error.rstrip().endswith("try: rootsd doctor")


@pytest.fixture
def signals() -> Iterator[None]:
    """Give the signals back afterwards: the proxy takes them for its whole process."""
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    yield
    signal.set_wakeup_fd(-1)
    for number, handler in before.items():
        if signal.getsignal(number) != handler:
            signal.signal(number, handler)


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize(
    ("flags", "variable", "said"),
    [((), "", True), (("--no-confine",), "", False), ((), "a name", False)],
)
def test_a_sandbox_that_hides_the_configuration_is_not_silent(
    flags: tuple[str, ...],
    variable: str,
    said: object,
    rootsd_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (rootsd_dir / "run" / "pub").mkdir(0o700, parents=True)
    (rootsd_dir / "run" / "pub" / "mcp.sock").touch()
    monkeypatch.setenv("ROOTSD_CONFINED", variable)
    assert main([*flags, "--client-roots", "narrow", "--", "/no/such/server"]) == 127
    assert ("this sandbox hides" in capfd.readouterr().err) is said


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


@pytest.mark.parametrize(
    ("words", "reason"),
    [("s {roots:abc}", "after the colon"), ("s x{roots:--allow}", "whole argument")],
)
def test_an_invalid_placeholder_is_a_usage_error(
    words: str, reason: str, rootsd_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--", *words.split()]) == 2
    assert reason in capsys.readouterr().err


def test_an_invalid_environment_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROOTSD_DIR", "relative")
    assert main(["--", "true"]) == 78
    assert "ROOTSD_DIR is not an absolute path" in capsys.readouterr().err
