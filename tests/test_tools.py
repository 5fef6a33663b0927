"""The scripts behind `make`: the chosen Python, the watched folder, and the pinned packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from compare_runs import main as compare_runs

TOP = Path(__file__).parent.parent
# The programs that the scripts call, except those that a test plants.
COMMON = ("basename", "cat", "dirname", "git", "id", "mkdir", "rm", "sh")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder to be the whole PATH: the common programs, and no Python yet."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in COMMON:
        found = shutil.which(name)
        assert found, name
        (folder / name).symlink_to(found)
    return folder


def _plant(program: Path, script: str) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def _find_python(programs: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", str(TOP / "tools" / "find_python.sh")],
        env={"PATH": str(programs)} | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_python_gives_a_plain_message(programs: Path) -> None:
    run = _find_python(programs)
    assert run.returncode == 1
    assert run.stdout == ""
    assert "needs Python 3.11 or newer" in run.stderr
    assert "there is no python3 on PATH" in run.stderr


def test_old_python_is_named(programs: Path) -> None:
    _plant(programs / "python3", 'case "$2" in *split*) echo 3.9.2 ;; *) exit 1 ;; esac')
    run = _find_python(programs)
    assert run.returncode == 1
    assert "python3 here is 3.9.2" in run.stderr


def test_shim_without_a_python_behind_it_is_passed_over(programs: Path) -> None:
    _plant(programs / "python3", "echo 'not installed' >&2; exit 127")
    _plant(programs / "python3.14", "exit 127")
    _plant(programs / "python3.12", f'exec {sys.executable} "$@"')
    run = _find_python(programs)
    assert run.returncode == 0, run.stderr
    assert Path(run.stdout.strip()).samefile(Path(sys.executable).resolve())


def test_a_requested_python_is_not_replaced_by_another(programs: Path) -> None:
    _plant(programs / "python3", f'exec {sys.executable} "$@"')
    run = _find_python(programs, PYTHON="/nowhere/python3.11")
    assert run.returncode == 1
    assert "/nowhere/python3.11 is not that" in run.stderr


def _up(checkout: Path, programs: Path, **variables: str) -> str:
    """What tools/up.sh says in a checkout whose rootsd only repeats its arguments."""
    shutil.copytree(TOP / "tools", checkout / "tools")
    _plant(checkout / ".venv" / "bin" / "rootsd", 'echo "called: $*"')
    kept = {name: value for name, value in os.environ.items() if name.startswith("GIT_")}
    run = subprocess.run(
        ["/bin/sh", str(checkout / "tools" / "up.sh")],
        env=kept | {"PATH": str(programs)} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    return run.stdout


def test_up_watches_the_folder_of_the_checkout(tmp_path: Path, programs: Path) -> None:
    said = _up(tmp_path / "src" / "rootsd", programs, HOME=str(tmp_path))
    assert f"called: up {tmp_path}/src\n" in said


def test_up_watches_the_home_folder_if_it_contains_the_checkout(
    tmp_path: Path, programs: Path
) -> None:
    said = _up(tmp_path / "rootsd", programs, HOME=str(tmp_path))
    assert f"called: up {tmp_path}\n" in said


@pytest.mark.parametrize(("asked", "taken"), [("/some/where", "/some/where"), ("~/s", "HOME/s")])
def test_up_watches_the_requested_folder(
    asked: str, taken: str, tmp_path: Path, programs: Path
) -> None:
    said = _up(tmp_path / "rootsd", programs, HOME=str(tmp_path), PARENT=asked)
    assert f"called: up {taken.replace('HOME', str(tmp_path))}\n" in said


def test_up_uses_samples_if_the_checkout_is_outside_home(tmp_path: Path, programs: Path) -> None:
    home = tmp_path / "people" / "me"
    home.mkdir(parents=True)
    said = _up(tmp_path / "rootsd", programs, HOME=str(home), TMPDIR=str(tmp_path))
    sample = tmp_path / f"rootsd-sample-{os.geteuid()}"
    assert f"{tmp_path}, which is too wide to watch" in said
    assert f"called: up {sample}\n" in said
    assert (sample / "first" / ".git").is_dir()
    assert (sample / "copy" / "README").read_text() == "A sample for rootsd.\n"


@pytest.mark.parametrize(("folder", "command"), [("rootsd", "make"), (".", "make -C 'CHECKOUT'")])
def test_up_names_the_command_that_puts_rootsd_on_the_path(
    tmp_path: Path, programs: Path, folder: str, command: str
) -> None:
    checkout = tmp_path / "rootsd"
    checkout.mkdir()
    said = _up(checkout, programs, HOME=str(tmp_path), STARTED_IN=str(tmp_path / folder))
    typed = command.replace("CHECKOUT", str(checkout))
    assert said.endswith(f"\nTo put the command rootsd on your PATH: {typed} install\n")


def test_up_says_nothing_more_if_rootsd_is_on_the_path(tmp_path: Path, programs: Path) -> None:
    _plant(programs / "rootsd", "exit 0")
    said = _up(tmp_path / "rootsd", programs, HOME=str(tmp_path))
    assert said == f"called: up {tmp_path}\n"


class Checkout:
    """A checkout whose set-up writes down its argument. Its other scripts do nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for name in ("Makefile", "pyproject.toml"):
            shutil.copy(TOP / name, folder)
        shutil.copytree(TOP / "requirements", folder / "requirements")
        _plant(folder / "tools" / "setup.sh", 'mkdir -p .venv && echo "$1" >>set-up')
        for name in ("find_python.sh", "up.sh", "test.sh"):
            _plant(folder / "tools" / name, "exit 0")

    def make(self, *words: str) -> list[str]:
        """Run make, and return the requirements that it installed."""
        log = self.folder / "set-up"
        log.unlink(missing_ok=True)
        environment = {"PATH": os.environ["PATH"], "MAKEFLAGS": "-j8"}
        subprocess.run(
            ["make", *words], cwd=self.folder, env=environment, check=True, capture_output=True
        )
        return log.read_text().split() if log.exists() else []


