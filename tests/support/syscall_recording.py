"""Record a program's changes to files in a folder, and replay them on a simulated disk.

`strace` shows every system call of the real code with all bytes. So the simulation covers the real
store, including SQLite's unix layer, and not a model of it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from support.simulated_disk import File, Folder

HANG_GUARD = 120
IDENTITY_MARK = b"identity"  # starts a mark with the identity of a file and its path
MARKS_NAME = "marks"  # the content of a file with this name is a mark, and is not simulated
# The last ones are here so that a use is noticed. The simulation would need them.
_SIMULATED = (
    "open", "openat", "creat", "close", "pwrite64", "write", "ftruncate", "fsync", "fdatasync",
    "rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir", "mkdirat",
)  # fmt: skip
_UNKNOWN = (
    "truncate", "fallocate", "writev", "pwritev", "pwritev2", "link", "linkat", "symlink", "rmdir",
    "copy_file_range", "sendfile", "dup", "dup2", "dup3", "sync_file_range",
)  # fmt: skip
_OPENING = frozenset({"open", "openat", "creat"})


@dataclass(frozen=True, slots=True)
class Call:
    """One successful system call: its name, result, texts, and the raw text around them."""

    name: str
    result: int
    texts: tuple[bytes, ...]
    rest: str

    def number(self, place: int) -> int:
        """Return a numeric argument, by its position from the front or (negative) from the end."""
        return int(self.rest.split(",")[place])


def record(
    command: Sequence[str], tops: Sequence[Path], log: Path, environment: dict[str, str]
) -> list[list[Call]]:
    """Run `command`, which must succeed, and return its calls below each of `tops`, in order."""
    names = ",".join(f"?{name}" for name in _SIMULATED + _UNKNOWN)
    subprocess.run(
        ["strace", "-f", "--seccomp-bpf", "-qq", "-xx", "-s", str(1 << 24), "-o", log,
         "-e", f"trace={names}", "-e", "signal=none", *command],
        env=environment, check=True, timeout=HANG_GUARD,
    )  # fmt: skip
    with log.open() as lines:
        return _sorted(filter(None, map(_parsed, lines)), tops)


def _sorted(calls: Iterable[Call], tops: Sequence[Path]) -> list[list[Call]]:
    """Return the calls by the top they touch: by path, or by a file opened by path."""
    by_top: list[list[Call]] = [[] for _ in tops]
    prefixes = [os.fsencode(top) for top in tops]
    opened: dict[int, int] = {}
    for call in calls:
        if not _is_by_path(call):
            at = opened.get(call.number(0))
            if call.name == "close":
                opened.pop(call.number(0), None)
        else:
            path = call.texts[0]
            at = next(
                (
                    n
                    for n, top in enumerate(prefixes)
                    if path == top or path.startswith(top + b"/")
                ),
                None,
            )
            if call.name in _OPENING:
                opened.pop(call.result, None)
                if at is not None:
                    opened[call.result] = at
        if at is not None:
            by_top[at].append(call)
    return by_top


def _is_by_path(call: Call) -> bool:
    return bool(call.texts) and "write" not in call.name


def _parsed(line: str) -> Call | None:
    """Parse a line such as `42 pwrite64(3, "\\x61\\x62", 2, 512) = 2`, or return None if the call
    failed.
    """
    assert "unfinished" not in line, "one thread at a time can be recorded"
    call, _, result = line.rpartition("= ")
    if not result[:1].isdigit():
        return None
    outside = call.split('"')
    texts = tuple(bytes.fromhex(text.replace("\\x", "")) for text in outside[1::2])
    name, _, rest = "".join(outside[::2]).rpartition(")")[0].partition("(")
    return Call(name.split()[-1], int(result.split()[0]), texts, rest)


class CallReplay:
    """A simulated disk for the files below the real path `top`, on which calls are replayed."""

    def __init__(self, top: Path, folder: Folder) -> None:
        self._top = top
        self.folder = folder
        self._open: dict[int, File | Folder | None] = {}  # None: the marks
        self._written: dict[int, int] = {}  # the position in files that were opened empty

    def play(self, call: Call) -> bytes:
        """Replay `call`, and return its mark, which is empty for most calls."""
        assert call.name not in _UNKNOWN, f"{call} is not simulated"
        match call.name:
            case name if name in _OPENING:
                self._play_open(call)
            case "close":
                self._open.pop(call.number(0), None)
                self._written.pop(call.number(0), None)
            case "write" | "pwrite64" | "ftruncate" | "fsync" | "fdatasync":
                return self._play_change(call)
            case _:
                self._play_naming(call)
        return b""

    def _play_open(self, call: Call) -> None:
        parent, name = self._place(call.texts[0])
        if name == MARKS_NAME:
            self._open[call.result] = None
            return
        node = parent.now.get(name) if name else parent
        if node is None:
            assert "O_CREAT" in call.rest
            node = File()
            parent.name((name, node))
        if "O_TRUNC" in call.rest and isinstance(node, File):
            node.resize(0)
            self._written[call.result] = 0
        self._open[call.result] = node

    def _play_change(self, call: Call) -> bytes:
        node = self._open[call.number(0)]
        if node is None:
            return self._marked(call.texts[0])
        if call.name in {"fsync", "fdatasync"}:
            node.sync()
            return b""
        assert isinstance(node, File)
        if call.name == "ftruncate":
            node.resize(call.number(1))
        elif call.name == "pwrite64":
            node.write(call.number(-1), call.texts[0][: call.result])
        else:
            fd = call.number(0)
            assert fd in self._written, "appending writes to old files are not simulated"
            node.write(self._written[fd], call.texts[0][: call.result])
            self._written[fd] += call.result
        return b""

    def _marked(self, mark: bytes) -> bytes:
        """Return the content of a mark, or store the identity of a file and return nothing."""
        if not mark.startswith(IDENTITY_MARK):
            return mark
        _, identity, path = mark.split(b" ", 2)
        parent, name = self._place(path)
        node = parent.now[name]
        assert isinstance(node, File)
        node.identity = int(identity)
        return b""

    def _play_naming(self, call: Call) -> None:
        (parent, name), *others = (self._place(text) for text in call.texts)
        if call.name.startswith("mkdir"):
            parent.name((name, Folder()))
        elif call.name.startswith("unlink"):
            parent.name((name, None))
        else:
            assert call.name.startswith("rename")
            target, other = others[0]
            assert target is parent, "a rename into another folder is not simulated"
            parent.name((name, None), (other, parent.now[name]))

    def _place(self, path: bytes) -> tuple[Folder, str]:
        """Return the simulated folder with `path`, and the name there; None for the top itself."""
        folder = self.folder
        *above, name = PurePath(path.decode()).relative_to(self._top).parts or ("",)
        for part in above:
            inner = folder.now[part]
            assert isinstance(inner, Folder)
            folder = inner
        return folder, name
