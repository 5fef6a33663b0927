"""Find what a root's git directories contain that makes git outside write or run something.

A program behind the wall may change most of a git directory. `find_facts` returns the entries
whose effect reaches beyond the repository. A fact that holds at the end of a session but did not
hold at its start was made by the session. A new kind of fact needs a function that yields it, and
its sentence in `describe`.

* A *link* in a git directory that leads out of it, or to a protected file in it. Git writes
  through links such as `logs/HEAD` and `FETCH_HEAD`, so the next commit outside appends to the
  target. Other links that stay in the common git directory are harmless.
* A *hard link*, which has the same effect. `objects` is left out: a local clone makes hard links
  of packs.
* A file that git *obeys*, which sends git elsewhere or runs something: see `find_obeyed`. Most of
  these are protected if they exist, but nothing can be mounted on a name that does not.
* A *tool file*, which an editor, an agent, or another tool runs or obeys: see `tool_files`.
* A folder of tool files that rootsd could not *read* as a whole, so that a change may be there.
* *Settings* of git that stay in a private copy, and those that changed outside and that programs
  may have written there while the file had no cover. `private_settings` finds these.
* A *worktree* in a private folder of the wall. `private_worktrees` finds these.
* A *repository with programs*: one that is nested or at a gitlink, whose settings or hooks name
  programs. If it is at a gitlink, `git status` in the repository around it runs them.

Everything here may be hostile: no link is followed, and reads are bounded.
"""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from enum import Enum
from itertools import islice
from typing import NamedTuple

from rootsd.core.labels import safe_label
from rootsd.core.paths import contains
from rootsd.core.record import Text
from rootsd.disk.git_pointer import GIT
from rootsd.disk.git_settings import program_settings, read_settings, worktree_setting
from rootsd.disk.links import final_path
from rootsd.disk.reader import CONFIG_CAP, REF_CAP, read_small
from rootsd.wall.git.directories import common_directories, find_repositories
from rootsd.wall.git.entries import NodeKind, entries_below
from rootsd.wall.git.index import CheckoutIndex, common_directory_of, index_in, own_directory
from rootsd.wall.git.named_files import NamedFiles, named_by_own_settings
from rootsd.wall.git.protected import IN_A_GIT_DIRECTORY
from rootsd.wall.git.tool_files import fingerprints
from rootsd.wall.git.wall_folders import names_in
from rootsd.wall.system_calls import closing, open_path

_OBJECTS, _REFS = b"objects", b"refs"
_INNER_DIRECTORIES = (b"modules", b"worktrees")
_HOOKS, _COMMON, _WORKTREE_SETTINGS = b"/hooks", b"/commondir", b"/config.worktree"
# What git obeys in a git directory, whatever is in it. The last one changes what commits say.
_OBEYED = b"""
    config commondir info/attributes objects/info/alternates info/grafts
""".split()
# Each file in these is a remote, before those of the settings existed; see git-fetch(1).
_OLD_REMOTES = (b"/remotes", b"/branches")
# What `git sparse-checkout` writes into the settings of a worktree.
_HARMLESS = frozenset(("core.sparsecheckout", "core.sparsecheckoutcone", "index.sparse"))
_COMMANDS = {
    b"/rebase-merge/git-rebase-todo": rb"(?m)^[ \t]*(?:exec|x)[ \t]+([^\n]+)",
    b"/rebase-merge/strategy": rb"(?s)(.*/.*)",
    b"/sequencer/opts": rb"(?i)strategy[ \t]*=([^\n]*[/\\][^\n]*)",
}
_FAN_OUT = rb"[0-9a-f]{2}"
_MAX_ENTRIES = 200_000
_MAX_CHECKOUTS, _MAX_PACKED_REFS = 512, 4 << 20
_REPLACE, _RERERE = b"/refs/replace", b"/MERGE_RR"
_MAX_NAMES = 4096
_MAX_NESTED_TOOL_FILES = 4096
_MAX_SHOWN, _MAX_KEYS_SHOWN = 200, 2_000


class FactKind(Enum):
    """What was found. The values are those in a report."""

    LINK = "link"
    HARD_LINK = "hard link"
    PROGRAMS = "repository with programs"
    OBEYED = "file that git obeys"
    COMMANDS = "unfinished rebase with commands"
    UNREAD = "git directory that was read in part"
    FIFO = "FIFO"
    REPLACED = "refs that replace commits"
    TOOL_FILE = "file that tools run"
    SETTINGS = "settings that stay inside"
    NEW_SETTINGS = "settings that changed outside"
    UNREAD_TOOLS = "files that tools run and that were not read"
    WORKTREE = "worktree in a private folder"