RUN, LOCK = "requirements/run.txt", "requirements/lock.txt"


@pytest.mark.needs("make")
def test_make_up_installs_no_tools_of_developers_and_make_test_adds_them(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "rootsd")
    assert checkout.make("up") == [RUN]
    assert checkout.make("up") == []
    assert checkout.make("test") == [LOCK]
    assert checkout.make("test", "up") == []


@pytest.mark.needs("make")
def test_after_make_test_nothing_is_missing_for_make_up(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "rootsd")
    assert checkout.make("test") == [LOCK]
    assert checkout.make("up") == []


@pytest.mark.needs("make")
def test_a_copied_checkout_does_not_run_the_code_of_the_original(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "rootsd")
    checkout.make("test")
    shutil.copytree(checkout.folder, tmp_path / "copy", symlinks=True)
    checkout.folder = tmp_path / "copy"
    assert checkout.make("up") == [RUN]
    assert checkout.make("test") == [LOCK]
    assert checkout.make("up", "test") == []


def _name(requirement: str) -> str:
    found = re.match(r"[a-z0-9.-]+", requirement)
    assert found, requirement
    return found[0].replace(".", "-")  # as the lock writes it, by PEP 503


def _requirements_of_the_project() -> set[str]:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())
    lists = [project["project"]["dependencies"], *project["dependency-groups"].values()]
    return {_name(entry) for entries in lists for entry in entries if isinstance(entry, str)}


def _requirements_of_the_site() -> set[str]:
    lines = (TOP / "requirements" / "site.in").read_text().splitlines()
    return {_name(line) for line in lines if not line.startswith("#")}


@pytest.mark.parametrize("file", [RUN, LOCK, "requirements/site.txt"])
def test_every_pin_has_a_hash_and_no_line_is_an_address_or_an_option(file: str) -> None:
    lines = (TOP / file).read_text().splitlines()
    pins = [number for number, line in enumerate(lines) if re.match(r"\S+==\S+ .*\\$", line)]
    hashed = [n for n in pins if re.match(r"    --hash=sha256:[0-9a-f]{64}", lines[n + 1])]
    others = [
        line for line in lines if not re.match(r"\S+==|    --hash=sha256:[0-9a-f]{64}|\s*#", line)
    ]
    assert len(pins) > 10
    assert hashed == pins
    assert others == []
    assert "://" not in "\n".join(lines)


def test_every_dependency_is_pinned() -> None:
    constraints = subprocess.run(
        ["/bin/sh", str(TOP / "tools" / "constraints.sh")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    pinned = {_name(line) for line in constraints.splitlines()}
    assert _requirements_of_the_project() - pinned == set()
    assert "--hash" not in constraints


def test_the_tools_of_the_site_are_pinned_and_no_other_target_installs_them() -> None:
    assert _requirements_of_the_site() == {"mkdocs-material"}
    locks = {
        name: {
            _name(line)
            for line in (TOP / "requirements" / name).read_text().splitlines()
            if re.match(r"\S+==", line)
        }
        for name in ("site.txt", "lock.txt")
    }
    assert _requirements_of_the_site() <= locks["site.txt"]
    assert not _requirements_of_the_site() & locks["lock.txt"]


def _pins(file: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Return the version and the hashes of each package in a lock."""
    entries = re.split(r"\n(?=[a-z])", (TOP / file).read_text())[1:]
    return {
        _name(entry): (entry.split()[0], frozenset(re.findall(r"sha256:(\w+)", entry)))
        for entry in entries
    }


def test_make_up_installs_the_versions_that_are_tested_and_nothing_else() -> None:
    run, lock = _pins(RUN), _pins(LOCK)
    assert run.items() <= lock.items()
    project = tomllib.loads((TOP / "pyproject.toml").read_text())
    wanted = {
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["ui"],
        *project["dependency-groups"]["build"],
    }
    assert {_name(entry) for entry in wanted} <= run.keys()
    assert not run.keys() & {"hypothesis", "mypy", "pytest", "ruff"}
    assert {"hypothesis", "mypy", "pytest", "ruff"} <= lock.keys()


AS_ROOT = "passed\ta\nskipped\tb\npassed\tboth\n"


@pytest.mark.parametrize(
    ("as_user", "status"),
    [
        ("skipped\ta\npassed\tb\npassed\tboth\n", 0),
        ("skipped\ta\nskipped\tb\npassed\tboth\n", 1),
        ("", 1),
    ],
    ids=["each test ran somewhere", "one test ran nowhere", "an empty record"],
)
def test_ci_notices_a_test_that_ran_in_no_run(
    tmp_path: Path, as_user: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    records = (tmp_path / "root", tmp_path / "user")
    for record, text in zip(records, (AS_ROOT, as_user), strict=True):
        record.write_text(text)
    assert compare_runs([str(record) for record in records]) == status
    assert ("ran in none of 2 runs: b" in capsys.readouterr().err) == ("skipped\tb" in as_user)
