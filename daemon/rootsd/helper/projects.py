"""Ask the helper about projects: their facts, risks, and history.

`ask_facts` and `ask_risks` cover many projects at once. The worker answers with our own bounded
readers, which can hang only on a dead file system. `ask_last_commit` and `ask_tracking` cover one
repository and use libgit2. Call them only if our readers found nothing suspicious in the
repository. `project_facts` has the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rootsd.core.model import Inspection, ProjectKind
from rootsd.helper.client import Helper, NoAnswer, ask_typed
from rootsd.helper.protocol import HelperTask
from rootsd.vcs.facts import CollectedFacts, CollectedRisks
from rootsd.wire.projects import LastCommitItem, TrackingFacts

MAX_PROJECTS_PER_QUESTION = 16
_FACTS_S = 2.0
_LAST_COMMIT_S = 2.0
_TRACKING_S = 2.0
RISKS_SOFT_S = 0.1
"""A worker that has read the risks of projects for so long answers with those that it has."""


class ProjectQuery(NamedTuple):
    """A project to collect facts about.

    `project_files` are the configured changes to the built-in list of project files. `state` is
    that of its last inspection.
    """

    path: bytes
    kind: ProjectKind
    project_files: tuple[bytes, ...] = ()
    state: bytes = b""


def ask_facts(helper: Helper, projects: Sequence[ProjectQuery]) -> list[CollectedFacts | None]:
    """Return the facts of each project in order, with None where the answer is late.

    If a question about several projects gets no answer, ask about each project separately.
    """
    if not projects:
        return []
    seconds = _FACTS_S + 0.5 * len(projects)
    try:
        return [*ask_typed(helper, HelperTask.FACTS, projects, seconds, list[CollectedFacts])]
    except NoAnswer:
        if len(projects) == 1:
            return [None]
        return [each for project in projects for each in ask_facts(helper, [project])]


def ask_risks(
    helper: Helper, projects: Sequence[ProjectQuery], seconds: float
) -> list[CollectedRisks]:
    """Return the risks of the first of these projects, in order: of at least one, or of all.

    Raises NoAnswer.
    """
    return ask_typed(helper, HelperTask.RISKS, projects, seconds, list[CollectedRisks])


def ask_inspections(
    helper: Helper, projects: Sequence[ProjectQuery], seconds: float
) -> list[Inspection | None]:
    """Return what a look into the first of these projects finds, in order, as `ask_risks` does.

    It is None where nothing has changed since the `state` of the query. Raises NoAnswer.
    """
    return ask_typed(helper, HelperTask.INSPECTIONS, projects, seconds, list[Inspection | None])


def ask_last_commit(helper: Helper, path: bytes) -> LastCommitItem | None:
    """Return the commit that is checked out, or None if there is none or the answer is late."""
    try:
        return ask_typed(
            helper,
            HelperTask.LAST_COMMIT,
            path,
            _LAST_COMMIT_S,
            LastCommitItem | None,  # type: ignore[arg-type] # a union, too, is a type to msgspec
        )
    except NoAnswer:
        return None


def ask_tracking(helper: Helper, path: bytes) -> TrackingFacts:
    """Return upstream, ahead, behind, and remotes of a repository; empty if the answer is late.

    Counting commits can take long in a large history. It is a question of its own, so that the
    last commit is known even then.
    """
    try:
        return ask_typed(helper, HelperTask.TRACKING, path, _TRACKING_S, TrackingFacts)
    except NoAnswer:
        return {}
