"""The columns of the lists, which are those of the listings as far as there is room. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rootsd.cli.text.confined_words import describe_roots
from rootsd.cli.text.phrases import pluralize
from rootsd.cli.text.projects import FOUND, KIND, NAME, OWNER, PATH, RISK, risk_of
from rootsd.cli.text.render import Column, time_column
from rootsd.cli.text.theme import Tone
from rootsd.core.project_kind import ProjectKind
from rootsd.wire.follow import ProjectGroup

_WIDEST_NAME = 32


class Fit(Struct, frozen=True):
    """A column, and the fewest cells in which it is of use."""

    column: Column
    cells: int


def _flag(item: Mapping[str, Any]) -> str:
    """Return a word about a project that a person should not miss."""
    if item.get("request"):
        return "requested"
    if item["group"] == ProjectGroup.DENIED:
        return "denied"
    if item["group"] == ProjectGroup.APPROVED and not item["published"]:
        return "not published"
    return "read only" if item["access"] == "read" else ""


def _flag_and_risk(item: Mapping[str, Any]) -> str:
    flag = _flag(item)
    if "risk" not in item:  # until the daemon has read the project
        return flag or "…"
    return ", ".join(each for each in (flag, risk_of(item)) if each)


def _session_roots(item: Mapping[str, Any]) -> str:
    if "engine" in item:
        return describe_roots(item)
    return pluralize(item["given"][-1]["roots"], "root") if item["given"] else "no roots yet"


_RISK = replace(RISK, cell=_flag_and_risk, short=None)
_WALL = Column(
    "WALL", lambda item: "wall" if "engine" in item else "no wall", tones={"wall": Tone.GOOD}
)
_SESSION_NAME = Column("NAME", lambda item: item["name"] if "engine" in item else item["client"])
_NAME = replace(NAME, limit=None)
# In the order in which they get room. The first one is always there.
PROJECT_FITS = (
    Fit(_NAME, 16),
    Fit(_RISK, 15),
    Fit(FOUND, 8),
    Fit(OWNER, 18),
    Fit(KIND, max(map(len, ProjectKind))),
    Fit(PATH, 30),
)
_PROJECT_ORDER = (_NAME, _RISK, OWNER, FOUND, KIND, PATH)
SESSION_FITS = (
    Fit(_SESSION_NAME, 12),
    Fit(Column("ROOTS", _session_roots), 10),
    Fit(_WALL, 8),
    Fit(time_column("SINCE", "since"), 8),
    Fit(Column("SCOPE", lambda item: " ".join(item["scope"]) or "all roots"), 16),
)


def fitted_columns(fits: Sequence[Fit], width: int) -> list[Fit]:
    """Return the columns that have room in so many cells, with a gap after each, to the last cell.

    The first column gets what is left, up to a limit, and the second one the rest.
    """
    shown = list(_with_room(fits, width))
    left = width - sum(fit.cells for fit in shown) - (len(shown) - 1)
    first = shown[0].cells + min(max(left, 0), max(_WIDEST_NAME - shown[0].cells, 0))
    wider = [replace(shown[0], cells=first if shown[1:] else width), *shown[1:]]
    if rest := max(width - sum(fit.cells for fit in wider) - (len(wider) - 1), 0):
        at = len(wider) - 1 if wider[-1].column is PATH else 1
        wider[at] = replace(wider[at], cells=wider[at].cells + rest)
    if fits is PROJECT_FITS:
        wider.sort(key=lambda fit: _PROJECT_ORDER.index(fit.column))
    return wider


def _with_room(fits: Sequence[Fit], width: int) -> Iterator[Fit]:
    left = width + 1
    for fit in fits:
        if fit is not fits[0] and left < fit.cells + 1:
            return
        left -= fit.cells + 1
        yield fit
