"""Answer questions about projects and their history, inside the helper only.

In the helper: the facts of projects, see rootsd.helper.questions.

In the helper: the last commit of a repository, see rootsd.helper.questions.
"""

from __future__ import annotations

import json

from rootsd.disk.markers import ProjectFiles
from rootsd.helper.questions import parse_project_queries
from rootsd.vcs.facts import collect_facts
from rootsd.vcs.git.libgit2 import last_commit


def answer_facts(question: bytes) -> bytes:
    """The projects in, as `describing` puts them; a JSON list out."""
    facts = [
        collect_facts(each.path, each.kind, ProjectFiles.changed(each.project_files))
        for each in parse_project_queries(question)
    ]
    return json.dumps(facts).encode()


def answer_last_commit(question: bytes) -> bytes:
    """The path of a repository in, JSON out."""
    return json.dumps(last_commit(question)).encode()