class Fact(NamedTuple):
    """One finding: an absolute path, and what it leads to or names."""

    kind: FactKind
    path: Text
    value: Text = b""


class RootFacts(NamedTuple):
    """The facts about a root, and the outermost git directories in it, as absolute paths."""

    facts: frozenset[Fact] = frozenset()
    repositories: tuple[bytes, ...] = ()


def find_facts(
    place: bytes, known: Collection[bytes] = (), named: NamedFiles | None = None
) -> RootFacts:
    """Return the facts about the root at `place`. Raises OSError if there is no such folder.

    `known` are git directories in it that were found before. The search looks at the first folders
    only, and a program can make many. `named` is what git names; by default, git is asked.
    """
    with closing(open_path(place, os.O_DIRECTORY)) as root:
        inside = find_repositories(root, place)
        found = {*find_tool_files(root, place, named), *_replaced_git(place)}
    found_now = (os.path.normpath(place + b"/" + each) for each in inside)
    repositories = tuple(dict.fromkeys((*known, *found_now)))
    for common in repositories:
        found.update(find_links(common))
        found.update(find_obeyed(common))
    found.update(_nested_tool_files(place, repositories))
    found.update(_repositories_with_programs(place, repositories, known))
    return RootFacts(frozenset(found), repositories)


def find_links(
    common: bytes, folders: Iterable[bytes] | None = None, limit: int = _MAX_ENTRIES
) -> Iterator[Fact]:
    """Yield the links in the git directory `common` that lead out of it, and the hard links.

    `folders` limits this to some folders in it, as relative paths, and `limit` to some entries.
    If the whole directory has more, a fact says so: a program can make many to hide a link.
    """
    with suppress(OSError), closing(open_path(common, os.O_DIRECTORY)) as top:
        entries = _entries(top) if folders is None else _entries_of(top, folders)
        for path, kind, is_hard in islice(entries, limit):
            full = os.path.normpath(common + b"/" + path)
            if kind is None:
                yield Fact(FactKind.UNREAD, full)
            elif kind is NodeKind.LINK:
                target = read_link(full)
                if target is not None and _leads_out(common, full):
                    yield Fact(FactKind.LINK, full, target)
            elif kind is NodeKind.OTHER:
                yield Fact(FactKind.FIFO, full)
            elif is_hard and not _is_object(path):
                yield Fact(FactKind.HARD_LINK, full)
        if folders is None and next(entries, None) is not None:
            yield Fact(FactKind.UNREAD, common)


def folders_of(common: bytes) -> Iterator[bytes]:
    """Yield the folders in a git directory that may hold links, as relative paths."""
    yield b"."
    with suppress(OSError), closing(open_path(common, os.O_DIRECTORY)) as top:
        yield from (path for path, kind, _ in _entries(top) if kind is NodeKind.FOLDER)


def read_link(path: bytes) -> bytes | None:
    """Return the target of a link that no other link leads to; None if it is no link."""
    folder, name = os.path.split(path)
    try:
        with closing(open_path(folder, os.O_DIRECTORY)) as above:
            return os.readlink(name, dir_fd=above)
    except OSError:
        return None


def describe(fact: Fact) -> str:
    """Return what a fact means, for people, as a sentence that starts with its path."""
    path = safe_label(fact.path, limit=None)
    limit = _MAX_KEYS_SHOWN if fact.kind in OF_SETTINGS else _MAX_SHOWN
    value = safe_label(fact.value, limit) if fact.value else ""
    return f"{_STARTS.get(fact.kind, '')}{path} {_MEANINGS[fact.kind].replace('VALUE', value)}"


OF_SETTINGS = frozenset((FactKind.SETTINGS, FactKind.NEW_SETTINGS))
"""The facts that name settings."""
_STARTS = dict.fromkeys(OF_SETTINGS, "settings of git in ")
# What follows the path.
_MEANINGS = {
    FactKind.LINK: "is a link to VALUE, and git outside writes through it",
    FactKind.HARD_LINK: "is a file with a second name elsewhere, and git outside writes to both",
    FactKind.PROGRAMS: "is a repository, and git status outside runs its VALUE",
    FactKind.OBEYED: "is new, and git outside obeys it",
    FactKind.COMMANDS: "is new, and git outside runs VALUE if you continue there",
    FactKind.FIFO: "is a FIFO, and git outside waits there for ever",
    FactKind.REPLACED: "is new, and git outside shows other commits than it pushes",
    FactKind.TOOL_FILE: "is new or has changed, and tools outside run or obey it",
    FactKind.SETTINGS: "stay behind the wall: VALUE",
    FactKind.NEW_SETTINGS: "changed outside, where programs could write for a moment: VALUE",
    FactKind.UNREAD_TOOLS: "has files that tools outside run, and rootsd could not look at all",
    FactKind.WORKTREE: "has the files of the worktree VALUE, which is only behind the wall",
    FactKind.UNREAD: "has entries at which rootsd did not look",
}


