"""Decide which folders are projects and which folders a walk skips, by the names in a folder.

This module opens no files. Only `has_git` and `has_checkout` look at the disk.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from msgspec import Struct

from rootsd.core.exclusion import ExclusionReason
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
_GIT_ENDING = b"/.git"
_OTHER_ENDINGS = tuple(b"/" + name for name in VCS_MARKERS if name != b".git")
# A walk skips all hidden folders, so most of these are not hidden. It finds a repository that has
# one of these names, or a hidden one: it looks for the marker first.
SKIPPED_NAMES = frozenset(
    b"node_modules bower_components venv env __pycache__ site-packages Pods DerivedData".split()
)
# Here mix, rebar, dune, and Sphinx build, and CMake clones what a project depends on.
_BUILD_FOLDERS = frozenset(b"_build _deps".split())
# Folders with these names are skipped only beside a project file.
BUILD_NAMES = frozenset(b"target build dist vendor".split())
# Folders with this name are skipped only beside one of these files: mix and rebar clone there.
_DEPENDENCIES = b"deps"
_BESIDE_DEPENDENCIES = frozenset(b"mix.exs rebar.config".split())
# An entry with one of these names may have to be skipped, depending on the files beside it.
SKIPPED_BESIDE_FILES = BUILD_NAMES | {_DEPENDENCIES}
# What a person has thrown away, and what a file system or a NAS keeps besides the real folders:
# nothing in them is proposed, not even a repository.
DISCARDED_NAMES = frozenset(
    b"$RECYCLE.BIN $Recycle.Bin RECYCLER .Trash .Trashes @eaDir @Recycle @Recently-Snapshot"
    b" #recycle #snapshot .snapshot .snapshots .zfs lost+found".split()
) | {b"System Volume Information"}
# A recycle bin on another disk than the home folder has the user's id at the end
# (https://specifications.freedesktop.org/trash-spec/1.0/).
_TRASH_PREFIX = b".Trash-"
_UNHIDDEN_SKIPPED = (
    SKIPPED_NAMES
    | _BUILD_FOLDERS
    | {name for name in DISCARDED_NAMES | VCS_NAMES if not name.startswith(b".")}
)
# A folder with this file is a cache (https://bford.info/cachedir/).
CACHE_TAG = b"CACHEDIR.TAG"
CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"

# The files that may list the members of a workspace. Some of them are no project files.
WORKSPACE_FILES = frozenset(
    b"package.json lerna.json pnpm-workspace.yaml deno.json deno.jsonc pyproject.toml Cargo.toml"
    b" go.work".split()
)

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


def has_git(path: bytes) -> bool:
    """Return whether the folder has a `.git`. This is one lookup, and takes 2 us."""
    return os.access(path + _GIT_ENDING, os.F_OK, follow_symlinks=False)


def has_checkout(path: bytes) -> bool:
    """Return whether the folder has a marker. A bare repository does not count."""
    access = os.access
    return has_git(path) or any(
        access(path + ending, os.F_OK, follow_symlinks=False) for ending in _OTHER_ENDINGS
    )


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
    if is_repository_marker(name) or name in WORKSPACE_FILES or name == CACHE_TAG:
        return True
    return files.any_in({name})


class WalkRules(Struct, frozen=True):
    """The rules for the walk of one parent.

    * `skip_names`, `skip_globs`: the names that the configuration skips.
    * `stops`: the folders inside the parent where the walk stops, each with the reason: other
      parents and mount points.
    * `crossed`: those of the stops that are mounts that discovery looks into. The walk stops at
      them, too: each is walked on its own, because it may come, go, or hang on its own.
    * `device`: the device number of the parent if the mount points are unknown, else None.
    * `top_is_project`: whether the parent itself can be a project. If it is a repository then,
      the folders inside it are in a project.
    """

    depth: int
    nested: NestedPolicy
    skip_names: frozenset[bytes] = frozenset()
    skip_globs: re.Pattern[bytes] | None = None
    stops: Mapping[bytes, ExclusionReason] = MappingProxyType({})
    files: ProjectFiles = BUILT_IN_PROJECT_FILES
    device: int | None = None
    top_is_project: bool = True
    crossed: frozenset[bytes] = frozenset()

    @classmethod
    def of(
        cls, parent: Parent, stops: Mapping[bytes, ExclusionReason] = MappingProxyType({})
    ) -> WalkRules:
        """Return the rules for a configured parent. A stop at the parent itself has no effect."""
        globs = [
            entry for entry in parent.skip if any(sign in entry for sign in (b"*", b"?", b"["))
        ]
        return cls(
            depth=parent.depth,
            nested=parent.nested,
            skip_names=frozenset(parent.skip) - frozenset(globs),
            skip_globs=compile_globs(globs),
            stops={path: why for path, why in stops.items() if path != parent.path},
            files=ProjectFiles.changed(parent.project_files)
            if parent.project_files
            else BUILT_IN_PROJECT_FILES,
        )

    def signature(self) -> bytes:
        """Return bytes that are equal only for rules with which a walk has the same result."""
        globs = self.skip_globs.pattern if self.skip_globs is not None else b""
        built_in = (_UNHIDDEN_SKIPPED, SKIPPED_BESIDE_FILES, DISCARDED_NAMES, VCS_NAMES)
        lists = (*built_in, self.files.names, self.files.globs, self.skip_names, self.stops)
        parts = [_SEPARATOR.join(sorted(names)) for names in lists]
        numbers = b"%d %d" % (self.depth, self.top_is_project)
        return b"\0".join((numbers, self.nested.value.encode(), globs, *parts))

    def skipped(self, names: frozenset[bytes] | set[bytes]) -> frozenset[bytes]:
        """Return the names to skip in a project, or a folder of one, that has `names`.

        Hidden names, and those of the configuration, are not among them.
        """
        skipped = _UNHIDDEN_SKIPPED
        if not BUILD_NAMES.isdisjoint(names) and self.files.any_in(names):
            skipped = skipped | BUILD_NAMES
        if _DEPENDENCIES in names and not _BESIDE_DEPENDENCIES.isdisjoint(names):
            skipped = skipped | {_DEPENDENCIES}
        return skipped

    def skipped_in_parent(self) -> frozenset[bytes]:
        """Return the names to skip in a parent that is no project.

        A project file there says nothing about the folders beside it.
        """
        return _UNHIDDEN_SKIPPED

    def why_skipped(
        self, folder: bytes, name: bytes, skipped: frozenset[bytes]
    ) -> ExclusionReason | None:
        """Return why the walk does not go from `folder` into its folder `name`, or None.

        `skipped` are the names that `skipped` or `skipped_in_parent` returned for `folder`. This
        looks at no disk, so it does not know whether the folder is a repository.
        """
        if self.stops and (why := self.stops.get(child(folder, name))) is not None:
            return why
        return self.why_name_skipped(name, skipped)

    def why_name_skipped(self, name: bytes, skipped: frozenset[bytes]) -> ExclusionReason | None:
        """Return why the walk skips a folder with this name, wherever it is, or None."""
        if name in self.skip_names:
            return ExclusionReason.SKIP_SETTING
        if self.skip_globs is not None and self.skip_globs.match(name):
            return ExclusionReason.SKIP_SETTING
        if name in DISCARDED_NAMES or name.startswith(_TRASH_PREFIX):
            return ExclusionReason.DISCARDED
        if name in VCS_NAMES:
            return ExclusionReason.IN_PROJECT
        if name.startswith(_HIDDEN):
            return ExclusionReason.HIDDEN
        return ExclusionReason.SKIPPED_NAME if name in skipped else None


def child(folder: bytes, name: bytes) -> bytes:
    """Return `folder/name`, without a second slash below `/`."""
    return folder + name if folder.endswith(b"/") else folder + b"/" + name
