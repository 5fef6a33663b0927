"""Find the worktrees that programs made where a wall keeps nothing, so that their work is kept.

The home folder and `/tmp` of a program lie in private folders, which are removed at the end of its
start. `git worktree add ~/x` works there, and the work in it would be gone. So `SessionBaseline`
renames these folders, and nothing but `rootsd confine --clean` removes them.

Everything here may be hostile: reads are bounded, and links are not followed. A worktree counts
only if git's record of it and its `.git` file name each other.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice

from rootsd.core.paths import contains
from rootsd.disk.git_pointer import GIT, named_directory
from rootsd.wall.git.directories import WORKTREES, common_directories, recorded_worktrees
from rootsd.wall.git.entries import read_below
from rootsd.wall.git.facts import Fact, FactKind
from rootsd.wall.git.wall_folders import RUN_PREFIX, names_in
from rootsd.wall.system_calls import closing, open_path

LEFT_PREFIX = b"left-"
"""How the names of the private folders of a start begin, in the folder of a wall.

Those that were kept after its end have the second one.
"""
_MAX_PLACES, _MAX_NAMES = 64, 256


def flat_name(path: bytes) -> bytes:
    """Return a name for what is at `path`."""
    return path.lstrip(b"/").replace(b"%", b"%25").replace(b"/", b"%2F")


def find_private_worktrees(folder: bytes, repositories: Iterable[bytes]) -> Iterator[Fact]:
    """Yield the worktrees of git directories that lie in private folders, with their path inside.

    `folder` is that of the wall.
    """
    places = [*_places(folder)]
    for common in repositories if places else ():
        for record, path in _recorded_worktrees(common):
            for inside, place in places:
                below = path[len(inside) + 1 :]
                if contains(inside, path) and _leads_back(place, below, record):
                    yield Fact(FactKind.WORKTREE, place + b"/" + below, path)


def private_folders(folder: bytes) -> list[bytes]:
    """Return the folders of starts in that of a wall that were not removed yet."""
    return [folder + b"/" + name for name in names_in(folder) if name.startswith(RUN_PREFIX)]


def names_lost(folder: bytes, home: bytes) -> list[bytes]:
    """Return the names in the private `home` with data in them that go with it.

    `folder` is that of the wall. Tools put what they need under names with a dot, and what shows
    files of the person is empty here.
    """
    return [
        name
        for inside, place in _places(folder)
        for name in names_in(place, _MAX_NAMES)
        if inside == home and not name.startswith(b".") and _has_data(place + b"/" + name)
    ]


def _has_data(path: bytes) -> bool:
    found = [path]
    for above, folders, files in islice(os.walk(path), _MAX_NAMES):
        folders[_MAX_NAMES:] = []
        found += [above + b"/" + name for name in files[:_MAX_NAMES]]
    states = (os.lstat(each) for each in found)
    with suppress(OSError):  # a program may still run
        return any(stat.S_ISREG(state.st_mode) and state.st_size for state in states)
    return False


def _places(folder: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield where programs see their private folders, and where these lie."""
    for run in private_folders(folder):
        yield run, run  # with the static engine
        for name in names_in(run)[:_MAX_PLACES]:
            yield b"/" + name.replace(b"%2F", b"/").replace(b"%25", b"%"), run + b"/" + name


def _recorded_worktrees(common: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield git's records of the worktrees of a git directory, and the paths in these."""
    with suppress(OSError), closing(open_path(common, os.O_DIRECTORY)) as top:
        for inner in common_directories(top, [b"."]):
            for path, own in recorded_worktrees(top, common, inner):
                yield common + b"/" + own, path


def _leads_back(place: bytes, below: bytes, record: bytes) -> bool:
    """Return whether the `.git` file of a worktree names a record. Its root may have moved."""
    with suppress(OSError), closing(open_path(place, os.O_DIRECTORY)) as top:
        named = named_directory(read_below(top, os.path.join(below, GIT))) or b""
        return named.endswith(b"/%s/%s" % (WORKTREES, os.path.basename(record)))
    return False
