"""The needs of some tests: how to detect each, and how to install it.

A test says `@pytest.mark.needs("fd", "node")`. Without the need, the test is skipped with the
reason and the install line. With CI=true it fails instead, since CI installs everything first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rootsd.state.store.anchors import identify
from rootsd.wall.kernel import landlock
from rootsd.wall.kernel.probe import LANDLOCK_FOR_STATIC, probe, problem_of
from support.control_groups import can_make_groups

TOP = Path(__file__).parent.parent.parent
_LANDLOCK_TCP = 4
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_SYSTEMD = "/lib/systemd/systemd"


@dataclass(frozen=True, slots=True)
class Need:
    """One need. `met` runs once per run; `install` is an instruction for a person."""

    met: Callable[[], bool]
    install: str


def uv() -> str | None:
    """Return where uv is: on the PATH, or else in .venv, where tools/setup.sh then put it."""
    return shutil.which("uv") or shutil.which("uv", path=TOP / ".venv" / "bin")


def _program(*names: str) -> Callable[[], bool]:
    return lambda: any(shutil.which(name) for name in names)


def _runs(*command: str) -> Callable[[], bool]:
    def met() -> bool:
        if shutil.which(command[0]) is None:
            return False
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    return met


def _mounts(file_system: str, make: str) -> Callable[[], bool]:
    def met() -> bool:
        known = Path("/proc/filesystems")
        has_kernel = known.exists() and file_system in known.read_text().split()
        return has_kernel and shutil.which(make) is not None

    return met


def _keeps_birth_times() -> bool:
    with tempfile.NamedTemporaryFile() as file:
        return identify(Path(file.name)) is not None


def _is_linux() -> bool:
    return sys.platform == "linux"


def _is_root() -> bool:
    return os.geteuid() == 0


NEEDS = {
    "birth-times": Need(
        _keeps_birth_times,
        "run it where the temporary folder is on ext4, xfs, btrfs, tmpfs (Linux 6.6) or APFS",
    ),
    "brz": Need(_program("brz"), "apt-get install brz"),
    "btrfs": Need(_mounts("btrfs", "mkfs.btrfs"), "apt-get install btrfs-progs"),
    "bindfs": Need(
        lambda: Path("/dev/fuse").exists() and shutil.which("bindfs") is not None,
        "apt-get install bindfs, where there is /dev/fuse",
    ),
    "bash": Need(_program("bash"), "apt-get install bash"),
    "control-groups": Need(
        can_make_groups, "run it as root on Linux, with control groups of version 2 mounted"
    ),
    # rustup's cargo needs the settings in the home folder of its user.
    "cargo": Need(
        _runs("env", "HOME=/", f"PATH=/usr/bin:{os.environ['PATH']}", "cargo", "--version"),
        "apt-get install cargo",
    ),
    "chromium": Need(_program(*BROWSERS), "apt-get install chromium fonts-dejavu-core"),
    "ccache": Need(_program("ccache"), "apt-get install ccache"),
    "checkout": Need((TOP / ".git").exists, "run it in a git checkout"),
    "bubblewrap": Need(_program("bwrap"), "apt-get install bubblewrap"),
    "dbus-daemon": Need(_program("dbus-daemon"), "apt-get install dbus-daemon"),
    "erofs": Need(_mounts("erofs", "mkfs.erofs"), "apt-get install erofs-utils"),
    "ext4": Need(_mounts("ext4", "mkfs.ext4"), "apt-get install e2fsprogs"),
    "darcs": Need(_program("darcs"), "apt-get install darcs"),
    "direnv": Need(_program("direnv"), "apt-get install direnv"),
    "docker": Need(_program("docker"), "apt-get install docker-cli"),
    "fd": Need(_program("fdfind", "fd"), "apt-get install fd-find"),
    "fish": Need(_program("fish"), "apt-get install fish"),
    "fossil": Need(_program("fossil"), "apt-get install fossil"),
    "fzf": Need(_program("fzf"), "apt-get install fzf"),
    "gcc": Need(_program("gcc"), "apt-get install gcc libc6-dev"),
    "gh": Need(_program("gh"), "apt-get install gh"),
    "git-annex": Need(_program("git-annex"), "apt-get install git-annex"),
    "git-lfs": Need(_program("git-lfs"), "apt-get install git-lfs"),
    "go": Need(_program("go"), "apt-get install golang-go"),
    "gpg": Need(_program("gpg"), "apt-get install gnupg"),
    "groff": Need(_program("groff"), "apt-get install groff"),
    "hg": Need(_program("hg"), "apt-get install mercurial"),
    "inotifywait": Need(_program("inotifywait"), "apt-get install inotify-tools"),
    "landlock": Need(
        lambda: landlock.version() > 0,
        "run it on a Linux kernel with Landlock in the list of lsm= (5.13 or newer)",
    ),
    "landlock-tcp": Need(
        lambda: landlock.version() >= _LANDLOCK_TCP,
        "run it on a Linux kernel whose Landlock limits TCP (6.7 or newer)",
    ),
    "landlock-signals": Need(
        lambda: landlock.version() >= landlock.SCOPES_SINCE,
        "run it on a Linux kernel whose Landlock limits signals (6.12 or newer)",
    ),
    "mandoc": Need(_program("mandoc"), "apt-get install mandoc"),
    "user-namespaces": Need(
        _runs(
            "unshare",
            "--user",
            "--map-user=1000",
            "--map-group=1000",
            "--net",
            "--cgroup",
            "--pid",
            "--fork",
            "--mount-proc",
            "true",
        ),
        "run it where a user may make namespaces, with unshare from the package util-linux",
    ),
    "openssl": Need(_program("openssl"), "apt-get install openssl"),
    "make": Need(_program("make"), "apt-get install make"),
    "tmux": Need(_program("tmux"), "apt-get install tmux"),
    "linux": Need(_is_linux, "run it on Linux"),
    "mvn": Need(_program("mvn"), "apt-get install maven"),
    "namespaces": Need(
        _runs("unshare", "--mount", "--pid", "--fork", "true"),
        "run it as root on Linux, with unshare from the package util-linux",
    ),
    "nix": Need(_program("nix-instantiate"), "apt-get install nix-bin"),
    "ntfs-3g": Need(
        lambda: Path("/dev/fuse").exists() and shutil.which("ntfs-3g") is not None,
        "apt-get install ntfs-3g, where there is /dev/fuse",
    ),
    "pip": Need(_program("pip"), "apt-get install python3-pip"),
    "pipx": Need(_program("pipx"), "apt-get install pipx"),
    "poetry": Need(_program("poetry"), "apt-get install python3-poetry"),
    "pre-commit": Need(_program("pre-commit"), "apt-get install pre-commit"),
    "node": Need(_program("node"), "apt-get install nodejs"),
    "npm": Need(_program("npm"), "apt-get install npm"),
    "ripgrep": Need(_program("rg"), "apt-get install ripgrep"),
    "ruby": Need(_program("ruby"), "apt-get install ruby"),
    "root": Need(_is_root, "run it as root"),
    "rsync": Need(_program("rsync"), "apt-get install rsync"),
    "socat": Need(_program("socat"), "apt-get install socat"),
    "sshd": Need(Path("/usr/sbin/sshd").exists, "apt-get install openssh-server openssh-client"),
    "sqlite3": Need(_program("sqlite3"), "apt-get install sqlite3"),
    "squashfs": Need(_mounts("squashfs", "mksquashfs"), "apt-get install squashfs-tools"),
    "sshfs": Need(
        lambda: Path("/dev/fuse").exists() and shutil.which("sshfs") is not None,
        "apt-get install sshfs, where there is /dev/fuse",
    ),
    "static-wall": Need(
        lambda: landlock.version() >= LANDLOCK_FOR_STATIC,
        "run it on Linux 6.2 or newer, with Landlock in the list of lsm=",
    ),
    "strace": Need(_program("strace"), "apt-get install strace"),
    "setpriv": Need(_program("setpriv"), "apt-get install util-linux"),
    "svn": Need(_program("svn", "svnadmin"), "apt-get install subversion"),
    "tcsh": Need(_program("tcsh"), "apt-get install tcsh"),
    "time-namespaces": Need(
        _runs("unshare", "--time", "--boottime", "1", "true"),
        "run it as root on Linux 5.6 or newer, with unshare from the package util-linux",
    ),
    "systemd": Need(_program("systemctl"), "apt-get install systemd"),
    "systemd-user": Need(
        _runs("unshare", "--mount", "--pid", "--cgroup", "--fork", "test", "-x", _SYSTEMD),
        "run it as root on Linux, after apt-get install systemd util-linux",
    ),
    "systemd-analyze": Need(_program("systemd-analyze"), "apt-get install systemd"),
    "uv": Need(lambda: uv() is not None, "pip install uv, and put it on the PATH"),
    "vim": Need(_program("vim"), "apt-get install vim"),
    "wall": Need(
        lambda: problem_of(probe()) is None,
        "run it on Linux 5.19 or newer, where this user may make user namespaces",
    ),
    "watchman": Need(_program("watchman"), "apt-get install watchman"),
    "xfs": Need(_mounts("xfs", "mkfs.xfs"), "apt-get install xfsprogs"),
    "zsh": Need(_program("zsh"), "apt-get install zsh"),
    "zip": Need(
        _runs("sh", "-c", "command -v zip && command -v unzip"), "apt-get install zip unzip"
    ),
}


def unmet(name: str) -> str:
    """Return why the need called `name` is not met and what to do; empty if it is met.

    Raises `KeyError` for a name that is not in `NEEDS`.
    """
    need = NEEDS[name]
    if need.met():
        return ""
    return f"needs {name}, which is not here: {need.install}"
