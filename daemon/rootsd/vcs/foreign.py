"""Read how complete a repository of another VCS than git is.

From the tools' own traces at random moments of a clone: jj 0.46, hg 6.3, svn 1.14, fossil 2.21,
brz 3.3, darcs 2.16. Sapling keeps the files of Mercurial, in `.sl`. Of pijul only the layout of
its documentation is known here.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress

from rootsd.core.model import ProjectKind
from rootsd.disk.hung_mounts import may_follow
from rootsd.disk.reader import (
    CONFIG_CAP,
    NOTE_CAP,
    PACKED_REFS_CAP,
    REF_CAP,
    exists_no_follow,
    is_folder_no_follow,
    list_names,
    read_small,
    resolve_path,
    stat_no_follow,
)
from rootsd.vcs import sqlite_reader
from rootsd.vcs.base import Stage
from rootsd.vcs.git.repository import TEMPORARY_PACK_PREFIXES

_REMOTE = re.compile(rb"^[ \t]*\[remote ", re.MULTILINE)
_PRISTINE = re.compile(rb"pristine:((?:\d{10}-)?[0-9a-f]{64})\s")
_DARCS_NAME = re.compile(rb"(?:\d{10}-)?[0-9a-f]{64}")
# The name of a folder without files, whatever size stands before it: the SHA-256 of nothing.
_DARCS_EMPTY = b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
_DARCS_ESCAPE = re.compile(rb"\\(\d{1,3})\\")
_LIST_CAP = 16 << 20
_MOST_FOLDERS = 10_000
_HG_ID_SIZE = 20
_DIRSTATE_HEAD = 40
_DIRSTATE_ENTRY = 17


def jj_stage(path: bytes) -> Stage:
    """jj holds no lock while it fetches, so that even a whole repository must be quiet first."""
    repo = _jj_repository(path)
    if repo is None or not exists_no_follow(repo + b"/store/type"):
        return Stage.STARTING
    working = list_names(path + b"/.jj/working_copy")
    if b"checkout" not in working or b"working_copy.lock" in working:
        return Stage.STARTING
    if exists_no_follow(repo + b"/git_import_export.lock"):
        return Stage.STARTING
    target = read_small(repo + b"/store/git_target", REF_CAP)
    if not target:
        return Stage.JJ
    git = resolve_path(repo + b"/store", target.strip())
    if not may_follow(git):
        return Stage.STARTING
    packs = list_names(git + b"/objects/pack")
    if any(name.startswith(TEMPORARY_PACK_PREFIXES) or name.endswith(b".keep") for name in packs):
        return Stage.FETCHING
    packed = read_small(git + b"/packed-refs", PACKED_REFS_CAP) or b""
    fetched = exists_no_follow(git + b"/refs/remotes") or b"refs/remotes" in packed
    if not fetched and _REMOTE.search(read_small(git + b"/config", CONFIG_CAP) or b""):
        empty = list_names(path) <= {b".jj", b".git"}
        return Stage.CONNECTING if empty else Stage.REMOTE_ALONE
    return Stage.JJ


def _jj_repository(path: bytes) -> bytes | None:
    """Where the data are; a second workspace has a file that names those of the first one."""
    repo = path + b"/.jj/repo"
    if is_folder_no_follow(repo):
        return repo
    text = read_small(repo, REF_CAP)
    named = resolve_path(path + b"/.jj", text.strip()) if text else None
    return named if named is not None and may_follow(named) else None


def hg_stage(data: bytes) -> Stage | None:
    """`data` is `.hg`, or `.sl`. That a commit is checked out is the last thing a clone writes."""
    names = list_names(data)
    if not names >= {b"requires", b"store"}:
        return Stage.STARTING
    store = list_names(data + b"/store")
    at_work = not names.isdisjoint((b"wlock", b"updatestate"))
    at_work = at_work or not store.isdisjoint((b"lock", b"journal"))
    if _hg_parent(data):
        return Stage.IN_USE if at_work else None
    if b"journal" in store:
        return Stage.FETCHING
    return Stage.CHECKOUT_LOCKED if at_work else Stage.HG_NO_PARENT


def _hg_parent(data: bytes) -> bytes:
    """The commit that is checked out; empty if none is."""
    text = read_small(data + b"/dirstate", NOTE_CAP) or b""
    return text.removeprefix(b"dirstate-v2\n")[:_HG_ID_SIZE].strip(b"\0")


def svn_stage(data: bytes) -> Stage | None:
    """`data` is `.svn`. A checkout holds a lock, and rows say which folders lack something."""
    if b"wc.db" not in list_names(data):
        return Stage.STARTING
    database = data + b"/wc.db"
    if sqlite_reader.has_hot_journal(database):
        return Stage.CHECKOUT_LOCKED
    rows = sqlite_reader.query_copy(
        database,
        ("nodes", "wc_lock", "work_queue"),
        "SELECT (SELECT count(*) FROM nodes), EXISTS (SELECT 1 FROM wc_lock)"
        " OR EXISTS (SELECT 1 FROM work_queue)"
        " OR EXISTS (SELECT 1 FROM nodes WHERE presence = 'incomplete')",
    )
    if rows is None:
        return Stage.OTHER
    if rows == [(0, 0)]:
        return Stage.STARTING
    return Stage.CHECKOUT_LOCKED if rows[0][1] else None


def fossil_stage(path: bytes) -> Stage | None:
    """`fossil open` makes its database, with 0 as the check-in, and then all files in one
    transaction with the real one."""
    databases = _fossil_databases(path)
    if any(map(sqlite_reader.has_hot_journal, databases)):
        return Stage.CHECKOUT_LOCKED
    question = "SELECT 1 FROM vvar WHERE name = 'checkout' AND CAST(value AS INTEGER) > 0"
    answers = [sqlite_reader.query_copy(database, ("vvar",), question) for database in databases]
    return None if any(answers) else Stage.STARTING


def bzr_stage(data: bytes) -> Stage | None:
    """`data` is `.bzr`: history arrives in `upload`, the files in `limbo`, under a lock."""
    names = list_names(data)
    if b"branch-format" not in names:
        return Stage.STARTING
    checkout = list_names(data + b"/checkout")
    if b"dirstate" in checkout and b"limbo" not in checkout:
        return Stage.CHECKOUT_LOCKED if list_names(data + b"/checkout/lock") else None
    if b"checkout" in names:
        return Stage.CHECKOUT_LOCKED
    if list_names(data + b"/repository/upload"):
        return Stage.FETCHING
    if b"branch" not in names and not exists_no_follow(data + b"/repository/shared-storage"):
        return Stage.STARTING
    # A repository of branches, or a branch without files.
    return Stage.OTHER


def darcs_stage(data: bytes) -> Stage | None:
    """`data` is `_darcs`. The inventory comes first, then the files of the state it names.

    A clone begins with what `darcs init` makes, then notes where it is from, and only then takes
    over the inventory there.
    """
    names = list_names(data)
    if b"format" not in names:
        return Stage.OTHER if b"inventory" in names else Stage.STARTING
    if b"lock" in names:
        return Stage.IN_USE
    inventory = data + b"/hashed_inventory"
    head = _PRISTINE.match(read_small(inventory, REF_CAP) or b"")
    if head is None:
        return Stage.OTHER
    if head[1].endswith(_DARCS_EMPTY) and _is_newer(data + b"/prefs/defaultrepo", inventory):
        empty = list_names(os.path.dirname(data)) <= {b"_darcs"}
        return Stage.CONNECTING if empty else Stage.REMOTE_ALONE
    work = os.path.dirname(data)
    try:
        for name in _darcs_files(data, head[1]):
            if _is_being_written(work + b"/" + name):
                return Stage.FETCHING
    except LookupError:
        return Stage.FETCHING
    return None


def _is_being_written(file: bytes) -> bool:
    """darcs fills another file, `NAME-0`, before it takes over the pristine copy, and renames it
    then."""
    return not exists_no_follow(file) and exists_no_follow(file + b"-0")


def _is_newer(file: bytes, other: bytes) -> bool:
    """Whether it was written after the other one; False if either is not there."""
    try:
        return stat_no_follow(file).st_mtime_ns > stat_no_follow(other).st_mtime_ns
    except OSError:
        return False


def pijul_stage(data: bytes) -> Stage:
    """`data` is `.pijul`. Nothing in it tells an end."""
    return Stage.OTHER if exists_no_follow(data + b"/pristine/db") else Stage.STARTING


def tracked_files(path: bytes, kind: ProjectKind) -> Iterator[bytes]:
    """The files that a checkout must hold, as far as its tool's list can be read here."""
    match kind:
        case ProjectKind.HG:
            yield from _hg_files(path + b"/.hg")
        case ProjectKind.SAPLING:
            yield from _hg_files(path + b"/.sl")
        case ProjectKind.SVN:
            yield from _listed(
                path + b"/.svn/wc.db",
                "nodes",
                "SELECT local_relpath, presence FROM nodes WHERE kind = 'file' AND op_depth = 0",
                "normal",
            )
        case ProjectKind.FOSSIL:
            for database in _fossil_databases(path):
                question = "SELECT pathname, CAST(deleted AS TEXT) FROM vfile"
                yield from _listed(database, "vfile", question, "0")
        case ProjectKind.DARCS:
            data = path + b"/_darcs"
            head = _PRISTINE.match(read_small(data + b"/hashed_inventory", REF_CAP) or b"")
            if head is not None:
                with suppress(LookupError):  # it was changed since `darcs_stage` had it all
                    yield from _darcs_files(data, head[1])
        case _:
            return


