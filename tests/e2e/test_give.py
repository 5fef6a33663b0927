"""`rootsd give`: a running program behind the wall gets copies of files, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pexpect
import pytest

from rootsd.core.errors import Exit
from rootsd.wall.kernel.skeleton import Mounted, Skeleton
from rootsd.wall.session.given_files import CannotRead, read_file
from support.person import HANG_GUARD, Person, Resident
from support.polling import until

pytestmark = [pytest.mark.needs("wall")]

_END = "the end of a command"
_LOOP = f'while IFS= read -r line; do eval "$line" 2>&1; echo "{_END}"; done'


ATTACKS = (
    "echo x >> {0}", "rm -f {0}", "mv {0} {0}.x", "chmod 777 {0}", "ln -sfn /etc/passwd {0}",
    "touch -d 2001-01-01 {0}", "truncate -s 0 {0}",
)  # fmt: skip


class Inside:
    """A shell behind the wall, which runs commands while it lives."""

    def __init__(self, person: Person, folder: Path, *flags: str, name: str = "agent") -> None:
        words = ["confine", "--name", name, *flags, "--", "sh", "-c", _LOOP]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rootsd", *words], env=person.environment(), cwd=folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            errors="replace",
        )  # fmt: skip
        self.run("true")

    def run(self, command: str) -> str:
        """Run a command, and return what it printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        printed = ""
        for line in self._process.stdout:
            if line == f"{_END}\n":
                return printed
            printed += line
        raise AssertionError("the program has ended")

    def close(self) -> None:
        """End the program, and wait for that."""
        self._process.communicate(timeout=HANG_GUARD)


