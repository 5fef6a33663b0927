"""The folders that the user configured: what is looked for in one, and how much of it was seen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Nested(StrEnum):
    """What is proposed below a project: nothing, repositories, or these and workspace members."""

    NONE = "none"
    VCS = "vcs"
    MEMBERS = "members"


@dataclass(frozen=True, slots=True)
class Parent:
    """A folder that the user configured; its inside is discovered and watched.

    `depth` is how many levels below the parent a project may lie; `skip` are names or globs that
    are never entered, besides the built-in ones. `project_files` are names and `*.ENDING`s that
    make a folder a project, too; with a `!` before them they do not.
    """

    path: bytes
    depth: int = 4
    skip: tuple[bytes, ...] = ()
    nested: Nested = Nested.NONE
    project_files: tuple[bytes, ...] = ()


class Coverage(StrEnum):
    """How much of a parent a scan could read."""

    FULL = "full"
    PARTIAL = "partial"
    NONE = "none"
