"""`--static` as people use it, and that nothing else selects it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

import rootsd as rootsd_package
from rootsd.core.errors import Exit
from rootsd.core.mount_plan import ConfinedRoot
from rootsd.core.wall import ProtectionPolicy, RevokePolicy
from rootsd.wall.kernel.warden import WallSetupFailed
from rootsd.wall.session.begin import CannotConfine
from rootsd.wall.session.engines import NamespaceWall, StaticWall, engine_for
from rootsd.wall.session.options import ConfineOptions, ConfineUsageError, parse_arguments
from rootsd.wall.session.session_view import ComposedView
from support import preloaded
from support.folder_identity import identity_of
from support.roots_publisher import RootsPublisher
from support.terminal_programs import on_terminal, type_to_cat

pytestmark = [pytest.mark.needs("static-wall")]

_HANG_GUARD_S = 120
# Runs a command on a kernel that refuses unshare(2) with the errno in its first argument.
REFUSING = """
import ctypes, os, platform, struct, sys
number = {"x86_64": 272, "aarch64": 97}[platform.machine()]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (6, 0, 0, 0x50000 | int(sys.argv[1])),
         (6, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in steps))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
program = struct.pack("@HP", len(steps), ctypes.addressof(code))
assert libc.prctl(22, ctypes.c_ulong(2), program, 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""
EPERM, ENOSPC = 1, 28


def rootsd(*words: str, cwd: Path, refuse: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run rootsd, on a kernel that refuses namespaces with the errno `refuse` if it is given."""
    if refuse is None:
        return preloaded.run(words, os.environ, _HANG_GUARD_S, cwd)
    command = [sys.executable, "-c", REFUSING, str(refuse), sys.executable, "-m", "rootsd", *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=cwd, timeout=_HANG_GUARD_S,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "number"), [(("confine",), EPERM), (("run", "--confine"), ENOSPC)]
)
def test_without_namespaces_nothing_starts_and_the_error_names_static(
    root: ConfinedRoot, home: Path, number: int, verb: tuple[str, ...]
) -> None:
    words = ("--all", "--", "/bin/touch", str(home / "started"))
    done = rootsd(*verb, *words, cwd=home, refuse=number)
    assert done.returncode == Exit.REFUSED
    assert "--static" in done.stderr
    assert "git hooks" in done.stderr
    assert not (home / "started").exists()


@pytest.mark.parametrize("flags", [(), ("--static",)])
def test_a_sandbox_that_maps_user_ids_shows_the_root_but_none_of_another_owner(
    root: ConfinedRoot, publisher: RootsPublisher, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    command = [
        "unshare", "--user", "--map-user=4321", "--map-group=4321",
        sys.executable, "-m", "rootsd", "confine", "-q",
        *flags, "--", "cat", str(tmp_path / "root" / "file"),
    ]  # fmt: skip
    own = identity_of(tmp_path / "root")
    for owner, shown in ((own.owner, "text\n"), (own.owner + 1, "")):
        publisher.publish(root._replace(identity=own._replace(owner=owner)))
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_HANG_GUARD_S,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.stdout == shown, done.stderr


def test_static_works_without_namespaces(root: ConfinedRoot, tmp_path: Path) -> None:
    words = ("--static", "--", "sh", "-c", "cat file && cat ../home/secret; echo $ROOTSD_CONFINED")
    (tmp_path / "home" / "secret").write_text("secret")
    done = rootsd("confine", *words, cwd=tmp_path / "root", refuse=EPERM)
    assert done.stdout == "text\nsh\n"


def test_no_option_lets_git_push_behind_a_static_wall(
    root: ConfinedRoot, home: Path, tmp_path: Path
) -> None:
    repository = tmp_path / "root"
    for typed in (("init", "-q"), ("remote", "add", "origin", "https://host.example/a/b")):
        subprocess.run(("git", *typed), cwd=repository, check=True)
    (tmp_path / "rootsd" / "state").mkdir(parents=True)
    words = ("--push", "allow", "--show")
    reaches = f"git in {repository} reaches"
    assert reaches in rootsd("confine", *words, cwd=home).stderr
    assert reaches not in rootsd("confine", "--static", *words, cwd=home).stderr


def test_the_daemon_learns_the_engine_and_the_start_lists_its_gaps(
    publisher: RootsPublisher, root: ConfinedRoot, home: Path
) -> None:
    done = rootsd("confine", "--static", "--", "true", cwd=home)
    assert done.returncode == 0
    assert publisher.requests[0]["wall"]["engine"] == "static"
    for word in ("after a restart", "names, sizes", "processes", "are writable", "the network"):
        assert word in done.stderr


def test_show_names_the_engine_and_the_missing_parts(
    publisher: RootsPublisher, root: ConfinedRoot, home: Path
) -> None:
    held = root._replace(denied=frozenset({root.path + b"/denied"}))
    publisher.publish(held)
    done = rootsd("confine", "--static", "--show", cwd=home)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [os.fsdecode(root.path), "refused"] in [row[:2] for row in rows]
    assert ["/tmp", "refused"] in [row[:2] for row in rows]
    assert "engine: static" in done.stderr
    assert "engine: namespaces" in rootsd("confine", "--show", cwd=home).stderr


def test_the_network_can_be_closed_without_namespaces(root: ConfinedRoot, home: Path) -> None:
    words = ("--", "python3", "-c", "import socket; socket.socket(socket.AF_INET)")
    assert rootsd("confine", "--static", *words, cwd=home).returncode == 0
    assert rootsd("confine", "--static", "--no-network", *words, cwd=home).returncode == 1


def test_inside_rootsd_says_why_it_cannot_reach_the_daemon(root: ConfinedRoot, home: Path) -> None:
    package = Path(rootsd_package.__file__).parent.parent  # a checkout is not in the view
    inside = ("confine", "--static", "--read", str(package), "--", sys.executable, "-m", "rootsd")
    approve = rootsd(*inside, "approve", "x", cwd=home)
    assert "run it outside the wall" in approve.stderr
    assert approve.returncode == Exit.REFUSED
    check = rootsd(*inside, "check", "/x", cwd=home)
    assert "a sandbox forbids this program to use the sockets of rootsd" in check.stderr
    assert check.returncode == Exit.REFUSED


def test_an_agent_has_its_own_state_and_reads_what_it_loads(
    root: ConfinedRoot, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, state = home / ".local" / "bin" / "claude", home / ".claude"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\ncd $CLAUDE_CONFIG_DIR && cat settings.json commands/x.md .credentials.json"
        " && echo more > new && ! echo more >> settings.json\n"
    )
    program.chmod(0o755)
    (state / "commands").mkdir(parents=True)
    (state / "commands" / "x.md").write_text("command\n")
    (state / "settings.json").write_text("{}\n")
    (state / ".credentials.json").write_text("login\n")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    for _ in range(2):
        done = rootsd("confine", "--static", "--", "claude", cwd=home)
        assert (done.returncode, done.stdout) == (0, "{}\ncommand\nlogin\n"), done.stderr
    assert (state / "settings.json").read_text() == "{}\n"
    assert not (state / "new").exists()


def test_no_link_is_made_in_a_folder_outside(root: ConfinedRoot, home: Path) -> None:
    (home / ".config").mkdir()
    (home / ".config" / "uv").mkdir()
    state = {name: os.listdir(home / name) for name in (".config", ".config/uv")}
    words = ("--static", "--read", str(home / ".config"), "--read", str(home / "opencode"), "--")
    program = home / "opencode"  # an agent with state below ~/.config
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert rootsd("confine", *words, str(program), cwd=home).returncode == 0
    assert {name: os.listdir(home / name) for name in state} == state


def test_an_unsupported_option_of_a_static_wall_is_an_error(
    root: ConfinedRoot, home: Path, tmp_path: Path
) -> None:
    (home / "secret").write_text("")
    both = ("--write", str(home), "--hide", str(home / "secret"))
    beside = ("--keep", str(tmp_path / "root"))
    for words in (both, beside):
        done = rootsd("confine", "--static", *words, "--", "true", cwd=home)
        assert done.returncode == Exit.REFUSED
        assert "--static" in done.stderr


def test_on_a_terminal_a_revoke_ends_the_program_and_says_so(
    publisher: RootsPublisher, root: ConfinedRoot, home: Path
) -> None:
    words = [sys.executable, "-m", "rootsd", "confine", "--static", "--", "bash", "--norc", "-i"]
    shell = on_terminal(words, home, {"PS1": "$ "}, columns=100)
    shell.expect_exact("$ ")
    shell.sendline("stty size")
    shell.expect_exact("30 100")
    type_to_cat(shell, "cat")
    shell.send("\x1a")
    shell.expect_exact("Stopped")
    type_to_cat(shell, "fg")
    publisher.publish()
    shell.expect_exact("the program was ended, since it may no longer reach")
    shell.expect(pexpect.EOF)
    shell.close()
    assert shell.exitstatus == 125


# By fakes of other kernels


def a_view() -> ComposedView:
    return ComposedView(
        b"/home", (), frozenset(), {}, has_network=True, protection=ProtectionPolicy.UNTRACKED,
        on_revoke=RevokePolicy.TELL, stays_open=(), closed=(),
    )  # fmt: skip


@pytest.mark.parametrize("version", [0, 1, 2])
def test_below_landlock_3_static_refuses(version: int) -> None:
    with pytest.raises(CannotConfine, match="needs Landlock 3"):
        StaticWall(version).check(ConfineOptions(), a_view())


@pytest.mark.parametrize("version", [3, 4, 5, 6, 7, 9])
def test_from_landlock_3_on_it_says_whether_signals_are_open(version: int) -> None:
    wall = StaticWall(version)
    wall.check(ConfineOptions(), a_view())
    said = [each for each in wall.open_parts(a_view()) if each.startswith("this kernel")]
    assert len(said) == (version < 6)


def test_only_the_flag_selects_the_static_engine() -> None:
    assert isinstance(engine_for(parse_arguments(["--static", "--", "x"])), StaticWall)
    assert isinstance(engine_for(parse_arguments(["--no-network", "--", "x"])), NamespaceWall)


def test_without_landlock_3_the_error_does_not_offer_static(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rootsd.wall.kernel.landlock.version", lambda: 2)
    error = NamespaceWall().explain(WallSetupFailed(EPERM, "unshare: no"))
    assert "--static needs Landlock 3" in error.message


@pytest.mark.parametrize("flag", ["--ssh-agent", "--gpg", "--docker", "--nested"])
def test_options_that_need_namespaces_are_refused(flag: str) -> None:
    with pytest.raises(ConfineUsageError, match="cannot be combined"):
        parse_arguments(["--static", flag, "--", "x"])


def test_on_revoke_tell_is_refused() -> None:
    with pytest.raises(ConfineUsageError, match="always ends"):
        parse_arguments(["--static", "--on-revoke", "tell", "--", "x"])
