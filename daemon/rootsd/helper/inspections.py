"""Look into a project: its risks, its origin, and the content of files that run by themselves.

Approved projects are looked into again and again. So a look has two steps. The first one reads
names, times, and git's settings only, and makes a text of them. If that is the text of the last
look, there is no second step, and no other file is opened.

A secret counts by its name: people and programs change it all day, and rootsd never reads it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from rootsd.core.model import Inspection, ProjectKind
from rootsd.core.origins import claimed_place
from rootsd.core.paths import contains
from rootsd.core.risks import FindingKind, describe_risks
from rootsd.disk.git_settings import program_settings, read_settings
from rootsd.vcs.facts import (
    EXECUTED_PATHS,
    MAX_RISK_NAMES,
    collect_risks,
    hooks_in,
    is_entered,
)
from rootsd.vcs.git.config import read_git_config
from rootsd.vcs.git.repository import GitDirs
from rootsd.vcs.origin import git_dirs_of
from rootsd.wall.git.tool_files import (
    digest,
    entries_at_all,
    fingerprints_at,
    in_root,
    with_links,
)
from rootsd.wall.system_calls import closing

_CONFIG = ".git/config"
_MORE = "(more files)"
_MAX_FILES = 256
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Folders last: a program can fill them with files until the limit.
_FILES = [each for each in EXECUTED_PATHS if not each.endswith(b"/")]
_FOLDERS = [each.rstrip(b"/") for each in EXECUTED_PATHS if each.endswith(b"/")]
_Place = tuple[bytes, list[bytes], bytes]
"""A folder, the names in it that count, and what stands before these for people."""


def inspect(path: bytes, kind: ProjectKind, known_state: bytes = b"") -> Inspection | None:
    """Return what is in the project at `path`, or None if `known_state` is its state.

    What cannot be read counts as a risk. Raises nothing.
    """
    dirs = git_dirs_of(path, kind)
    settings = b"" if dirs is None else read_git_config(dirs)
    programs = sorted(program_settings(settings))
    places = _places(path, dirs, dict(programs).get("core.hookspath", ""))
    marks = (_mark(path), *_folder_marks(path), *_file_marks(places))
    state = bytes.fromhex(digest(repr((dirs, settings, marks)).encode()).decode())
    if state == known_state:
        return None
    found = collect_risks(path, kind)
    files = {
        each["path"]: each["concern"]
        for each in found.findings
        if each["concern"] == FindingKind.SENSITIVE
    }
    files |= dict(_contents(places))
    if programs:
        files[_CONFIG] = digest(repr(programs).encode()).decode()
    risk = describe_risks(found.findings, is_whole=found.is_whole)
    origin = claimed_place(read_settings(settings))
    return Inspection(state, origin, risk, tuple(sorted(files.items())))


def _places(path: bytes, dirs: GitDirs | None, hooks_path: str) -> list[_Place]:
    """Return the project, and the git directory if it lies elsewhere, with the names to read."""
    folder = b"" if dirs is None else dirs.common + b"/hooks"
    hooks = [folder + b"/" + name for name in hooks_in(folder)]
    folders = [os.path.normpath(os.path.join(path, os.fsencode(hooks_path)))] if hooks_path else []
    names = [*_FILES, *in_root(path, hooks), *_FOLDERS, *in_root(path, folders)]
    places = [(path, names, b"")]
    if dirs is not None and not contains(path, dirs.common):
        places.append((dirs.common, [*in_root(dirs.common, hooks)], b".git/"))
    return places


def _contents(places: list[_Place]) -> Iterator[tuple[str, str]]:
    """Yield each file that runs by itself, and a text that stands for its content."""
    for folder, names, before in places:
        with suppress(OSError), closing(os.open(folder, _OPEN)) as root:
            found = fingerprints_at(root, with_links(root, names))
            for name, content in islice(found, _MAX_FILES):
                yield os.fsdecode(before + name), os.fsdecode(content or b"unread")
            if next(found, None) is not None:
                yield os.fsdecode(before) + _MORE, "unread"


def _file_marks(places: list[_Place]) -> Iterator[object]:
    for folder, names, _ in places:
        with suppress(OSError), closing(os.open(folder, _OPEN)) as root:
            for name, _ in islice(entries_at_all(root, with_links(root, names)), _MAX_FILES + 1):
                yield name, _mark(folder + b"/" + name)


def _folder_marks(path: bytes) -> Iterator[object]:
    """Yield what changes with the names in the folders of a project: a secret may be new."""
    with suppress(OSError), os.scandir(path) as listing:
        device = os.lstat(path).st_dev
        entries = sorted(islice(listing, MAX_RISK_NAMES), key=lambda entry: entry.name)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and is_entered(entry, device):
                yield entry.name, _mark(entry.path)


def _mark(path: bytes) -> object:
    try:
        found = os.lstat(path)
    except OSError as error:
        return error.errno
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns
