"""Tell why a project is not at its path any more: gone, replaced, or out of reach."""

from __future__ import annotations

from rootsd.core.inputs import ProjectGone, ProjectObserved, ProjectUnreachable
from rootsd.core.model import Identity, LapseReason
from rootsd.disk.identity import PathAbsence, classify_absence, identify
from rootsd.disk.markers import BUILT_IN_PROJECT_FILES, ProjectFiles, repository_kind
from rootsd.disk.reader import list_names
from rootsd.vcs.probe import observe_vanished


def require_marker(
    seen: ProjectObserved, known: Identity | None, files: ProjectFiles = BUILT_IN_PROJECT_FILES
) -> ProjectObserved | ProjectGone:
    """Return `seen` if its folder has a marker, else an observation that the project is gone.

    `known` is the known identity of the project. `files` are the project files that count there.
    """
    if _has_marker(seen.path, files):
        return seen
    return _end_of(seen.path, known, seen.identity)


def classify_loss(
    path: bytes,
    within: bytes | None,
    known: Identity | None,
    files: ProjectFiles = BUILT_IN_PROJECT_FILES,
) -> ProjectGone | ProjectUnreachable | None:
    """Return why a tree lost the project at `path`, or None if the project still exists.

    It still exists, for example, if it is inside another project now. `known` is its known
    identity, `within` is the parent, as in `classify_absence`, and `files` are the project files
    that count there. Raises nothing.
    """
    filesystem = known.filesystem if known is not None else None
    away = classify_absence(path, within, filesystem)
    if away is not None:
        return observe_vanished(path) if away is PathAbsence.GONE else ProjectUnreachable(path)
    try:
        identity = identify(path)
    except OSError:
        return ProjectUnreachable(path)
    if filesystem not in (None, identity.filesystem):
        return ProjectUnreachable(path)
    replaced = known is not None and not known.same_as(identity)
    return _end_of(path, known, identity) if replaced or not _has_marker(path, files) else None


def _end_of(path: bytes, known: Identity | None, now: Identity | None) -> ProjectGone:
    """Return the observation that the project `known` is gone. `now` is the folder at its path.

    That folder is another folder, or the same folder without a project.
    """
    if known is None or now is None:
        return ProjectGone(path)
    if not known.same_as(now):
        return ProjectGone(path, LapseReason.REPLACED)
    return ProjectGone(path, None if known.keeps_git(now) else LapseReason.RETARGETED)


def _has_marker(path: bytes, files: ProjectFiles) -> bool:
    names = list_names(path)
    return repository_kind(names) is not None or files.any_in(names)
