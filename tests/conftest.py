"""The environment of every test: no home folder, no personal settings, and a size.

* The environment is an allow-list. HOME is below a device file, so that not even root can create
  it. Git takes its identity, default branch, and protocols from variables.
* `ROOTSD_DIR` is a different folder for each test; the fixture `rootsd_dir` returns it. It does
  not exist yet. A test that needs it creates it, as the program does.
* `--sizes=test|check|soak` sets the size of the sized tests, see `support/sizes.py`. Hypothesis
  follows: reproducible for `test` and `check`, random for `soak`.
* `@pytest.mark.needs(...)` skips with a reason, see `support/needs.py`. With CI=true a skip is a
  failure, unless `--record=FILE` writes down the outcome of each test. CI records one run as root
  and one as an ordinary user, and `tools/compare_runs.py` fails if a test ran in neither.
"""

from __future__ import annotations

import errno
import gc
import itertools
import os
import signal
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import AnyStr

import hypothesis
import pytest

from rootsd.link import hidden_process
from support import preloaded, unsynced
from support.leftover_processes import end_left_behind
from support.needs import unmet
from support.person import Person
from support.sizes import Size, Sizes
from support.worker_order import slow_first

KEPT_VARIABLES = (
    "CI", "COLUMNS", "LINES", "LOGNAME", "PATH", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "USER",
)  # fmt: skip
KEPT_PREFIXES = ("COVERAGE_", "HYPOTHESIS_", "PYTEST_", "PYTHON", "VIRTUAL_ENV")
SET_VARIABLES = {
    "HOME": "/dev/null/home",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "GIT_AUTHOR_NAME": "A Tester",
    "GIT_AUTHOR_EMAIL": "tester@example.org",
    "GIT_COMMITTER_NAME": "A Tester",
    "GIT_COMMITTER_EMAIL": "tester@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "init.defaultBranch",
    "GIT_CONFIG_VALUE_0": "main",
    "GIT_CONFIG_KEY_1": "protocol.file.allow",
    "GIT_CONFIG_VALUE_1": "always",
    # Each commit would start a second process.
    "GIT_CONFIG_KEY_2": "maintenance.auto",
    "GIT_CONFIG_VALUE_2": "false",
}
PR_GET_DUMPABLE = 3  # linux/prctl.h; it changes nothing
EXAMPLES = {Size.TEST: 15, Size.CHECK: 1_000, Size.SOAK: 20_000}
# Shells and nohup(1) start programs that ignore these.
INHERITED_SIGNALS = (signal.SIGHUP, signal.SIGQUIT)
_folder_numbers = itertools.count(1)
_unmet = cache(unmet)
_outcomes: dict[str, str] = {}


def _in_ci() -> bool:
    return os.environ.get("CI") == "true"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sizes",
        choices=[size.value for size in Size],
        default=Size.TEST.value,
        help="how large the sized tests are (make test, make check, make soak)",
    )
    parser.addoption(
        "--record",
        type=Path,
        metavar="FILE",
        help="append a line `OUTCOME TAB TEST` for each test that passed or was skipped",
    )


def pytest_configure(config: pytest.Config) -> None:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in KEPT_VARIABLES or name.startswith(KEPT_PREFIXES)
    }
    # On Debian, the PATH of ordinary users lacks mkfs and similar programs.
    kept["PATH"] = f"{kept.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    os.environ.clear()
    os.environ.update(kept | SET_VARIABLES)
    unsynced.skip_syncs_if_wanted()
    # Tests run commands in this process, and others read it. It must not hide from them.
    hidden_process._PR_SET_DUMPABLE = PR_GET_DUMPABLE
    # A background job of a shell ignores Ctrl-C, and so would the programs that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    size = Size(config.getoption("--sizes"))
    hypothesis.settings.register_profile(
        size,
        max_examples=EXAMPLES[size],
        deadline=None,  # a wall-clock limit per example fails on a busy machine without a bug
        database=None,
        derandomize=size is not Size.SOAK,
        print_blob=True,
    )
    hypothesis.settings.load_profile(size)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.skipped:
        _outcomes[report.nodeid] = report.outcome


def pytest_sessionfinish(session: pytest.Session) -> None:
    record: Path | None = session.config.getoption("--record")
    # With pytest-xdist, the controller alone sees the reports of all workers.
    if record is not None and not hasattr(session.config, "workerinput"):
        with record.open("a") as file:
            file.writelines(f"{outcome}\t{test}\n" for test, outcome in _outcomes.items())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage: none of what is collected goes away before the end.

    Each worker collects all tests, and would spend a third of the time on that.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        names = getattr(item, "fixturenames", ())
        generated = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        if "sizes" in names or generated:
            item.add_marker("sized")
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    items[:] = slow_first(items, workers)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        for name in mark.args:
            reason = _unmet(name)
            if reason:
                pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if item.config.getoption("--record") is None:
        _forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _forbid_skip(report)
    return report


def _forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if _in_ci() and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"A skip fails where CI=true. {reason}"


@pytest.fixture(scope="session")
def sizes(request: pytest.FixtureRequest) -> Sizes:
    """Return the size of this run; `sizes.pick(test=…, check=…, soak=…)`."""
    return Sizes(Size(request.config.getoption("--sizes")))


@pytest.fixture(scope="session", autouse=True)
def left_behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """End the processes that tests left running, and fail the run if there are any."""
    yield
    preloaded.close()
    left = end_left_behind("ROOTSD_DIR", f"{tmp_path_factory.getbasetemp()}/")
    assert not left, "tests left processes behind"


@pytest.fixture(scope="session", autouse=True)
def no_ignored_signals() -> Iterator[None]:
    """Let the programs that tests start ignore no signal, even if this run does (nohup(1)).

    A started program inherits an ignored signal, but gets the default for a handled one. The run
    still survives the signal.
    """
    ignored = [each for each in INHERITED_SIGNALS if signal.getsignal(each) is signal.SIG_IGN]
    for each in ignored:
        signal.signal(each, lambda *_: None)
    yield
    for each in ignored:
        signal.signal(each, signal.SIG_IGN)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Return asyncio, the only backend of the daemon."""
    return "asyncio"


@pytest.fixture(autouse=True)
def rootsd_dir(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the `ROOTSD_DIR` of this test. The variable is set; the folder does not exist yet."""
    folder = tmp_path_factory.getbasetemp() / f"rootsd-{next(_folder_numbers)}"
    monkeypatch.setenv("ROOTSD_DIR", str(folder))
    return folder


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    """Return a person with an empty home. Their daemon, if any, ends with the test."""
    person = Person(tmp_path)
    yield person
    person.run("down")


@pytest.fixture
def unreadable_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a link that nobody may read, as those of another user's process in /proc."""
    link = tmp_path.resolve() / "another process"
    link.symlink_to("/")
    read = os.readlink

    def refuse(path: AnyStr, *, dir_fd: int | None = None) -> AnyStr:
        if os.fsencode(path) == os.fsencode(link):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return read(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "readlink", refuse)
    return link
