"""Reads where a repository came from and which branch it is on, without its tool.

Sources: git-config(1), gitrepository-layout(5), hgrc(5), and the files that the other tools keep.
An include in a configuration is never followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import MappingProxyType

from rootsd.core.model import ProjectKind
from rootsd.core.origins import without_credentials
from rootsd.host.disk.leads import may_follow
from rootsd.host.disk.reader import CONFIG_CAP, REF_CAP, exists_inside, join, read_small
from rootsd.host.vcs import dbimage
from rootsd.host.vcs.gitdir import GitPlace, is_git, locate, locate_bare

_SECTION = re.compile(rb'[ \t]*\[[ \t]*([\w.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?[ \t]*\](.*)$')
_SETTING = re.compile(rb"[ \t]*([A-Za-z][\w-]*)[ \t]*=[ \t]*(.*)$")
_BRANCH = b"ref: refs/heads/"
_REFTABLE_HEAD = b".invalid"
_LONGEST = 1_000
_MOST_LINES = 10_000

Settings = Mapping[tuple[bytes, bytes, bytes], bytes]


def place_of(path: bytes, kind: ProjectKind) -> GitPlace | None:
    """Where the git data of a project lie; None if it has none of its own tool's."""
    if kind is ProjectKind.GIT_BARE:
        return locate_bare(path)
    if is_git(kind) or (kind is ProjectKind.JJ and exists_inside(path + b"/.git")):
        return locate(path)
    if kind is not ProjectKind.JJ:
        return None
    store = path + b"/.jj/repo/store"
    text = read_small(store + b"/git_target", REF_CAP)
    target = join(store, text.strip()) if text else None
    return locate_bare(target) if target is not None and may_follow(target) else None


def settings_of(place: GitPlace) -> Settings:
    """The settings of a repository by section, subsection and key, as its own file has them."""
    text = read_small(place.common + b"/config", CONFIG_CAP) or b""
    found: dict[tuple[bytes, bytes, bytes], bytes] = {}
    section, sub = b"", b""
    for line in text.splitlines()[:_MOST_LINES]:
        if (head := _SECTION.match(line)) is not None:
            section, sub = head[1].lower(), head[2] or b""
        rest = line if head is None else head[3]  # a setting may stand behind its section
        if (setting := _SETTING.match(rest)) is not None:
            value = setting[2].strip().removeprefix(b'"').removesuffix(b'"')
            found[section, sub, setting[1].lower()] = value
    return MappingProxyType(found)


def is_plain(place: GitPlace) -> bool:
    """Whether what libgit2 reads first are small regular files; what they include may be not."""
    config = read_small(place.common + b"/config", CONFIG_CAP)
    head = read_small(place.folder + b"/HEAD", REF_CAP)
    return config is not None and len(config) < CONFIG_CAP and head is not None


def origin_of(path: bytes, kind: ProjectKind) -> str | None:
    """The address that a repository was cloned from, without credentials; None if none is found.

    Of several remotes `origin` counts, else the first.
    """
    address = _origin(path, kind)
    if not address:
        return None
    return without_credentials(address.decode("utf-8", "surrogateescape")[:_LONGEST])


def branch_of(path: bytes, kind: ProjectKind) -> str | None:
    """The branch that is checked out; None if none is, or where it cannot be read here."""
    if is_git(kind):
        place = place_of(path, kind)
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
            return _line(path + b"/.hg/hgrc", rb"default[ \t]*=[ \t]*(.+)")
        case ProjectKind.SAPLING:
            return _line(path + b"/.sl/config", rb"default[ \t]*=[ \t]*(.+)")
        case ProjectKind.BZR:
            return _line(path + b"/.bzr/branch/branch.conf", rb"parent_location[ \t]*=[ \t]*(.+)")
        case ProjectKind.DARCS:
            return _line(path + b"/_darcs/prefs/defaultrepo", rb"(.+)")
        case ProjectKind.PIJUL:
            return _line(path + b"/.pijul/config", rb'default_remote[ \t]*=[ \t]*"([^"]+)"')
        case ProjectKind.SVN:
            return _svn_origin(path + b"/.svn/wc.db")
        case _:
            place = place_of(path, kind)
            return _git_origin(settings_of(place)) if place is not None else None


def _git_origin(settings: Settings) -> bytes | None:
    addresses = {sub: value for (section, sub, key), value in settings.items()
                 if section == b"remote" and key == b"url"}  # fmt: skip
    return addresses.get(b"origin") or next(iter(addresses.values()), None)


def _svn_origin(database: bytes) -> bytes | None:
    rows = dbimage.ask(
        database,
        ("nodes", "repository"),
        "SELECT r.root || '/' || n.repos_path FROM nodes n JOIN repository r ON r.id = n.repos_id"
        " WHERE n.local_relpath = '' LIMIT 1",
    )
    address = rows[0][0] if rows else None
    return os.fsencode(address) if isinstance(address, str) else None


def _line(file: bytes, pattern: bytes) -> bytes | None:
    compiled = re.compile(pattern)
    lines = (read_small(file, CONFIG_CAP) or b"").splitlines()[:_MOST_LINES]
    found = (compiled.match(line.strip()) for line in lines)
    return next((match[1].strip() for match in found if match is not None), None)
