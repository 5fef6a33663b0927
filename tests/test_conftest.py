"""The guarantees of tests/conftest.py: a closed environment, sizes, and no skip with CI=true."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath

import psutil
import pytest

from support.needs import NEEDS, unmet
from support.sizes import Size, Sizes
from support.worker_order import SLOW_FOLDERS, slow_first

TOP = Path(__file__).parent.parent

Suite = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """Run pytest on one planted test file below our own conftest, with more environment."""

    def run(text: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
        shutil.copy(TOP / "pyproject.toml", tmp_path)
        tests = tmp_path / "tests"
        tests.mkdir(exist_ok=True)
        shutil.copytree(TOP / "tests" / "support", tests / "support", dirs_exist_ok=True)
        shutil.copy(TOP / "tests" / "conftest.py", tests)
        (tests / "test_planted.py").write_text(text)
        environment = {name: value for name, value in os.environ.items() if name != "CI"}
        return subprocess.run(
            # A separate base: otherwise each run would first remove the files of earlier ones.
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider",
             f"--basetemp={tmp_path / 'base'}", *options],
            cwd=tmp_path, env=environment | variables,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


NEEDY = "import pytest\n\n@pytest.mark.needs('nothing-has-this')\ndef test_it():\n    pass\n"
PLANT_NEED = (
    "from support.needs import NEEDS, Need\n"
    "NEEDS['nothing-has-this'] = Need(lambda: False, 'apt-get install this')\n"
)


def test_an_unmet_need_skips_with_its_install_line_and_an_unknown_one_is_an_error(
    suite: Suite,
) -> None:
    unknown = NEEDY.replace("nothing-has-this", "unknown").replace("test_it", "test_that")
    run = suite(PLANT_NEED + NEEDY + unknown)
    assert run.returncode == pytest.ExitCode.TESTS_FAILED, run.stdout
    assert "1 skipped, 1 error in " in run.stdout
    assert "needs nothing-has-this, which is not here: apt-get install this" in run.stdout
    assert "KeyError: 'unknown'" in run.stdout


def test_in_ci_a_skip_fails_and_an_expected_failure_does_not(suite: Suite, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    for name, text in {
        "in_the_test": "import pytest\n\ndef test_it():\n    pytest.skip('no')\n",
        "by_a_mark": "import pytest\n\n@pytest.mark.skip(reason='no')\ndef test_it(): pass\n",
        "of_a_file": "import pytest\n\npytest.importorskip('nothing_has_this', reason='no')\n",
        "expected": "import pytest\n\n@pytest.mark.xfail\ndef test_it():\n    assert False\n",
    }.items():
        (tmp_path / "tests" / f"test_{name}.py").write_text(text)
    run = suite(PLANT_NEED + NEEDY, "--continue-on-collection-errors", CI="true")
    assert run.returncode == pytest.ExitCode.TESTS_FAILED, run.stdout
    assert "1 failed, 1 xfailed, 3 errors in " in run.stdout
    # Each reason is beside its traceback and in the summary.
    assert run.stdout.count("A skip fails where CI=true. ") == 2 * 4


def test_every_need_has_an_install_line() -> None:
    assert [name for name, need in NEEDS.items() if not need.install] == []


def test_a_met_need_has_no_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "rsync"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert unmet("rsync") == ""
    assert unmet("svn") != ""


def test_the_mark_sized_selects_only_sized_tests(suite: Suite) -> None:
    text = (
        "from hypothesis import given, settings, strategies\n\n"
        "def test_one(): pass\n"
        "def test_two(sizes): assert sizes.pick(test=1, check=2, soak=3) == 2\n"
        "@given(strategies.booleans())\n"
        "def test_three(truth): assert settings.default.max_examples == 1000\n"
    )
    run = suite(text, "-m", "sized", "--sizes=check")
    assert run.returncode == 0, run.stdout
    assert "2 passed, 1 deselected" in run.stdout


@pytest.mark.parametrize(("size", "picked"), [(Size.TEST, 1), (Size.CHECK, 2), (Size.SOAK, 3)])
def test_sizes_follow_the_option(size: Size, picked: int) -> None:
    assert Sizes(size).pick(test=1, check=2, soak=3) == picked


@dataclass(frozen=True)
class Placed:
    path: PurePath
    number: int


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
@pytest.mark.parametrize(("slow", "quick"), [(9, 51), (30, 31), (7, 0), (0, 7)])
def test_each_workers_part_starts_with_slow_files_and_has_each_test_once(
    workers: int, slow: int, quick: int
) -> None:
    tests = [Placed(PurePath(f"e2e/test_{n // 3}.py"), n) for n in range(slow)]
    tests += [Placed(PurePath("core/test_a.py"), n) for n in range(quick)]
    ordered = slow_first(tests, workers)
    assert sorted(ordered, key=tests.index) == tests
    size = len(tests) // workers
    for first in range(0, size * workers, size):
        part = [test.path.parts[0] for test in ordered[first : first + size]]
        assert part == sorted(part, reverse=True)


def test_the_slow_folders_are_there() -> None:
    assert {path.name for path in (TOP / "tests").rglob("*/")} >= SLOW_FOLDERS


def test_home_cannot_be_made_even_by_root() -> None:
    with pytest.raises(NotADirectoryError):
        Path.home().mkdir(parents=True)


def test_no_personal_setting_reaches_a_test_and_no_process_survives_it(
    suite: Suite, tmp_path: Path
) -> None:
    told = tmp_path / "pid"
    text = (
        "import os, signal, subprocess, sys\n"
        "from support import leftover_processes\n"
        "leftover_processes.GRACE_S = 0.0\n\n"
        "def test_no_personal_setting_is_there():\n"
        "    assert 'XDG_RUNTIME_DIR' not in os.environ\n"
        "    assert 'GIT_DIR' not in os.environ\n"
        "    assert os.environ['ROOTSD_DIR'] != '/elsewhere'\n\n"
        "def test_a_started_program_has_the_default_of_a_signal():\n"
        "    program = 'import os; os.kill(os.getpid(), 1)'\n"
        "    ended = subprocess.run([sys.executable, '-c', program], check=False)\n"
        "    assert ended.returncode == -signal.SIGHUP\n\n"
        "def test_that_leaves_a_process_behind():\n"
        "    words = [sys.executable, '-c', 'import signal; signal.pause()']\n"
        "    pid = os.posix_spawn(sys.executable, words, os.environ)  # returns after the exec\n"
        f"    with open({str(told)!r}, 'w') as file:\n"
        "        file.write(str(pid))\n"
    )
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run = suite(
            text, XDG_RUNTIME_DIR="/run/user/0", GIT_DIR="/elsewhere", ROOTSD_DIR="/elsewhere"
        )
    finally:
        signal.signal(signal.SIGHUP, before)
    assert "3 passed, 1 error in " in run.stdout
    assert run.returncode == pytest.ExitCode.TESTS_FAILED
    assert "tests left processes behind" in run.stdout
    assert not psutil.pid_exists(int(told.read_text()))


def test_git_commits_and_clones_without_a_home(tmp_path: Path) -> None:
    commands = (
        ["git", "init", "--quiet", "one"],
        ["git", "-C", "one", "commit", "--quiet", "--allow-empty", "--message=first"],
        ["git", "clone", "--quiet", (tmp_path / "one").as_uri(), "two"],
    )
    for command in commands:
        subprocess.run(command, cwd=tmp_path, check=True)
    head = (tmp_path / "two" / ".git" / "HEAD").read_text()
    assert head == "ref: refs/heads/main\n"


@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_has_its_own_rootsd_dir(turn: int, rootsd_dir: Path) -> None:
    assert os.environ["ROOTSD_DIR"] == str(rootsd_dir)
    assert not rootsd_dir.exists()
    rootsd_dir.mkdir()


def test_a_recorded_run_may_skip_in_ci_and_says_so(
    suite: Suite, tmp_path: Path, sizes: Sizes
) -> None:
    text = PLANT_NEED + NEEDY + "\ndef test_that():\n    pass\n"
    both = ("-n1", "-n0")
    for workers in sizes.pick(test=both[:1], check=both, soak=both):
        record = tmp_path / f"record{workers}"
        run = suite(text, f"--record={record}", workers, CI="true")
        assert run.returncode == 0, run.stdout
        assert sorted(record.read_text().splitlines()) == [
            "passed\ttests/test_planted.py::test_that",
            "skipped\ttests/test_planted.py::test_it",
        ]
