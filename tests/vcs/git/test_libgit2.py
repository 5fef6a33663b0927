"""Facts that libgit2 reads: the last commit, the upstream, and the remotes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pygit2
import pytest

from rootsd.vcs.git.libgit2 import last_commit, read_tracking
from support.repositories import git, make_repository, raw


def test_it_loads_on_a_machine_without_certificates() -> None:
    """The control is pygit2 alone."""
    nowhere = {"SSL_CERT_FILE": "/nowhere", "SSL_CERT_DIR": "/nowhere"}
    ours = "import os, rootsd.vcs.git.libgit2; print(os.environ['SSL_CERT_DIR'])"
    said = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, **nowhere}, capture_output=True, text=True, check=False,
        )
        for script in ("import pygit2", ours)
    ]  # fmt: skip
    assert "failed to load certificates" in said[0].stderr
    assert said[1].stdout == "/nowhere\n"


def test_the_commit_that_is_checked_out(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "one")
    git("commit", "--allow-empty", "-m", "Say it\n\nmore", cwd=repository)
    git("worktree", "add", "--detach", tmp_path / "tree", "HEAD~1", cwd=repository)
    commit = last_commit(raw(repository))
    assert commit is not None
    assert commit["summary"] == "Say it"
    assert commit["at"].endswith("Z")
    assert len(commit["id"]) == 40
    tree = last_commit(raw(tmp_path / "tree"))
    assert tree is not None
    assert tree["summary"] == "one"


def test_a_repository_without_a_commit_has_none(tmp_path: Path) -> None:
    git("init", tmp_path / "one")
    assert last_commit(raw(tmp_path / "one")) is None


def test_no_repository_above_the_folder_is_used(tmp_path: Path) -> None:
    make_repository(tmp_path)
    (tmp_path / "below").mkdir()
    with pytest.raises(pygit2.GitError):
        last_commit(raw(tmp_path / "below"))


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone that is two commits ahead of its upstream and one behind it."""
    source, clone = make_repository(tmp_path / "source"), tmp_path / "clone"
    git("clone", source, clone)
    git("commit", "--allow-empty", "-m", "theirs", cwd=source)
    git("fetch", cwd=clone)
    for message in ("ours", "ours too"):
        git("commit", "--allow-empty", "-m", message, cwd=clone)
    return clone


def test_a_branch_is_compared_with_its_upstream(clone: Path) -> None:
    facts = read_tracking(raw(clone))
    assert (facts["upstream"], facts["ahead"], facts["behind"]) == ("origin/main", 2, 1)
    assert facts["remotes"] == [{"name": "origin", "url": str(clone.with_name("source"))}]


def test_a_worktree_has_the_upstream_of_its_own_branch(clone: Path, tmp_path: Path) -> None:
    git("worktree", "add", "--track", "-b", "topic", tmp_path / "tree", "origin/main", cwd=clone)
    facts = read_tracking(raw(tmp_path / "tree"))
    assert (facts["upstream"], facts["ahead"], facts["behind"]) == ("origin/main", 0, 0)


def test_without_an_upstream_nothing_is_compared(clone: Path) -> None:
    for number, command in enumerate((
        ("branch", "--unset-upstream"),
        ("checkout", "--detach"),
        ("update-ref", "-d", "refs/remotes/origin/main"),
        ("checkout", "--orphan", "empty"),
    )):  # fmt: skip
        copy = shutil.copytree(clone, clone.with_name(f"copy{number}"))
        git(*command, cwd=copy)
        facts = read_tracking(raw(copy))
        assert (facts["upstream"], facts["ahead"], facts["behind"]) == (None, None, None)
        assert len(facts["remotes"]) == 1


def test_addresses_of_remotes_have_no_credentials_and_are_few(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "one")
    git("remote", "add", "fork", "https://me:secret@example.org/x.git", cwd=repository)
    (fork,) = read_tracking(raw(repository))["remotes"]
    assert fork == {"name": "fork", "url": "https://example.org/x.git"}
    with (repository / ".git" / "config").open("a") as config:
        config.write("".join(f'[remote "r{n}"]\n\turl = /r{n}\n' for n in range(100)))
    assert len(read_tracking(raw(repository))["remotes"]) == 20


def test_configured_programs_do_not_run(clone: Path) -> None:
    program = clone.with_name("program")
    program.write_text(f"#!/bin/sh\ntouch {clone.with_name('ran')}\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "core.sshCommand", "filter.x.clean", "remote.origin.uploadpack"):
        git("config", key, str(program), cwd=clone)
    (clone / ".gitattributes").write_text("* filter=x\n")
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        (clone / ".git" / "hooks" / hook).symlink_to(program)
    assert last_commit(raw(clone)) is not None
    assert read_tracking(raw(clone))["upstream"] == "origin/main"
    assert not clone.with_name("ran").exists()
