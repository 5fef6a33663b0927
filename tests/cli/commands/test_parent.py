"""`rootsd parent`: the command edits the configuration, and the daemon reloads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rootsd.core.model import Parent
from rootsd.wire.daemon import parent_item
from support.fake_daemon import FakeDaemon, a_status
from support.terminal import Shell


@pytest.fixture
def src(home: Path) -> Path:
    (home / "src").mkdir()
    return home / "src"


def config(rootsd_dir: Path) -> str:
    return (rootsd_dir / "config" / "config.toml").read_text()


def test_without_a_daemon_the_configuration_is_edited_too(
    shell: Shell, src: Path, rootsd_dir: Path
) -> None:
    done = shell.run("parent", "add", str(src), "--depth", "2", "--skip", "a", "--skip", "b*")
    assert (done.status, done.out) == (0, "")
    assert done.err == f"{src} is now a parent.\nThe daemon is not running: rootsd up\n"
    assert config(rootsd_dir).endswith(
        '\n[[parent]]\npath = "~/src"\ndepth = 2\nskip = ["a", "b*"]\n'
    )
    assert shell.run("parent", "ls").out == f"{src}\t2\tnone\ta b*\t?\t?\t\n"


def test_a_running_daemon_reloads_the_configuration(
    daemon: FakeDaemon, shell: Shell, src: Path
) -> None:
    daemon.answers["reload"] = a_status()
    done = shell.run("parent", "add", str(src), "--nested", "vcs")
    assert done.err == f"{src} is now a parent.\n"
    assert daemon.asked("reload") == [{"command": f"parent add {src}"}]


def test_adding_twice_changes_nothing(shell: Shell, src: Path, rootsd_dir: Path) -> None:
    shell.run("parent", "add", str(src))
    before = config(rootsd_dir)
    done = shell.run("parent", "add", str(src))
    assert (done.status, config(rootsd_dir)) == (0, before)
    assert "is already a parent" in done.err


def test_settings_are_changed_and_reset(shell: Shell, src: Path, rootsd_dir: Path) -> None:
    files = ("--project-file", "Justfile", "--project-file", "!go.mod")
    shell.run("parent", "add", str(src), "--skip", "a", *files)
    [item] = json.loads(shell.run("parent", "--json").out)["items"]
    assert (item["skip"], item["project_files"]) == (["a"], ["Justfile", "!go.mod"])
    words = ("--depth", "6", "--skip", "", "--project-file", "")
    assert shell.run("parent", "set", str(src), *words).status == 0
    [item] = json.loads(shell.run("parent", "--json").out)["items"]
    assert (item["depth"], item["skip"], item["project_files"]) == (6, [], [])
    for line in ("depth = 6", "skip = []", "project_files = []"):
        assert f"\n{line}\n" in config(rootsd_dir)


def test_set_without_a_setting_is_a_usage_error(shell: Shell, src: Path) -> None:
    done = shell.run("parent", "set", str(src))
    assert done.status == 2
    assert "--depth, --skip, --nested, --project-file, or --mounts" in done.err


@pytest.mark.parametrize("words", [("rm",), ("set", "--depth", "2")])
def test_a_folder_that_is_not_a_parent_ends_with_status_5(
    shell: Shell, src: Path, words: tuple[str, ...]
) -> None:
    done = shell.run("parent", words[0], str(src), *words[1:])
    assert done.status == 5
    assert done.err == f"error: {src} is not a parent\n  try: rootsd parent ls\n"


@pytest.mark.parametrize("depth", ["0", "65", "deep"])
def test_an_invalid_depth_is_a_usage_error(shell: Shell, src: Path, depth: str) -> None:
    assert shell.run("parent", "add", str(src), "--depth", depth).status == 2


def test_a_removed_parent_is_gone(shell: Shell, src: Path, rootsd_dir: Path) -> None:
    shell.run("parent", "add", str(src))
    assert shell.run("parent", "rm", str(src)).status == 0
    assert "[[parent]]" not in config(rootsd_dir)
    assert shell.run("parent").err == "No parents yet. Try: rootsd up ~/src\n"


def test_a_running_daemon_reports_the_state_of_each(
    daemon: FakeDaemon, shell: Shell, src: Path
) -> None:
    live = parent_item(Parent(bytes(src)), "polling", "out of watches\n", None, 3)
    daemon.answers |= {"status": a_status(parents=[live]), "reload": a_status()}
    shell.run("parent", "add", str(src))
    expected = f"{src}\t4\tnone\t\tpolling\t3\tout of watches\\u{{a}}\n"
    assert shell.run("parent").out == expected
    assert shell.run("parent", "ls").out == expected
    whole = json.loads(shell.run("parent", "--json").out)
    assert whole["items"] == [live]
    assert whole["file"].endswith("/config/config.toml")


def test_a_dry_run_writes_nothing_and_reloads_no_daemon(
    daemon: FakeDaemon, shell: Shell, src: Path, rootsd_dir: Path
) -> None:
    daemon.answers["reload"] = a_status()
    done = shell.run("parent", "add", str(src), "--dry-run")
    assert done.err == f"{src} would become a parent.\nDry run: nothing was changed.\n"
    assert not (rootsd_dir / "config" / "config.toml").exists()
    shell.run("parent", "add", str(src))
    before = config(rootsd_dir)
    assert (
        "would be changed" in shell.run("parent", "set", str(src), "--depth", "2", "--dry-run").err
    )
    done = shell.run("parent", "rm", str(src), "--dry-run", "--json")
    assert json.loads(done.out)["dry_run"]
    assert shell.run("parent", "rm", str(src.parent), "--dry-run").status == 5
    assert config(rootsd_dir) == before
    assert len(daemon.asked("reload")) == 1
