"""What is there to see of these projects, and of this one's history? Both ends of the questions.

The first is answered by our own readers, which cannot hang but on a dead file system, for many
projects at once. The second by libgit2, for one, and only where our readers found nothing odd.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rootsd.core.model import ProjectKind
from rootsd.host.helper.duties import Duty
from rootsd.host.helper.link import Helper, NoAnswer

Facts = dict[str, Any]

MOST_AT_ONCE = 16
_SECONDS_EACH = 2.0
_SECONDS_OF_HISTORY = 2.0
_SEPARATOR = b"\0"


def ask_facts(helper: Helper, projects: Sequence[tuple[bytes, ProjectKind]]) -> list[Facts | None]:
    """The facts of each project, in order; None where they could not be had in time.

    Where one of many keeps the answer away, each is asked for alone.
    """
    if not projects:
        return []
    question = _SEPARATOR.join(part for path, kind in projects for part in (kind.encode(), path))
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
