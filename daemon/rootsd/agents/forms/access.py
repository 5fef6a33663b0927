"""The access lists of an agent: in which file they are, under which keys, and in which words.

Only access is written, never trust: nothing here lets a project's own hooks or servers run. No
switch is written that turns the sandbox of a client on or off.

A pattern language gives some characters a meaning. They are escaped where the client allows that.
Otherwise, the folder is left out, and `rootsd deny` and `rootsd sync status` name it. Sources: the
settings references of the clients, and runs of Claude Code 2.1, Codex 0.169, Copilot CLI 1.0, and
opencode 1.18 with each character, as of November 2026.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from rootsd.agents.forms.place import SettingsPlace

EXPANDED = "$%~\\"
"""What many programs expand in a plain path."""


class ListFile(Enum):
    """Who writes the file that has the lists.

    A PROFILE has nothing but our entries. The client reads it only if a person names it.
    """

    SHARED = "the settings of a client, which others write, too"
    PROFILE = "a file of our own, in TOML"


class ListLine(NamedTuple):
    """A line for one folder: an item of the array at `keys` or, with a `value`, a member there.

    * `text`: the item or the key, with `{}` for the path.
    * `special`: characters that mean something else there, and cannot be escaped.
    * `escaped`: characters that `\\` escapes.
    * `trims_names`: whether a space at the end of a name is lost.
    """

    keys: tuple[str, ...]
    text: str
    value: str | None = None
    special: str = ""
    escaped: str = ""
    trims_names: bool = False


class InProject(NamedTuple):
    """A file of the project in which a session began: its path below the top folder."""

    path: str


class InVariable(NamedTuple):
    """Settings in JSON in a variable. They are the value at `keys`."""

    name: str
    keys: tuple[str, ...] = ()


class ReplacingKeys(NamedTuple):
    """Keys in a TOML file of a project. Each one takes all denials away.

    `path` is that of the file below the project. `condition` is a clause that says when.
    """

    path: str
    keys: tuple[str, ...]
    condition: str


class ListFormat(NamedTuple):
    """The lists of one client.

    * `place`: of the settings.
    * `denial`: the lines that deny a folder, and `grant` those that open one, if rootsd opens any
      to this client. `read_only` are further lines for a folder that it must not change.
    * `applies`: when a running client notices.
    * `not_covered`: what a denial does not cover.
    * `merged_with`: the names of all files in its folder that the client merges, the one that
      wins last. If a later one than `place` exists, our entries are there.
    * `kept_in`: whether the file is ours alone. `always` are the lines, without a path, that it
      needs for the others to mean something.
    * `merges`: all settings that the client merges, in its order, if `rootsd.sync.merged_rules`
      says how. They can take denials away, as can what is in `replaced_by`.
    """

    place: SettingsPlace
    denial: tuple[ListLine, ...]
    applies: str
    not_covered: str
    grant: tuple[ListLine, ...] = ()
    read_only: tuple[ListLine, ...] = ()
    merged_with: tuple[str, ...] = ()
    kept_in: ListFile = ListFile.SHARED
    always: tuple[ListLine, ...] = ()
    merges: tuple[SettingsPlace | InProject | InVariable, ...] = ()
    replaced_by: ReplacingKeys | None = None
