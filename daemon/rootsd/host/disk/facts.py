"""All that is shown of a project beside its decision, gathered by our own bounded readers.

Everything here is text that the project's author chose, or that lies in the project: it is shown,
escaped, and nothing is ever decided on it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rootsd.core.model import ProjectKind
from rootsd.host.disk.findings import Concern, Finding, executed, survey
from rootsd.host.disk.manifest import name_in
from rootsd.host.disk.markers import BUILT_IN, ProjectFiles
from rootsd.host.disk.reader import names_in
from rootsd.host.vcs.gitdir import links_back
from rootsd.host.vcs.origin import branch_of, is_plain, origin_of, place_of, settings_of

_MOST_PROJECT_FILES = 50

# What a project file says of the tools that its project is for.
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
_ECOSYSTEM_ENDINGS: Mapping[bytes, str] = MappingProxyType(
    {b"sln": "dotnet", b"csproj": "dotnet", b"fsproj": "dotnet", b"cabal": "haskell"}
)


def facts_of(
    path: bytes, kind: ProjectKind, project_files: ProjectFiles = BUILT_IN
) -> dict[str, Any]:
    """The facts as fields of an item of `rootsd/1`, ready for JSON. Raises nothing.

    `has_history` is no such field: whether libgit2 may be asked for the last commit.

    Text that is not UTF-8 has lone surrogates, as in a path (PEP 383).
    """
    files = sorted(name for name in names_in(path) if project_files.any_in({name}))
    del files[_MOST_PROJECT_FILES:]
    declared = (name_in(path + b"/" + name) for name in files)
    place = place_of(path, kind)
    settings = settings_of(place) if place is not None else {}
    hooks = place.common + b"/hooks" if place is not None else None
    found = survey(path, settings, hooks, project_files)
    if place is not None and place.work == path and not links_back(place):
        found.add(Finding(Concern.ELSEWHERE, b".git", os.fsdecode(place.folder)))
    return {
        "origin": origin_of(path, kind),
        "branch": branch_of(path, kind),
        "project_files": [os.fsdecode(name) for name in files],
        "declared_names": list(dict.fromkeys(name for name in declared if name)),
        "ecosystems": sorted({each for name in files if (each := _ecosystem(name))}),
        "findings": [_in_words(finding) for finding in found.findings],
        "findings_left_out": found.more,
        "has_history": place is not None and is_plain(place),
        "size": {
            "bytes": found.size.disk,
            "files": found.size.files,
            "whole": found.size.is_whole,
        },
    }


def executed_in(path: bytes, kind: ProjectKind) -> list[str]:
    """Return the files of a project that agents and git execute, relative to it. Raises nothing.

    About 30 lstat(2) calls, and one small file of git.
    """
    place = place_of(path, kind)
    settings = settings_of(place) if place is not None else {}
    hooks = place.common + b"/hooks" if place is not None else None
    return list(dict.fromkeys(os.fsdecode(each.path) for each in executed(path, settings, hooks)))


def _ecosystem(name: bytes) -> str | None:
    return _ECOSYSTEMS.get(name) or _ECOSYSTEM_ENDINGS.get(name.rpartition(b".")[2])


def _in_words(finding: Finding) -> dict[str, str]:
    return {
        "concern": finding.concern.value,
        "path": os.fsdecode(finding.path),
        "detail": finding.detail,
    }
