"""What programs install and cache is kept by name, stays behind the wall, and is on disk."""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import re
import select
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest

from rootsd.wall.kernel.landlock import AttachedGuarantee
from rootsd.wall.kernel.own_storage import OwnStorage
from rootsd.wall.kernel.warden import WallSetupFailed
from rootsd.wall.session.engines import NamespaceWall
from rootsd.wall.session.kept_names import remove_left
from support.polling import until
from support.walls import Wall, Weakness

pytestmark = [pytest.mark.needs("wall")]

MakeWall = Callable[..., Wall]
LOGIN = ".nvm/versions/node/v1/etc/npmrc"
HOSTILE = b"user.overlay.redirect"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with a toolchain, and a cache in a folder that is otherwise private."""
    home = tmp_path / "home"
    for name in (".local/bin/tool", ".cache/pip/a", ".cache/browser/page", ".nvm/versions/x"):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text("outside")
    return home


@pytest.fixture
def make_wall(tmp_path: Path, home: Path) -> Iterator[MakeWall]:
    slots = itertools.count()  # a warden may still end when the next wall starts

    with ExitStack() as walls:

        def make(name: str = "name", *weaknesses: Weakness) -> Wall:
            folder = tmp_path / "walls" / name
            slot = folder / str(next(slots))
            return walls.enter_context(
                Wall(slot, home, kept=folder / "kept", weaknesses=weaknesses)
            )

        yield make


def write(wall: Wall, path: Path) -> None:
    wall.run(f"""
