"""A program starts in the folder of its person, also if that is not approved yet."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from support.person import Person, Resident
from support.polling import until

pytestmark = [pytest.mark.needs("wall")]

_HANG_GUARD_S = 60
_QUESTION = "~/src/web is pending. Approve it? [y]es, for this [s]ession, [n]o "
_SHELL = "env PS1=in$ bash --norc --noediting -i"
_RETURN = 'is open; to work in it: cd "$PWD"'


@pytest.fixture(scope="module")
def resident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resident]:
    """Return a person with two projects, one of which is approved, and one daemon."""
    person = Resident(tmp_path_factory.mktemp("resident"))
    (person.clone("web") / "sub").mkdir()
    (person.parent / "web" / "sub" / "file").write_text("text\n")
    (person.home / "link").symlink_to(person.parent / "web")
    (person.home / "notes").mkdir()
    person.clone("api")
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", "api")
    yield person
    person.run("down")


@pytest.fixture
def person(resident: Resident) -> Resident:
    resident.rootsd("forget", "web")
    return resident


def start(person: Person, folder: Path, *words: str) -> pexpect.spawn[str]:
    return pexpect.spawn(
        sys.executable, ["-m", "rootsd", *words], cwd=str(folder),
        env={**person.environment(), "TERM": "xterm", "NO_COLOR": "1"}, encoding="utf-8",
        timeout=_HANG_GUARD_S, dimensions=(30, 200),
    )  # fmt: skip


def confined(person: Person, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `rootsd confine` without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "rootsd", "confine", *words], cwd=folder, text=True, check=True,
        env=person.environment(), stdin=subprocess.DEVNULL, capture_output=True,
        timeout=_HANG_GUARD_S,
    )  # fmt: skip


def verdicts(person: Person) -> dict[str, str]:
    return {item["name"]: item["verdict"] for item in person.items("ls")}


@pytest.mark.parametrize("folder", ["src/web", "src/web/sub", "link/sub"])
def test_yes_approves_the_project_and_the_program_starts_in_it(
    person: Resident, folder: str
) -> None:
    program = start(person, person.home / folder, "confine", "--", "sh", "-c", "pwd; ls")
    program.expect_exact(_QUESTION)
    program.send("y")
    inside = (person.home / folder).resolve()
    program.expect_exact(f"{inside}\r\n")
    program.expect_exact("file" if inside.name == "sub" else "README")
    program.expect(pexpect.EOF)
    assert verdicts(person)["web"] == "approved"


def test_a_worktree_that_is_older_than_the_approval_is_asked_about(person: Resident) -> None:
    tree = person.parent / "tree"
    person.git("-C", str(person.parent / "web"), "worktree", "add", "-q", str(tree))
    person.wait_until_listed("tree", "ls")
    person.rootsd("approve", "web")
    program = start(person, tree, "confine", "--", "git", "status")
    program.expect_exact(_QUESTION.replace("web", "tree"))
    program.send("y")
    program.expect_exact("On branch tree")
    program.expect(pexpect.EOF)
    person.git("-C", str(person.parent / "web"), "worktree", "remove", str(tree))
    person.rootsd("forget", "tree")


def test_nobody_is_asked_in_a_root_that_is_withheld_or_only_holds_a_denied_one(
    person: Resident,
) -> None:
    """Behind the wall, its program sees it without the denied project."""
    inner = person.parent / "web" / "inner"
    person.git("clone", "-q", str(person.origin), str(inner))
    person.rootsd("approve", "web", "--yes")
    person.rootsd("deny", str(inner))
    done = confined(person, person.parent / "web", "--", "sh", "-c", "ls; ls inner")
    assert "closed;" not in done.stderr
    assert done.stdout.split() == ["README", "inner", "sub"]
    done = confined(person, inner, "--", "sh", "-c", "pwd; ls -A")
    assert done.stdout == f"{inner}\n"
    person.rootsd("forget", str(inner))
    shutil.rmtree(inner)


def test_an_approval_for_the_session_is_for_this_wall_alone_and_ends_with_it(
    person: Resident,
) -> None:
    program = start(person, person.parent / "web", "confine", "--name", "me", "--", "cat")
    program.expect_exact(_QUESTION)
    program.send("s")
    program.expect_exact(f"only for the session of me, pid {program.pid}")
    program.expect("the network is on|closed:")
    [item] = person.items("show", "web")
    assert (item["verdict"], item["session"]) == ("approved", f"me, pid {program.pid}")
    words = ("--all", "--", "sh", "-c", "ls; touch made")
    other = confined(person, person.parent, *words[:-1], f"ls {person.parent}")
    assert other.stdout.split() == ["api"]
    program.sendeof()
    program.expect(pexpect.EOF)
    until(lambda: verdicts(person)["web"] == "pending")


def test_the_program_of_a_session_approval_can_write(person: Resident) -> None:
    made = person.parent / "web" / "made"
    program = start(person, made.parent, "confine", "--", "touch", "made")
    program.expect_exact(_QUESTION)
    program.send("s")
    program.expect(pexpect.EOF)
    made.unlink()


def test_a_no_starts_the_program_in_an_empty_folder_until_an_approval(person: Resident) -> None:
    program = start(person, person.parent / "web" / "sub", "confine", "--", *_SHELL.split())
    program.expect_exact(_QUESTION)
    program.send("?")
    program.expect_exact("n  start without it")
    program.expect_exact(_QUESTION)
    program.send("n")
    web = person.parent / "web"
    program.expect_exact(f"~/src/web is pending, so it is closed; try: rootsd approve {web}")
    program.expect_exact("in$")
    program.sendline("pwd; ls -A; touch a; touch ../a; echo end")
    program.expect_exact(f"{web}/sub\r\ntouch: cannot touch 'a': Read-only file system")
    program.expect_exact("touch: cannot touch '../a': Read-only file system")
    program.expect_exact("end\r\nin$")
    person.rootsd("approve", "web")
    program.expect_exact(f"rootsd: ~/src/web {_RETURN}")
    program.sendline('cd "$PWD"; cat file')
    program.expect_exact("text\r\nin$")
    person.rootsd("deny", "web")
    program.expect_exact("web was denied")
    program.sendline('cd "$PWD"; echo "left: $(ls -A)."')
    program.expect_exact("left: .\r\n")
    person.rootsd("approve", "web")
    program.expect_exact(_RETURN)
    program.sendline('cd "$PWD"; cat file')
    program.expect_exact("text\r\nin$")
    program.close(force=True)


@pytest.mark.parametrize("words", [("--no-input", "confine"), ("confine", "--no-input")])
def test_nobody_is_asked_with_no_input(person: Resident, words: tuple[str, ...]) -> None:
    program = start(person, person.parent / "web", *words, "--", "echo", "started")
    program.expect_exact("try: rootsd approve")
    program.expect_exact("started")
    program.expect(pexpect.EOF)
    assert verdicts(person)["web"] == "pending"


def test_nobody_is_asked_if_the_scope_leaves_the_folder_out_or_nothing_starts(
    person: Resident,
) -> None:
    for words in (("--only", "api", "--", "pwd"), ("--show",)):
        program = start(person, person.parent / "web", "confine", *words)
        program.expect(pexpect.EOF)
        said = str(program.before)
        assert "Approve it?" not in said
        assert ("src/web" in said) is (words == ("--show",))


def test_the_guard_decides_about_the_answer(tmp_path: Path) -> None:
    """The tests are no program of a person. The control: without a guard, a key is enough."""
    person = Person(tmp_path, guard="agents")
    person.clone("web")
    person.run("up", str(person.parent))
    program = start(person, person.parent / "web", "confine", "--", "echo", "started")
    program.expect_exact(_QUESTION)
    program.send("y")
    program.expect_exact("to go on: ")
    program.sendline("wrong")
    program.expect(pexpect.EOF)
    assert "started" not in str(program.before)
    program.close()
    assert program.exitstatus != 0
    assert verdicts(person)["web"] == "pending"
    person.run("down")


def test_quiet_hides_everything_but_a_closed_start_folder(person: Resident) -> None:
    done = confined(person, person.parent / "web", "--quiet", "--", "true")
    [line] = done.stderr.splitlines()
    assert "is pending, so it is closed" in line
    assert confined(person, person.parent / "api", "--quiet", "--", "true").stderr == ""


def test_without_a_terminal_the_start_says_what_opens_the_folder(person: Resident) -> None:
    for folder, verdict, said in (
        ("src/web", "forget", "~/src/web is pending, so it is closed; try: rootsd approve "),
        ("src/web/sub", "deny", "~/src/web is denied, so it is closed; try: rootsd why "),
        ("notes", "forget", "~/notes is no project, so it is closed; try: rootsd approve "),
        ("src", "forget", None), ("/tmp", "forget", None), ("/proc", "forget", None),
        ("/", "forget", None), (".", "forget", None), ("/usr", "forget", None),
        ("src/api", "forget", None),
    ):  # fmt: skip
        person.rootsd(verdict, "web")
        where = (person.home / folder).resolve()
        done = confined(person, where, "--", "sh", "-c", "pwd")
        assert done.stdout == f"{where}\n"
        assert said in done.stderr if said else "so it is closed" not in done.stderr


def test_a_denied_folder_stays_masked_in_a_folder_that_an_option_shows(person: Resident) -> None:
    """The start folder must not count as something of its own there."""
    where = person.parent / "web" / "sub"
    words = ("--read", str(person.parent), "--", "sh", "-c", f"cat {where}/file || true")
    for folder in (where, where.parent):
        person.rootsd("forget", "web")
        assert confined(person, folder, *words).stdout == "text\n", "the control: not denied"
        person.rootsd("deny", "web")
        assert confined(person, folder, *words).stdout == ""


def test_with_a_fixed_view_the_program_must_start_again(person: Resident) -> None:
    done = confined(person, person.parent / "web", "--static", "--", "sh", "-c", "ls $OLDPWD")
    assert "~/src/web is pending, so it is closed" in done.stderr
