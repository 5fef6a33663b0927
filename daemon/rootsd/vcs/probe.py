"""Probe one folder: is it a project, what kind is it, and is it complete?

Every result depends on the disk alone. No function runs a program.
"""

from __future__ import annotations

import os
import stat
from itertools import islice

from rootsd.core.inputs import (
    Observation,
    ProjectGone,
    ProjectObserved,
    ProjectUnreachable,
    ProjectUnsafe,
)
from rootsd.core.model import Identity, IncompleteReason, LapseReason, ProjectKind
from rootsd.core.paths import ancestors
from rootsd.disk.hung_mounts import may_follow
from rootsd.disk.identity import PathAbsence, classify_absence
from rootsd.disk.markers import repository_kind
from rootsd.disk.reader import OpenFolder, is_folder_no_follow
from rootsd.vcs.folder import OpenProject
from rootsd.vcs.registry import vcs_of
from rootsd.vcs.stages import CompleteProject, NoProject, PendingProject, ProjectState, Stage

_MAX_ENTRIES = 20_000
_MAX_MARKS = 2_000
_WITHOUT_CONTENT = (Stage.UNBORN, Stage.DEAD_GIT)


def project_state(project: OpenProject, kind: ProjectKind) -> ProjectState:
    """Return whether the folder is a complete project, a pending project, or no project.

    The kind in the result may differ from `kind`: the `.git` may be that of a worktree, and a
    `.jj` beside it has priority. This reads a few small files in about 25 us. Raises nothing.
    """
    vcs = vcs_of(kind)
    return CompleteProject(kind) if vcs is None else vcs.state(project)


def incomplete_reason(
    project: OpenProject, kind: ProjectKind, stage: Stage | None
) -> IncompleteReason | None:
    """Return why a project that stays in `stage` is incomplete, or None if it is complete.

    `stage` is None for a project that looks complete. The result depends on the disk alone, not on
    the time or the caller.
    """
    if stage is not None and (stage.quiet_period.outcome is not None or stage in _WITHOUT_CONTENT):
        return stage.quiet_period.outcome
    vcs = vcs_of(kind)
    return None if vcs is None else vcs.missing_content(project)


def progress_folders(path: bytes, kind: ProjectKind) -> tuple[bytes, ...]:
    """Return the existing progress folders of the project at `path`."""
    vcs = vcs_of(kind)
    return () if vcs is None else tuple(filter(is_folder_no_follow, vcs.progress_folders(path)))


FolderMarks = frozenset[tuple[bytes, int, int, int]]


def progress_marks(path: bytes, kind: ProjectKind) -> FolderMarks:
    """Return marks that differ after any change in the folder or its progress folders.

    Compare two of them; the times in them are never compared with a clock.
    """
    marks = set()
    for each in (path, *progress_folders(path, kind)):
        with OpenFolder(each) as folder:
            for name in (b".", *islice(sorted(folder.names()), _MAX_MARKS)):
                try:
                    found = folder.stat(name)
                except OSError:
                    continue
                marks.add((each + b"/" + name, found.st_ino, found.st_size, found.st_ctime_ns))
    return frozenset(marks)


def names_below(path: bytes) -> int:
    """Return a number that differs if there are other names at or below `path`.

    A running copy adds names, whatever program makes it. A program that only writes to its files
    adds none. So two looks show whether a copy runs, and no clock does: the clock of the disk may
    be another one, and either may be set. This reads at most 20,000 names. It follows no links and
    skips mounts that may hang. The number is valid in this process only.
    """
    # A sum does not depend on the order in which the system lists names.
    total, left, folders = 0, _MAX_ENTRIES, [path]
    while folders and left > 0:
        try:
            with os.scandir(folders.pop()) as listing:
                for entry in islice(listing, left):
                    left -= 1
                    total += hash(entry.path)
                    if entry.is_dir(follow_symlinks=False) and may_follow(entry.path):
                        folders.append(entry.path)
        except OSError:
            continue
    return total


def probe(
    path: bytes, within: bytes | None = None, filesystem: bytes | None = None
) -> Observation:
    """Observe one folder now, inside or outside of a parent. Raises nothing.

    A folder without a marker counts as a plain project: the caller decides whether that is enough.
    `within` and `filesystem` are as for `classify_absence`.
    """
    with OpenProject(path) as project:
        # Open the git data first. So the identity tells whether they lie in the folder, even if a
        # link takes the place of `.git` now.
        project.git(ProjectKind.GIT)
        try:
            identity = project.identity()
        except OSError:
            return observe_absent(path, within, filesystem)
        return _observe_open_project(project, identity)


def _observe_open_project(project: OpenProject, identity: Identity) -> ProjectObserved:
    kind = repository_kind(project.names()) or ProjectKind.PROJECT
    match project_state(project, kind):
        case CompleteProject(kind=found, main_checkout=main):
            missing = incomplete_reason(project, found, None)
            return ProjectObserved(project.path, found, identity, missing, main)
        case PendingProject(kind=found, stage=stage, main_checkout=main) as state:
            missing = incomplete_reason(project, found, stage)
            return ProjectObserved(project.path, state.final_kind, identity, missing, main)
        case NoProject():
            return ProjectObserved(project.path, ProjectKind.PROJECT, identity)


def observe_absent(path: bytes, within: bytes | None, filesystem: bytes | None) -> Observation:
    """Return the observation of a folder that cannot be identified: gone, unreachable, or unsafe.

    A folder that exists but cannot be opened is unreachable. A folder behind a link is unsafe.
    """
    if classify_absence(path, within, filesystem) is PathAbsence.GONE:
        return observe_vanished(path)
    if any(map(os.path.islink, ancestors(path))):
        return ProjectUnsafe(path, LapseReason.RETARGETED)
    return ProjectUnreachable(path)


def observe_vanished(path: bytes) -> ProjectGone:
    """Return the observation of a folder that is gone, or that a link or file has replaced."""
    try:
        replaced = not stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        replaced = False
    return ProjectGone(path, LapseReason.REPLACED if replaced else None)