def _replaced_git(place: bytes) -> Iterator[Fact]:
    """Yield the `.git` of the root itself if it is a link that leads out of the root."""
    path = place + b"/" + GIT
    target = read_link(path)
    if target is not None and not contains(place, final_path(path)):
        yield Fact(FactKind.LINK, path, target)


def find_tool_files(root: int, place: bytes, named: NamedFiles | None = None) -> Iterator[Fact]:
    """Yield the files in a work tree that tools run, with what stands for their content.

    A fact about another content is another fact. `root` is the folder at `place`, opened, and
    `named` is as for `find_facts`.
    """
    for path, content in fingerprints(root, place, named):
        full = os.path.normpath(place + b"/" + path)
        if content is None:
            yield Fact(FactKind.UNREAD_TOOLS, full)
        else:
            yield Fact(FactKind.TOOL_FILE, full, content)


def _nested_tool_files(place: bytes, repositories: Iterable[bytes]) -> Iterator[Fact]:
    """Yield the tool files in the checkouts of nested repositories, up to a limit in all."""
    checkouts = (os.path.dirname(each) for each in repositories if os.path.basename(each) == GIT)
    tool_files = (
        fact for each in checkouts if each != place for fact in _tool_files_in_checkout(each)
    )
    yield from islice(tool_files, _MAX_NESTED_TOOL_FILES)
    if next(tool_files, None) is not None:
        yield Fact(FactKind.UNREAD_TOOLS, place)


def _tool_files_in_checkout(checkout: bytes) -> Iterator[Fact]:
    with suppress(OSError), closing(open_path(checkout, os.O_DIRECTORY)) as root:
        yield from find_tool_files(root, checkout, named_by_own_settings(checkout))


# Files that git obeys


def find_obeyed(common: bytes) -> Iterator[Fact]:
    """Yield the files in a git directory, and in those inside it, that git obeys.

    These are settings, hooks, and what leads to other git directories, objects, or remotes. Links
    that lead out are not among them: `find_links` yields those.
    """
    with suppress(OSError), closing(open_path(common, os.O_DIRECTORY)) as top:
        for inner in common_directories(top, [b"."]):
            own = os.path.normpath(common + b"/" + inner)
            for path in _obeyed_in(own):
                if _is_file_or_link(path) and not (os.path.islink(path) and _leads_out(own, path)):
                    yield Fact(FactKind.OBEYED, path)
            for folder in (own, *_worktrees_of(own)):
                yield from _rebase_commands(folder)
            if names_in(own + _REPLACE, 1):
                yield Fact(FactKind.REPLACED, own + _REPLACE)
            packed = read_small(final_path(own + b"/packed-refs"), _MAX_PACKED_REFS) or b""
            if b" refs/replace/" in packed:
                yield Fact(FactKind.REPLACED, own + b"/packed-refs")
            if len(packed) == _MAX_PACKED_REFS:
                yield Fact(FactKind.UNREAD, own + b"/packed-refs")
            for listed in (_HOOKS, b"/worktrees", *_OLD_REMOTES):
                if len(names_in(own + listed, _MAX_NAMES)) == _MAX_NAMES:
                    yield Fact(FactKind.UNREAD, own + listed)


def _obeyed_in(own: bytes) -> Iterator[bytes]:
    """Yield the paths that git obeys in a git directory, if there is a file."""
    yield from (own + b"/" + name for name in _OBEYED)
    for folder in _OLD_REMOTES:
        yield from (own + folder + b"/" + name for name in names_in(own + folder, _MAX_NAMES))
    for name in names_in(own + _HOOKS, _MAX_NAMES):
        if _is_hook(own, name):
            yield own + _HOOKS + b"/" + name
    for folder in (own, *_worktrees_of(own)):
        if not _is_harmless(folder + _WORKTREE_SETTINGS):
            yield folder + _WORKTREE_SETTINGS
        if folder != own and common_directory_of(folder) != final_path(own):
            yield folder + _COMMON


