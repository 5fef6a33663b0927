"""Real walls with the folders of other distributions, which are imitated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.linux_layout import with_windows_programs, words_for

pytestmark = pytest.mark.needs("wall")

_HANG_GUARD_S = 120
_SAYS = "#!/bin/sh\necho %s\n"
OSTREE = {
    "/home": "var/home",
    "/var/home/me/.gitconfig": "#!\n",
    "/snap": "var/lib/snapd/snap",
    "/var/lib/snapd/snap/bin/tool": _SAYS % "snap",
    "/usr/local": "../var/usrlocal",
    "/var/usrlocal/bin/tool": _SAYS % "local",
}
WSL = {
    "/init": _SAYS % "init",
    "/run/WSL": "mount:interop",
    "/mnt/c": "mount:drvfs",
    "/mnt/wslg": "mount:none",
    "/home": "mount:none",
}
WINDOWS_PATH = "/usr/bin:/bin:/mnt/c/Windows:/mnt/c/Program Files/Git/cmd"

# Makes what else a layout needs, runs each line in a wall or outside, and prints its error.
_INSIDE = """
import json, os, socket, sys
from pathlib import Path
from rootsd.core.mount_plan import ViewEntry, ViewEntryKind
from support.walls import Interpreter, Wall, make_root
folder, home, shown, lines = json.loads(sys.argv[1])
home = Path(home)
home.mkdir(parents=True, exist_ok=True)
root = make_root(Path(os.path.realpath(home)) / "src" / "project")
program = Path(os.fsdecode(root.path), "program.exe")
program.write_text("MZ=0\\nimport socket; socket.socket(1).connect('/run/WSL/1_interop')")
program.chmod(0o755)
if os.path.ismount("/run/WSL"):
    for name in ("Windows/cmd.exe", "Program Files/Git/cmd/git.exe", "Users/me/secret"):
        file = Path("/mnt/c", name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("MZ")
        file.chmod(0o777)
    server = socket.socket(socket.AF_UNIX)
    server.bind("/run/WSL/1_interop")
    server.listen()
variables = {"HOME": str(home), "PATH": os.environ["PATH"], "WSL_DISTRO_NAME": "Debian"}
entries = [ViewEntry(path.encode(), ViewEntryKind.READ, "a control") for path in shown or ()]
place = Path(folder, "state")
with (
    Interpreter(home)
    if shown is None
    else Wall(place, home, [root], entries=entries, variables=variables)
) as program:
    print(json.dumps([program.error_of(line) for line in lines]))
"""


def errors_of(
    folder: Path,
    layout: Mapping[str, str],
    home: str,
    lines: list[str],
    shown: list[str] | None,
    search: str = "/usr/bin:/bin",
) -> list[str]:
    """Return the name of the error of each line behind a wall, which shows the `shown`, too.

    Without `shown`, the lines run outside of a wall, in the same layout.
    """
    (folder / "layout").mkdir()
    given: list[Any] = [str(folder), home, shown, lines]
    words = words_for(
        folder / "layout", layout, [sys.executable, "-c", _INSIDE, json.dumps(given)]
    )
    if layout is WSL:
        words = with_windows_programs(os.path.realpath(sys.executable), words)
    done = subprocess.run(
        words, capture_output=True, text=True, check=False,
        timeout=_HANG_GUARD_S, stdin=subprocess.DEVNULL,
        env={**os.environ, "PATH": search, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    errors: list[str] = json.loads(done.stdout)
    return errors


def test_with_the_links_of_ostree_programs_and_both_names_of_the_home_are_there(
    tmp_path: Path,
) -> None:
    says = "if subprocess.run([{!r}], capture_output=True).stdout != {!r}: raise OSError(5, '')"
    tools = {"/usr/local/bin/tool": b"local\n", "/snap/bin/tool": b"snap\n"}
    lines = [says.format(*row) for row in tools.items()]
    lines += [f"read('{home}/me/src/project/file')" for home in ("/var/home", "/home")]
    lines += ["append('/home/me/src/project/file')", "append('/usr/local/bin/tool')"]
    found = errors_of(tmp_path, OSTREE, "/home/me", lines, [])
    assert found == ["", "", "", "", "", "EROFS"]


def test_a_home_folder_that_is_a_link_to_another_disk_has_both_names(tmp_path: Path) -> None:
    layout = {"/home": "mount:none", "/export": "mount:none", "/users": "export"}
    lines = [f"append('{name}/me/src/project/file')" for name in ("/export", "/users")]
    assert errors_of(tmp_path, layout, "/users/me", lines, []) == ["", ""]


ATTACKS = {
    "connect to the socket that starts programs of Windows": (
        "connect(socket.AF_UNIX, '/run/WSL/1_interop')"
    ),
    "run the program that starts programs of Windows": (
        "subprocess.run(['/init'], capture_output=True)"
    ),
    "run a program of Windows": (
        "if subprocess.run(['/home/me/src/project/program.exe'], capture_output=True).returncode:"
        " raise FileNotFoundError(errno.ENOENT, '')"
    ),
    "read a file of Windows": "read('/mnt/c/Users/me/secret')",
    "list the programs of Windows": "os.listdir('/mnt/c/Program Files/Git/cmd')",
    "list the folder of displays": "os.listdir('/mnt/wslg')",
}


def test_in_wsl_nothing_of_windows_can_be_reached(tmp_path: Path) -> None:
    found = errors_of(tmp_path, WSL, "/home/me", [*ATTACKS.values()], [], WINDOWS_PATH)
    assert dict(zip(ATTACKS, found, strict=True)) == dict.fromkeys(ATTACKS, "ENOENT")


@pytest.mark.parametrize("shown", [None, ["/run/WSL", "/init", "/mnt/c", "/mnt/wslg"]])
def test_control_outside_and_where_it_is_shown_all_of_it_succeeds(
    tmp_path: Path, shown: list[str] | None
) -> None:
    found = errors_of(tmp_path, WSL, "/home/me", [*ATTACKS.values()], shown, WINDOWS_PATH)
    assert dict(zip(ATTACKS, found, strict=True)) == dict.fromkeys(ATTACKS, "")
