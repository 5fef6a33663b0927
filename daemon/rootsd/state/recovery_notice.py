"""Report repairs of the store until the user has seen them or decided again."""

from __future__ import annotations

from rootsd.core.catalog import Catalog
from rootsd.core.model import LapseReason, Project, Verdict
from rootsd.state.ledger import Ledger

_LOST = "Decisions were lost."
_REMEDY = (
    "Approvals have lapsed: rootsd approve --lapsed --all restores them, with --dry-run it shows"
    " them."
)


class RecoveryNotice:
    """The report about a store that was repaired, or that lost approvals.

    `note` says what this start repaired or took back. It is empty if that was nothing. `cause`
    says why approvals lapsed, at this start or at an earlier one.

    The report stays until a person has decided about each lapsed approval. If none lapsed, it
    stays until a person has seen it.
    """

    def __init__(self, ledger: Ledger, note: str, cause: str = "") -> None:
        self._ledger = ledger
        self._note = note
        self._still_lapsed = f"{cause or _LOST} {_REMEDY}"
        self._needs_decisions = _is_anything_lost(ledger.catalog)

    def report(self) -> list[str]:
        """Return the report, if there is one."""
        if _is_anything_lost(self._ledger.catalog):
            return [self._note or self._still_lapsed]
        if self._needs_decisions:
            self._note = ""
        return [self._note] if self._note else []

    def mark_seen(self) -> None:
        """Note that a person has seen the report. To look decides nothing that still lapses."""
        if not _is_anything_lost(self._ledger.catalog):
            self._note = ""


def _is_anything_lost(catalog: Catalog) -> bool:
    """Return whether `approve --lapsed --all` would restore anything."""
    if any(rule.verdict is Verdict.PENDING for rule in catalog.rules):
        return True
    return any(_is_lost(p) and catalog.is_pending(p) for p in catalog.projects.values())


def _is_lost(project: Project) -> bool:
    lapse = project.ruling.lapse
    return lapse is not None and lapse.reason is LapseReason.STORE_RESTORED
