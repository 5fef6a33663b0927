"""Which folders may be parents, and how parents are written to the configuration."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rootsd.cli.answers import config_edit
from rootsd.cli.answers.config_edit import BadParent, UnknownParent
from rootsd.cli.answers.invocation import Invocation
from rootsd.config.configuration import read_config
from rootsd.core.errors import BadConfig
from rootsd.core.model import Parent
from support.subprocesses import OWN_MOUNTS, run_python
from support.terminal import Privileges, Shell


@pytest.fixture
def invocation(home: Path) -> Invocation:
    return Invocation()


def folder(home: Path, name: str = "src") -> Path:
    (home / name).mkdir(parents=True)
    return home / name


def configured(invocation: Invocation) -> tuple[Parent, ...]:
    return read_config(invocation.places.config_file).parents


def written(invocation: Invocation) -> str:
    return Path(os.fsdecode(invocation.places.config_file)).read_text()


def test_a_good_parent_is_returned_in_its_canonical_form(
    invocation: Invocation, home: Path
) -> None:
    folder(home)
    (home / "link").symlink_to("src")
    assert config_edit.validate_parent(invocation, "~/link/../link") == bytes(home / "src")
    assert config_edit.validate_parent(invocation, "~") == bytes(home)


@pytest.mark.parametrize(
    ("typed", "why", "remedy"),
    [
        *((each, r"cannot be a parent: (it|/)", "rootsd up ~/src")
          for each in ("/", "/etc", "/tmp", "~/.ssh", "~/..")),
        ("~/nowhere/at/all", "/nowhere/at/all does not exist", "ls HOME"),
        ("~/file", "file is not a folder", "rootsd up HOME"),
        ("~/file/x", "Not a directory", ""),
        (os.fsdecode(b"~/\xff"), "not UTF-8", ""),
        ("STATE", "contains rootsd's own files", ""),
    ],
)  # fmt: skip
def test_a_refused_place_says_why(
    invocation: Invocation, home: Path, rootsd_dir: Path, typed: str, why: str, remedy: str
) -> None:
    for name in (".ssh", os.fsdecode(b"\xff")):
        folder(home, name)
    (home / "file").touch()
    state = folder(rootsd_dir, "state")
    with pytest.raises(BadParent, match=why) as caught:
        config_edit.validate_parent(invocation, typed.replace("STATE", str(state)))
    assert remedy.replace("HOME", str(home)) in caught.value.remedy


BOUND = """
import subprocess, sys
from rootsd.cli.answers import config_edit
from rootsd.cli.answers.invocation import Invocation
src, again = sys.argv[1:]
subprocess.run(["mount", "--bind", src, again], check=True)
invocation = Invocation()
config_edit.add_parents(invocation, [config_edit.validate_parent(invocation, src)], {})
assert config_edit.validate_parent(invocation, src) == src.encode()
try:
    config_edit.validate_parent(invocation, again)
except config_edit.BadParent as error:
    print(error)
"""


@pytest.mark.needs("namespaces")
def test_a_parent_under_another_name_is_refused(home: Path) -> None:
    src, again = folder(home), folder(home, "again")
    expected = f"{again} is the same folder as the parent {src}\n"
    assert run_python(OWN_MOUNTS, BOUND, src, again) == (expected, "")


@pytest.mark.needs("setpriv")
@pytest.mark.parametrize("mode", [0o000, 0o300, 0o400])
def test_a_folder_that_cannot_be_read_is_refused_and_nothing_is_written(
    shell: Shell, home: Path, rootsd_dir: Path, mode: int
) -> None:
    closed = folder(home)
    closed.chmod(mode)
    done = shell.program("up", str(closed), privileges=Privileges.DROPPED)
    closed.chmod(0o700)
    assert (done.status, done.out) == (1, "")
    assert done.err == f"error: you cannot read {closed}\n  try: ls -ld {closed}\n"
    assert not (rootsd_dir / "config").exists()


def test_new_parents_are_written_once_and_short(invocation: Invocation, home: Path) -> None:
    paths = [bytes(folder(home)), b"/srv/work", bytes(home / "src")]
    assert config_edit.add_parents(invocation, paths, {}) == [bytes(home / "src"), b"/srv/work"]
    assert config_edit.add_parents(invocation, paths, {}) == []
    assert configured(invocation) == (Parent(bytes(home / "src")), Parent(b"/srv/work"))
    assert 'path = "~/src"' in written(invocation)


def test_settings_are_written_with_the_parent(invocation: Invocation) -> None:
    config_edit.add_parents(
        invocation, [b"/srv/work"], {"depth": 2, "skip": ["a"], "nested": "vcs"}
    )
    (parent,) = configured(invocation)
    assert (parent.depth, parent.skip, parent.nested.value) == (2, (b"a",), "vcs")


def test_a_parent_is_changed_and_removed_by_any_spelling(
    invocation: Invocation, home: Path
) -> None:
    config_edit.add_parents(invocation, [bytes(folder(home)), b"/srv/work"], {})
    (home / "link").symlink_to("src")
    assert config_edit.change_parent(invocation, "~/link", {"depth": 9}) == bytes(home / "src")
    assert configured(invocation)[0].depth == 9
    assert config_edit.remove_parent(invocation, str(home / "link")) == bytes(home / "src")
    assert configured(invocation) == (Parent(b"/srv/work"),)


def test_a_parent_that_is_gone_from_disk_can_still_be_removed(
    invocation: Invocation, home: Path
) -> None:
    path = folder(home)
    config_edit.add_parents(invocation, [bytes(path)], {})
    path.rmdir()
    assert config_edit.remove_parent(invocation, "~/src") == bytes(path)
    assert configured(invocation) == ()


@pytest.mark.parametrize(
    "change", [config_edit.remove_parent, lambda s, t: config_edit.change_parent(s, t, {})]
)
def test_a_folder_that_is_not_a_parent_is_named(invocation: Invocation, change: object) -> None:
    assert callable(change)
    config_edit.add_parents(invocation, [b"/srv/work"], {})
    for typed, meant in (("/srv", []), ("/srv/nothere", []), ("/srv/wrok", ["/srv/work"])):
        with pytest.raises(UnknownParent, match=f"{typed} is not a parent") as caught:
            change(invocation, typed)
        assert (caught.value.remedy, caught.value.choices) == ("rootsd parent ls", tuple(meant))


def test_a_damaged_configuration_is_not_written_to(invocation: Invocation) -> None:
    file = Path(os.fsdecode(invocation.places.config_file))
    file.parent.mkdir(parents=True)
    file.write_text("[[parent]]\npaht = '/srv/work'\n")
    with pytest.raises(BadConfig, match=r"line 2, key parent\[0\]\.paht"):
        config_edit.add_parents(invocation, [b"/srv/work"], {})
    assert file.read_text() == "[[parent]]\npaht = '/srv/work'\n"