def _fossil_databases(path: bytes) -> tuple[bytes, ...]:
    return tuple(path + b"/" + name for name in (b".fslckout", b"_FOSSIL_"))


def _listed(database: bytes, table: str, question: str, wanted: str) -> Iterator[bytes]:
    for name, state in sqlite_reader.query_copy(database, (table,), question) or ():
        if state == wanted and isinstance(name, str):
            yield os.fsencode(name)


def _hg_files(data: bytes) -> Iterator[bytes]:
    """Source: mercurial's internals/dirstate; the second version of the file is not read."""
    requires = (read_small(data + b"/requires", REF_CAP) or b"").split()
    if any(each.startswith((b"dirstate-v2", b"exp-sparse", b"eden")) for each in requires):
        return
    dirstate = read_small(data + b"/dirstate", _LIST_CAP) or b""
    if dirstate.startswith(b"\ntreestate"):
        return
    at = _DIRSTATE_HEAD
    while at + _DIRSTATE_ENTRY <= len(dirstate):
        size = int.from_bytes(dirstate[at + 13 : at + _DIRSTATE_ENTRY], "big")
        start = at + _DIRSTATE_ENTRY
        if dirstate[at : at + 1] != b"r":
            yield dirstate[start : start + size].partition(b"\0")[0]
        at = start + size


def _darcs_files(data: bytes, root: bytes) -> Iterator[bytes]:
    """The files of the tree whose hash is `root`. Raises LookupError where a part is missing."""
    stack, folders, left = [(b"", root)], _MOST_FOLDERS, _LIST_CAP
    while stack and folders and left > 0:
        folder, name = stack.pop()
        text = _darcs_folder(data + b"/pristine.hashed/" + name)
        folders, left = folders - 1, left - len(text)
        lines = text.split(b"\n")
        for what, raw, its in zip(lines[::3], lines[1::3], lines[2::3], strict=False):
            path = folder + _DARCS_ESCAPE.sub(lambda m: bytes([int(m[1]) & 0xFF]), raw)
            if what != b"directory:":
                yield path
            elif _DARCS_NAME.fullmatch(its):
                stack.append((path + b"/", its))


def _darcs_folder(file: bytes) -> bytes:
    raw = read_small(file, _LIST_CAP)
    if raw is None:
        raise LookupError(file)
    if not raw.startswith(b"\x1f\x8b"):
        return raw
    try:
        return zlib.decompressobj(wbits=31).decompress(raw, _LIST_CAP)
    except zlib.error as error:
        raise LookupError(file) from error
