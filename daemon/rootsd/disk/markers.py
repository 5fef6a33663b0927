"""Decide which folders are projects and which folders a walk skips, by the names in a folder.

This module opens no files.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from msgspec import Struct

from rootsd.core.model import NestedPolicy, Parent
from rootsd.core.project_kind import (
    GIT_BARE_NAMES,
    PROJECT_FILES,
    PROJECT_GLOBS,
    VCS_NAMES,
    ProjectKind,
)

# The first of these markers wins. `.jj` is first, because a Jujutsu workspace may have a `.git`.
VCS_MARKERS: Mapping[bytes, ProjectKind] = MappingProxyType(
    {marker: kind for kind in (ProjectKind.JJ, *ProjectKind) for marker in kind.markers}
)
# A walk skips all hidden folders, so most of these are not hidden.
SKIPPED_NAMES = frozenset(
    b"node_modules bower_components venv env __pycache__ site-packages Pods DerivedData".split()
) | (VCS_NAMES - {b".git"})
SKIPPED_BESIDE_A_PROJECT_FILE = frozenset(b"target build dist vendor".split())

# This is not a project file, but it lists the members of a workspace.
_PNPM = b"pnpm-workspace.yaml"

# No file name contains a slash, so one search can cover many names joined with slashes.
_SEPARATOR = b"/"
_HIDDEN = b"."
# The syntax of the configured list of project files.
_NEGATION, _SUFFIX_GLOB = b"!", b"*."


def repository_kind(names: frozenset[bytes] | set[bytes]) -> ProjectKind | None:
    """Return the kind of repository that has these names in its top folder, or None."""
    # Use a loop: a generator takes three times as long, and this runs for each repository.
    for marker, kind in VCS_MARKERS.items():
        if marker in names:
            return kind
    return ProjectKind.GIT_BARE if names >= GIT_BARE_NAMES else None


def marker_in(names: frozenset[bytes] | set[bytes], kind: ProjectKind) -> bytes:
    """Return the marker among `names`, or an empty name. Every bare repository has HEAD."""
    if kind is ProjectKind.GIT_BARE:
        return b"HEAD"
    markers = (marker for marker in VCS_MARKERS if marker in names)
    return next(markers, b"")


def compile_globs(globs: Iterable[bytes]) -> re.Pattern[bytes] | None:
    """Return a pattern that matches whatever one of the globs matches, or None without globs."""
    parts = [fnmatch.translate(glob.decode("latin-1")).encode("latin-1") for glob in globs]
    return re.compile(b"|".join(parts)) if parts else None


class ProjectFiles(Struct, frozen=True):
    """The names of project files: exact names, and globs such as `*.sln`."""

    names: frozenset[bytes]
    globs: frozenset[bytes]
    _ending: re.Pattern[bytes] | None

    @classmethod
    def changed(cls, entries: Iterable[bytes]) -> ProjectFiles:
        """Return the built-in names with the changes that the configuration makes.

        An entry `NAME` or `*.ENDING` adds a name or glob; `!NAME` or `!*.ENDING` removes it.
        """
        names, globs = set(PROJECT_FILES), set(PROJECT_GLOBS)
        for entry in entries:
            bare = entry.removeprefix(_NEGATION)
            kind = globs if bare.startswith(_SUFFIX_GLOB) else names
            kind.discard(bare) if entry.startswith(_NEGATION) else kind.add(bare)
        return cls(frozenset(names), frozenset(globs), _suffix_pattern(sorted(globs)))

    def any_in(self, names: frozenset[bytes] | set[bytes]) -> bool:
        """Return whether one of the names is a project file."""
        if not self.names.isdisjoint(names):
            return True
        if self._ending is None:
            return False
        return self._ending.search(_SEPARATOR.join(names) + _SEPARATOR) is not None


def _suffix_pattern(globs: Iterable[bytes]) -> re.Pattern[bytes] | None:
    """Return a pattern that finds a name with one of the suffixes, if each name ends with `/`."""
    endings = b"|".join(re.escape(glob.removeprefix(_SUFFIX_GLOB)) for glob in globs)
    return re.compile(rb"\.(?:" + endings + rb")/") if endings else None


BUILT_IN_PROJECT_FILES = ProjectFiles.changed(())


def is_repository_marker(name: bytes) -> bool:
    """Return whether adding or removing `name` can make its folder another kind of repository."""
    return name in VCS_NAMES or name in GIT_BARE_NAMES


def is_marker(name: bytes, files: ProjectFiles = BUILT_IN_PROJECT_FILES) -> bool:
    """Return whether adding or removing `name` can make its folder another kind of project."""
    if is_repository_marker(name) or name == _PNPM:
        return True
    return files.any_in({name})


class WalkRules(Struct, frozen=True):
    """The rules for the walk of one parent.

    * `skip_names`, `skip_globs`: the folders to skip, from the configuration and built-in.
    * `stops`: the folders inside the parent where the walk stops: other parents and mount points.
    * `device`: the device number of the parent if the mount points are unknown, else None.
    """

    depth: int
    nested: NestedPolicy
    skip_names: frozenset[bytes] = SKIPPED_NAMES
    skip_globs: re.Pattern[bytes] | None = None
    stops: frozenset[bytes] = frozenset()
    files: ProjectFiles = BUILT_IN_PROJECT_FILES
    device: int | None = None

    @classmethod
    def of(cls, parent: Parent, stops: Iterable[bytes] = ()) -> WalkRules:
        """Return the rules for a configured parent. `stops` outside of it have no effect."""
        globs = [
            entry for entry in parent.skip if any(sign in entry for sign in (b"*", b"?", b"["))
        ]
        return cls(
            depth=parent.depth,
            nested=parent.nested,
            skip_names=SKIPPED_NAMES | frozenset(parent.skip) - frozenset(globs),
            skip_globs=compile_globs(globs),
            stops=frozenset(stops) - {parent.path},
            files=ProjectFiles.changed(parent.project_files)
            if parent.project_files
            else BUILT_IN_PROJECT_FILES,
        )

    def signature(self) -> bytes:
        """Return bytes that are equal only for rules with which a walk has the same result."""
        globs = self.skip_globs.pattern if self.skip_globs is not None else b""
        files = (self.files.names, SKIPPED_BESIDE_A_PROJECT_FILE, self.files.globs)
        lists = (VCS_NAMES, *files, self.skip_names, self.stops)
        parts = [_SEPARATOR.join(sorted(names)) for names in lists]
        return b"\0".join((b"%d" % self.depth, self.nested.value.encode(), globs, *parts))

    def skipped(self, names: frozenset[bytes] | set[bytes]) -> frozenset[bytes]:
        """Return the names that the walk skips in a folder with `names`, without hidden ones."""
        if SKIPPED_BESIDE_A_PROJECT_FILE.isdisjoint(names) or not self.files.any_in(names):
            return self.skip_names
        return self.skip_names | SKIPPED_BESIDE_A_PROJECT_FILE

    def enters(self, folder: bytes, name: bytes, skipped: frozenset[bytes]) -> bool:
        """Return whether the walk goes from `folder` into its folder `name`."""
        if name.startswith(_HIDDEN) or name in skipped:
            return False
        if self.skip_globs is not None and self.skip_globs.match(name):
            return False
        return not self.stops or child(folder, name) not in self.stops


def child(folder: bytes, name: bytes) -> bytes:
    """Return `folder/name`, without a second slash below `/`."""
    return folder + name if folder.endswith(b"/") else folder + b"/" + name
