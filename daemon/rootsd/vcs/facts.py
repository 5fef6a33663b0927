"""Collect the facts that rootsd shows about a project: origin, files, size, and findings.

A finding is something that a person should know before approving a project. Findings come from the
names of files and from a few git settings; rootsd reads no other content. One bounded walk finds
them. If the walk does not reach every file, the size is a lower bound.

The author of the project chose all of this text. rootsd escapes and shows it, and makes no
decisions with it.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from msgspec import Struct, field

from rootsd.agents import project_files
from rootsd.core.model import ProjectKind
from rootsd.core.project_kind import VCS_NAMES
from rootsd.core.risks import FindingItem, FindingKind
from rootsd.core.secret_names import is_secret_name
from rootsd.disk.git_settings import program_settings
from rootsd.disk.manifest import declared_name
from rootsd.disk.markers import (
    BUILT_IN_PROJECT_FILES,
    SKIPPED_NAMES,
    ProjectFiles,
    repository_kind,
)
from rootsd.disk.reader import list_names
from rootsd.vcs.git.config import is_safe_for_libgit2, read_git_config
from rootsd.vcs.git.repository import GitDirs, git_dir_links_back
from rootsd.vcs.git.submodules import absent_submodules
from rootsd.vcs.origin import git_dirs_of, read_branch, read_origin
from rootsd.wire.projects import ShownFacts, SizeItem

MAX_SCAN_ENTRIES = 50_000
MAX_SCAN_SECONDS = 1.0
_MAX_FINDINGS = 100
MAX_RISK_NAMES = 4_000
_MAX_RISKS = 10  # of each kind
_MAX_SETTING = 200  # letters of a name

# Paths relative to the project. A path that ends with a slash is a folder.
EXECUTED_PATHS = (
    *project_files("RUNS"),
    *b".envrc mise.toml .mise.toml .devcontainer/devcontainer.json .devcontainer.json".split(),
    *b".husky/ .githooks/".split(),
)


class ContentScan(Struct):
    """The result of one scan of a project. `more` is the number of findings left out."""

    findings: list[FindingItem] = field(default_factory=list)
    size: SizeItem = field(default_factory=lambda: SizeItem(bytes=0, files=0, whole=True))
    more: int = 0

    def add(self, finding: FindingItem) -> None:
        """Keep a finding, up to a maximum."""
        if len(self.findings) < _MAX_FINDINGS:
            self.findings.append(finding)
        else:
            self.more += 1


def scan_content(
    top: bytes,
    settings: bytes,
    hooks: bytes | None,
    files: ProjectFiles = BUILT_IN_PROJECT_FILES,
) -> ContentScan:
    """Scan the project at `top`. Raises nothing.

    `settings` and `hooks` are the text of its git settings and its folder of hooks. `files`
    defines what a project file is. The scan follows no links and enters no other file systems. It
    adds up the sizes in folders of dependencies, but looks for no findings there.
    """
    found = ContentScan()
    for finding in find_executed(top, settings, hooks):
        found.add(finding)
    for path in absent_submodules(top):
        found.add(_finding(FindingKind.ABSENT, path, "submodule"))
    _walk(top, found, files)
    found.findings.sort(key=lambda each: (each["concern"], each["path"], each["detail"]))
    return found


def find_executed(top: bytes, settings: bytes, hooks: bytes | None) -> Iterator[FindingItem]:
    """Yield the files and settings that agents and git execute.

    The arguments are as for `scan_content`.
    """
    for name in EXECUTED_PATHS:
        if _exists(top + b"/" + name.rstrip(b"/"), folder=name.endswith(b"/")):
            yield _finding(FindingKind.EXECUTED, name)
    for setting in sorted({name[:_MAX_SETTING] for name, _ in program_settings(settings)}):
        yield _finding(FindingKind.EXECUTED, b".git/config", setting)
    for name in hooks_in(hooks) if hooks is not None else ():
        yield _finding(FindingKind.EXECUTED, b".git/hooks/" + name)


def _walk(top: bytes, found: ContentScan, files: ProjectFiles) -> None:
    deadline, left = time.monotonic() + MAX_SCAN_SECONDS, MAX_SCAN_ENTRIES
    try:
        device = os.lstat(top).st_dev
    except OSError:
        return
    # The flag says whether to look for findings in the folder. Its size counts in any case.
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
            found.size["whole"] = False
            return
        if counts and folder != top:
            _add_nested(folder[len(top) + 1 :], {entry.name for entry in entries}, found, files)
        for entry in entries:
            inside = counts and entry.name not in SKIPPED_NAMES | VCS_NAMES
            if _add_size(entry, device, found):
                stack.append((entry.path, inside))
            elif counts and is_secret_name(entry.name):
                found.add(_finding(FindingKind.SENSITIVE, entry.path[len(top) + 1 :]))


def _add_size(entry: os.DirEntry[bytes], device: int, found: ContentScan) -> bool:
    """Add the size of a file. Return whether the entry is a folder to enter."""
    try:
        seen = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    if stat.S_ISDIR(seen.st_mode):
        return seen.st_dev == device
    found.size["files"] += 1
    found.size["bytes"] += seen.st_blocks * 512
    return False


def _add_nested(path: bytes, names: set[bytes], found: ContentScan, files: ProjectFiles) -> None:
    kind = repository_kind(names)
    if kind is None and files.any_in(names):
        kind = ProjectKind.PROJECT
    if kind is not None:
        found.add(_finding(FindingKind.NESTED, path, kind.value))


def hooks_in(folder: bytes) -> list[bytes]:
    """Return the names in a folder of hooks that git runs, sorted. Raises nothing."""
    try:
        with os.scandir(folder) as listing:
            return sorted(
                entry.name
                for entry, _ in zip(listing, range(1_000), strict=False)
                # git runs no name with a dot, such as a `.sample` or the `docs.url` of jj.
                if b"." not in entry.name and not entry.is_dir(follow_symlinks=False)
            )
    except OSError:
        return []


def _exists(path: bytes, *, folder: bool) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) if folder else not stat.S_ISDIR(mode)


_MAX_PROJECT_FILES = 50

# The ecosystem that a project file belongs to.
_ECOSYSTEMS: Mapping[bytes, str] = MappingProxyType(
    {
        b"pyproject.toml": "python", b"setup.py": "python", b"setup.cfg": "python",
        b"package.json": "node", b"deno.json": "deno", b"deno.jsonc": "deno",
        b"Cargo.toml": "rust", b"go.mod": "go", b"go.work": "go", b"pom.xml": "java",
        b"build.gradle": "java", b"build.gradle.kts": "java", b"settings.gradle": "java",
        b"settings.gradle.kts": "java", b"composer.json": "php", b"Gemfile": "ruby",
        b"mix.exs": "elixir", b"rebar.config": "erlang", b"CMakeLists.txt": "c++",
        b"meson.build": "c++", b"Package.swift": "swift", b"pubspec.yaml": "dart",
        b"build.zig": "zig", b"stack.yaml": "haskell", b"dune-project": "ocaml",
        b"flake.nix": "nix",
    }
)  # fmt: skip
_ECOSYSTEMS_BY_SUFFIX: Mapping[bytes, str] = MappingProxyType(
    {b"sln": "dotnet", b"csproj": "dotnet", b"fsproj": "dotnet", b"cabal": "haskell"}
)


class CollectedFacts(Struct, frozen=True):
    """The facts of a project, and whether libgit2 may read its last commit."""

    facts: ShownFacts
    has_history: bool


class CollectedRisks(Struct, frozen=True):
    """What a listing of many projects needs of one.

    `findings` are the risks of `rootsd.core.risks`, and `left_out` is the number of more of them.
    It has read everything only if `is_whole`.
    """

    origin: str | None
    findings: list[FindingItem]
    left_out: int
    is_whole: bool


def collect_facts(
    path: bytes, kind: ProjectKind, project_files: ProjectFiles = BUILT_IN_PROJECT_FILES
) -> CollectedFacts:
    """Return the facts. Raises nothing.

    Bytes that are not UTF-8 become lone surrogates, as in a path (PEP 383).
    """
    files = sorted(name for name in list_names(path) if project_files.any_in({name}))
    del files[_MAX_PROJECT_FILES:]
    declared = (declared_name(path + b"/" + name) for name in files)
    dirs = git_dirs_of(path, kind)
    found = scan_content(path, *_settings_and_hooks(dirs), project_files)
    for elsewhere in _find_elsewhere(path, dirs):
        found.add(elsewhere)
    facts = ShownFacts(
        origin=read_origin(path, kind),
        branch=read_branch(path, kind),
        project_files=[os.fsdecode(name) for name in files],
        declared_names=list(dict.fromkeys(name for name in declared if name)),
        ecosystems=sorted({each for name in files if (each := _ecosystem(name))}),
        findings=found.findings,
        findings_left_out=found.more,
        size=found.size,
        git_directory=None if dirs is None else os.fsdecode(dirs.common),
    )
    return CollectedFacts(facts, dirs is not None and is_safe_for_libgit2(dirs))


def collect_risks(path: bytes, kind: ProjectKind) -> CollectedRisks:
    """Return the facts for a listing of many projects. Raises nothing.

    For secrets, this reads the names in the project and in its folders, but not those below, and
    at most `MAX_RISK_NAMES`. So it takes a millisecond or two, whatever is in the project.
    """
    dirs = git_dirs_of(path, kind)
    executed = [*find_executed(path, *_settings_and_hooks(dirs))]
    secrets, is_whole = find_secrets(path)
    shown = [*executed[:_MAX_RISKS], *secrets[:_MAX_RISKS], *_find_elsewhere(path, dirs)]
    left_out = sum(max(0, len(all_) - _MAX_RISKS) for all_ in (executed, secrets))
    return CollectedRisks(read_origin(path, kind), shown, left_out, is_whole)


def _find_elsewhere(top: bytes, dirs: GitDirs | None) -> Iterator[FindingItem]:
    if dirs is not None and dirs.work == top and not git_dir_links_back(dirs):
        yield _finding(FindingKind.ELSEWHERE, b".git", os.fsdecode(dirs.folder))


def find_secrets(top: bytes) -> tuple[list[FindingItem], bool]:
    """Return the sensitive files in `top` and its folders, and whether all names were read.

    It reads at most `MAX_RISK_NAMES` names, and none below those folders.
    """
    try:
        device = os.lstat(top).st_dev
    except OSError:
        return [], False
    left, found, folders, is_whole = MAX_RISK_NAMES, list[bytes](), [top], True
    for folder in folders:  # grows by the folders in `top`
        try:
            with os.scandir(folder) as listing:
                for entry in listing:
                    if not left:
                        is_whole = False
                        break
                    left -= 1
                    if not entry.is_dir(follow_symlinks=False):
                        if is_secret_name(entry.name):
                            found.append(entry.path[len(top) + 1 :])
                    elif folder is top and is_entered(entry, device):
                        folders.append(entry.path)
        except OSError:
            is_whole = False
    return [_finding(FindingKind.SENSITIVE, path) for path in sorted(found)], is_whole


def is_entered(entry: os.DirEntry[bytes], device: int) -> bool:
    """Return whether a listing of risks reads this folder of a project on the file system."""
    if entry.name in SKIPPED_NAMES | VCS_NAMES:
        return False
    try:
        return entry.stat(follow_symlinks=False).st_dev == device
    except OSError:
        return False


def _settings_and_hooks(dirs: GitDirs | None) -> tuple[bytes, bytes | None]:
    """Return the text of git's settings and the folder of hooks; none without a git directory."""
    if dirs is None:
        return b"", None
    return read_git_config(dirs), dirs.common + b"/hooks"


def _ecosystem(name: bytes) -> str | None:
    return _ECOSYSTEMS.get(name) or _ECOSYSTEMS_BY_SUFFIX.get(name.rpartition(b".")[2])


def _finding(concern: FindingKind, path: bytes, detail: str = "") -> FindingItem:
    return FindingItem(concern=concern.value, path=os.fsdecode(path), detail=detail)
