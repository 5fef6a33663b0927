"""Read the settings of a git repository without following includes.

Sources: git-config(1), gitrepository-layout(5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from rootsd.disk.reader import CONFIG_CAP, REF_CAP, read_small
from rootsd.vcs.git.repository import GitDirs

_SECTION = re.compile(rb'[ \t]*\[[ \t]*([\w.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?[ \t]*\](.*)$')
_SETTING = re.compile(rb"[ \t]*([A-Za-z][\w-]*)[ \t]*=[ \t]*(.*)$")
_BRANCH = b"ref: refs/heads/"
# A repository with reftables names no branch in HEAD.
_REFTABLE_HEAD = b".invalid"
_MAX_LINES = 10_000

GitConfig = Mapping[tuple[bytes, bytes, bytes], bytes]


def read_git_config(dirs: GitDirs) -> GitConfig:
    """Return the settings in a repository's own file, by section, subsection, and key."""
    text = read_small(dirs.common + b"/config", CONFIG_CAP) or b""
    found: dict[tuple[bytes, bytes, bytes], bytes] = {}
    section, sub = b"", b""
    for line in text.splitlines()[:_MAX_LINES]:
        if (head := _SECTION.match(line)) is not None:
            section, sub = head[1].lower(), head[2] or b""
        rest = line if head is None else head[3]  # a setting may follow on the same line
        if (setting := _SETTING.match(rest)) is not None:
            value = setting[2].strip().removeprefix(b'"').removesuffix(b'"')
            found[section, sub, setting[1].lower()] = value
    return MappingProxyType(found)


def is_safe_for_libgit2(dirs: GitDirs) -> bool:
    """Return whether the files that libgit2 reads first are small regular files.

    This does not check files that they include.
    """
    config = read_small(dirs.common + b"/config", CONFIG_CAP)
    head = read_small(dirs.folder + b"/HEAD", REF_CAP)
    return config is not None and len(config) < CONFIG_CAP and head is not None


def git_origin(dirs: GitDirs) -> bytes | None:
    """Return the address of the remote `origin`, or else of the first remote, or None."""
    addresses = {sub: value for (section, sub, key), value in read_git_config(dirs).items()
                 if section == b"remote" and key == b"url"}  # fmt: skip
    return addresses.get(b"origin") or next(iter(addresses.values()), None)


def git_branch(dirs: GitDirs) -> bytes | None:
    """Return the checked-out branch, or None for a detached HEAD and for reftables."""
    head = (read_small(dirs.folder + b"/HEAD", REF_CAP) or b"").strip()
    branch = head.removeprefix(_BRANCH) if head.startswith(_BRANCH) else b""
    return None if branch in (b"", _REFTABLE_HEAD) else branch
