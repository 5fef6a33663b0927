"""The errors of `rootsd confine` on systems that do not allow a wall, with fakes of older
kernels.
"""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from rootsd.core.wall import ProtectionPolicy, RevokePolicy
from rootsd.wall.kernel.landlock import AttachedGuarantee
from rootsd.wall.kernel.warden import WallSetupFailed
from rootsd.wall.session import main as confine
from rootsd.wall.session.begin import CannotConfine
from rootsd.wall.session.engines import NamespaceWall
from rootsd.wall.session.options import ConfineOptions, ConfineUsageError, Opening, parse_arguments
from rootsd.wall.session.session_view import ComposedView, open_parts


@pytest.mark.parametrize(
    ("number", "message", "remedy"),
    [(errno.EINVAL, "too old", "uname -r"), (errno.EIO, "cannot be built", "rootsd doctor")],
)
def test_each_refusal_of_the_kernel_names_a_command(
    number: int, message: str, remedy: str
) -> None:
    """Those that a kernel can be made to give are in test_older_kernels.py."""
    error = NamespaceWall().explain(WallSetupFailed(number, "unshare: no"))
    assert message in error.message
    assert remedy in error.remedy


def test_on_macos_it_refuses_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert confine.main(["--", "true"]) == 7
    assert "Linux only" in capfd.readouterr().err


@pytest.mark.parametrize(
    "flag", ["--docker", "--nested", "--no-protect", "--write /srv", "--show"]
)
def test_under_a_policy_an_option_that_opens_the_wall_is_refused(
    flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # Even a broken policy, which it is unless root runs the test.
    (tmp_path / "policy.toml").write_text("version = 1\n[confine]\nrequired = true\n")
    monkeypatch.setattr(confine, "POLICY_FILE", bytes(tmp_path / "policy.toml"))
    opens = flag != "--show"
    assert confine.main([*flag.split(), "--", "true"]) == (7 if opens else 69)
    error = capfd.readouterr().err
    assert ("policy.toml" in error) is opens
    assert (flag.split(maxsplit=1)[0] in error) is opens


def a_view(on_revoke: RevokePolicy) -> ComposedView:
    return ComposedView(
        b"/home", (), frozenset(), {}, has_network=True, protection=ProtectionPolicy.UNTRACKED,
        on_revoke=on_revoke, stays_open=(), closed=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "guarantee"),
    [
        (frozenset(), AttachedGuarantee.NOTHING),
        (frozenset({Opening.NESTED}), AttachedGuarantee.ABSTRACT_SOCKETS),
    ],
)
def test_if_a_revoke_cannot_reach_open_folders_it_needs_kill(
    flags: frozenset[Opening], guarantee: AttachedGuarantee
) -> None:
    options = ConfineOptions(("true",), flags)
    with pytest.raises(CannotConfine) as refused:
        NamespaceWall(guarantee).check(options, a_view(RevokePolicy.TELL))
    assert refused.value.remedy == "--on-revoke kill"
    NamespaceWall(guarantee).check(options, a_view(RevokePolicy.KILL))


@pytest.mark.parametrize(
    ("guarantee", "sentences"),
    [
        (AttachedGuarantee.NOTHING, ("a revoke also ends", "abstract")),
        (AttachedGuarantee.FOLDERS, ("truncate", "abstract")),
        (AttachedGuarantee.TRUNCATE, ("abstract",)),
        (AttachedGuarantee.ABSTRACT_SOCKETS, ()),
    ],
)
def test_an_older_landlock_is_never_silent(
    guarantee: AttachedGuarantee, sentences: tuple[str, ...]
) -> None:
    said = list(open_parts(ConfineOptions(), guarantee, ProtectionPolicy.ALL, has_network=True))
    assert len(said) == 1 + len(sentences)
    for word, sentence in zip(sentences, said[1:], strict=True):
        assert word in sentence


@pytest.mark.parametrize("flag", ["--nested", "--no-protect"])
def test_each_option_that_opens_something_says_what(flag: str) -> None:
    options = parse_arguments([flag, "--", "true"])
    is_open = Opening.NO_PROTECT in options.flags
    protection = ProtectionPolicy.NONE if is_open else ProtectionPolicy.ALL
    said = list(
        open_parts(
            options, AttachedGuarantee.ABSTRACT_SOCKETS, has_network=False, protection=protection
        )
    )
    assert [sentence.partition(":")[0] for sentence in said] == [flag]


@pytest.mark.parametrize(
    "words",
    [
        [], ["--"], ["--nonsense", "--", "x"], ["--name"], ["--on-revoke", "x", "--", "y"],
        ["--all", "--only", "x", "--", "y"], ["--show=x"],
    ],
)  # fmt: skip
def test_wrong_arguments_are_a_usage_error(words: list[str]) -> None:
    with pytest.raises(ConfineUsageError):
        parse_arguments(words)


def test_a_misspelled_option_names_the_one_that_was_meant() -> None:
    with pytest.raises(ConfineUsageError, match=r"'--worktree'; did you mean --worktrees\?$"):
        parse_arguments(["--worktree", "--", "x"])


def test_the_programs_own_arguments_are_not_parsed() -> None:
    options = parse_arguments(["--name=a", "--hide", "b", "--", "x", "--all", "--", "y"])
    assert options.words == ("x", "--all", "--", "y")
    assert (options.label, options.hide) == ("a", ("b",))


def test_global_flags_that_mean_nothing_here_are_taken() -> None:
    words = ["--no-pager", "--no-color", "-v", "--verbose", "--", "true"]
    assert parse_arguments(words) == ConfineOptions(("true",))