def is_still_obeyed(path: bytes) -> bool:
    """Return whether git outside obeys the file at `path` in a way that git itself did not set up.

    Git makes `commondir` empty and then writes it, and an early look may fall between the two.
    """
    folder, name = os.path.split(path)
    above, kind = os.path.split(os.path.dirname(folder))
    if b"/" + name == _COMMON and kind == b"worktrees":
        return common_directory_of(folder) != final_path(above)
    return b"/" + name != _WORKTREE_SETTINGS or not _is_harmless(path)


def _worktrees_of(own: bytes) -> list[bytes]:
    return [own + b"/worktrees/" + name for name in names_in(own + b"/worktrees", _MAX_NAMES)]


def _is_harmless(file: bytes) -> bool:
    """Return whether a file of settings has none but those of a sparse checkout."""
    text = read_small(final_path(file), CONFIG_CAP) or b""
    return len(text) < CONFIG_CAP and all(key in _HARMLESS for key, _ in read_settings(text))


def _is_file_or_link(path: bytes) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _rebase_commands(folder: bytes) -> Iterator[Fact]:
    """Yield what names commands for a rebase or cherry-pick that has stopped.

    A person may go on with it. A strategy with a slash is a program in the work tree.
    """
    for name, command in _COMMANDS.items():
        text = read_small(final_path(folder + name), CONFIG_CAP) or b""
        if found := re.search(command, text):
            yield Fact(FactKind.COMMANDS, folder + name, found[1])
        elif len(text) == CONFIG_CAP:
            yield Fact(FactKind.COMMANDS, folder + name, b"what stands behind its beginning")


# Links


def _entries(top: int) -> Iterator[tuple[bytes, NodeKind | None, bool]]:
    """Yield the entries of an open git directory, but not the objects in their 256 folders."""
    waiting = deque([b"."])
    while waiting:
        folder = waiting.popleft()
        is_objects = os.path.basename(folder) == _OBJECTS and _is_object(folder)
        for path, kind, is_hard in _entries_of(top, (folder,)):
            yield path, kind, is_hard
            is_fan_out = is_objects and re.fullmatch(_FAN_OUT, os.path.basename(path))
            if kind is NodeKind.FOLDER and not is_fan_out:
                waiting.append(path)


def _entries_of(
    top: int, folders: Iterable[bytes]
) -> Iterator[tuple[bytes, NodeKind | None, bool]]:
    """Yield the entries of folders: the path, the kind, and whether it is a hard link.

    Of other kinds than folders, files, and links, only FIFOs are among them. The kind is None for
    a folder that cannot be listed: git may still use the names in it.
    """
    for folder in folders:
        try:
            with entries_below(top, folder) as entries:
                yield from _kinds_of(folder, entries)
        except PermissionError:
            yield folder, None, False
        except OSError:
            pass


def _kinds_of(
    folder: bytes, entries: Iterable[os.DirEntry[bytes]]
) -> Iterator[tuple[bytes, NodeKind, bool]]:
    for entry in entries:
        path = entry.name if folder == b"." else folder + b"/" + entry.name
        if entry.is_symlink():
            yield path, NodeKind.LINK, False
        elif entry.is_dir(follow_symlinks=False):
            yield path, NodeKind.FOLDER, False
        elif entry.is_file(follow_symlinks=False):
            yield path, NodeKind.FILE, entry.stat(follow_symlinks=False).st_nlink > 1
        elif stat.S_ISFIFO(entry.stat(follow_symlinks=False).st_mode):
            yield path, NodeKind.OTHER, False  # git itself makes sockets, but no FIFOs


def _is_object(path: bytes) -> bool:
    """Return whether a path in a git directory is `objects` or below: a branch has such a name."""
    before, objects, _ = (b"/" + path + b"/").partition(b"/" + _OBJECTS + b"/")
    return bool(objects) and _REFS not in before.split(b"/")


def _leads_out(common: bytes, link: bytes) -> bool:
    """Return whether a link leads out of a git directory, or to a file in it that git obeys."""
    target = final_path(link)
    if not contains(common, target):
        return True
    parts = target[len(common) + 1 :].split(b"/")
    # The git directories of submodules and worktrees have such files, too.
    starts = range(len(parts)) if parts[0] in _INNER_DIRECTORIES else (0,)
    inside = [b"/" + b"/".join(parts[start:]) for start in starts]
    return any(contains(b"/" + name, each) for name in IN_A_GIT_DIRECTORY for each in inside)


# Gitlinks