os.makedirs({os.path.dirname(path)!r}, exist_ok=True)
with open({str(path)!r}, "w") as file: file.write("inside")
""")


def content(wall: Wall, path: Path) -> str:
    """Return the content of a file inside, or the name of the error."""
    return wall.error_of(f"content({str(path)!r})") or str(
        wall.run(f"result = read({str(path)!r}).decode()")
    )


def files_in(folder: Path) -> dict[Path, str]:
    return {path: path.read_text() for path in folder.rglob("*") if path.is_file()}


INSTALLED = (
    ".local/bin/tool",
    ".local/bin/new",
    ".local/lib/python/site-packages/x",
    ".cache/pip/b",
    ".cache/any/thing",
    ".cargo/bin/new",
    ".nvm/versions/y/bin/node",
)


def test_what_a_program_installs_the_next_one_of_its_name_has_and_nobody_else(
    home: Path, make_wall: MakeWall
) -> None:
    before = files_in(home)
    with make_wall() as first:
        assert content(first, home / ".local/bin/tool") == "outside"
        for name in INSTALLED:
            write(first, home / name)
    assert files_in(home) == before
    with make_wall() as second, make_wall("other") as other:
        assert {content(second, home / name) for name in INSTALLED} == {"inside"}
        assert content(second, home / ".cache/pip/a") == "outside"
        assert content(other, home / ".local/bin/tool") == "outside"
        assert {content(other, home / name) for name in INSTALLED[1:]} == {"ENOENT"}


def test_the_cache_of_a_browser_is_not_shown(home: Path, make_wall: MakeWall) -> None:
    assert content(make_wall(), home / ".cache/browser/page") == "ENOENT"
    assert content(make_wall("other"), home / ".cache/pip/a") == "outside"


def test_programs_of_one_name_at_once_share_what_they_install(
    home: Path, make_wall: MakeWall
) -> None:
    first, second = make_wall(), make_wall()
    write(first, home / ".local/bin/one")
    assert content(second, home / ".local/bin/one") == "inside"
    first.close()
    third = make_wall()  # only the second one has the mounts now
    write(second, home / ".local/bin/two")
    assert content(third, home / ".local/bin/two") == "inside"
    second.close()
    third.close()
    with make_wall() as last:
        assert content(last, home / ".local/bin/one") == "inside"
        assert content(last, home / ".local/bin/two") == "inside"


def test_if_another_program_of_the_name_does_not_answer_changes_are_not_kept(
    home: Path, make_wall: MakeWall
) -> None:
    first = make_wall()
    os.kill(first.warden_pid, signal.SIGSTOP)
    try:
        with make_wall() as second:
            write(second, home / ".local/bin/new")
            assert content(second, home / ".local/bin/tool") == "outside"
            os.kill(first.warden_pid, signal.SIGCONT)
            third = make_wall()  # the first one answers now
            assert content(third, home / ".local/bin/new") == "ENOENT"
            write(third, home / ".local/bin/newer")
    finally:
        os.kill(first.warden_pid, signal.SIGCONT)
    assert content(first, home / ".local/bin/new") == "ENOENT"
    assert content(first, home / ".local/bin/newer") == "inside"


def test_if_another_program_of_the_name_ends_when_it_is_asked_changes_are_kept(
    tmp_path: Path, home: Path, make_wall: MakeWall, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "walls/name/kept"
    kept.mkdir(parents=True)
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as ending,
        monkeypatch.context() as at,
    ):
        at.chdir(kept)
        ending.bind("wall-1")
        ending.listen()

        def end_when_asked() -> None:
            select.select([ending], [], [])
            ending.close()

        end = Thread(target=end_when_asked)
        end.start()
        with make_wall() as first:
            write(first, home / ".local/bin/new")
        end.join()
    assert content(make_wall(), home / ".local/bin/new") == "inside"


@pytest.mark.parametrize("name", ["", "tmp", "var/tmp"])
def test_a_private_folder_is_on_the_disk_until_the_end(
    tmp_path: Path, home: Path, make_wall: MakeWall, name: str
) -> None:
    place = home if not name else Path("/", name)
    with make_wall() as wall:
        write(wall, place / "new" / "deep")
        wall.run(f"os.chmod({str(place / 'new')!r}, 0)")
        assert len(list((tmp_path / "walls").rglob("new"))) == 1
    until(lambda: not list((tmp_path / "walls/name/0").glob("run-*")))
    assert not (home / "new").exists()


def test_what_a_killed_program_left_is_removed_at_the_next_start(
    tmp_path: Path, home: Path, make_wall: MakeWall
) -> None:
    wall = make_wall()
    write(wall, home / "new")
    wall.process.send_signal(signal.SIGSTOP)
    os.kill(wall.warden_pid, signal.SIGKILL)
    wall.close()
    assert list((tmp_path / "walls").rglob("new"))
    name = tmp_path / "walls/name"
    with Wall(name / "0", home, kept=name / "kept") as next_one:
        assert content(next_one, home / "new") == "ENOENT"
        assert not list((tmp_path / "walls").rglob("new"))


def test_what_a_killed_program_left_is_removed_at_any_start_but_not_of_a_running_one(
    tmp_path: Path,
) -> None:
    walls = tmp_path / "confine"
    for slot in ("0", "1"):
        (walls / "name" / slot / "run-1/home").mkdir(parents=True)
        (walls / "name" / slot / "lock").touch()
    (walls / "name/0/run-1/home").chmod(0)
    (walls / "name/0/changes").mkdir()
    with (walls / "name/1/lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_left(bytes(walls))
    left = {str(path.relative_to(walls)) for path in walls.rglob("*") if path.is_dir()}
    kept = {"name", "name/0", "name/0/changes", "name/1"}
    assert left == kept | {"name/1/run-1", "name/1/run-1/home"}


def test_without_overlays_toolchains_are_read_only(home: Path, make_wall: MakeWall) -> None:
    wall = make_wall("name", Weakness.NO_OVERLAY)
    assert content(wall, home / ".local/bin/tool") == "outside"
    assert wall.error_of(f"make('{home}/.local/bin/new')") == "EROFS"
    write(wall, home / ".cache/any/thing")


@pytest.mark.needs("root")
def test_where_the_disk_cannot_hold_an_overlay_changes_are_in_memory(
    tmp_path: Path, home: Path, make_wall: MakeWall
) -> None:
    layers = [tmp_path / name for name in ("low", "up", "work", "walls")]
    for folder in layers:
        folder.mkdir()
    options = "lowerdir={},upperdir={},workdir={}".format(*layers)
    subprocess.run(["mount", "-t", "overlay", "-o", options, "none", layers[-1]], check=True)
    try:
        with make_wall() as wall:
            write(wall, home / ".local/bin/tool")
            write(wall, home / "tmp")
        with make_wall() as wall:
            assert content(wall, home / ".local/bin/tool") == "outside"
    finally:
        subprocess.run(["umount", "-l", layers[-1]], check=True)


@pytest.mark.parametrize(
    ("number", "told"), [(errno.ENOSPC, "no room"), (errno.EACCES, "cannot be built|forbids")]
)
def test_a_full_disk_is_not_taken_for_a_limit_of_namespaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, told: str
) -> None:
    def no_folder(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    folder = bytes(tmp_path)
    storage = OwnStorage(folder + b"/kept", folder, folder + b"/memory")
    monkeypatch.setattr(os, "makedirs", no_folder)
    with pytest.raises(OSError, match="Errno") as caught, storage.building():
        pass
    failure = WallSetupFailed(caught.value.errno or 0, "step")
    assert re.search(told, str(NamespaceWall(AttachedGuarantee.FOLDERS).explain(failure)))


# What an earlier program may have left for the next one.


def test_no_link_of_an_earlier_program_leads_a_mount_elsewhere(
    tmp_path: Path, home: Path, make_wall: MakeWall
) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh/key").write_text("secret")
    with make_wall() as first:
        first.run(f"os.symlink('{home}/.ssh', '{home}/.cache/uv')")
        first.run(f"os.symlink('{home}/.ssh', '{home}/.cache/uv.hidden')")
        first.run(f"open('{home}/.cache/node', 'w').close()")
    for name in ("uv", "node"):
        (home / ".cache" / name).mkdir()
        (home / ".cache" / name / "a").write_text("outside")
    second = make_wall()
    for name in ("uv", "node"):
        assert content(second, home / ".cache" / name / "a") == "outside"
    assert second.run(f"result = os.listdir('{home}')").count(".ssh") == 0
    assert content(second, home / ".cache/uv.hidden/key") == "ENOENT"


def test_control_if_links_are_followed_a_mount_is_led_elsewhere(
    home: Path, make_wall: MakeWall
) -> None:
    (home / ".ssh").mkdir()
    with make_wall() as first:
        first.run(f"os.symlink('{home}/.ssh', '{home}/.cache/uv')")
    (home / ".cache/uv").mkdir()
    (home / ".cache/uv/a").write_text("outside")
    second = make_wall("name", Weakness.FOLLOW_LINKS, Weakness.NO_CLEARING)
    assert content(second, home / ".cache/uv/a") == "ENOENT"


@pytest.mark.parametrize(
    "left", ["os.mkfifo({!r})", "os.mkdir({!r} + '.hidden'); open({!r}, 'w')"]
)
def test_nothing_that_an_earlier_program_left_keeps_the_next_one_from_its_start(
    home: Path, make_wall: MakeWall, left: str
) -> None:
    uv = f"{home}/.cache/uv"
    with make_wall() as first:
        first.run(left.format(uv, uv))
        for name in (".cache", ".local/bin", ".nvm", ".cargo"):
            first.run(f"os.chmod('{home / name}', 0)")
    (home / ".cache/uv").mkdir()
    (home / ".cache/uv/a").write_text("outside")
    second = make_wall()
    second.run(f"os.chmod('{home}/.cache', 0o700)")
    assert content(second, home / ".cache/uv/a") == "outside"


def plant_token(home: Path) -> None:
    (home / LOGIN).parent.mkdir(parents=True, exist_ok=True)
    (home / LOGIN).write_text("secret")


LEFT = {
    "a link": "os.rmdir({etc!r}); os.symlink({home!r} + '/.ssh', {etc!r})",
    "a file": "os.rmdir({etc!r}); open({etc!r}, 'w').close()",
    "a folder at the token": "os.mkdir({etc!r} + '/npmrc')",
    "nothing": "os.rmdir({etc!r})",
}


@pytest.mark.parametrize("left", LEFT)
def test_a_token_stays_hidden_whatever_an_earlier_program_left(
    home: Path, make_wall: MakeWall, left: str
) -> None:
    etc = home / LOGIN.removesuffix("/npmrc")
    etc.mkdir(parents=True)
    with make_wall() as first:
        first.run(LEFT[left].format(etc=str(etc), home=str(home)))
    plant_token(home)
    assert content(make_wall(), home / LOGIN) in ("ENOENT", "ENOTDIR", "EISDIR", "ENODATA")
    assert content(make_wall("other", Weakness.TOKENS_SHOWN), home / LOGIN) == "secret"


def test_no_attribute_of_an_earlier_program_redirects_an_overlay(
    tmp_path: Path, home: Path, make_wall: MakeWall
) -> None:
    plant_token(home)
    with make_wall() as first:
        first.run(f"os.mkdir('{home}/.nvm/free')")
        first.run(f"os.setxattr('{home}/.nvm/free', {HOSTILE!r}, b'/versions/node/v1/etc')")
        first.run(f"os.chmod('{home}/.nvm/free', 0o4755)")
    (planted,) = (tmp_path / "walls/name/kept").rglob("free")
    assert HOSTILE.decode() not in os.listxattr(planted), "the kernel gives it another name"
    os.setxattr(planted, HOSTILE, b"/versions/node/v1/etc")
    assert content(make_wall(), home / ".nvm/free/npmrc") == "EPERM"


@pytest.mark.needs("root")
def test_control_an_overlay_that_takes_such_attributes_shows_the_token(
    tmp_path: Path, home: Path
) -> None:
    plant_token(home)
    up, work, merged = (tmp_path / name for name in ("up", "work", "merged"))
    for folder in (up / "free", work, merged):
        folder.mkdir(parents=True)
    os.setxattr(up / "free", b"trusted.overlay.redirect", b"/versions/node/v1/etc")
    options = f"lowerdir={home}/.nvm,upperdir={up},workdir={work},redirect_dir=on"
    subprocess.run(["mount", "-t", "overlay", "-o", options, "none", merged], check=True)
    try:
        assert (merged / "free/npmrc").read_text() == "secret"
    finally:
        subprocess.run(["umount", merged], check=True)


def test_only_the_user_can_enter_what_is_kept(tmp_path: Path, make_wall: MakeWall) -> None:
    make_wall()
    kept = tmp_path / "walls/name/kept"
    assert kept.stat().st_mode & 0o777 == 0o700, "or others could run a program with set-uid"
    folders = [path for path in kept.rglob("*") if path.is_dir()]
    assert [path for path in folders if path.stat().st_mode & 0o700 != 0o700] == [], "for rm -r"
