"""What is there to see of these projects, and of this one's history? Both ends of the questions.

The first is answered by our own readers, which cannot hang but on a dead file system, for many
projects at once. The second by libgit2, for one, and only where our readers found nothing odd.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from rootsd.core.model import ProjectKind
from rootsd.host.helper.duties import Duty
from rootsd.host.helper.link import Helper, NoAnswer

Facts = dict[str, Any]

MOST_AT_ONCE = 16
_SECONDS_EACH = 2.0
_SECONDS_OF_HISTORY = 2.0
_SEPARATOR = b"\0"
# Never part of a file name.
_BETWEEN_NAMES = b"/"


class Subject(NamedTuple):
    """A project to be described; `project_files` are the changes to the built-in ones that the
    configuration makes there."""

    path: bytes
    kind: ProjectKind
    project_files: tuple[bytes, ...] = ()


def subjects_in(question: bytes) -> list[Subject]:
    """The projects that a question of `ask_facts` is about."""
    parts = iter(question.split(_SEPARATOR))
    return [
        Subject(path, ProjectKind(kind.decode()), tuple(filter(None, files.split(_BETWEEN_NAMES))))
        for kind, files, path in zip(parts, parts, parts, strict=True)
    ]


def ask_facts(helper: Helper, projects: Sequence[Subject]) -> list[Facts | None]:
    """The facts of each project, in order; None where they could not be had in time.

    Where one of many keeps the answer away, each is asked for alone.
    """
    if not projects:
        return []
    question = _SEPARATOR.join(
        part
        for path, kind, files in projects
        for part in (kind.encode(), _BETWEEN_NAMES.join(files), path)
    )
    try:
        answer = helper.ask(Duty.FACTS, question, _SECONDS_EACH + 0.5 * len(projects))
        found: list[Facts | None] = json.loads(answer)
    except NoAnswer:
        if len(projects) == 1:
            return [None]
        return [each for project in projects for each in ask_facts(helper, [project])]
    return found


def ask_last_commit(helper: Helper, path: bytes) -> Facts | None:
    """The commit that is checked out; None where there is none or it could not be had in time."""
    try:
        found: Facts | None = json.loads(helper.ask(Duty.HISTORY, path, _SECONDS_OF_HISTORY))
    except NoAnswer:
        return None
    return found
