"""Start a program as on another distribution: with other folders, in a namespace of its own.

It is a program: `python linux_layout.py FOLDER LAYOUT PROGRAM ARGUMENT...`. LAYOUT is JSON: paths,
and what is there instead of what is there outside. `#!` starts the text of a program, `mount:` the
source of a file system in memory, and everything else is the target of a link. FOLDER is an empty
folder to build in. The program is an ordinary user without capabilities.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from rootsd.wall.system_calls import (
    MountFlag,
    bind,
    change_propagation,
    drop_capabilities,
    mount,
    pivot_here,
)

# Not root inside: without a capability, root cannot be mapped into the namespaces of a wall.
_UID = 1000
_NAMESPACES = (
    "unshare", "--user", f"--map-user={_UID}", f"--map-group={_UID}", "--keep-caps", "--mount",
    "--",
)  # fmt: skip
_MOUNT, _PROGRAM = "mount:", "#!"


# WSL has such a rule for its /init. The kernel keeps the program open, so it runs for each file
# that looks like one of Windows, also where it cannot be seen. Only root may make a rule.
_RULE = """
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc &&
echo ":Windows:M::MZ::$0:F" > /proc/sys/fs/binfmt_misc/register && exec "$@"
"""


def with_windows_programs(interpreter: str, words: Iterable[str]) -> list[str]:
    """Return the command that starts `words` where `interpreter` runs programs of Windows."""
    namespaces = ("unshare", "--user", "--map-root-user", "--mount", "--")
    return [*namespaces, "sh", "-c", _RULE, interpreter, *words]


def words_for(folder: Path, layout: Mapping[str, str], words: Iterable[str]) -> list[str]:
    """Return the command that starts `words` with a layout."""
    program = [sys.executable, str(Path(__file__)), str(folder), json.dumps(layout)]
    return [*_NAMESPACES, *program, *words]


def _expose(top: str, path: str, changed: Mapping[str, str]) -> None:
    """Show in `top` what is at `path`, without the paths that are changed."""
    for entry in os.scandir(path):
        there = top + entry.path
        if entry.path in changed:
            continue
        if entry.is_symlink():
            Path(there).symlink_to(Path(entry.path).readlink())
        elif entry.is_dir():
            Path(there).mkdir()
            if any(each.startswith(f"{entry.path}/") for each in changed):
                _expose(top, entry.path, changed)
            else:
                bind(os.fsencode(entry.path), os.fsencode(there))
        elif entry.is_file():
            Path(there).touch()
            bind(os.fsencode(entry.path), os.fsencode(there))


def _make(place: Path, what: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if what.startswith(_MOUNT):
        place.mkdir()
        source = os.fsencode(what.removeprefix(_MOUNT))
        mount(source, bytes(place), b"tmpfs", MountFlag.NO_SUID)
    elif what.startswith(_PROGRAM):
        place.write_text(what)
        place.chmod(0o755)
    else:
        place.symlink_to(what)


def main() -> None:
    """Build the layout, and become the program."""
    top, layout, *words = sys.argv[1:]
    change_propagation(b"/", MountFlag.PRIVATE | MountFlag.RECURSIVE)
    mount(b"layout", os.fsencode(top), b"tmpfs", MountFlag.NO_SUID)
    changed = json.loads(layout)
    _expose(top, "/", changed)
    for path in sorted(changed):
        _make(Path(top + path), changed[path])
    os.chdir(top)
    pivot_here()
    drop_capabilities()
    os.execvp(words[0], words)  # noqa: S606 - the test's command


if __name__ == "__main__":
    main()
