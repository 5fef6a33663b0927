"""What the start had to put right in the store, told for as long as it concerns a person."""

from __future__ import annotations

from rootsd.app.deciding.ledger import Ledger
from rootsd.core.catalog import Catalog
from rootsd.core.model import LapseReason, Project, Verdict

_STILL_LAPSED = (
    "Decisions were lost, and what they had approved has lapsed: rootsd approve --lapsed --all"
    " restores it, with --dry-run it shows it."
)


class Repairs:
    """`note` says what was put right at this start, and is empty where that was nothing.

    It is told until all that lapsed by it was decided; where nothing did, until a person has seen
    it. What a daemon before this one put right, and nobody has decided yet, is told as well.
    """

    def __init__(self, ledger: Ledger, note: str) -> None:
        self._ledger = ledger
        self._note = note
        self._asks = _is_anything_lost(ledger.catalog)

    def told(self, *, is_look: bool) -> list[str]:
        """The sentence, if there is one; with `is_look` a person is shown it now."""
        if _is_anything_lost(self._ledger.catalog):
            return [self._note or _STILL_LAPSED]
        if self._asks:
            self._note = ""
        told = [self._note] if self._note else []
        if is_look:
            self._note = ""
        return told


def _is_anything_lost(catalog: Catalog) -> bool:
    """Whether one order would restore anything."""
    if any(rule.verdict is Verdict.PENDING for rule in catalog.rules):
        return True
    return any(_is_lost(p) and catalog.is_waiting(p) for p in catalog.projects.values())


def _is_lost(project: Project) -> bool:
    lapse = project.ruling.lapse
    return lapse is not None and lapse.reason is LapseReason.STORE_RESTORED
