"""Behind the real wall, git works in a worktree of a pending checkout if the approval says so."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support import preloaded
from support.person import HANG_GUARD, Person, Resident
from support.polling import until

pytestmark = [pytest.mark.needs("linux"), pytest.mark.needs("wall")]

COMMIT = "git commit -q --allow-empty -m x"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resident]:
    """A person with a pending repository, its worktree `fix`, and the forged one `forged`."""
    person = Resident(tmp_path_factory.mktemp("house"))
    tool, fix, forged = person.clone("tool"), person.parent / "fix", person.parent / "forged"
    person.git("-C", str(tool), "worktree", "add", "-q", "--detach", str(fix))
    forged.mkdir()
    (forged / ".git").write_bytes((fix / ".git").read_bytes())
    person.rootsd("up", str(person.parent))
    until(lambda: {"tool", "fix", "forged"} <= set(person.names("pending")))
    yield person
    person.run("down")


@pytest.fixture
def person(house: Resident) -> Iterator[Resident]:
    """Yield a person who has decided nothing."""
    yield house
    house.rootsd("forget", "*", "--yes")


class ConfinedShell:
    """A shell behind the wall that runs one command after the other in a folder.

    It enters the folder for each command. A working directory ends with the root, and the root is
    gone for a moment if its Git directory is moved.
    """

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder

    def succeeds(self, command: str) -> bool:
        """Run a command, and return whether it succeeds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"(cd {self._folder} && {command}) >/dev/null 2>&1; echo $?\n")
        self._process.stdin.flush()
        return self._process.stdout.readline() == "0\n"

    def has_git(self) -> bool:
        """Return whether git finds its data. This takes no lock, which a revoke would leave."""
        return self.succeeds("git rev-parse HEAD")

    def commits(self) -> bool:
        """Return whether a commit succeeds. Do not call it while a revoke is on its way."""
        return self.succeeds(COMMIT)


@contextmanager
def confined(person: Person, name: str) -> Iterator[ConfinedShell]:
    """Run a shell that sees all roots, in the folder `name`."""
    words = [sys.executable, "-m", "rootsd", "confine", "--all", "--", "sh"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, cwd=person.parent / name, env=person.environment(),
    ) as process:  # fmt: skip
        try:
            yield ConfinedShell(process, person.parent / name)
        finally:
            process.terminate()
            process.wait(HANG_GUARD)


def replace_around_git(checkout: Path) -> None:
    """Put another folder in the place of `checkout`, with the same Git directory and files."""
    old = checkout.rename(checkout.with_name(f".{checkout.name}"))
    checkout.mkdir()
    for entry in sorted(old.iterdir()):
        entry.rename(checkout / entry.name)


def test_a_running_program_uses_the_git_directory_exactly_while_an_approval_includes_it(
    person: Person,
) -> None:
    tool = person.parent / "tool"
    person.rootsd("approve", "fix")
    with confined(person, "fix") as shell:
        assert shell.succeeds("cat README")
        assert not shell.commits()
        person.rootsd("approve", "fix", "--shared-git")
        until(shell.has_git)
        assert shell.commits()
        assert not shell.succeeds(f"cat {tool}/README"), "no other file of the checkout"
        assert not shell.succeeds(f"touch {tool}/new")
        assert shell.succeeds("git config a.b c")  # in a private copy
        assert "[a]" not in (tool / ".git" / "config").read_text()
        assert not shell.succeeds(f"touch {tool}/.git/hooks/post-checkout")
        for end, again in (
            (("deny", "tool"), ("forget", "tool")),
            (("approve", "fix"), ("undo",)),
        ):
            person.rootsd(*end)
            until(lambda: not shell.has_git())
            assert not shell.commits()
            person.rootsd(*again)
            until(shell.has_git)
            assert shell.commits()
        replace_around_git(tool)
        until(lambda: not shell.has_git())
        person.wait_until_listed("tool", "pending")
        person.rootsd("approve", "fix", "--shared-git")
        until(shell.has_git)


