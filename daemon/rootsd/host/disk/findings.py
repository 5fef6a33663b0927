"""Looks through a project for what a person should know before it is approved.

By names, and by a few settings of git; no content is judged. One bounded walk: a project that is
larger says so by an estimate that is marked as one.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from rootsd.core.model import ProjectKind
from rootsd.host.disk.markers import (
    BUILT_IN,
    SKIPPED,
    VCS_NAMES,
    ProjectFiles,
    repository_kind,
)
from rootsd.host.vcs.origin import Settings

MOST_ENTRIES = 50_000
MOST_SECONDS = 1.0
_MOST_FINDINGS = 100

_SENSITIVE = re.compile(
    rb"\.env(?:\.(?!example$|sample$|template$|dist$|defaults?$)[\w.-]+)?|id_(?:rsa|dsa|ecdsa|ed25519)"
    rb"|.+\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ovpn)|\.netrc|\.pgpass|\.npmrc|\.pypirc|\.htpasswd"
    rb"|credentials(?:\.json)?|service-account.*\.json|secrets?\.(?:json|ya?ml|toml)"
    rb"|terraform\.tfstate|.+\.tfvars",
    re.IGNORECASE,
)
# Below the top folder; a name that ends in a slash is a folder.
EXECUTED = (
    b".mcp.json", b".envrc", b"mise.toml", b".mise.toml", b".claude/settings.json",
    b".claude/settings.local.json", b".claude/hooks/", b".cursor/mcp.json", b".cursor/hooks.json",
    b".gemini/settings.json", b".codex/config.toml", b".vscode/tasks.json", b".vscode/mcp.json",
    b".devcontainer/devcontainer.json", b".devcontainer.json", b".husky/", b".githooks/",
    b"opencode.json", b".kiro/settings/mcp.json", b".amp/settings.json",
)  # fmt: skip
# Settings of git with which looking at a repository runs a program.
_RUNNING = frozenset(
    (b"core", key) for key in (b"fsmonitor", b"hookspath", b"sshcommand", b"pager", b"editor")
) | frozenset(
    ((b"diff", b"external"), (b"credential", b"helper"), (b"gpg", b"program"))
)  # fmt: skip
_RUNNING_BELOW = frozenset(((b"filter", b"clean"), (b"filter", b"smudge"), (b"filter", b"process"),
                            (b"diff", b"textconv"), (b"diff", b"command")))  # fmt: skip


class Concern(StrEnum):
    """Why something is pointed out."""

    SENSITIVE = "sensitive"
    EXECUTED = "executed"
    NESTED = "nested"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class Finding:
    """`path` is relative to the project; `detail` the kind of what is nested, the setting, or the
    folder that the git data lie in, though that names no such checkout."""

    concern: Concern
    path: bytes
    detail: str = ""


@dataclass(slots=True)
class Size:
    """How much is in a project, in bytes on the disk; a lower bound unless `is_whole`."""

    disk: int = 0
    files: int = 0
    is_whole: bool = True


@dataclass(slots=True)
class Survey:
    """What one walk through a project found; `more` findings were left out."""

    findings: list[Finding] = field(default_factory=list)
    size: Size = field(default_factory=Size)
    more: int = 0

    def add(self, finding: Finding) -> None:
        """Keep a finding, while there are not too many."""
        if len(self.findings) < _MOST_FINDINGS:
            self.findings.append(finding)
        else:
            self.more += 1


def survey(
    top: bytes, settings: Settings, hooks: bytes | None, files: ProjectFiles = BUILT_IN
) -> Survey:
    """Walk through a project; raises nothing. `settings` and `hooks` are those of its git data,
    `files` what is a project file there.

    Links are not followed, other file systems not entered, and dependency folders only weighed.
    """
    found = Survey()
    for finding in executed(top, settings, hooks):
        found.add(finding)
    _walk(top, found, files)
    found.findings.sort(key=lambda finding: (finding.concern.value, finding.path, finding.detail))
    return found


def executed(top: bytes, settings: Settings, hooks: bytes | None) -> Iterator[Finding]:
    """Yield what agents and git execute in a project; `settings` and `hooks` as for `survey`."""
    for name in EXECUTED:
        if _is_there(top + b"/" + name.rstrip(b"/"), folder=name.endswith(b"/")):
            yield Finding(Concern.EXECUTED, name)
    for setting in sorted(_that_run(settings)):
        yield Finding(Concern.EXECUTED, b".git/config", setting)
    for name in _hooks_in(hooks) if hooks is not None else ():
        yield Finding(Concern.EXECUTED, b".git/hooks/" + name)


def _walk(top: bytes, found: Survey, files: ProjectFiles) -> None:
    deadline, left = time.monotonic() + MOST_SECONDS, MOST_ENTRIES
    try:
        device = os.lstat(top).st_dev
    except OSError:
        return
    # Whether the names in it count, besides its weight.
    stack = [(top, True)]
    while stack:
        folder, counts = stack.pop()
        try:
            with os.scandir(folder) as listing:
                entries = sorted(
                    (entry for entry, _ in zip(listing, range(left + 1), strict=False)),
                    key=lambda entry: entry.name,
                )
        except OSError:
            continue
        left -= len(entries)
        if left < 0 or time.monotonic() > deadline:
            found.size.is_whole = False
            return
        if counts and folder != top:
            _note_nested(folder[len(top) + 1 :], {entry.name for entry in entries}, found, files)
        for entry in entries:
            inside = counts and entry.name not in SKIPPED | VCS_NAMES
            if _weigh(entry, device, found):
                stack.append((entry.path, inside))
            elif counts and _SENSITIVE.fullmatch(entry.name):
                found.add(Finding(Concern.SENSITIVE, entry.path[len(top) + 1 :]))


def _weigh(entry: os.DirEntry[bytes], device: int, found: Survey) -> bool:
    """Count a file in; whether it is a folder to be entered."""
    try:
        seen = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    if stat.S_ISDIR(seen.st_mode):
        return seen.st_dev == device
    found.size.files += 1
    found.size.disk += seen.st_blocks * 512
    return False


def _note_nested(path: bytes, names: set[bytes], found: Survey, files: ProjectFiles) -> None:
    kind = repository_kind(names)
    if kind is None and files.any_in(names):
        kind = ProjectKind.PROJECT
    if kind is not None:
        found.add(Finding(Concern.NESTED, path, kind.value))


def _that_run(settings: Settings) -> set[str]:
    running = set()
    for (section, sub, key), value in settings.items():
        runs = (section, key) in (_RUNNING_BELOW if sub else _RUNNING)
        is_shell = section == b"alias" and value.startswith(b"!")
        if (runs or is_shell) and value not in (b"", b"false", b"true"):
            name = b".".join(part for part in (section, sub, key) if part)
            running.add(name.decode("utf-8", "backslashreplace")[:200])
    return running


def _hooks_in(folder: bytes) -> list[bytes]:
    try:
        with os.scandir(folder) as listing:
            return sorted(
                entry.name
                for entry, _ in zip(listing, range(1_000), strict=False)
                if not entry.name.endswith(b".sample") and entry.is_file(follow_symlinks=False)
            )
    except OSError:
        return []


def _is_there(path: bytes, *, folder: bool) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) if folder else not stat.S_ISDIR(mode)
