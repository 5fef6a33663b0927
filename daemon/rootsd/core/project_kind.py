"""The kinds of projects, and the names in a folder that make it a project.

Standard library only, because the lean programs must recognize a project, too
(`rootsd.places.own_folder`).
"""

from __future__ import annotations

from enum import StrEnum

TYPE_CHECKING = False  # to import typing would take a seventh of the time of `rootsd check`
if TYPE_CHECKING:
    from typing import Self


class ProjectKind(StrEnum):
    """The kind of a project: a kind of repository, a folder with a project file, or a URI.

    Each line has the stored value, which must never change, and then the `markers`: names that
    make the folder they are in a checkout. CONTRIBUTING.md says how to add a VCS.
    """

    _value_: str
    markers: tuple[bytes, ...]

    def __new__(cls, value: str, *markers: bytes) -> Self:
        """Create a member from its stored value and its markers."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.markers = markers
        return member

    GIT = "git", b".git"
    GIT_WORKTREE = "git-worktree"
    GIT_SUBMODULE = "git-submodule"
    GIT_BARE = "git-bare"
    JJ = "jj", b".jj"
    HG = "hg", b".hg"
    SVN = "svn", b".svn"
    SAPLING = "sapling", b".sl"
    FOSSIL = "fossil", b".fslckout", b"_FOSSIL_"
    BZR = "bzr", b".bzr"
    PIJUL = "pijul", b".pijul"
    DARCS = "darcs", b"_darcs"
    REPO_TREE = "repo-tree", b".repo"
    WEST_TREE = "west-tree", b".west"
    GCLIENT_TREE = "gclient-tree", b".gclient"
    PROJECT = "project"
    URI = "uri"

    @property
    def is_tree(self) -> bool:
        """Whether it is a folder of many repositories, which repo, west, or gclient manages."""
        return self in _TREES


_TREES = frozenset((ProjectKind.REPO_TREE, ProjectKind.WEST_TREE, ProjectKind.GCLIENT_TREE))

VCS_NAMES = frozenset(marker for kind in ProjectKind for marker in kind.markers)
"""The names that version control systems give to their files and folders."""
GIT_BARE_NAMES = frozenset((b"HEAD", b"objects", b"refs"))

PROJECT_FILES = frozenset(
    b"pyproject.toml setup.py setup.cfg package.json deno.json deno.jsonc Cargo.toml go.mod"
    b" go.work pom.xml build.gradle build.gradle.kts settings.gradle settings.gradle.kts"
    b" composer.json Gemfile mix.exs rebar.config CMakeLists.txt meson.build Package.swift"
    b" pubspec.yaml build.zig stack.yaml dune-project flake.nix".split()
)
PROJECT_GLOBS = (b"*.sln", b"*.csproj", b"*.fsproj", b"*.cabal", b"*.code-workspace")
