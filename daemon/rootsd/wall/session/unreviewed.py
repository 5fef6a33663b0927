"""Find what sessions behind the wall changed in one project, and no person has reviewed.

An agent that starts outside would run or obey some of these files, and so would git when the agent
starts it. `rootsd review --before` asks before it starts, and `rootsd hook` asks once, at a call
of the agent.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from types import MappingProxyType
from typing import NamedTuple

from rootsd.core.labels import first_of, safe_label
from rootsd.core.paths import ancestors, contains
from rootsd.core.project_kind import VCS_NAMES
from rootsd.core.record import Text
from rootsd.wall.git.facts import FactKind
from rootsd.wall.git.left_behind_reports import read_reports, running_reports
from rootsd.wall.git.state_files import read_record, replace_record
from rootsd.wall.git.taken_away import still_holds

_ASKED = b"/.asked"
"""A file beside the folders of walls. No program has a name with a dot in front."""
_RUN = (FactKind.TOOL_FILE, FactKind.OBEYED, FactKind.PROGRAMS, FactKind.NEW_SETTINGS)
_MAX_NAMED = 8
_MAX_ASKED = 256


class AskedChanges(NamedTuple):
    """The last changes in each project that somebody was asked about, as a checksum."""

    by_project: Mapping[Text, str] = MappingProxyType({})


class Unreviewed(NamedTuple):
    """The changed files in a project, with their contents as checksums, and who changed them."""

    project: bytes
    makers: tuple[str, ...]
    files: Mapping[bytes, bytes]

    def sentence(self) -> str:
        """Return the changes as a sentence for people."""
        inside = (os.path.relpath(path, self.project) for path in sorted(self.files))
        names = [safe_label(each, limit=None) for each in inside]
        shown = first_of(names, _MAX_NAMED)
        return f"{' and '.join(self.makers)} changed {shown} behind the wall"


def find_unreviewed(walls: bytes, folder: str) -> Unreviewed | None:
    """Return what was changed in the project around a folder; None if nothing was."""
    project = _project_of(folder)
    makers: dict[str, None] = {}
    files: dict[bytes, bytes] = {}
    for report in (*read_reports(walls), *running_reports(walls)):
        for finding in () if report.is_seen else report.as_of_now().findings:
            fact = finding.fact
            is_there = not finding.is_removed and still_holds(fact)
            if fact.kind in _RUN and is_there and contains(project, fact.path):
                makers[report.program] = None
                files[fact.path] = fact.value
    return Unreviewed(project, tuple(makers), files) if files else None


def note_asked(walls: bytes, changes: Unreviewed) -> bool:
    """Remember that somebody is asked about these changes. Return whether this is the first time.

    Without a place to remember it, it is.
    """
    state = sha256(repr(sorted(changes.files.items())).encode()).hexdigest()
    known = dict((read_record(AskedChanges, walls + _ASKED) or AskedChanges()).by_project)
    if known.pop(changes.project, "") == state:
        return False
    last = dict([*known.items(), (changes.project, state)][-_MAX_ASKED:])
    with suppress(OSError):
        replace_record(walls + _ASKED, AskedChanges(last))
    return True


def _project_of(folder: str) -> bytes:
    """Return the checkout that a folder is in, or the folder itself."""
    path = os.path.realpath(os.fsencode(folder))
    for each in (path, *ancestors(path)):
        if any(os.path.lexists(os.path.join(each, name)) for name in VCS_NAMES):
            return each
    return path