def test_the_flag_includes_nothing_for_a_worktree_that_its_repository_does_not_know(
    person: Person,
) -> None:
    done = person.run("approve", "forged", "--shared-git")
    assert done.returncode == 0
    assert "No project of this approval uses the Git directory" in done.stderr
    with confined(person, "forged") as shell:
        assert shell.succeeds("ls")
        assert not shell.succeeds("git log")
        assert not shell.succeeds(f"ls {person.parent}/tool/.git")


def test_the_view_and_show_say_which_git_directory_is_included_and_why(person: Person) -> None:
    tool = person.parent / "tool"

    def told() -> tuple[str, str]:
        words = ("confine", "--all", "--show")
        rows = person.rootsd(*words).splitlines()
        row = next(line for line in rows if line.startswith(f"{tool}/.git\t"))
        shown = person.rootsd("show", "fix").splitlines()
        return row, next(line for line in shown if line.startswith("shared git\t"))

    person.rootsd("approve", "fix")
    row, line = told()
    assert row.split("\t")[1] == "not shown"
    for text in (row, line):
        assert "its checkout is pending; to include it: rootsd approve fix --shared-git" in text
    words, folder = ("confine", "--", "true"), person.parent / "fix"
    started = preloaded.run(words, person.environment(), HANG_GUARD, folder)
    assert "not shown: the git directory of fix: its checkout is pending" in started.stderr
    person.rootsd("approve", "fix", "--shared-git")
    row, line = told()
    assert row.endswith("\twritable\tthe git directory of fix: the approval includes it")
    assert line.endswith("(open behind the wall: the approval includes it)")
    person.rootsd("deny", "tool", "--yes")
    assert all("its checkout is denied" in text for text in told())


def test_a_submodule_uses_its_own_git_directory_in_a_pending_checkout(person: Person) -> None:
    tool = person.parent / "tool"
    person.git("-C", str(tool), "-c", "protocol.file.allow=always",
               "submodule", "add", "-q", str(person.origin), "sub")  # fmt: skip
    person.rootsd("approve", str(tool / "sub"), "--shared-git")
    with confined(person, "tool/sub") as shell:
        assert shell.commits()
        assert not shell.succeeds(f"ls {tool}/.git/refs"), "only the part of the submodule"
        assert shell.succeeds("git config a.b c")  # in a private copy
        assert "[a]" not in (tool / ".git" / "modules" / "sub" / "config").read_text()
        person.rootsd("deny", "tool", "--yes")
        until(lambda: not shell.succeeds("ls"))


def test_a_git_directory_outside_of_its_checkout_is_said_to_be_closed_and_one_inside_to_be_open(
    person: Person,
) -> None:
    parent = person.parent
    data, apart, container = parent.parent / "data", parent / "apart", parent / "container"
    person.git("clone", "-q", f"--separate-git-dir={data}", str(parent / "tool"), str(apart))
    person.git("clone", "-q", "--bare", str(parent / "tool"), str(container / ".bare"))
    (container / ".git").write_text("gitdir: ./.bare\n")
    for checkout in (apart, container):
        tree = f"{checkout}-tree"
        person.git("-C", str(checkout), "worktree", "add", "-q", "--detach", tree)
    names = ("apart", "container", "apart-tree", "container-tree")
    until(lambda: set(names) <= set(person.names("pending")))
    person.rootsd("approve", *names, "--yes")
    rows = person.rootsd("confine", "--all", "--show").splitlines()
    for name, git, row_says, show_says in (
        ("apart", data, "not shown", f"{data} (closed behind the wall: it lies outside"),
        ("container", container / ".bare", "writable", f"{container}/.bare (open behind"),
    ):
        row = next(line for line in rows if line.startswith(f"{git}\t"))
        assert row.split("\t")[1] == row_says
        assert show_says in person.rootsd("show", f"{name}-tree")
        with confined(person, f"{name}-tree") as shell:
            assert shell.has_git() is (row_says == "writable")
