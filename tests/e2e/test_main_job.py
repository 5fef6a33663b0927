"""The main job with real processes: a new clone is found and approved, and clients get it live."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio import to_thread

from support.person import Person, Start
from support.sdk_clients import legacy_client, modern_client, published
from support.sizes import Sizes
from support.subprocesses import UNPRIVILEGED

# The SDK deprecates parts that its own legacy mode still uses.
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture
def user(tmp_path: Path) -> Iterator[Person]:
    """A person all of whose commands are programs, with nothing taken off their start."""
    user = Person(tmp_path, start=Start.PROGRAM)
    yield user
    user.run("down")


async def test_a_clone_is_found_approved_published_and_withdrawn(user: Person) -> None:
    user.clone("first")
    out = user.rootsd("up", str(user.parent))
    assert "first" in out or user.names("pending") == ["first"]
    async with legacy_client(user) as (legacy, told), modern_client(user) as (modern, heard):
        assert await published(legacy) == []

        second = await to_thread.run_sync(user.clone, "second")
        await to_thread.run_sync(user.wait_until_listed, "second", "pending")
        assert await published(modern) == []

        for change, expected in (
            (lambda: user.rootsd("approve", "second"), ["second"]),
            (lambda: user.rootsd("deny", "second"), []),
            (lambda: user.rootsd("approve", "second"), ["second"]),
            (lambda: shutil.rmtree(second), []),
        ):
            await to_thread.run_sync(change)
            await told.next()
            await heard.next()
            assert await published(legacy) == expected
            assert await published(modern) == expected


@pytest.mark.parametrize("parent", ["first", "second"])
def test_a_project_created_just_before_up_can_be_approved_right_after_it(
    person: Person, parent: str
) -> None:
    """The log has the parent of each `up`, and that a person added it."""
    parents = []
    if parent == "second":  # the daemon already runs, and a parent is new
        parents.append(str(person.parent))
        person.rootsd("up", *parents)
    folder = person.home / parent
    parents.append(str(folder))
    person.git("init", "-q", str(folder / "api"))
    (folder / "api" / "file").write_text("a file\n")
    # A clone that fetched nothing counts as complete after half a second.
    person.git("-C", str(folder / "api"), "remote", "add", "origin", "https://git.example/api")
    person.rootsd("up", str(folder))
    person.rootsd("approve", "api")
    assert person.names("ls", "--published") == ["api"]
    person.rootsd("up", str(folder))
    added = [event for event in person.items("log") if event["verb"] == "parent added"]
    assert [(event["path"], event["actor"]) for event in added] == [
        (each, "person") for each in parents
    ]


def test_acknowledged_verdicts_survive_sigkill_between_any_two_steps(
    person: Person, rootsd_dir: Path, sizes: Sizes
) -> None:
    """The sockets of a killed daemon are replaced, and those of a running one are not."""
    person.clone("one")
    person.clone("two")
    person.rootsd("up", str(person.parent))
    steps = [
        (["approve", "one", "two", "--yes"], {"one": "approved", "two": "approved"}),
        (["deny", "two"], {"one": "approved", "two": "denied"}),
        (["forget", "one"], {"one": "pending", "two": "denied"}),
        (["approve", "two", "one", "--yes"], {"one": "approved", "two": "approved"}),
    ]
    for order, expected in sizes.pick(test=steps[:2], check=steps, soak=steps):
        person.rootsd(*order)
        pid = person.daemon_pid()
        second = person.run("daemon")
        assert (second.returncode, str(pid) in second.stderr) == (75, True), second.stderr
        os.kill(pid, signal.SIGKILL)
        assert (rootsd_dir / "run" / "ctl" / "control.sock").exists()
        person.rootsd("up")
        assert {item["name"]: item["verdict"] for item in person.items("ls")} == expected
        approved = sorted(name for name, verdict in expected.items() if verdict == "approved")
        assert person.names("ls", "--published") == approved


def test_a_folder_replaced_while_the_daemon_is_down_loses_its_approval(person: Person) -> None:
    clone = person.clone("one")
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", "one")
    person.rootsd("down")
    shutil.rmtree(clone)
    person.clone("one")
    person.rootsd("up")
    assert person.names("ls", "--published") == []
    assert [item["lapsed"] for item in person.items("pending")] == ["replaced"]


def test_an_unsuitable_parent_is_refused_and_nothing_is_written(
    person: Person, rootsd_dir: Path
) -> None:
    file = person.home / "file"
    file.touch()
    config = rootsd_dir / "config" / "config.toml"
    before = config.read_bytes()
    for bad in (person.home / "nowhere", file, Path("/"), person.home.parent):
        done = person.run("up", str(bad))
        assert done.returncode != 0, bad
        assert str(bad) in done.stderr
        assert config.read_bytes() == before


def test_a_damaged_configuration_is_refused_with_its_line_and_loses_nothing(
    person: Person, rootsd_dir: Path
) -> None:
    person.clone("one")
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", "one")
    person.rootsd("down")
    config = rootsd_dir / "config" / "config.toml"
    good = config.read_text()
    config.write_text(good + "\n[[parent]]\npaht = '/x'\n")
    done = person.run("up")
    assert done.returncode == 78
    assert "config.toml" in done.stderr
    assert "paht" in done.stderr
    assert "path" in done.stderr
    config.write_text(good)
    person.rootsd("up")
    assert person.names("ls", "--published") == ["one"]


@pytest.mark.needs("setpriv")
def test_a_state_folder_that_cannot_be_written_is_named_and_nothing_starts(
    person: Person, rootsd_dir: Path
) -> None:
    person.rootsd("up", str(person.parent))
    person.rootsd("down")
    (rootsd_dir / "state").chmod(0o500)
    (rootsd_dir / "state" / "decisions.db").chmod(0o400)
    done = person.run("up", within=UNPRIVILEGED)
    assert done.returncode != 0
    assert str(rootsd_dir / "state") in done.stderr
    assert "Traceback" not in done.stderr
    assert person.run("status").returncode == 69
    (rootsd_dir / "state").chmod(0o700)
    (rootsd_dir / "state" / "decisions.db").chmod(0o600)


def test_under_a_umask_of_zero_everything_is_still_private(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "of mine" / "top"
    monkeypatch.setenv("ROOTSD_DIR", str(top))
    person.clone("one")
    parent, within = str(person.parent), ("sh", "-c", 'umask 000 && exec "$@"', "sh")
    for words in (("parent", "add", parent), ("up",)):
        done = person.run(*words, within=within)
        assert done.returncode == 0, done.stderr
    person.rootsd("parent", "set", parent, "--depth", "5")  # the daemon writes the file again
    found = [top.parent, top, *top.rglob("*")]
    assert {top / "config/config.toml", top / "data", top / "run/pub/mcp.sock"} < set(found)
    assert [path for path in found if path.lstat().st_mode & 0o077] == []


def test_a_damaged_start_file_is_not_reported_as_a_bug(person: Person) -> None:
    """The control is the exit status: a bug is 1, and an unreachable daemon is 69."""
    person.rootsd("up", str(person.parent))
    person.run("down")
    state = Path(os.environ["ROOTSD_DIR"]) / "state"
    (state / "stopped").unlink()
    (state / "start.json").write_text("[" * 100_000)
    for words in (("status",), ("pending", "--count"), ("bridge",), ("check", "/x")):
        done = person.run(*words)
        assert "this is a bug" not in done.stderr
        assert "Traceback" not in done.stderr
        if words != ("bridge",):
            assert done.returncode == 69, (words, done)
    assert person.run("up").returncode == 0


def test_check_answers_by_its_exit_code_and_names_are_references_for_it_and_for_why(
    person: Person,
) -> None:
    """What exists is a path: a project cannot take the place of a folder by its name."""
    api = person.clone("api")
    person.clone("web")
    person.rootsd("up", str(person.parent))
    person.rootsd("approve", "api")
    (id_,) = [item["id"] for item in person.items("ls") if item["name"] == "api"]
    assert person.run("check", str(api / "README")).returncode == 0
    for word in ("api", id_, "ap[i]", "src/api"):
        assert person.run("check", word).returncode == 0, word
        assert json.loads(person.rootsd("why", word, "--json"))["path"] == str(api), word
    assert person.run("check", "web").returncode == 3
    assert person.run("check", "none").returncode == 5
    assert person.run("check", str(person.origin)).returncode == 5
    for verb in ("check", "why"):
        several = person.run(verb, "*")
        assert (several.returncode, "api" in several.stderr, "web" in several.stderr) == (
            6,
            True,
            True,
        )
    person.rootsd("deny", "api")
    assert person.run("check", "api").returncode == 4
    person.rootsd("down")
    assert person.run("check", str(api)).returncode == 69
