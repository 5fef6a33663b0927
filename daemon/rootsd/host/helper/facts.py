"""In the helper: the facts of projects, see rootsd.host.helper.describing."""

from __future__ import annotations

import json

from rootsd.host.disk.facts import facts_of
from rootsd.host.disk.markers import ProjectFiles
from rootsd.host.helper.describing import subjects_in


def answer(question: bytes) -> bytes:
    """The projects in, as `describing` puts them; a JSON list out."""
    facts = [
        facts_of(each.path, each.kind, ProjectFiles.changed(each.project_files))
        for each in subjects_in(question)
    ]
    return json.dumps(facts).encode()