def _repositories_with_programs(
    place: bytes, repositories: Iterable[bytes], known: Collection[bytes]
) -> Iterator[Fact]:
    """Yield the repositories at gitlinks, and nested ones, whose settings or hooks name programs.

    So does that of the root itself, unless it is `known`: then its settings are protected. A
    gitlink out of its checkout is never one that git made, so that counts whatever it names:
    to look there could take for ever.
    """
    main = _common_of(place)
    seen: set[bytes] = set()
    waiting = [*_checkouts(place, repositories)]
    while waiting:
        own, checkout = waiting.pop()
        if own in seen:
            continue
        if len(seen) == _MAX_CHECKOUTS:
            yield Fact(FactKind.UNREAD, place)
            return
        seen.add(own)
        common = common_directory_of(own)
        is_known = own in known or common in known or not contains(place, common)
        if checkout == place and not contains(place, own):
            yield Fact(FactKind.PROGRAMS, place, b"programs, since it belongs to " + common)
        is_protected = common == main and is_known
        if not is_protected and contains(place, checkout) and (programs := _programs_of(own)):
            # The programs of worktrees are those of their repository.
            is_worktree = contains(common + b"/worktrees", own)
            of = common.removesuffix(b"/" + GIT) if is_worktree else checkout
            yield Fact(FactKind.PROGRAMS, of, ", ".join(programs).encode())
        index = index_in(own)
        yield from _leading_out(own, checkout, index)
        for path in (path for path, is_gitlink in index.paths if is_gitlink):
            inner = os.path.normpath(os.path.join(checkout, path))
            if inner == checkout or not contains(checkout, inner):
                yield Fact(FactKind.PROGRAMS, inner, b"programs, since an index names " + path)
            elif contains(place, inner) and (inner_own := own_directory(inner)) is not None:
                waiting.append((inner_own, inner))


def _leading_out(own: bytes, checkout: bytes, index: CheckoutIndex) -> Iterator[Fact]:
    """Yield the files of a checkout in which paths lead out of it.

    `git checkout .` writes to those of an index. A commit copies those of `MERGE_RR`.
    """
    if index.leads_out:
        yield Fact(FactKind.OBEYED, own + b"/index")
    if not index.is_whole:
        yield Fact(FactKind.UNREAD, own)
    text = read_small(final_path(own + _RERERE), CONFIG_CAP) or b""
    names = (item.partition(b"\t")[2] for item in text.split(b"\0"))
    paths = (final_path(os.path.normpath(os.path.join(checkout, name))) for name in names if name)
    if len(text) == CONFIG_CAP or not all(contains(checkout, path) for path in paths):
        yield Fact(FactKind.OBEYED, own + _RERERE)


def _checkouts(place: bytes, repositories: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the git directories of checkouts that programs can change, with their work trees.

    The work tree of a worktree may be elsewhere, if only its git directory is visible.
    """
    for common in repositories:
        tree = worktree_setting(read_small(final_path(common + b"/config"), CONFIG_CAP) or b"")
        if tree is not None or os.path.basename(common) == GIT:
            yield common, os.path.normpath(os.path.join(common, tree or b".."))
        else:
            yield common, common
        for own in _worktrees_of(common):
            text = (read_small(own + b"/gitdir", REF_CAP) or b"").strip().split(b"\0")[0]
            yield own, os.path.dirname(os.path.normpath(os.path.join(own, text)))
    if (main := own_directory(place)) is not None:
        yield main, place  # last, so that it is the first to be looked at


def _common_of(place: bytes) -> bytes:
    """Return the git directory with the settings of a root, which are protected."""
    return common_directory_of(own_directory(place) or place)


def _programs_of(own: bytes) -> list[str]:
    """Return the settings and hooks of a git directory that name programs, sorted."""
    common = common_directory_of(own)
    found = {
        f"hooks/{os.fsdecode(name)}"
        for name in names_in(common + b"/hooks")
        if _is_hook(common, name)
    }
    for file in (common + b"/config", own + b"/config.worktree"):
        text = read_small(final_path(file), CONFIG_CAP)
        if text:
            found.update(f"{name} = {value}" for name, value in program_settings(text))
        if text and len(text) == CONFIG_CAP:
            found.add(f"settings beyond the first {CONFIG_CAP} bytes, which were not read")
    return sorted(found)


def _is_hook(own: bytes, name: bytes) -> bool:
    path = own + b"/hooks/" + name
    return not name.endswith(b".sample") and os.access(path, os.X_OK) and not os.path.isdir(path)
