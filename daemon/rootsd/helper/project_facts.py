"""Answer questions about projects and their git repositories, inside a worker.

The daemon must not import this module, because it would load libgit2.
"""

from __future__ import annotations

import json
import time

from rootsd.disk.markers import ProjectFiles
from rootsd.helper.questions import RISKS_SOFT_S, parse_project_queries
from rootsd.vcs.facts import collect_facts, collect_risks
from rootsd.vcs.git.libgit2 import last_commit, read_tracking


def answer_facts(question: bytes) -> bytes:
    """Take the projects of `questions.ask_facts`, and return a JSON list of their facts."""
    facts = [
        collect_facts(each.path, each.kind, ProjectFiles.changed(each.project_files))
        for each in parse_project_queries(question)
    ]
    return json.dumps(facts).encode()


def answer_risks(question: bytes) -> bytes:
    """Take the projects of `questions.ask_risks`, and return a JSON list of their risks.

    The list may be shorter than that of the projects, but it has the first one.
    """
    deadline, found = time.monotonic() + RISKS_SOFT_S, []
    for each in parse_project_queries(question):
        found.append(collect_risks(each.path, each.kind))
        if time.monotonic() > deadline:
            break
    return json.dumps(found).encode()


def answer_last_commit(question: bytes) -> bytes:
    """Take the path of a repository, and return its last commit as JSON."""
    return json.dumps(last_commit(question)).encode()


def answer_tracking(question: bytes) -> bytes:
    """Take the path of a repository, and return its upstream and remotes as JSON."""
    return json.dumps(read_tracking(question)).encode()