class World:
    """A person with an approved project and a running program, and files elsewhere."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.project = person.parent / "api"
        self.folder = person.home / "Downloads" / "new"
        self.shot = self.folder / "shot.png"
        self.walls = person.home / "rootsd" / "state" / "confine"
        self.inside = Inside(person, self.project)

    def give(self, *words: str | Path) -> tuple[int, str]:
        """Give files to the program. Return the exit status, and what was said."""
        done = self.person.run("give", *map(str, words), "--to", "agent")
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resident]:
    """Yield the person of all tests."""
    person = Resident(tmp_path_factory.mktemp("house"))
    person.clone("api")
    person.run("up", str(person.parent))
    assert person.run("approve", "api").returncode == Exit.OK
    shot = person.home / "Downloads" / "new" / "shot.png"
    shot.parent.mkdir(parents=True)
    shot.write_bytes(b"\x89PNG\0pixels\n")
    yield person
    person.run("down")


@pytest.fixture
def world(house: Resident) -> Iterator[World]:
    world = World(house)
    with closing(world.inside):
        yield world


def test_the_program_gets_a_copy_that_it_cannot_change_until_it_ends(world: World) -> None:
    shot, note = world.shot, world.person.home / "note.txt"
    note.write_text("one\n")
    assert world.inside.run(f"cat {note}") != "one\n"
    assert world.give(shot, note) == (Exit.OK, f"agent\t{shot}\tgiven\nagent\t{note}\tgiven\n")
    assert world.inside.run(f"cat {note}; od -c {shot} | head -1") == (
        "one\n0000000 211   P   N   G  \\0   p   i   x   e   l   s  \\n\n"
    )
    note.write_text("two\n")
    assert world.inside.run(f"cat {note}") == "one\n"
    for file in (shot, note):
        for attack in ATTACKS:
            typed = f"({attack.format(file)}) || echo refused"
            assert world.inside.run(typed).endswith("refused\n"), attack
    for attack in ATTACKS:  # the control: a file of the program itself
        typed = f"rm -f ~/own; echo one > ~/own; ({attack.format('~/own')}) || echo refused"
        assert world.inside.run(typed) == "", attack
    assert world.inside.run(f"mkdir {shot.parent}/x || echo refused").endswith("refused\n")
    assert note.read_text() == "two\n"
    assert "given" in os.listdir(world.walls / "agent" / "0")
    assert "command\tgive" in world.person.run("log").stdout
    world.inside.close()
    until(lambda: "given" not in os.listdir(world.walls / "agent" / "0"))


def test_a_path_where_the_program_sees_something_is_refused_with_a_reason(world: World) -> None:
    (world.project / "new").write_text("x\n")
    (world.person.home / "made").mkdir()
    for name in ("made/inner", "own"):
        (world.person.home / name).write_text("outside\n")
    world.inside.run("mkdir ~/made; echo mine > ~/made/file; echo mine > ~/own")
    refused = {
        world.project / "new": "something at this path already",
        Path("/etc/hostname"): "something at this path already",
        world.person.home / "made" / "inner": "have made",
        world.person.home / "own": "something at this path already",
    }
    for path, why in refused.items():
        status, said = world.give(path)
        assert (status, why in said) == (Exit.REFUSED, True), said
    assert world.inside.run("cat ~/made/file ~/own") == "mine\nmine\n"
    assert os.listdir(world.walls / "agent" / "0" / "given") == []
    assert world.give(world.shot)[0] == Exit.OK


def test_a_later_denial_takes_the_copy_away_and_a_denied_file_is_not_given(world: World) -> None:
    assert world.give(world.shot)[0] == Exit.OK
    assert world.person.run("deny", str(world.folder.parent)).returncode == Exit.OK
    until(lambda: world.inside.run(f"cat {world.shot}") == "")
    (world.folder / "other").write_text("x\n")
    status, said = world.give(world.folder / "other")
    assert (status, "it is denied" in said) == (Exit.REFUSED, True)
    world.person.run("forget", str(world.folder.parent))
    until(lambda: "PNG" in world.inside.run(f"cat {world.shot} | tr -d '\\0\\211'"))


def test_an_approval_shows_the_folder_itself_and_its_end_the_copy_again(world: World) -> None:
    with closing(Inside(world.person, world.project, "--all", name="other")) as inside:
        note = world.folder / "note"
        note.write_text("one\n")
        assert world.person.run("give", str(note), "--to", "other").returncode == Exit.OK
        note.write_text("two\n")
        assert inside.run(f"cat {note}") == "one\n"
        assert world.person.run("add", str(world.folder)).returncode == Exit.OK
        assert world.person.run("approve", str(world.folder)).returncode == Exit.OK
        until(lambda: inside.run(f"cat {note}") == "two\n")
        assert world.person.run("forget", str(world.folder)).returncode == Exit.OK
        until(lambda: inside.run(f"cat {note}") == "one\n")


def test_what_may_be_a_secret_is_not_given_without_a_person(world: World) -> None:
    home = world.person.home
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_ed25519").write_text("x\n")
    (home / "plain").write_text("hello\n")
    (home / "conf.txt").write_text("api_key = sk_live_0123456789abcdefghij\n")
    (home / ".env").write_text("A=1\n")
    (home / "innocent").symlink_to(home / ".ssh" / "id_ed25519")
    for file in map(home.joinpath, ("innocent", "conf.txt", ".env", ".ssh/id_ed25519")):
        status, said = world.give(home / "plain", file)
        assert (status, "nothing was given" in said) == (Exit.REFUSED, True), file
        assert world.inside.run(f"cat {home}/plain {file} && echo shown") != "shown\n"
    words = ["-m", "rootsd", "give", str(home / "innocent"), "--to", "agent"]
    child = pexpect.spawn(
        sys.executable, words, env={**world.person.environment(), "TERM": "xterm"},
        timeout=HANG_GUARD, encoding="utf-8", dimensions=(30, 200),
    )  # fmt: skip
    with closing(child):
        child.expect_exact("Give it to agent? [y/N] ")
        child.send("y")
        child.expect_exact("given")
        child.expect(pexpect.EOF)
    assert world.inside.run(f"cat {home}/.ssh/id_ed25519") == "x\n"


def test_what_is_no_file_of_usual_size_is_refused_at_once(world: World) -> None:
    home = world.person.home
    os.mkfifo(home / "fifo")
    with (home / "large").open("wb") as file:
        file.truncate((16 << 20) + 1)
    (home / "loop").symlink_to("loop")
    for path in (home / "fifo", home / "large", home / "loop", home / "no", home, "/dev/zero"):
        status, said = world.give(path)
        assert (status, "try: " in said) == (Exit.REFUSED, True), (path, said)


def test_a_link_that_another_program_puts_on_the_way_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, file = tmp_path / "shared", os.fsencode(tmp_path / "shared" / "file")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "file").write_text("of another folder\n")
    shared.mkdir()
    (shared / "file").write_text("of this one\n")
    monkeypatch.setattr(os.path, "realpath", lambda path: path)  # it was so before the link
    assert read_file(os.fsdecode(file)).content == b"of this one\n", "the control"
    (shared / "file").unlink()
    shared.rmdir()
    shared.symlink_to(tmp_path / "own")
    with pytest.raises(CannotRead):
        read_file(os.fsdecode(file))


def test_a_hostile_name_is_only_a_name(world: World) -> None:
    file = world.folder / "$(touch pwned)\x1b[2J\n;x"
    file.write_text("content\n")
    status, said = world.give(file)
    assert status == Exit.OK
    assert "\x1b" not in said
    assert world.inside.run(f"cat {world.folder}/*") == "content\n"


def test_no_agent_gives_itself_a_file(world: World) -> None:
    said = world.inside.run(f"{sys.executable} -m rootsd give /etc/hostname; echo $?")
    assert not said.endswith("0\n")
    assert world.person.run("guard", "agents").returncode == Exit.OK
    give = ("give", str(world.shot), "--to", "agent")
    done = world.person.run(*give, within=("env", "CLAUDE_CODE_CHILD_SESSION=1"))
    assert (done.returncode, "Claude Code" in done.stderr) == (Exit.REFUSED, True), done.stderr
    assert os.listdir(world.walls / "agent" / "0" / "given") == []
    assert world.person.run(*give).returncode == Exit.OK
    assert world.person.run("guard", "off").returncode == Exit.OK


def test_the_program_is_the_one_that_sees_this_project(world: World) -> None:
    def give(folder: Path, *more: str, file: Path = world.shot) -> tuple[int, str]:
        done = world.person.run("give", str(file), *more, within=("env", "-C", os.fspath(folder)))
        return done.returncode, done.stdout + done.stderr

    assert give(world.person.home)[0] == Exit.NOTHING_MATCHED
    assert give(world.person.home, file=world.person.home / "no")[0] == Exit.REFUSED
    assert give(world.project, "--to", "nobody")[0] == Exit.NOTHING_MATCHED
    assert "would be given" in give(world.project, "--dry-run")[1]
    assert world.inside.run(f"cat {world.shot} && echo shown") != "shown\n"
    assert not world.walls.joinpath("agent", "0", "given").exists()
    assert give(world.project)[0] == Exit.OK
    with closing(Inside(world.person, world.project, "--static", name="static")) as second:
        status, said = give(world.project)
        assert status == Exit.NOTHING_MATCHED
        assert "more than one program sees this folder: agent (pid" in said
        confined = json.loads(world.person.run("sessions", "--json").stdout)["confined"]
        [static] = [each for each in confined if each["engine"] == "static"]
        status, said = give(world.person.home, "--to", str(static["pid"]))
        assert (status, "with --static" in said) == (Exit.REFUSED, True)
        assert "PNG" not in second.run("cat ~/Downloads/new/shot.png")


def test_a_program_that_plants_links_all_the_time_reaches_nothing_outside(world: World) -> None:
    """It may prevent that it gets the file, and no more. The control is below."""
    home, target = world.person.home, world.person.home / "target"
    (home / "new").write_text("content\n")
    plant = (
        f"ln -s {target} ~/new; ln -s {target} ~/new/x; rm -rf ~/new; mkdir ~/new; rm -rf ~/new"
    )
    world.inside.run(f"while :; do {plant}; done >/dev/null 2>&1 &")
    for _ in range(10):
        status, said = world.give(home / "new")
        if status == Exit.OK:
            break
        assert "new\t" in said  # the warden has answered, with the reason
    assert not target.exists()
    assert (home / "new").read_text() == "content\n"
    assert world.person.run("status").returncode == Exit.OK
    assert world.inside.run("echo alive") == "alive\n"


def test_a_link_that_a_program_puts_there_leads_nowhere(tmp_path: Path) -> None:
    """The warden sees all files outside. The control: opened by its path, the link leads there."""
    outside = tmp_path / "outside"
    skeleton = Skeleton(os.fsencode(tmp_path))
    for folder in (skeleton.root, skeleton.folder):
        os.makedirs(folder + b"/home")
    skeleton.mounted[b"/home"] = Mounted.PRIVATE
    trap = skeleton.root + b"/home/trap"
    os.symlink(outside, trap)
    for path in (b"/home/trap", b"/home/trap/file"):
        with pytest.raises(OSError, match=r"see|made"):
            skeleton.make_place_for_given(path)
    assert not outside.exists()
    skeleton.make_place_for_given(b"/home/free")
    assert os.path.isfile(skeleton.root + b"/home/free")
    os.close(os.open(trap, os.O_CREAT | os.O_WRONLY))
    assert outside.exists()


def test_an_approved_root_is_added_to_a_running_program_and_stays_with_the_next_daemon(
    house: Resident,
) -> None:
    web, secret = house.clone("web"), house.clone("secret")
    house.run("scan")
    assert house.run("approve", "web").returncode == Exit.OK
    with closing(Inside(house, house.parent / "api")) as inside:
        look = f"ls -d {web}/.git {secret}/.git 2>/dev/null"
        assert inside.run(look) == ""
        refused = house.run("add-to-session", "secret", "--to", "agent")
        assert (refused.returncode, "secret is pending" in refused.stderr) == (Exit.PENDING, True)
        done = house.run("add-to-session", "web", "--to", "agent", "--json")
        (item,) = json.loads(done.stdout)["items"]
        assert (item["program"], item["name"], item["result"]) == ("agent", "web", "added")
        assert inside.run(look) == f"{web}/.git\n"
        assert inside.run(f"echo x > {web}/new && cat {web}/new") == "x\n"
        house.run("down")
        house.run("up")
        until(lambda: json.loads(house.run("sessions", "--json").stdout)["confined"])
        assert inside.run(look) == f"{web}/.git\n"
        house.run("deny", "web")
        until(lambda: inside.run(look) == "")
