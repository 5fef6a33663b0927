"""Read where a repository was cloned from, and its current branch.

Sources: git-config(1), gitrepository-layout(5), hgrc(5), and the files that the other tools keep.
An include in a configuration is never followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import MappingProxyType

from rootsd.core.model import ProjectKind
from rootsd.core.uris import without_credentials
from rootsd.disk.hung_mounts import may_follow
from rootsd.disk.reader import CONFIG_CAP, REF_CAP, exists_no_follow, read_small, resolve_path
from rootsd.vcs import sqlite_reader
from rootsd.vcs.git.repository import GitDirs, bare_git_dirs, find_git_dirs, is_git

_SECTION = re.compile(rb'[ \t]*\[[ \t]*([\w.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?[ \t]*\](.*)$')
_SETTING = re.compile(rb"[ \t]*([A-Za-z][\w-]*)[ \t]*=[ \t]*(.*)$")
_BRANCH = b"ref: refs/heads/"
_REFTABLE_HEAD = b".invalid"
_MAX_ADDRESS_LENGTH = 1_000
_MAX_LINES = 10_000

GitConfig = Mapping[tuple[bytes, bytes, bytes], bytes]


def git_dirs_of(path: bytes, kind: ProjectKind) -> GitDirs | None:
    """Where the git data of a project lie; None if it has none of its own tool's."""
    if kind is ProjectKind.GIT_BARE:
        return bare_git_dirs(path)
    if is_git(kind) or (kind is ProjectKind.JJ and exists_no_follow(path + b"/.git")):
        return find_git_dirs(path)
    if kind is not ProjectKind.JJ:
        return None
    store = path + b"/.jj/repo/store"
    text = read_small(store + b"/git_target", REF_CAP)
    target = resolve_path(store, text.strip()) if text else None
    return bare_git_dirs(target) if target is not None and may_follow(target) else None


def read_git_config(place: GitDirs) -> GitConfig:
    """The settings of a repository by section, subsection and key, as its own file has them."""
    text = read_small(place.common + b"/config", CONFIG_CAP) or b""
    found: dict[tuple[bytes, bytes, bytes], bytes] = {}
    section, sub = b"", b""
    for line in text.splitlines()[:_MAX_LINES]:
        if (head := _SECTION.match(line)) is not None:
            section, sub = head[1].lower(), head[2] or b""
        rest = line if head is None else head[3]  # a setting may stand behind its section
        if (setting := _SETTING.match(rest)) is not None:
            value = setting[2].strip().removeprefix(b'"').removesuffix(b'"')
            found[section, sub, setting[1].lower()] = value
    return MappingProxyType(found)


def is_safe_for_libgit2(place: GitDirs) -> bool:
    """Whether what libgit2 reads first are small regular files; what they include may be not."""
    config = read_small(place.common + b"/config", CONFIG_CAP)
    head = read_small(place.folder + b"/HEAD", REF_CAP)
    return config is not None and len(config) < CONFIG_CAP and head is not None


def read_origin(path: bytes, kind: ProjectKind) -> str | None:
    """The address that a repository was cloned from, without credentials; None if none is found.

    Of several remotes `origin` counts, else the first.
    """
    address = _origin(path, kind)
    if not address:
        return None
    return without_credentials(address.decode("utf-8", "surrogateescape")[:_MAX_ADDRESS_LENGTH])


def read_branch(path: bytes, kind: ProjectKind) -> str | None:
    """The branch that is checked out; None if none is, or where it cannot be read here."""
    if is_git(kind):
        place = git_dirs_of(path, kind)
        head = (read_small(place.folder + b"/HEAD", REF_CAP) or b"").strip() if place else b""
        branch = head.removeprefix(_BRANCH) if head.startswith(_BRANCH) else b""
        branch = b"" if branch == _REFTABLE_HEAD else branch
    elif kind is ProjectKind.HG:
        branch = (read_small(path + b"/.hg/branch", REF_CAP) or b"default").strip()
    else:
        branch = b""
    return branch.decode("utf-8", "surrogateescape") or None


def _origin(path: bytes, kind: ProjectKind) -> bytes | None:
    match kind:
        case ProjectKind.HG:
            return _first_match(path + b"/.hg/hgrc", rb"default[ \t]*=[ \t]*(.+)")
        case ProjectKind.SAPLING:
            return _first_match(path + b"/.sl/config", rb"default[ \t]*=[ \t]*(.+)")
        case ProjectKind.BZR:
            return _first_match(
                path + b"/.bzr/branch/branch.conf", rb"parent_location[ \t]*=[ \t]*(.+)"
            )
        case ProjectKind.DARCS:
            return _first_match(path + b"/_darcs/prefs/defaultrepo", rb"(.+)")
        case ProjectKind.PIJUL:
            return _first_match(path + b"/.pijul/config", rb'default_remote[ \t]*=[ \t]*"([^"]+)"')
        case ProjectKind.SVN:
            return _svn_origin(path + b"/.svn/wc.db")
        case _:
            place = git_dirs_of(path, kind)
            return _git_origin(read_git_config(place)) if place is not None else None


def _git_origin(settings: GitConfig) -> bytes | None:
    addresses = {sub: value for (section, sub, key), value in settings.items()
                 if section == b"remote" and key == b"url"}  # fmt: skip
    return addresses.get(b"origin") or next(iter(addresses.values()), None)


def _svn_origin(database: bytes) -> bytes | None:
    rows = sqlite_reader.query_copy(
        database,
        ("nodes", "repository"),
        "SELECT r.root || '/' || n.repos_path FROM nodes n JOIN repository r ON r.id = n.repos_id"
        " WHERE n.local_relpath = '' LIMIT 1",
    )
    address = rows[0][0] if rows else None
    return os.fsencode(address) if isinstance(address, str) else None


def _first_match(file: bytes, pattern: bytes) -> bytes | None:
    compiled = re.compile(pattern)
    lines = (read_small(file, CONFIG_CAP) or b"").splitlines()[:_MAX_LINES]
    found = (compiled.match(line.strip()) for line in lines)
    return next((match[1].strip() for match in found if match is not None), None)
