"""The services of an invocation: folders, working directory, output, and calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from rootsd.cli.answers.invocation import Invocation
from rootsd.cli.text.render import Flags
from rootsd.core.errors import RootsdError
from support.fake_daemon import FakeDaemon, a_scan


def test_references_are_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Invocation().cwd == str(tmp_path)


def test_a_deleted_working_directory_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(RootsdError, match="working directory is gone"):
        _ = Invocation().cwd


def test_the_folders_are_those_of_this_environment(rootsd_dir: Path) -> None:
    assert Invocation().places.config_file == bytes(rootsd_dir / "config" / "config.toml")


def test_a_scan_may_cover_one_parent(daemon: FakeDaemon) -> None:
    daemon.answers["scan"] = a_scan()
    assert Invocation(Flags(quiet=True)).scan("/src") == a_scan()
    Invocation().scan()
    assert daemon.asked("scan") == [{"parent": "/src"}, {}]
