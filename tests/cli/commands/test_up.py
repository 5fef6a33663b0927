"""`rootsd up`: starts the daemon, adds parents, and shows the projects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rootsd import __version__
from rootsd.cli.answers import questions
from rootsd.core.errors import ErrorCode
from rootsd.helper.client import Helper, UnavailableHelper
from rootsd.places.daemon_folders import Places
from rootsd.service import launcher, start_record
from rootsd.service.launcher import StartFailed
from support.fake_daemon import FakeDaemon, a_scan, a_status
from support.key_presses import Keys
from support.terminal import Shell


@pytest.fixture
def src(home: Path) -> Path:
    (home / "src").mkdir()
    return home / "src"


@pytest.fixture
def running(daemon: FakeDaemon) -> FakeDaemon:
    about = {"version": __version__, "pid": 4121, "since": "2026-11-20T08:11:02Z"}
    status = a_status(daemon=about)
    daemon.answers |= {"status": status, "reload": status, "scan": a_scan()}
    return daemon


def config(rootsd_dir: Path) -> Path:
    return rootsd_dir / "config" / "config.toml"


def test_a_running_daemon_gets_the_parent_and_scans(
    running: FakeDaemon, shell: Shell, src: Path, rootsd_dir: Path
) -> None:
    done = shell.run("up", str(src))
    assert done.status == 0
    assert 'path = "~/src"' in config(rootsd_dir).read_text()
    methods = [method for method, _ in running.requests]
    assert methods == ["status", "reload", "reload", "scan", "status"]
    assert running.asked("reload") == [{}, {"command": f"up {src}"}]
    assert done.err.splitlines() == [
        "~/src is now watched.",
        "3 projects in 1,204 folders, scanned in 0.05 s.",
        "1 project needs your decision: rootsd pending",
    ]
    assert done.out == shell.run("status").out


def test_a_second_run_changes_nothing(
    running: FakeDaemon, shell: Shell, src: Path, rootsd_dir: Path
) -> None:
    shell.run("up", str(src))
    before = config(rootsd_dir).read_text()
    running.requests.clear()
    for words in ((str(src),), (), (str(src), str(src))):
        done = shell.run("up", *words)
        assert done.status == 0
        assert "is now watched" not in done.err
    assert config(rootsd_dir).read_text() == before
    assert running.asked("reload") == [{}] * 3, "it is not recorded as a command"


@pytest.mark.parametrize("key", ["y", "\r"])
@pytest.mark.parametrize(
    ("folder", "question"),
    [
        ("", "~ is your whole home folder. Watch all projects in it?"),
        ("src/acme", "~/src/acme is in ~/src (depth 4), which is watched already. Watch it, too?"),
    ],
)
def test_a_person_is_asked_about_home_and_a_folder_that_is_watched_already(
    running: FakeDaemon, shell: Shell, src: Path, monkeypatch: pytest.MonkeyPatch,
    folder: str, question: str, key: str,
) -> None:  # fmt: skip
    (src / "acme").mkdir()
    shell.run("up", str(src))
    keyboard = Keys(key)
    monkeypatch.setattr(questions, "Keyboard", lambda: keyboard)
    done = shell.run("up", str(src.parent / folder))
    assert keyboard.questions == [f"{question} [y/N] "]
    assert (done.status, "is now watched" in done.err) == (0, key == "y")


def test_json_is_the_status_with_the_scan(running: FakeDaemon, shell: Shell, src: Path) -> None:
    done = shell.run("up", str(src), "--json")
    whole = json.loads(done.out)
    assert (done.status, done.err) == (0, "")
    assert whole["command"] == "up"
    assert whole["items"] == a_scan()["items"]
    assert (whole["folders"], whole["daemon"]["pid"]) == (1204, 4121)


@pytest.mark.parametrize(
    ("published", "said"), [(0, "New projects there will be listed by"), (2, "1,204 folders")]
)
def test_without_pending_projects_it_names_the_next_step(
    running: FakeDaemon, shell: Shell, src: Path, published: int, said: str
) -> None:
    counts = {"waiting": 0, "published": published}
    about = {"version": __version__, "pid": 4121, "since": "2026-11-20T08:11:02Z"}
    running.answers["status"] = a_status(daemon=about, counts=counts)
    assert said in shell.run("up", str(src)).err.splitlines()[-1]


def test_without_a_parent_it_is_an_error_and_starts_nothing(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setattr(launcher, "launch", None)
    done = shell.run("up")
    assert (done.status, done.out) == (2, "")
    assert done.err.endswith("  try: rootsd up ~/src\n")


@pytest.mark.parametrize("bad", ["nowhere", ".ssh"])
def test_one_invalid_parent_keeps_the_configuration_unchanged(
    running: FakeDaemon, shell: Shell, src: Path, rootsd_dir: Path, bad: str
) -> None:
    (src.parent / ".ssh").mkdir()
    done = shell.run("up", str(src), str(src.parent / bad))
    assert (done.status, done.out) == (1, "")
    assert "  try: " in done.err
    assert not config(rootsd_dir).exists()
    assert running.requests == []


def test_a_damaged_configuration_ends_with_status_78_and_starts_nothing(
    shell: Shell, src: Path, rootsd_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "launch", None)
    config(rootsd_dir).parent.mkdir(parents=True)
    config(rootsd_dir).write_text("[[parent]]\npaht = '/x'\n")
    for words in (("up",), ("up", str(src))):
        done = shell.run(*words)
        assert done.status == 78
        assert f"{config(rootsd_dir)}, line 2, key parent[0].paht: " in done.err
        assert "did you mean path?" in done.err


def test_a_daemon_that_fails_to_start_is_an_error_with_its_message(
    shell: Shell, src: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise StartFailed("it ended\nno space left", "tail x", ErrorCode.FAILED)

    monkeypatch.setattr(launcher, "launch", fail)
    done = shell.run("up", "-q", str(src))
    assert (done.status, done.out) == (1, "")
    assert done.err == "error: it ended\n  no space left\n  try: tail x\n"


def test_with_foreground_the_process_is_the_daemon(
    shell: Shell, src: Path, rootsd_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int | None] = []

    def run(places: Places, *, helper: Helper, ready_fd: int | None) -> int:
        seen.append(ready_fd)
        return 0

    start_record.mark_stopped()
    monkeypatch.setattr("rootsd.helper.client.start_helper", lambda: UnavailableHelper("a test"))
    monkeypatch.setattr("rootsd.daemon.main.run", run)
    done = shell.run("up", "--foreground", str(src))
    assert (done.status, seen) == (0, [None])
    assert "runs here until Ctrl-C" in done.err
    assert start_record.load_start_record() == start_record.plan_start()


def test_a_dry_run_writes_nothing_and_starts_nothing(
    shell: Shell, src: Path, rootsd_dir: Path
) -> None:
    done = shell.run("up", str(src), "--dry-run")
    assert (done.status, done.out) == (0, "")
    assert done.err.splitlines() == [
        "~/src would be watched.",
        "The daemon would be started.",
        "Dry run: nothing was changed.",
    ]
    told = json.loads(shell.run("up", str(src), "--dry-run", "--json").out)
    assert (told["items"], told["running"]) == ([{"path": str(src)}], False)
    assert not config(rootsd_dir).exists()
    assert shell.run("up", "--dry-run").status == 2


def test_a_dry_run_asks_nothing_on_a_terminal(
    shell: Shell, src: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyboard = Keys("n")
    monkeypatch.setattr(questions, "Keyboard", lambda: keyboard)
    done = shell.run("up", str(src.parent), "--dry-run")
    assert keyboard.questions == []
    assert done.err.splitlines()[:2] == [
        "It would ask: ~ is your whole home folder. Watch all projects in it?",
        "~ would be watched.",
    ]


def test_incomplete_projects_are_reported(running: FakeDaemon, shell: Shell, src: Path) -> None:
    running.answers["scan"] = a_scan(being_made=1)
    told = "1 more project is still being written, and proposed once it is complete."
    assert told in shell.run("up", str(src)).err.splitlines()
    running.answers["scan"] = a_scan(being_made=2)
    assert "2 more projects are still being written" in shell.run("scan").err
