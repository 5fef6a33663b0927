"""Decide by names which folders are projects, and which folders a walk skips.

Everything is decided on the set of names of one folder; no file is opened here.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rootsd.core.model import NestedPolicy, Parent, ProjectKind

# The first marker in a folder wins. `.jj` comes first: a Jujutsu workspace may hold a `.git` too.
VCS_MARKERS: Mapping[bytes, ProjectKind] = MappingProxyType(
    {marker: kind for kind in (ProjectKind.JJ, *ProjectKind) for marker in kind.markers}
)
VCS_NAMES = frozenset(VCS_MARKERS)
GIT_BARE_NAMES = frozenset((b"HEAD", b"objects", b"refs"))

PROJECT_FILES = frozenset(
    b"pyproject.toml setup.py setup.cfg package.json deno.json deno.jsonc Cargo.toml go.mod"
    b" go.work pom.xml build.gradle build.gradle.kts settings.gradle settings.gradle.kts"
    b" composer.json Gemfile mix.exs rebar.config CMakeLists.txt meson.build Package.swift"
    b" pubspec.yaml build.zig stack.yaml dune-project flake.nix".split()
)
PROJECT_GLOBS = (b"*.sln", b"*.csproj", b"*.fsproj", b"*.cabal", b"*.code-workspace")

# Hidden folders are skipped as a class.
SKIPPED_NAMES = frozenset(
    b"node_modules bower_components venv env __pycache__ site-packages Pods DerivedData".split()
) | (VCS_NAMES - {b".git"})
SKIPPED_BESIDE_A_PROJECT_FILE = frozenset(b"target build dist vendor".split())

# No project file, but it names the members of a workspace.
_PNPM = b"pnpm-workspace.yaml"

# Never part of a file name, so that many names can be searched as one text.
_SEPARATOR = b"/"
_HIDDEN = b"."
# In what is configured about project files.
_NEGATION, _SUFFIX_GLOB = b"!", b"*."


def repository_kind(names: frozenset[bytes] | set[bytes]) -> ProjectKind | None:
    """The kind of repository that a folder with these names is, or None."""
    # A loop: this is asked for each repository, and a generator takes three times as long.
    for marker, kind in VCS_MARKERS.items():
        if marker in names:
            return kind
    return ProjectKind.GIT_BARE if names >= GIT_BARE_NAMES else None


def marker_in(names: frozenset[bytes] | set[bytes], kind: ProjectKind) -> bytes:
    """The name that makes a folder with these names a project of `kind`; empty if none does."""
    if kind is ProjectKind.GIT_BARE:
        return b"HEAD"
    markers = (marker for marker in VCS_MARKERS if marker in names)
    return next(markers, b"")


def compile_globs(globs: Iterable[bytes]) -> re.Pattern[bytes] | None:
    """One expression that matches a name that any of the globs matches; None for no globs."""
    parts = [fnmatch.translate(glob.decode("latin-1")).encode("latin-1") for glob in globs]
    return re.compile(b"|".join(parts)) if parts else None


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """Which names are project files: some as they are, and all with one of some endings."""

    names: frozenset[bytes]
    globs: frozenset[bytes]
    _ending: re.Pattern[bytes] | None

    @classmethod
    def changed(cls, entries: Iterable[bytes]) -> ProjectFiles:
        """The built-in ones with `NAME` and `*.ENDING` added, and `!NAME`, `!*.ENDING` removed."""
        names, globs = set(PROJECT_FILES), set(PROJECT_GLOBS)
        for entry in entries:
            bare = entry.removeprefix(_NEGATION)
            kind = globs if bare.startswith(_SUFFIX_GLOB) else names
            kind.discard(bare) if entry.startswith(_NEGATION) else kind.add(bare)
        return cls(frozenset(names), frozenset(globs), _suffix_pattern(sorted(globs)))

    def any_in(self, names: frozenset[bytes] | set[bytes]) -> bool:
        """Whether one of the names is a project file."""
        if not self.names.isdisjoint(names):
            return True
        if self._ending is None:
            return False
        return self._ending.search(_SEPARATOR.join(names) + _SEPARATOR) is not None


def _suffix_pattern(globs: Iterable[bytes]) -> re.Pattern[bytes] | None:
    """Finds a name with one of the endings `*.x` in a text of names, each followed by `/`."""
    endings = b"|".join(re.escape(glob.removeprefix(_SUFFIX_GLOB)) for glob in globs)
    return re.compile(rb"\.(?:" + endings + rb")/") if endings else None


BUILT_IN_PROJECT_FILES = ProjectFiles.changed(())


def is_marker(name: bytes, files: ProjectFiles = BUILT_IN_PROJECT_FILES) -> bool:
    """Whether the coming or going of `name` can change what its folder is."""
    if name in VCS_NAMES or name in GIT_BARE_NAMES or name == _PNPM:
        return True
    return files.any_in({name})


@dataclass(frozen=True, slots=True)
class WalkRules:
    """How one parent's inside is walked.

    `skip_names` and `skip_globs` are the user's, besides the built-in ones; `stops` are folders
    that are not entered though they lie inside: other parents and mount points. `device` is the
    parent's file system where mount points are not known, else None.
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
        """The rules of a configured parent; `stops` outside it do no harm."""
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
        """All that settles what a walk by these rules finds, the built-in lists included."""
        globs = self.skip_globs.pattern if self.skip_globs is not None else b""
        files = (self.files.names, SKIPPED_BESIDE_A_PROJECT_FILE, self.files.globs)
        lists = (VCS_NAMES, *files, self.skip_names, self.stops)
        parts = [_SEPARATOR.join(sorted(names)) for names in lists]
        return b"\0".join((b"%d" % self.depth, self.nested.value.encode(), globs, *parts))

    def skipped(self, names: frozenset[bytes] | set[bytes]) -> frozenset[bytes]:
        """The names that are not entered in a folder that holds `names`; hidden ones apart."""
        if SKIPPED_BESIDE_A_PROJECT_FILE.isdisjoint(names) or not self.files.any_in(names):
            return self.skip_names
        return self.skip_names | SKIPPED_BESIDE_A_PROJECT_FILE

    def enters(self, folder: bytes, name: bytes, skipped: frozenset[bytes]) -> bool:
        """Whether the walk goes from `folder` into its folder `name`."""
        if name.startswith(_HIDDEN) or name in skipped:
            return False
        if self.skip_globs is not None and self.skip_globs.match(name):
            return False
        return not self.stops or child(folder, name) not in self.stops


def child(folder: bytes, name: bytes) -> bytes:
    """`folder/name`, without a second slash below `/`."""
    return folder + name if folder.endswith(b"/") else folder + b"/" + name
