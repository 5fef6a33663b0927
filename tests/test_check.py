"""`rootsd check` and `pending --count` without the command line: the exit status is the answer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rootsd import check
from rootsd.core.errors import ErrorCode, Exit
from support.fake_daemon import FakeDaemon, Objection, a_status


@pytest.fixture
def daemon(rootsd_dir: Path) -> Iterator[FakeDaemon]:
    with FakeDaemon(rootsd_dir) as daemon:
        yield daemon


def checked(**changes: object) -> dict[str, Any]:
    return {"published": False, "verdict": None, "root": None, "access": None, **changes}


IN_ROOT = checked(published=True, verdict="approved", root="api", access="read-write")
READ_ONLY = {**IN_ROOT, "access": "read"}


@pytest.mark.parametrize(
    ("answer", "write", "status"),
    [
        (IN_ROOT, False, Exit.OK),
        (IN_ROOT, True, Exit.OK),
        (READ_ONLY, False, Exit.OK),
        (READ_ONLY, True, Exit.DENIED),
        (checked(verdict="pending"), False, Exit.PENDING),
        (checked(verdict="denied"), False, Exit.DENIED),
        (checked(), False, Exit.NOTHING_MATCHED),
        (checked(verdict="approved"), False, Exit.NOTHING_MATCHED),
    ],
)
def test_the_exit_status_is_the_answer_and_nothing_is_printed(
    daemon: FakeDaemon,
    capsys: pytest.CaptureFixture[str],
    answer: dict[str, Any],
    write: bool,
    status: Exit,
) -> None:
    daemon.answers["check"] = answer
    assert check.main("/src/api", write=write) == status
    assert capsys.readouterr() == ("", "")


def test_without_a_daemon_the_status_is_69_and_one_line_names_the_next_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert check.main("/src/api") == check.count_pending() == 69
    line = "error: the daemon is not running (try: rootsd up)\n"
    assert capsys.readouterr() == ("", line * 2)


def test_a_relative_path_is_made_absolute_and_left_to_the_daemon(
    daemon: FakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.answers["check"] = checked()
    monkeypatch.chdir(tmp_path)
    check.main("link/../x")
    assert daemon.asked("check") == [{"path": f"{tmp_path}/link/../x"}]


def test_a_uri_stays_unchanged_and_a_similar_folder_name_does_not(
    daemon: FakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.answers["check"] = checked()
    monkeypatch.chdir(tmp_path)
    check.main("https://example.com/v1/../x")
    check.main("./https://x")
    asked = [{"path": "https://example.com/v1/../x"}, {"path": f"{tmp_path}/./https://x"}]
    assert daemon.asked("check") == asked


def test_a_path_that_is_not_utf8_reaches_the_daemon_byte_for_byte(daemon: FakeDaemon) -> None:
    daemon.answers["check"] = checked()
    check.main(os.fsdecode(b"/src/\xff"))
    (asked,) = daemon.asked("check")
    assert asked["path"].encode("utf-8", "surrogateescape") == b"/src/\xff"


def test_a_deleted_working_directory_is_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert check.main("x") == 1
    assert "working directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("waiting", "exit_code", "status"), [(0, True, 0), (3, True, 3), (3, False, 0)]
)
def test_the_count_is_the_number_of_pending_projects(
    daemon: FakeDaemon,
    capsys: pytest.CaptureFixture[str],
    waiting: int,
    exit_code: bool,
    status: int,
) -> None:
    daemon.answers["status"] = a_status(counts={"waiting": waiting})
    assert check.count_pending(exit_code=exit_code) == status
    assert capsys.readouterr() == (f"{waiting}\n", "")


def test_a_word_that_is_no_path_is_sent_as_a_name_and_what_exists_is_not(
    daemon: FakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.answers["check"] = checked()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "api").mkdir()
    (tmp_path / "broken").symlink_to("nowhere")
    for word in ("api", "broken", "./web", "..", ".", "/src/web", "web", "acme/web", "/src/w*"):
        check.main(word)
    names = {each["path"]: each.get("name") for each in daemon.asked("check")}
    assert {path: name for path, name in names.items() if name is not None} == {
        f"{tmp_path}/web": "web",
        f"{tmp_path}/acme/web": "acme/web",
        "/src/w*": "/src/w*",
    }


def test_an_error_keeps_its_exit_status_and_lists_its_choices(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    several = "a* matches several projects"
    daemon.answers["check"] = Objection(ErrorCode.AMBIGUOUS, several, "rootsd ls", ("api", "app"))
    assert check.main("a*") == 6
    assert capsys.readouterr().err == (
        "error: a* matches several projects (try: rootsd ls)\n  api\n  app\n"
    )
