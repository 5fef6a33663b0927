"""Answer questions about projects and their git repositories, inside a worker.

The daemon must not import this module, because it would load libgit2.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from rootsd.core.model import Inspection
from rootsd.disk.markers import ProjectFiles
from rootsd.helper.inspections import inspect
from rootsd.helper.projects import RISKS_SOFT_S, ProjectQuery
from rootsd.helper.protocol import typed_answer
from rootsd.vcs.facts import CollectedFacts, CollectedRisks, collect_facts, collect_risks
from rootsd.vcs.git.libgit2 import last_commit, read_tracking
from rootsd.wire.projects import LastCommitItem, TrackingFacts

Found = TypeVar("Found")


@typed_answer
def answer_facts(question: list[ProjectQuery]) -> list[CollectedFacts]:
    """Return the facts of each project."""
    return [
        collect_facts(each.path, each.kind, ProjectFiles.changed(each.project_files))
        for each in question
    ]


@typed_answer
def answer_risks(question: list[ProjectQuery]) -> list[CollectedRisks]:
    """Return the risks of the projects. Late ones are missing, but the first one is there."""
    return _first_of(question, lambda each: collect_risks(each.path, each.kind))


@typed_answer
def answer_inspections(question: list[ProjectQuery]) -> list[Inspection | None]:
    """Return what a look into the projects finds, or None if nothing changed, as above."""
    return _first_of(question, lambda each: inspect(each.path, each.kind, each.state))


def _first_of(
    question: list[ProjectQuery], answer: Callable[[ProjectQuery], Found]
) -> list[Found]:
    deadline, found = time.monotonic() + RISKS_SOFT_S, list[Found]()
    for each in question:
        found.append(answer(each))
        if time.monotonic() > deadline:
            break
    return found


@typed_answer
def answer_last_commit(question: bytes) -> LastCommitItem | None:
    """Return the last commit of the repository at a path."""
    return last_commit(question)


@typed_answer
def answer_tracking(question: bytes) -> TrackingFacts:
    """Return the upstream and the remotes of the repository at a path."""
    return read_tracking(question)
